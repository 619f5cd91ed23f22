// Descriptors that come by twos.
#pragma once

#include "base/error.h"
#include "base/fd.h"

namespace belljar::base {

// What is written to `in` is read from `out`. Both are O_CLOEXEC.
struct Pipe {
  Fd out, in;
  [[nodiscard]] Status open();
};

// Two connected unix sockets of `type` (SOCK_STREAM, SOCK_SEQPACKET, with SOCK_NONBLOCK if wanted), both O_CLOEXEC.
[[nodiscard]] Status make_pair(int type, Fd& ours, Fd& theirs);

}  // namespace belljar::base
