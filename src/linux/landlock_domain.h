// Landlock (landlock(7), Linux 5.13): a second, independent wall behind the mount namespace. What the mounts leave
// visible is bounded once more by a list of trees, and two ways out that no mount covers are shut: abstract unix
// sockets and signals.
//
// TCP port rules (ABI 4) are not used for the guest: a rule names one port, there is no "any", and they see no
// addresses. In a network namespace of its own the guest needs every port of its own loopback and there is nothing else
// to reach; with the host's network it may connect anywhere by definition. The launcher uses them on itself.
#pragma once

#include <cstdint>
#include <span>

namespace belljar::linux {

// The kernel's landlock ABI version: 0 when there is none (not built, not in the `lsm=` list, or refused by a filter).
// ABI 1 came with Linux 5.13, 2 5.19, 3 6.2, 4 6.7, 5 6.10, 6 6.12, 7 6.15.
[[nodiscard]] int landlock_abi();

// A tree, or a single file, that stays usable. Read, execute and list always. `writable` adds everything that makes,
// changes, renames and removes files and folders, but never device nodes. `device` adds writing to and ioctl on what is
// there, and nothing that makes or removes entries: for /dev and a pty folder.
struct LandlockRule {
  int fd = -1;  // an open descriptor of the tree, O_PATH will do; stays the caller's
  bool writable = false;
  bool device = false;
};

// What to restrict. Ask landlock_features() what an ABI offers.
struct LandlockFeatures {
  bool files = false;             // ABI 1; see below for ABI 1 itself
  bool abstract_sockets = false;  // ABI 6: no connect to abstract sockets made outside of the domain
  bool signals = false;           // ABI 6: no signal to a process outside of the domain
  bool tcp = false;  // ABI 4: no bind, and connect only to the ports given; to be asked for, never in what is offered
};

// All that `abi` can restrict. `files` starts at ABI 2: ABI 1 has no right for moving a file to another folder and so
// forbids it everywhere (EXDEV), also within the work folder, which breaks build tools.
[[nodiscard]] LandlockFeatures landlock_features(int abi);

// Restricts the calling thread and all it will start, for good. With `features.files` every access outside of `rules`
// is refused with EACCES; rights newer than the running kernel's ABI (truncate 3, ioctl on devices 5) are left to the
// mounts. no_new_privs must be set before. Descriptors opened before keep what they could do.
// Returns 0 or an errno: EOPNOTSUPP when a feature asked for is not in this kernel's ABI or when none is asked for (it
// never restricts less than asked), EBADF for a bad descriptor, EPERM without no_new_privs, E2BIG under 16 domains.
// Uses no heap; safe in a vfork child.
// `ports` are those that TCP may be connected to with `features.tcp`; of any address, since rules see none.
[[nodiscard]] int landlock_restrict(std::span<const LandlockRule> rules, LandlockFeatures features,
                                    std::span<const uint16_t> ports = {});

}  // namespace belljar::linux
