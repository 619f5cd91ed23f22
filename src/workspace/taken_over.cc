#include "workspace/taken_over.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/path.h"
#include "workspace/host_file.h"

namespace belljar::workspace {
namespace {

constexpr int kDeepest = 16;
constexpr uint64_t kBelow = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

// One entry that the guest has, and the host's folder and name for it.
struct Entry {
  std::string inside;
  int depth = 0;
  std::shared_ptr<base::Fd> folder;
  std::string name;
};

class Copier {
 public:
  Copier(int home, CopyBudget& budget, const std::function<bool(std::string_view)>& skip)
      : home_(home), budget_(budget), skip_(skip) {}

  base::Result<bool> run(Entry first) {
    waiting_.push_back(std::move(first));
    while (!waiting_.empty()) {
      const Entry entry = std::move(waiting_.back());
      waiting_.pop_back();
      BELLJAR_TRY(copy(entry));
    }
    return copied_;
  }

 private:
  base::Status copy(const Entry& entry);
  base::Status copy_file(const Entry& entry, int from);
  base::Status copy_folder(const Entry& entry, base::Fd from);
  base::Status give(int made, const Entry& entry) const;

  int home_;
  CopyBudget& budget_;
  const std::function<bool(std::string_view)>& skip_;
  std::vector<Entry> waiting_;
  bool copied_ = false;
};

base::Status Copier::copy(const Entry& entry) {
  if (skip_(entry.inside)) return {};
  auto from = base::open_resolved(home_, entry.inside, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, kBelow);
  struct stat info{};
  if (!from || ::fstat(from->get(), &info) != 0) {
    if (from || from.error().code != ENOENT) ++budget_.left_out;
    return {};
  }
  const bool takeable = S_ISREG(info.st_mode) || (S_ISDIR(info.st_mode) && entry.depth < kDeepest);
  const auto size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  if (!takeable || budget_.files == 0 || size > budget_.bytes) {
    ++budget_.left_out;
    return {};
  }
  --budget_.files;
  budget_.bytes -= size;
  return S_ISREG(info.st_mode) ? copy_file(entry, from->get()) : copy_folder(entry, std::move(*from));
}

base::Status Copier::give(int made, const Entry& entry) const {
  struct stat owner{};
  if (::geteuid() != 0) return {};
  if (::fstat(entry.folder->get(), &owner) != 0 || ::fchown(made, owner.st_uid, owner.st_gid) != 0) {
    return base::system_error("give away", entry.name, errno);
  }
  return {};
}

base::Status Copier::copy_file(const Entry& entry, int from) {
  struct stat info{};
  if (::fstat(from, &info) != 0) return base::system_error("look at", entry.inside, errno);
  BELLJAR_ASSIGN(const std::string text, base::read_to_end(from, static_cast<size_t>(info.st_size), entry.inside));
  const base::Fd made(
      ::openat(entry.folder->get(), entry.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!made) return errno == EEXIST ? base::Status() : base::system_error("make", entry.name, errno);
  BELLJAR_TRY(give(made.get(), entry));
  if (!base::write_all(made.get(), text)) return base::system_error("write", entry.name, errno);
  copied_ = true;
  return {};
}

base::Status Copier::copy_folder(const Entry& entry, base::Fd from) {
  const bool made = ::mkdirat(entry.folder->get(), entry.name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return base::system_error("make the folder", entry.name, errno);
  auto folder = std::make_shared<base::Fd>(
      ::openat(entry.folder->get(), entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!*folder) {
    ++budget_.left_out;  // the host has something else there
    return {};
  }
  if (made) BELLJAR_TRY(give(folder->get(), entry));
  copied_ = copied_ || made;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(from.get()), &::closedir);
  if (!entries) return base::system_error("read the folder", entry.inside, errno);
  static_cast<void>(from.release());
  while (const dirent* found = ::readdir(entries.get())) {
    const std::string name(static_cast<const char*>(found->d_name));
    if (name == "." || name == "..") continue;
    // Each takes memory until its turn.
    if (waiting_.size() >= budget_.files) {
      ++budget_.left_out;
      continue;
    }
    waiting_.push_back({entry.inside + "/" + name, entry.depth + 1, folder, name});
  }
  return {};
}

}  // namespace

base::Result<bool> take_over(int home, const std::string& inside, const std::string& path, CopyBudget& budget,
                             const std::function<bool(std::string_view)>& skip) {
  struct stat there{};
  // Most guests make nothing, and then no folder of the host's is to be made for it.
  const base::Result<base::Fd> first = base::open_resolved(home, inside, O_PATH | O_NOFOLLOW, kBelow);
  if (!first || ::fstat(first->get(), &there) != 0) return false;
  BELLJAR_ASSIGN(base::Fd folder, open_host_folder(base::parent_of(path), true));
  return Copier(home, budget, skip)
      .run({inside, 0, std::make_shared<base::Fd>(std::move(folder)), std::string(base::name_of(path))});
}

}  // namespace belljar::workspace
