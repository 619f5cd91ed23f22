// The set-up of a jail as a list of steps without decisions, so that a child that shares the launcher's memory can
// carry it out without a heap, and so that a test can take one step away.
#pragma once

#include <sched.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"

namespace belljar::tiers::jail {

// Ports in the guest's network namespace.
inline constexpr uint16_t kRedirectPort = 61081;  // where the connections to synthetic addresses arrive
inline constexpr uint16_t kResolverPort = 53;

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
  kPrivate,   // attach an overlay over the folder that is there: what is written goes to the scratch tmpfs
};

struct Step {
  Op op = Op::kFolder;
  const char* target = "";  // relative to the new root
  const char* source = "";
  size_t size = 0;    // of the text at source
  uint32_t mode = 0;  // kFolder, kScratch, kFile
  bool writable = false;
  bool idmap = false;
  bool optional = false;
  bool own_way = false;  // every folder above the target was made or mounted by a step: no link can be on the way
  bool owned = false;    // given to the guest's host id (root launches; else it is so anyway)
  bool link = false;     // kReadOnly: of a symbolic link itself
  int tree = -1;         // the detached mount, while the child runs
  int refused = 0;       // kPrivate: why the kernel made none, so that the folder is read-only; set by the child
};

// Of every bind, as MOUNT_ATTR_ bits.
extern const uint64_t kBindAttributes;

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
  bool synthetic_routes = true;
  bool redirect = true;
  bool resolver = true;
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
  bool transparent = true;  // try to serve programs that know no proxy; what of it:
  bool synthetic_routes = true;
  bool redirect = true;
  bool resolver = true;
  uint16_t hook_port = 0;  // of the guest's loopback: leads where the synthetic addresses do

  bool operator==(const Foundation&) const = default;
};

struct Program {
  std::vector<Step> steps;
  std::deque<std::string> text;  // owns what the steps point at
  plan::Identity identity;
  bool privileged = false;  // started by root: ids by setns, mounts by real root
  std::string hostname;
  bool nested = false;      // sandboxes can be made inside
  uint16_t proxy_port = 0;  // 0: the host's network namespace is shared
  policy::Transparent transparent = policy::Transparent::kAuto;
  uint16_t hook_port = 0;  // see Foundation
  uint64_t scratch_bytes = 0;
  uint64_t scratch_files = 0;
  Protections protections;
};

// Contents of the plan's mounts of kind kCopy, by target.
using Copies = std::map<std::string, std::string, std::less<>>;

// The number of a step of `program`. What a step puts into the scratch tmpfs is named by it.
[[nodiscard]] inline size_t number_of(const Program& program, const Step& step) {
  return static_cast<size_t>(&step - program.steps.data());
}

// What was written to a private copy lies in this folder of its own in the scratch tmpfs, as overlayfs keeps it.
inline constexpr const char* kPrivateUpper = "upper";

// The name, in the root of the scratch tmpfs, of the folder that the guest has at `target` (absolute); empty when no
// scratch folder is attached there.
[[nodiscard]] std::string scratch_folder(const Program& program, std::string_view target);

struct PrivateCopy {
  std::string target;  // absolute, in the guest
  std::string upper;   // what was written, relative to the root of the scratch tmpfs
};
// Folders (absolute, in the guest) that the kernel made no private copy of, once the child has ended: they are
// read-only.
[[nodiscard]] std::vector<std::string> refused_copies(const Program& program);
// Every private copy of `program`.
[[nodiscard]] std::vector<PrivateCopy> private_copies(const Program& program);

[[nodiscard]] Foundation foundation_of(const Program& program);
// Of every program whose plan has this port (0 without a network of its own), this wish and this hook, with all
// protections on.
[[nodiscard]] Foundation foundation_of(uint16_t proxy_port, policy::Transparent transparent, bool privileged,
                                       const policy::Hook& hook = {});

// The steps of `plan`. Looks at the host to tell files from folders; changes nothing. A target that two mounts claim,
// or one that would have to be created inside a folder of the host, is refused.
// A copy is made with its content in `copies`; one that is not in there is left out.
[[nodiscard]] base::Result<Program> compile(const plan::Plan& plan, bool privileged, const Copies& copies = {});

}  // namespace belljar::tiers::jail
