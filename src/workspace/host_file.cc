#include "workspace/host_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/io.h"
#include "base/path.h"

namespace belljar::workspace {
namespace {

constexpr uint64_t kNoLinks = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

base::Result<std::optional<FileContent>> read_opened(base::Result<base::Fd> file, const std::string& path,
                                                     size_t limit) {
  if (!file) {
    if (file.error().code == ENOENT || file.error().code == ENOTDIR) return std::nullopt;
    return std::unexpected(std::move(file).error());
  }
  FileContent out;
  if (::fstat(file->get(), &out.info) != 0) return base::system_error("look at", path, errno);
  if (!S_ISREG(out.info.st_mode)) return base::refuse("read", path, "it is not a regular file");
  BELLJAR_ASSIGN(out.text, base::read_to_end(file->get(), limit, path));
  return out;
}

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_size == other.st_size &&
         one.st_mtim.tv_sec == other.st_mtim.tv_sec && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec &&
         one.st_ctim.tv_sec == other.st_ctim.tv_sec && one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
}

// True when `name` in `folder` is what `before` says.
bool is_still(int folder, const std::string& name, const std::optional<FileContent>& before) {
  struct stat now{};
  if (::fstatat(folder, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT && !before;
  return before && same_file(now, before->info);
}

std::string temporary_name() {
  uint64_t number = 0;
  (void)!::getrandom(&number, sizeof number, 0);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), ".belljar-%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

// A temporary file beside the one it is to become; goes unless it was moved.
class Temporary {
 public:
  explicit Temporary(int folder) : folder_(folder), name_(temporary_name()) {}
  ~Temporary() {
    if (file_) ::unlinkat(folder_, name_.c_str(), 0);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  base::Status write(std::string_view text, uid_t uid, gid_t gid, mode_t mode) {
    BELLJAR_ASSIGN(file_, base::open_resolved(folder_, name_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kNoLinks));
    // The owner first: a change of it clears bits of the mode (chown(2)).
    const bool good = (::geteuid() != 0 || ::fchown(file_.get(), uid, gid) == 0) && ::fchmod(file_.get(), mode) == 0 &&
                      base::write_all(file_.get(), text) && ::fsync(file_.get()) == 0;
    if (!good) return base::system_error("write", name_, errno);
    return {};
  }
  // Becomes `name`: instead of what is there, or only when nothing is.
  base::Result<bool> become(const std::string& name, bool replace) {
    if (replace) {
      if (::renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0) {
        return base::system_error("replace", name, errno);
      }
      file_.reset();
      return true;
    }
    if (::linkat(folder_, name_.c_str(), folder_, name.c_str(), 0) == 0) return true;
    if (errno == EEXIST) return false;
    return base::system_error("make", name, errno);
  }

 private:
  int folder_;
  std::string name_;
  base::Fd file_;
};

}  // namespace

base::Result<std::optional<FileContent>> read_below(int folder, const std::string& path, size_t limit) {
  // O_NONBLOCK: a FIFO without a writer would hold up whoever opens it.
  return read_opened(base::open_resolved(folder, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW,
                                         kNoLinks | RESOLVE_BENEATH | RESOLVE_NO_XDEV),
                     path, limit);
}

base::Result<std::optional<FileContent>> read_on_host(const std::string& path, size_t limit) {
  return read_opened(base::open_resolved(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, kNoLinks), path, limit);
}

base::Result<base::Fd> open_host_folder(const std::string& path, bool create) {
  auto folder = base::open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY, kNoLinks);
  if (folder || folder.error().code != ENOENT || !create || path == "/") return folder;
  BELLJAR_ASSIGN(const base::Fd above, open_host_folder(base::parent_of(path), true));
  const std::string name(base::name_of(path));
  struct stat owner{};
  if (::fstat(above.get(), &owner) != 0) return base::system_error("look at", path, errno);
  if (::mkdirat(above.get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::system_error("make the folder", path, errno);
  }
  BELLJAR_ASSIGN(base::Fd made, base::open_resolved(above.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, kNoLinks));
  if (::geteuid() == 0 && ::fchown(made.get(), owner.st_uid, owner.st_gid) != 0) {
    return base::system_error("give away the folder", path, errno);
  }
  return made;
}

base::Result<bool> replace_on_host(const std::string& path, std::string_view text,
                                   const std::optional<FileContent>& before) {
  BELLJAR_ASSIGN(const base::Fd folder, open_host_folder(base::parent_of(path), true));
  const std::string name(base::name_of(path));
  struct stat owner{};
  if (before) {
    owner = before->info;
  } else if (::fstat(folder.get(), &owner) != 0) {
    return base::system_error("look at", path, errno);
  }
  Temporary temporary(folder.get());
  const mode_t mode = before ? owner.st_mode & 0777U : 0600U;
  BELLJAR_TRY(temporary.write(text, owner.st_uid, owner.st_gid, mode));
  if (!is_still(folder.get(), name, before)) return false;
  return temporary.become(name, before.has_value());
}

}  // namespace belljar::workspace
