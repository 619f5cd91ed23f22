#include "remote/terminal_pair.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "remote/outbox.h"

namespace belljar::remote {

base::Result<TerminalPair> open_terminal_pair(std::string_view operation) {
  TerminalPair out{.master = base::Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), .slave = {}};
  std::array<char, 64> name{};
  const int master = out.master.get();
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0 ||
      ::ptsname_r(master, name.data(), name.size()) != 0) {
    return base::system_error(operation, "a terminal", errno);
  }
  out.slave = base::Fd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!out.slave) return base::system_error(operation, name.data(), errno);
  make_nonblocking(master);
  return out;
}

}  // namespace belljar::remote
