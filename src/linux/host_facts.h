// What the findings about this host mean for belljar, each gap with its remedy.
#pragma once

#include <string>
#include <vector>

#include "linux/host_evidence.h"

namespace belljar::linux {

// What a fact is needed for.
enum class Need : uint8_t {
  kJail,       // without it the jail refuses to start
  kHardening,  // a second wall; the jail starts without it and says so
  kLimits,     // limits of memory, cpu and pids
  kByName,     // the way out for programs that know no proxy
  kWorkspace,  // overlay workspaces
  kBwrap,      // the bwrap tier
  kDocker,     // the docker tier
};

struct HostFact {
  std::string key;  // stable, for programs: "user_namespaces"
  Need need = Need::kJail;
  bool ok = false;
  std::string what;    // "user namespaces"
  std::string why;     // the finding it rests on, in words; never empty
  std::string remedy;  // exact commands or file contents, may have several lines; empty when ok
};

// One value of each of the keys kernel, user_namespaces, namespaces, mounts, proc, seccomp, id_mapped,
// landlock, open_files, cgroups, redirect, overlay, bwrap and docker; id_mapped only for root. Pure.
[[nodiscard]] std::vector<HostFact> judge(const HostEvidence& evidence);

// True when every fact that the jail needs is ok.
[[nodiscard]] bool jail_can_start(const std::vector<HostFact>& facts);

// The AppArmor profile that lets the program at `program` make user namespaces where
// kernel.apparmor_restrict_unprivileged_userns is on (AppArmor 4; Ubuntu 23.10 and later). Characters of the path that
// AppArmor would read as a pattern are quoted.
[[nodiscard]] std::string apparmor_profile(const std::string& program);

// True when `release` ("6.1.0-18-amd64") names a Linux of at least major.minor. False for what it cannot read.
[[nodiscard]] bool kernel_at_least(const std::string& release, unsigned major, unsigned minor);

}  // namespace belljar::linux
