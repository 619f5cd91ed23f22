// What of a work folder is compared once the guest is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "workspace/protected.h"
#include "workspace/settled.h"

namespace belljar::workspace {

// A folder of the host that the guest had a copy of.
struct PrivateCopy {
  std::string target;  // absolute, on the host
  std::string upper;   // relative to the root of the scratch tmpfs: what was written, as overlayfs keeps it
  bool operator==(const PrivateCopy&) const = default;
};

// A git folder that the guest could write, or with `whole` unset a folder of one, such as refs. `known` is what was
// there of what git obeys (only in a whole one) and of links, sockets and FIFOs, by path relative to it.
struct GitFolder {
  bool whole = true;
  bool tree = false;  // a tree that the guest got itself: only what kept_by_git() tells is looked into
  std::string path;   // absolute
  FileId id;
  std::vector<Known> known;
  std::string config;  // text that `config` had
  bool operator==(const GitFolder&) const = default;
};

struct Guard {
  std::string root;  // the work folder: real path
  FileId id;
  std::vector<Known> known;           // what was there when the launch began
  std::vector<std::string> approved;  // patterns of what may be new (is_approved())
  std::vector<std::string> watched;   // relative: nothing may be there, since a protected link leads there
  // Absolute: folders of the host that the guest could write, under other names of its own, and nobody looks through:
  // no link may lead there.
  std::vector<std::string> unswept;
  std::vector<GitFolder> git_folders;
  // Absolute: folders of the agent's history, which the guest wrote as well. In those only files and folders may be
  // new.
  std::vector<std::string> histories;
  int64_t begun = 0;  // nanoseconds since 1970: what has changed since is new
  std::vector<PrivateCopy> copies;
  std::string quarantine;  // absolute path: the folder for the quarantines of all sessions
  std::string session;

  bool operator==(const Guard&) const = default;
};

[[nodiscard]] std::string encode(const Guard& guard);
[[nodiscard]] base::Result<Guard> decode_guard(std::string_view bytes);

// Once every process of the guest is gone: lists what it changed in its private copies, and moves every protected path
// that is new or another one than before to quarantine, at any depth. `scratch` is the root of the guest's scratch
// tmpfs, or -1: then nothing is known of the copies. Whatever the guest has left in the work folder, and whoever else
// is at work in it meanwhile, it changes nothing outside, follows no link and ends soon after the deadline, then
// unfinished; what it could not look at is told as unreleased. May be done again.
[[nodiscard]] base::Result<Settled> settle(const Guard& guard, int scratch, const base::Deadline& deadline);
// The time that the end of a session waits for it.
inline constexpr auto kSettleTime = std::chrono::seconds(40);

}  // namespace belljar::workspace
