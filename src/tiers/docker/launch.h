// The docker tier: a container that is checked, not believed.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "guest/config.h"
#include "plan/plan.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/meeting.h"
#include "tiers/docker/profile.h"
#include "tiers/jail/launch.h"

namespace belljar::tiers::docker {

using jail::Copies;

inline constexpr const char* kSessionLabel = "belljar.session";

// The name of a session's container, and the label by which it is known: nothing is ever removed by name alone.
[[nodiscard]] std::string container_name(std::string_view session);
[[nodiscard]] std::string session_label(std::string_view session);

// A launch, ready to be carried out. Data only, so that a test may take a protection away before start(). The strings
// of `config` point into the plan and the copies, which must outlive it, and into `text`.
struct Prepared {
  Profile profile;
  std::string request;  // of the profile
  bool check = true;    // what the engine made of it
  guest::Config config;
  std::deque<std::string> text;
  // What the launch rests on and others could touch is still what it was: asked before the create, before the start and
  // once more when the container is met; its error ends the launch. May be empty.
  std::function<base::Status()> unchanged{};
};

// Of the plan's what any container's init is told; mounts, files and environment are to be added.
[[nodiscard]] guest::Config config_of(const plan::Plan& plan);

// What mountinfo must hold: the engine's own mounts, and the profile's.
[[nodiscard]] base::Status expect_mounts(Prepared& prepared);

// The namespaces that must be the container's own: all but the user namespace, which is as the engine is configured.
[[nodiscard]] base::Result<std::vector<uint64_t>> namespaces_to_leave();

// Puts into the meeting's folder what the container gets as files. `image` is the one of the plan: an id names a
// content, which does not change.
[[nodiscard]] base::Result<Prepared> prepare(const plan::Plan& plan, const Copies& copies, std::string_view session,
                                             Meeting& meeting, const Engine& engine, const Image& image);

// Creates the container, checks it, starts it, and meets its first process, which waits for its proof and GO as a
// jail's. On an error something of the container may be left: remove_container() is for every launch.
[[nodiscard]] base::Result<jail::Guest> start(const Engine& engine, Prepared& prepared, Meeting& meeting,
                                              const jail::Stdio& stdio, const base::Deadline& deadline);

}  // namespace belljar::tiers::docker
