// The process that watches over bubblewrap, and the one that becomes it.
#pragma once

#include <sys/types.h>

#include <span>

namespace belljar::tiers::bwrap {

// A bind that root's child gathers for bubblewrap, which runs as the guest's user and could neither reach it nor map
// its ids.
struct Gathered {
  const char* source = nullptr;  // real path
  const char* name = nullptr;    // in the stage
  bool writable = false;
  bool idmap = false;
  bool optional = false;
  int tree = -1;  // set by the child
};

// Lives in the launcher; both processes are forks of it, so that pointers stay good in them. No heap there.
struct Child {
  const char* program = nullptr;
  char* const* words = nullptr;
  std::span<const int> descriptors;  // the program's, from 0 on; these and `failed` lie above all of its numbers
  int go = -1;      // a byte is the sign to go on, its end that the launcher has changed its mind or is gone
  int failed = -1;  // where a Failure is written; closed by execve(2)
  int life = -1;    // ends with the launcher
  int go_end = -1;  // the launcher's ends of both
  int life_end = -1;
  // Of a launch by root.
  bool privileged = false;
  std::span<Gathered> gathered;
  const char* stage = nullptr;
  int user_namespace = -1;
  int id_map = -1;
  uid_t uid = 0;  // inside the user namespace
  gid_t gid = 0;
};

struct Failure {
  const char* operation = nullptr;  // of the launcher's memory
  const char* subject = "";
  int code = 0;
};

// In the forked process, with all signals blocked: starts bubblewrap as its child and stays until nothing of it is
// left. When the launcher is gone, or lets go of it, it ends what there is. For bubblewrap's --die-with-parent alone
// leaves a process behind: between clone(2) and the word that its ids are mapped the child waits for a parent that may
// be dead (bubblewrap.c, child_wait_fd). Returns the exit status.
int watch_over_bubblewrap(const Child& child);

}  // namespace belljar::tiers::bwrap
