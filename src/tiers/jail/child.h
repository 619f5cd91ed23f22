// The child's half of a launch: from the clone to the execution of init.
#pragma once

#include <array>
#include <cstdint>

#include "tiers/jail/program.h"

namespace belljar::tiers::jail {

// Lives in the launcher's memory, which the child shares; the launcher sleeps meanwhile. Descriptors belong to the
// launcher, the child has its own copies of them.
struct Child {
  Program* program = nullptr;
  const char* guest_path = nullptr;  // of belljar-guest on the host
  uint64_t guest_device = 0;         // what the launcher found there
  uint64_t guest_inode = 0;
  int launcher_end = -1;  // of the control socket; the child closes its copy so that the launcher's death shows
  int control = -1;
  int config = -1;
  std::array<int, 3> stdio{-1, -1, -1};
  int user_namespace = -1;  // privileged: the guest's; else -1
  int id_map = -1;          // privileged: of the binds; may be the same
  // Text for the id maps of an ordinary user's launch.
  const char* uid_map = nullptr;
  const char* gid_map = nullptr;

  // What went wrong, set by the child.
  const char* failed_operation = nullptr;
  const char* failed_subject = "";
  int failed_code = 0;
};

// Entry for clone_sharing_memory(). No heap, no locks. Does not return when init was executed.
int run_child(void* child);

}  // namespace belljar::tiers::jail
