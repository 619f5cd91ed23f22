#include "session/state_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/io.h"
#include "base/path.h"
#include "base/private_folder.h"

namespace belljar::session {
namespace {

constexpr size_t kMostNames = 10'000;

}  // namespace

std::string state_path(std::string_view xdg_state_home, std::string_view home) {
  if (xdg_state_home.starts_with('/')) return base::normal_path(std::string(xdg_state_home) + "/belljar/sessions");
  if (home.starts_with('/')) return base::normal_path(std::string(home) + "/.local/state/belljar/sessions");
  return {};
}

std::string state_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  return state_path(state != nullptr ? state : "", home != nullptr ? home : "");
}

std::string quarantine_path(const std::string& sessions) {
  return base::parent_of(sessions) + "/quarantine";
}

base::Result<StateFolder> StateFolder::open(const std::string& path) {
  constexpr std::string_view kOperation = "open the state folder";
  if (path.empty()) {
    return base::refuse(kOperation, "", "neither XDG_STATE_HOME nor HOME says where it is, refusing", "set HOME");
  }
  BELLJAR_ASSIGN(base::Fd fd, base::open_private_folder(path, kOperation));
  BELLJAR_ASSIGN(std::string real, base::real_path(fd.get()));
  return StateFolder(std::move(fd), std::move(real));
}

base::Result<std::vector<std::string>> StateFolder::names(std::string_view suffix) const {
  // A description of its own: the place in the folder belongs to it.
  const int copy = ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy), &::closedir);
  if (!listing) {
    const int code = errno;
    if (copy >= 0) ::close(copy);
    return base::system_error("read the state folder", path_, code);
  }
  std::vector<std::string> out;
  while (const dirent* entry = ::readdir(listing.get())) {
    std::string_view name(&entry->d_name[0]);
    if (!name.ends_with(suffix) || name.size() == suffix.size()) continue;
    name.remove_suffix(suffix.size());
    out.emplace_back(name);
    if (out.size() >= kMostNames) break;
  }
  return out;
}

base::Result<base::Fd> StateFolder::open_file(const std::string& name, int flags) const {
  BELLJAR_ASSIGN(base::Fd file,
                 base::open_resolved(fd_.get(), name, static_cast<uint64_t>(flags | O_NONBLOCK | O_NOCTTY),
                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV));
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return base::system_error("open", name, errno);
  if (found.st_nlink == 0) return base::system_error("open", name, ENOENT);
  if (!S_ISREG(found.st_mode) || found.st_nlink != 1 || found.st_uid != ::geteuid()) {
    return base::refuse("open", path_ + "/" + name, "it is not a file of Belljar's, refusing", "remove it");
  }
  return file;
}

base::Result<base::Fd> StateFolder::write_locked_file(const std::string& name, std::string_view bytes) const {
  const std::string path = path_ + "/" + name;
  const std::string fresh = name + std::string(kUnnamed);
  ::unlinkat(fd_.get(), fresh.c_str(), 0);
  base::Fd file(::openat(fd_.get(), fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return base::system_error("make", path, errno, "the state folder must be writable");
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0 || !base::write_all(file.get(), bytes) ||
      ::renameat(fd_.get(), fresh.c_str(), fd_.get(), name.c_str()) != 0) {
    const int code = errno;
    ::unlinkat(fd_.get(), fresh.c_str(), 0);
    return base::system_error("write", path, code);
  }
  return file;
}

base::Status StateFolder::write_file(const std::string& name, std::string_view bytes) const {
  BELLJAR_TRY(write_locked_file(name, bytes));
  return {};
}

base::Result<base::Fd> StateFolder::open_bell(const std::string& name, int flags) const {
  BELLJAR_ASSIGN(base::Fd bell, base::open_resolved(fd_.get(), name, static_cast<uint64_t>(flags | O_NONBLOCK),
                                                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV));
  struct stat found{};
  if (::fstat(bell.get(), &found) != 0) return base::system_error("open", name, errno);
  if (!S_ISFIFO(found.st_mode) || found.st_uid != ::geteuid()) {
    return base::refuse("open", path_ + "/" + name, "it is not a bell of Belljar's, refusing", "remove it");
  }
  return bell;
}

base::Result<base::Fd> StateFolder::make_bell(const std::string& name) const {
  ::unlinkat(fd_.get(), name.c_str(), 0);
  if (::mkfifoat(fd_.get(), name.c_str(), 0600) != 0) return base::system_error("make the bell", name, errno);
  return open_bell(name, O_RDWR);
}

base::Status StateFolder::ring(const std::string& name) const {
  BELLJAR_ASSIGN(const base::Fd bell, open_bell(name, O_WRONLY));
  // Full: it has been rung, and nobody has come yet.
  if (::write(bell.get(), "", 1) != 1 && errno != EAGAIN) return base::system_error("ring", name, errno);
  return {};
}

void StateFolder::remove(const std::string& name) const {
  ::unlinkat(fd_.get(), name.c_str(), 0);
}

void StateFolder::remove_older(const std::string& name, std::chrono::seconds age) const {
  struct stat found{};
  if (::fstatat(fd_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (now - std::chrono::seconds(found.st_ctim.tv_sec) > age) remove(name);
}

}  // namespace belljar::session
