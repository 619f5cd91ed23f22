#include "cli/hook_token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/io.h"
#include "base/random.h"
#include "cli/launch_end.h"

namespace belljar::cli {
namespace {

constexpr std::string_view kWritingToken = "write the hook's token";
constexpr size_t kRandomBytes = 32;
constexpr mode_t kOthers = 077;

bool is_made_token(std::string_view line) {
  return line.size() == 2 * kRandomBytes + 1 && line.ends_with('\n') &&
         line.find_first_not_of("0123456789abcdef") == line.size() - 1;
}

}  // namespace

base::Result<std::string> make_hook_token(const std::string& path) {
  BELLJAR_ASSIGN(const base::Fd file, open_own_file(kWritingToken, path, O_RDWR));
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return base::system_error(kWritingToken, path, errno);
  if (found.st_uid != ::geteuid() || (found.st_mode & kOthers) != 0) {
    return base::refuse(kWritingToken, path, "others than you may open that file, refusing",
                        "name a new one, or chmod 600");
  }
  std::array<char, 2 * kRandomBytes + 2> old{};
  const ssize_t size = ::pread(file.get(), old.data(), old.size(), 0);
  if (size < 0) return base::system_error(kWritingToken, path, errno);
  if (size > 0 && !is_made_token({old.data(), static_cast<size_t>(size)})) {
    return base::refuse(kWritingToken, path, "it holds something else, which would be lost, refusing",
                        "name a new file");
  }
  std::string token = base::random_hex(kRandomBytes);
  if (::ftruncate(file.get(), 0) != 0 || !base::write_all(file.get(), token + "\n")) {
    return base::system_error(kWritingToken, path, errno);
  }
  return token;
}

}  // namespace belljar::cli
