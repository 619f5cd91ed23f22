// What init does differently when a container engine has started it, as the container's first process.
#pragma once

#include <string>

#include "guest/config.h"

namespace belljar::guest {

// Connects to the launcher (kMeetingSocket), takes what it hands in, and puts all where init expects it: 0, 1, 2,
// kControlFd, kConfigFd and kScratchFd. False when any of it fails.
[[nodiscard]] bool meet_launcher();

// The name of something that lies in a tmpfs of the config's (the home, /tmp, an agent's state) and leads to no mount
// of it; empty when there is nothing.
[[nodiscard]] std::string left_in_scratch(const Config& config);

// Puts the config's entries into the home, with folders of its own on the way. 0 or an errno value, and which path.
[[nodiscard]] int make_home(const Config& config, std::string_view& path);

// Hands out what a jail's child would have: with a network of its own the listener of the way out, made here; and the
// root of the home.
[[nodiscard]] bool hand_out_of_container(const Config& config);

}  // namespace belljar::guest
