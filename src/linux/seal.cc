#include "linux/seal.h"

#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace belljar::linux {

int set_no_new_privs() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return has_no_new_privs() ? 0 : EIO;
}

bool has_no_new_privs() {
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

int set_not_dumpable() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  return is_dumpable() ? EIO : 0;
}

bool is_dumpable() {
  return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0;
}

int new_session_keyring() {
  return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0 ? 0 : errno;
}

}  // namespace belljar::linux
