#include "tiers/docker/task/sealed_input.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/io.h"
#include "base/path.h"

namespace belljar::tiers::docker::task {
namespace {

constexpr std::string_view kKeeping = "keep the input";

bool same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_size == other.st_size &&
         one.st_mode == other.st_mode && one.st_mtim.tv_sec == other.st_mtim.tv_sec &&
         one.st_mtim.tv_nsec == other.st_mtim.tv_nsec && one.st_ctim.tv_sec == other.st_ctim.tv_sec &&
         one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
}

base::Result<base::Fd> open_input(std::string_view operation, const std::string& path) {
  auto file = base::open_resolved(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, RESOLVE_NO_SYMLINKS);
  if (file) return file;
  const int code = file.error().code;
  return base::system_error(operation, path, code, code == ELOOP ? "a link is in the way; name the real path" : "");
}

}  // namespace

base::Result<std::string> read_once(std::string_view operation, const std::string& path, size_t most) {
  BELLJAR_ASSIGN(const base::Fd file, open_input(operation, path));
  struct stat before{};
  if (::fstat(file.get(), &before) != 0) return base::system_error(operation, path, errno);
  if (!S_ISREG(before.st_mode)) return base::refuse(operation, path, "it is not a regular file, refusing");
  if (static_cast<uint64_t>(before.st_size) > most) {
    return base::refuse(operation, path, "it holds more than " + std::to_string(most) + " bytes, refusing");
  }
  BELLJAR_ASSIGN(std::string text, base::read_to_end(file.get(), most, path));
  struct stat after{};
  if (::fstat(file.get(), &after) != 0) return base::system_error(operation, path, errno);
  if (!same(before, after) || text.size() != static_cast<size_t>(after.st_size)) {
    return base::refuse(operation, path, "it changed while it was read, refusing", "try again");
  }
  return text;
}

base::Result<SealedInput> SealedInput::seal(std::string_view name, std::string_view text) {
  if (text.size() > kMost) {
    return base::refuse(kKeeping, name, "it holds more than " + std::to_string(kMost) + " bytes, refusing");
  }
  SealedInput out;
  out.name_ = name;
  out.sealed_ = base::Fd(::memfd_create("belljar-input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (!out.sealed_ || !base::write_all(out.sealed_.get(), text) ||
      ::fcntl(out.sealed_.get(), F_ADD_SEALS, kSeals) != 0) {
    return base::system_error(kKeeping, name, errno);
  }
  return out;
}

base::Result<std::string> SealedInput::text() const {
  if (::lseek(sealed_.get(), 0, SEEK_SET) != 0) return base::system_error(kKeeping, name_, errno);
  return base::read_to_end(sealed_.get(), kMost, name_);
}

base::Result<std::string> SealedInput::publish(Meeting& meeting, const std::string& name) {
  BELLJAR_ASSIGN(const std::string bytes, text());
  BELLJAR_ASSIGN(path_, meeting.add_file(name, bytes));
  if (::lstat(path_.c_str(), &identity_) != 0) return base::system_error(kKeeping, path_, errno);
  BELLJAR_TRY(check());
  return path_;
}

base::Status SealedInput::check() const {
  BELLJAR_ASSIGN(const base::Fd file, open_input(kKeeping, path_));
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return base::system_error(kKeeping, path_, errno);
  if (!same(found, identity_)) {
    return base::refuse(kKeeping, name_, "its file is another one, or was changed, refusing", "start again");
  }
  BELLJAR_ASSIGN(const std::string wanted, text());
  BELLJAR_ASSIGN(const std::string there, base::read_to_end(file.get(), kMost, path_));
  if (wanted != there) return base::refuse(kKeeping, name_, "its file holds something else, refusing", "start again");
  return {};
}

}  // namespace belljar::tiers::docker::task
