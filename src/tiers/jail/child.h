// The child's half of a launch: from the clone to the execution of init.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tiers/jail/program.h"

namespace belljar::tiers::jail {

// What the launcher sends the child over the control socket, with these descriptors: the end of a launcher that changes
// its mind, or dies, shows as the end of the socket.
struct Order {
  enum : size_t { kConfig, kStdin, kStdout, kStderr, kCount };
  uint32_t magic = 0;
};

// The second message, when root launches: the user namespaces, made while the child does what
// needs none.
struct Identities {
  enum : size_t { kUserNamespace, kIdMap, kCount };
  uint32_t magic = 0;
};

// The last message: where the child enters the guest's cgroups, made while it builds the guest. `count` of the
// descriptors are of groups.
struct Entries {
  static constexpr size_t kMost = 3;
  uint32_t magic = 0;
  uint32_t count = 0;
};

// What the child says of the way out for programs that know no proxy, before the order. These descriptors follow, each
// in a message of its own, unless `error` says why it is not to be had.
struct TransparentWay {
  enum : size_t { kRedirected, kDatagrams, kStreams, kCount };
  uint32_t magic = 0;
  int32_t error = 0;    // errno of `failed`
  uint32_t v6 = 0;      // IPv6 as well as IPv4
  uint32_t failed = 0;  // what of it failed: a TransparentStep
};
enum TransparentStep : uint32_t { kNoStep, kRouteStep, kRedirectStep, kListenStep };

// A path of the host that the child binds before it knows the plan: read-only and with the attributes that every bind
// has. A plan that wants it otherwise binds it anew.
struct EarlyTree {
  const char* source = nullptr;
  bool device = false;
  int tree = -1;  // the detached mount, while the child runs; -1 when there is none to be had
};

// Lives in the launcher's memory, which the child shares; the thread that cloned it sleeps meanwhile. Descriptors
// belong to the launcher, the child has its own copies of those that were open when it was cloned.
struct Child {
  // Before the clone.
  Foundation foundation;
  int control = -1;
  // Text for the id maps of an ordinary user's launch.
  const char* uid_map = nullptr;
  const char* gid_map = nullptr;
  std::span<EarlyTree> early;

  // Before the order.
  Program* program = nullptr;
  const char* guest_path = nullptr;  // of belljar-guest on the host
  uint64_t guest_device = 0;         // what the launcher found there
  uint64_t guest_inode = 0;

  // What went wrong, set by the child.
  const char* failed_operation = nullptr;
  const char* failed_subject = "";
  int failed_code = 0;
};

// Entry for clone_sharing_memory(). No heap, no locks. Does not return when init was executed.
int run_child(void* child);

}  // namespace belljar::tiers::jail
