#include "workspace/tree_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace belljar::workspace {
namespace {

constexpr size_t kBatchSize = size_t{16} << 10U;
constexpr size_t kOpenFolders = 48;
constexpr size_t kMostLevels = 100'000;
constexpr uint32_t kDeadlineEvery = 256;  // entries between two looks at the clock

using Batch = std::array<char, kBatchSize>;

// struct linux_dirent64 (getdents(2)), which has no header.
struct RawEntry {
  uint64_t inode;
  int64_t next;  // the position behind this entry
  uint16_t size;
  uint8_t type;
};
constexpr size_t kNameOffset = 19;

enum Shape : uint8_t { kHead = 1, kObjects = 2, kRefs = 4, kCommon = 8 };

uint8_t shape_of(std::string_view name) {
  if (name == "HEAD") return kHead;
  if (name == "objects") return kObjects;
  if (name == "refs") return kRefs;
  return name == "commondir" ? kCommon : 0;
}

bool is_repository(uint8_t shape) {
  return (shape & kHead) != 0 && ((shape & kCommon) != 0 || ((shape & kObjects) != 0 && (shape & kRefs) != 0));
}

constexpr int kOpenFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

struct Folder {
  OpenedFolder open;             // closed for those far above the current one
  std::unique_ptr<Batch> batch;  // likewise
  size_t at = 0;
  size_t size = 0;
  int64_t next = 0;  // where to read on
  dev_t device = 0;  // these three of a closed one
  ino_t inode = 0;
  std::optional<mode_t> before;
  size_t path_size = 0;
  uint8_t shape = 0;
  bool judged = false;  // on_repository() was called
};

class Walk {
 public:
  Walk(TreeVisitor& visitor, const WalkOptions& options) : visitor_(visitor), options_(options) {}
  base::Status run(int root);

 private:
  bool refill(Folder& folder);
  bool judge(Folder& folder);
  void look_at(std::string_view name, uint8_t type);
  void enter(std::string_view name);
  void push(OpenedFolder open);
  void pop();
  bool reopen(Folder& folder, int child);
  void close_far_ones();

  TreeVisitor& visitor_;
  const WalkOptions& options_;
  std::vector<Folder> folders_;
  std::vector<std::unique_ptr<Batch>> spare_;
  std::string path_;
};

// The next batch of entries; false at the end.
bool Walk::refill(Folder& folder) {
  if (!folder.batch) {
    if (spare_.empty()) {
      folder.batch = std::make_unique_for_overwrite<Batch>();
    } else {
      folder.batch = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  const long size = ::syscall(SYS_getdents64, folder.open.fd(), folder.batch->data(), folder.batch->size());
  if (size < 0) visitor_.on_unseen(path_, errno);
  folder.at = 0;
  folder.size = size > 0 ? static_cast<size_t>(size) : 0;
  return size > 0;
}

RawEntry entry_at(const Folder& folder, size_t at, std::string_view& name) {
  RawEntry out{};
  std::memcpy(&out, folder.batch->data() + at, kNameOffset);
  name = std::string_view(folder.batch->data() + at + kNameOffset);
  return out;
}

// Looks for the shape of a repository in the batch that was just read. False to leave the folder.
bool Walk::judge(Folder& folder) {
  if (folder.judged) return true;
  for (size_t at = 0; at < folder.size;) {
    std::string_view name;
    const RawEntry entry = entry_at(folder, at, name);
    folder.shape |= shape_of(name);
    at += entry.size;
  }
  if (!is_repository(folder.shape)) return true;
  folder.judged = true;
  return visitor_.on_repository(folder.open.fd(), path_);
}

unsigned char type_of(int folder, const char* name) {
  struct stat found{};
  if (::fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0) return DT_REG;
  return static_cast<unsigned char>(IFTODT(found.st_mode));
}

void Walk::push(OpenedFolder open) {
  Folder folder;
  folder.open = std::move(open);
  folder.path_size = path_.size();
  folders_.push_back(std::move(folder));
  close_far_ones();
}

// The one that is just far enough above; the root stays open.
void Walk::close_far_ones() {
  if (folders_.size() <= kOpenFolders + 1) return;
  Folder& far = folders_[folders_.size() - 1 - kOpenFolders];
  struct stat found{};
  if (::fstat(far.open.fd(), &found) != 0) return;
  far.device = found.st_dev;
  far.inode = found.st_ino;
  far.before = far.open.leave();
  if (far.batch) spare_.push_back(std::move(far.batch));
  far.at = far.size = 0;
}

// By way of the folder below it that was looked at last. Somebody may have moved that one: then this is not the way.
bool Walk::reopen(Folder& folder, int child) {
  base::Fd fd(::openat(child, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat found{};
  if (!fd || ::fstat(fd.get(), &found) != 0) return false;
  if (found.st_dev != folder.device || found.st_ino != folder.inode) return false;
  if (::lseek(fd.get(), folder.next, SEEK_SET) < 0) return false;
  folder.open.take_back(std::move(fd), folder.before);
  return true;
}

void Walk::pop() {
  const OpenedFolder child = std::move(folders_.back().open);
  if (folders_.back().batch) spare_.push_back(std::move(folders_.back().batch));
  folders_.pop_back();
  if (folders_.empty()) return;
  path_.resize(folders_.back().path_size);
  if (folders_.back().open || reopen(folders_.back(), child.fd())) return;
  visitor_.on_unseen(path_, ESTALE);
  while (!folders_.back().open) folders_.pop_back();
  path_.resize(folders_.back().path_size);
}

void Walk::enter(std::string_view name) {
  OpenedFolder open = OpenedFolder::open(folders_.back().open.fd(), name.data(), options_.force_own);
  const int code = folders_.size() > kMostLevels ? ELOOP : errno;
  if (!path_.empty()) path_ += '/';
  path_ += name;
  if (open && folders_.size() <= kMostLevels) {
    push(std::move(open));
    return;
  }
  // Gone, or another thing by now: whoever did that is at work still, and is looked at when it has ended.
  const bool gone = code == ENOENT || code == ENOTDIR;
  const bool told = code == EACCES && visitor_.on_shut(folders_.back().open.fd(), name.data(), path_);
  if (!gone && !told) visitor_.on_unseen(path_, code);
  path_.resize(folders_.back().path_size);
}

void Walk::look_at(std::string_view name, uint8_t type) {
  const int folder = folders_.back().open.fd();
  TreeEntry entry{folder, path_, name, type == DT_UNKNOWN ? type_of(folder, name.data()) : type};
  if (visitor_.on_entry(entry) && entry.type == DT_DIR) enter(name);
}

base::Status Walk::run(int root) {
  OpenedFolder open = OpenedFolder::reopen(root, options_.force_own);
  if (!open) return base::system_error("look into", "the work folder", errno);
  push(std::move(open));
  uint32_t count = 0;
  while (!folders_.empty()) {
    Folder& folder = folders_.back();
    if (folder.at >= folder.size && (!refill(folder) || !judge(folder))) {
      pop();
      continue;
    }
    std::string_view name;
    const RawEntry entry = entry_at(folder, folder.at, name);
    folder.at += entry.size;
    folder.next = entry.next;
    if (++count % kDeadlineEvery == 0 && options_.deadline.passed()) {
      return base::system_error("look into", "the work folder", ETIME);
    }
    // The name stays where it is: the batch of a folder is given up only when 48 lie below it.
    if (name != "." && name != "..") look_at(name, entry.type);
  }
  return {};
}

}  // namespace

OpenedFolder& OpenedFolder::operator=(OpenedFolder&& other) noexcept {
  close();
  fd_ = std::move(other.fd_);
  before_ = std::exchange(other.before_, std::nullopt);
  return *this;
}

OpenedFolder OpenedFolder::open(int parent, const char* name, bool force_own) {
  OpenedFolder out;
  out.fd_ = base::Fd(::openat(parent, name, kOpenFlags));
  if (!force_own) {
    // Reading lists it, and only search permission lets its entries be looked up.
    if (out && ::faccessat(out.fd(), ".", F_OK, 0) != 0) out.close_keeping_errno();
    return out;
  }
  if (!out && errno != EACCES) return out;
  if (out) {
    out.open_up(out.fd());
    return out;
  }
  const base::Fd shut(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return shut ? reopen(shut.get(), force_own) : OpenedFolder();
}

OpenedFolder OpenedFolder::reopen(int descriptor, bool force_own) {
  OpenedFolder out;
  if (force_own) out.open_up(descriptor);
  out.fd_ = base::Fd(::openat(descriptor, ".", kOpenFlags));
  if (const int code = errno; !out && out.before_) {
    (void)::chmod(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), *out.before_);
    out.before_.reset();
    errno = code;
  }
  return out;
}

void OpenedFolder::close_keeping_errno() {
  const int code = errno;
  fd_.reset();
  errno = code;
}

void OpenedFolder::open_up(int descriptor) {
  struct stat found{};
  if (::geteuid() == 0 || ::fstat(descriptor, &found) != 0 || found.st_uid != ::geteuid()) return;
  constexpr mode_t kWanted = S_IRUSR | S_IXUSR;
  if ((found.st_mode & kWanted) == kWanted) return;
  if (::chmod(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), S_IRWXU) == 0) before_ = found.st_mode & 07777U;
}

void OpenedFolder::close() {
  const std::optional<mode_t> before = std::exchange(before_, std::nullopt);
  if (fd_ && before) (void)::fchmod(fd_.get(), *before);
  fd_.reset();
}

std::optional<mode_t> OpenedFolder::leave() {
  fd_.reset();
  return std::exchange(before_, std::nullopt);
}

void OpenedFolder::take_back(base::Fd fd, std::optional<mode_t> before) {
  close();
  fd_ = std::move(fd);
  before_ = before;
}

base::Status walk_tree(int root, TreeVisitor& visitor, const WalkOptions& options) {
  return Walk(visitor, options).run(root);
}

}  // namespace belljar::workspace
