// What every guest gets of the host's system: programs and libraries read-only, the readable part of /etc, and its own
// /proc, /dev and scratch folders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/facts.h"
#include "plan/mount_table.h"

namespace belljar::plan {

// `nested`: a sandbox inside must be able to mount a proc of its own, so nothing of the guest's is hidden.
void add_system(MountTable& table, const Facts& facts, bool nested);

// /etc/resolv.conf, /etc/localtime and their like when they lead out of /etc: the content where the link points, never
// the folder around it. Comes after every other bind. `isolated`: without the host's network, so that the resolver is
// the guest's own.
void add_etc_links(MountTable& table, const Facts& facts, bool isolated, std::vector<std::string>& notes);

// True for paths that belong to the system: no policy can make them writable, no program's own files are looked for
// there.
[[nodiscard]] bool is_system_path(std::string_view path);

}  // namespace belljar::plan
