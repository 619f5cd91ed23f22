// The set-up of a jail as a list of steps without decisions, so that a child that shares the launcher's memory can
// carry it out without a heap, and so that a test can take one step away.
#pragma once

#include <sched.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"

namespace belljar::tiers::jail {

enum class Op : uint8_t {
  kFolder,    // make a folder at target
  kLink,      // make a symbolic link at target, to source
  kFile,      // make a regular file at target with the text source
  kBind,      // attach the tree of the host at source
  kDevice,    // attach one device node of the host
  kScratch,   // attach a new folder of the scratch tmpfs
  kFileOver,  // attach a read-only file with the text source over what is there
  kProc,      // attach a new proc
  kPts,       // attach a new devpts
  kMask,      // attach an empty file or folder over what is there, if anything
  kReadOnly,  // attach what is there over itself, read-only
};

struct Step {
  Op op = Op::kFolder;
  const char* target = "";  // relative to the new root
  const char* source = "";
  uint32_t mode = 0;  // kFolder, kScratch
  bool writable = false;
  bool idmap = false;
  bool optional = false;
  bool own_way = false;  // every folder above the target was made or mounted by a step: no link can be on the way
  bool owned = false;    // given to the guest's host id (root launches; else it is so anyway)
  int tree = -1;         // the detached mount, while the child runs
};

// Every protection that is not a mount. Production leaves them all on; a test turns one off and sees the probe refuse.
struct Protections {
  uint64_t namespaces =
      CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  uint64_t bind_attributes = 0;  // MOUNT_ATTR_ bits of every bind, filled in by compile()
  bool death_signal = true;
  bool drop_groups = true;
  bool drop_bounding_set = true;
  bool limit_namespaces = true;
  bool root_read_only = true;
  bool detach_old_root = true;
  bool close_descriptors = true;
  bool loopback = true;
  bool listener = true;
  bool hostname = true;
};

// What a guest is before its plan is known: enough to clone it while the plan is made.
struct Foundation {
  uint64_t namespaces = Protections{}.namespaces;
  uint16_t proxy_port = 0;  // 0: the host's network namespace is shared
  bool privileged = false;  // started by root: ids by setns, mounts by real root
  bool death_signal = true;
  bool close_descriptors = true;
  bool loopback = true;
  bool listener = true;

  bool operator==(const Foundation&) const = default;
};

struct Program {
  std::vector<Step> steps;
  std::deque<std::string> text;  // owns what the steps point at
  plan::Identity identity;
  bool privileged = false;  // started by root: ids by setns, mounts by real root
  std::string hostname;
  uint16_t proxy_port = 0;  // 0: the host's network namespace is shared
  uint64_t scratch_bytes = 0;
  uint64_t scratch_files = 0;
  Protections protections;
};

[[nodiscard]] Foundation foundation_of(const Program& program);
// Of every program whose plan has this port (0 without a network of its own), with all protections on.
[[nodiscard]] Foundation foundation_of(uint16_t proxy_port, bool privileged);

// The steps of `plan`. Looks at the host to tell files from folders; changes nothing. A target that two mounts claim,
// or one that would have to be created inside a folder of the host, is refused.
[[nodiscard]] base::Result<Program> compile(const plan::Plan& plan, bool privileged);

}  // namespace belljar::tiers::jail
