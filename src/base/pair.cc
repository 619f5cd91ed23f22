#include "base/pair.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace belljar::base {

Status Pipe::open() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe", "", errno);
  out.reset(ends[0]);
  in.reset(ends[1]);
  return {};
}

Status make_pair(int type, Fd& ours, Fd& theirs) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair.data()) != 0) return system_error("socketpair", "", errno);
  ours.reset(pair[0]);
  theirs.reset(pair[1]);
  return {};
}

}  // namespace belljar::base
