// Names of the kernel's errors, for a program without a C library.
#pragma once

namespace belljar::guest {

// "EPERM" for EPERM (asm-generic/errno.h); null for a number that is none.
[[nodiscard]] const char* errno_name(int code);

}  // namespace belljar::guest
