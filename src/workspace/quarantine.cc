#include "workspace/quarantine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/io.h"
#include "base/path.h"
#include "base/random.h"
#include "workspace/protected_name.h"
#include "workspace/rename_new.h"
#include "workspace/tree_walk.h"

namespace belljar::workspace {
namespace {

// Beyond these, what is found stays beside where it was: a folder and a file less each. Not what no path leads to.
constexpr uint64_t kMostMoved = 500;
constexpr size_t kDeepPath = PATH_MAX - 256;

// Lets the owner change the folder behind `fd`, which may be an O_PATH descriptor.
bool open_up(int fd) {
  struct stat found{};
  if (::fstat(fd, &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()) return false;
  return ::chmod(("/proc/self/fd/" + std::to_string(fd)).c_str(), (found.st_mode & 07777U) | S_IRWXU) == 0;
}

// As rename_new(), and permissions that the owner took from itself do not stop it: the folder's, and for a folder that
// gets another parent its own (rename(2), EACCES).
int move(int from, const char* leaf, int to, const char* name) {
  int error = rename_new(from, leaf, to, name);
  if (error != EACCES) return error;
  (void)open_up(from);
  const base::Fd itself(::openat(from, leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (itself) (void)open_up(itself.get());
  error = rename_new(from, leaf, to, name);
  return error;
}

// `owner` as well is good enough: some file systems (FAT) keep none, and all in them is somebody's whoever made it.
base::Fd open_own_folder(int parent, const char* name, uid_t owner) {
  base::Fd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found{};
  if (!fd || ::fstat(fd.get(), &found) != 0) return {};
  if ((found.st_uid != ::geteuid() && found.st_uid != owner) || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    errno = EPERM;
    return {};
  }
  return fd;
}

// `name` gets the name `inert`, or one that nobody could have taken before.
void rename_inert(int folder, const char* name, const char* inert) {
  if (move(folder, name, folder, inert) != EEXIST) return;
  (void)move(folder, name, folder, (std::string(inert) + "." + base::random_hex(8)).c_str());
}

// Git obeys what is in a git folder, whatever that is called, for whoever steps into it; it is none without `HEAD`. The
// others go by the name. Of all that lies in a folder.
class Inert : public TreeVisitor {
 public:
  bool on_entry(const TreeEntry& entry) override {
    const NameKind kind = protected_name(entry.name);
    if (!is_repository(kind)) return true;
    const std::string name(entry.name);
    if (kind == NameKind::kRepository) {
      rename_inert(entry.folder, name.c_str(), (name + kInertEnd).c_str());
      return false;
    }
    if (const OpenedFolder git = OpenedFolder::open(entry.folder, name.c_str(), true)) {
      rename_inert(git.fd(), "HEAD", kInertHead);
    }
    rename_inert(entry.folder, name.c_str(), kInertGit);
    return false;
  }
  bool on_repository(int folder, std::string_view /*path*/) override {
    rename_inert(folder, "HEAD", kInertHead);
    return true;
  }
  void on_unseen(std::string_view /*path*/, int /*code*/) override {}
};

class Undo : public TreeVisitor {
 public:
  bool on_entry(const TreeEntry& entry) override {
    if (entry.name == kInertHead) (void)rename_new(entry.folder, kInertHead, entry.folder, "HEAD");
    const std::string_view former = entry.name.substr(0, entry.name.size() - std::string_view(kInertEnd).size());
    if (entry.name.ends_with(kInertEnd) && protected_name(former) == NameKind::kRepository) {
      (void)rename_new(entry.folder, std::string(entry.name).c_str(), entry.folder, std::string(former).c_str());
      return false;
    }
    if (entry.name != kInertGit) return true;
    if (const OpenedFolder git = OpenedFolder::open(entry.folder, kInertGit, true)) {
      (void)rename_new(git.fd(), kInertHead, git.fd(), "HEAD");
    }
    (void)rename_new(entry.folder, kInertGit, entry.folder, ".git");
    return false;
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view /*path*/, int /*code*/) override {}
};

// Of the folder `leaf`, and of all in it. False when the time was too short.
bool make_inert(int parent, const char* leaf, const base::Deadline& deadline) {
  const OpenedFolder itself = OpenedFolder::open(parent, leaf, true);
  if (!itself) return true;
  rename_inert(itself.fd(), "HEAD", kInertHead);
  Inert visitor;
  const auto walked = walk_tree(itself.fd(), visitor, {.deadline = deadline, .force_own = true});
  return walked || walked.error().code != ETIME;
}

}  // namespace

std::string Quarantine::number() const {
  std::string digits = std::to_string(number_);
  return std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

void Quarantine::open_state() {
  in_state_.tried = true;
  const std::string path = state_ + "/" + session_;
  // The way to it is the caller's own, and no guest can write there.
  for (size_t at = 1; at != std::string::npos; at = path.find('/', at + 1)) {
    const size_t end = path.find('/', at + 1);
    (void)::mkdir(path.substr(0, end).c_str(), 0700);
  }
  const base::Fd state(::open(state_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!state) return;
  in_state_.fd = open_own_folder(state.get(), session_.c_str(), ::geteuid());
  in_state_.path = path;
}

void Quarantine::open_beside() {
  beside_.tried = true;
  std::string name = std::string(kQuarantinePrefix) + session_;
  // Something of that name is not ours.
  for (int round = 0; round < 100 && ::mkdirat(root_, name.c_str(), 0700) != 0; ++round) {
    if (errno != EEXIST) return;
    name = std::string(kQuarantinePrefix) + session_ + "-" + std::to_string(round);
  }
  struct stat root{};
  if (::fstat(root_, &root) != 0) return;
  beside_.fd = open_own_folder(root_, name.c_str(), root.st_uid);
  beside_.path = root_path_ + "/" + name;
  FileLook found;
  if (beside_.fd && look_at(beside_.fd.get(), "", found)) own_ = found.id;
}

std::string Quarantine::whole(const std::string& path) const {
  return path.starts_with('/') ? path : root_path_ + "/" + path;
}

// Before the move: who is killed between the two leaves a note of what is not there, which nobody lists, and nothing
// that is in quarantine without a note. `place` is as for move_to(). The notes
// in the state folder are for whoever looks through all of it. A file system that is full loses the note, not the move.
int Quarantine::write_notes(const Place* place, const std::string& path, const std::string& moved_to) const {
  const auto write = [&](const base::Fd& folder, std::string_view suffix, const std::string& text) {
    if (!folder) return 0;
    const std::string name = number() + std::string(suffix);
    const base::Fd file(
        ::openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return errno;
    (void)base::write_all(file.get(), text);
    return 0;
  };
  if (write(in_state_.fd, kOriginSuffix, whole(path)) == EEXIST) return EEXIST;
  if (place == &in_state_) return 0;
  if (place != nullptr && write(place->fd, kOriginSuffix, whole(path)) == EEXIST) {
    remove_notes(nullptr);
    return EEXIST;
  }
  (void)write(in_state_.fd, kElsewhereSuffix, moved_to);
  return 0;
}

void Quarantine::remove_notes(const Place* place) const {
  for (const Place* one : {static_cast<const Place*>(&in_state_), place}) {
    if (one == nullptr || !one->fd) continue;
    for (const std::string_view suffix : {kOriginSuffix, kElsewhereSuffix}) {
      ::unlinkat(one->fd.get(), (number() + std::string(suffix)).c_str(), 0);
    }
  }
}

// Under the next number that is free: an earlier end of the same session may have used some.
int Quarantine::move_to(const Place* place, int folder, const std::string& leaf, const std::string& path,
                        std::string& moved_to) {
  if (place != nullptr && !place->fd) return EXDEV;
  const int to = place != nullptr ? place->fd.get() : folder;
  const std::string above = place != nullptr ? place->path : base::parent_of(whole(path));
  const std::string prefix = place != nullptr ? "" : std::string(kQuarantinePrefix) + session_ + "-";
  int error = EEXIST;
  for (int round = 0; error == EEXIST && round < 10'000; ++round) {
    if (round > 0) ++number_;
    const std::string name = prefix + number();
    const std::string end = above + "/" + name;
    error = write_notes(place, path, end);
    if (error != 0) continue;
    error = move(folder, leaf.c_str(), to, name.c_str());
    if (error == 0) moved_to = end;
    if (error != 0) remove_notes(place);
  }
  return error;
}

Quarantined Quarantine::put(int folder, const std::string& leaf, const std::string& path) {
  Quarantined out;
  out.path = whole(path);
  if (!make_inert(folder, leaf.c_str(), deadline_)) {
    out.reason = std::strerror(ETIME);
    return out;
  }
  ++count_;
  ++number_;
  int error = EXDEV;
  if (!in_state_.tried) open_state();
  if (count_ <= kMostMoved || out.path.size() > kDeepPath) {
    error = move_to(&in_state_, folder, leaf, path, out.moved_to);
    if (error == EXDEV) {
      if (!beside_.tried) open_beside();
      error = move_to(&beside_, folder, leaf, path, out.moved_to);
    }
  }
  if (error != 0 && error != ENOENT) error = move_to(nullptr, folder, leaf, path, out.moved_to);
  if (error != 0 && error != ENOENT) out.reason = std::strerror(error);
  return out;
}

void undo_inert(int parent, const char* leaf) {
  const OpenedFolder itself = OpenedFolder::open(parent, leaf, true);
  if (!itself) return;
  Undo visitor;
  (void)walk_tree(itself.fd(), visitor, {.force_own = true});
}

}  // namespace belljar::workspace
