#include "workspace/quarantine_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/path.h"
#include "base/text.h"
#include "workspace/quarantine.h"
#include "workspace/rename_new.h"

namespace belljar::workspace {
namespace {

constexpr size_t kMostItems = 10'000;
constexpr size_t kMostPath = size_t{64} << 10U;
constexpr uint64_t kNoLinks = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

std::vector<std::string> names_in(int folder, size_t most = kMostItems) {
  std::vector<std::string> out;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy), &::closedir);
  if (!listing && copy >= 0) ::close(copy);
  while (listing && out.size() < most) {
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    const std::string_view name(static_cast<const char*>(entry->d_name));
    if (name != "." && name != "..") out.emplace_back(name);
  }
  return out;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_session(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
}

base::Fd folder_of(int store, std::string_view session) {
  return base::Fd(::openat(store, std::string(session).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// A small file of Belljar's own beside the item. A path that is longer is cut, and no place to restore anything to: it
// is above PATH_MAX either way.
std::string text_in(int folder, const std::string& name) {
  const base::Fd file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::string out(kMostPath, '\0');
  const ssize_t size = file ? ::pread(file.get(), out.data(), out.size(), 0) : 0;
  out.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return out;
}

// The open folder that holds `path`, reached over no link, and the last component.
base::Result<base::Fd> parent_of(const std::string& path, std::string& leaf) {
  leaf = base::name_of(path);
  return base::open_resolved(AT_FDCWD, base::parent_of(path), O_RDONLY | O_DIRECTORY, kNoLinks);
}

// Folders that their owner shut: nothing else can be removed from them.
base::Fd open_to_remove(int parent, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  base::Fd fd(::openat(parent, name.c_str(), kFlags));
  const base::Fd itself(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found{};
  if (itself && ::fstat(itself.get(), &found) == 0 && (found.st_mode & S_IRWXU) != S_IRWXU) {
    (void)::chmod(("/proc/self/fd/" + std::to_string(itself.get())).c_str(), S_IRWXU);
    fd = base::Fd(::openat(parent, name.c_str(), kFlags));
  }
  return fd;
}

// Removes the folder `name` of `parent`. Folders in it are moved up to `parent` first, so that neither depth nor the
// length of paths matters.
base::Status remove_folder(int parent, const std::string& name) {
  std::vector<std::string> waiting{name};
  uint64_t count = 0;
  while (!waiting.empty()) {
    const std::string here = std::move(waiting.back());
    waiting.pop_back();
    const base::Fd folder = open_to_remove(parent, here);
    if (!folder) return base::system_error("remove", here, errno);
    for (;;) {
      const std::vector<std::string> names = names_in(folder.get(), 1000);
      if (names.empty()) break;
      for (const std::string& each : names) {
        if (::unlinkat(folder.get(), each.c_str(), 0) == 0) continue;
        if (errno != EISDIR && errno != EPERM) return base::system_error("remove", each, errno);
        // A folder that gets another parent must be writable itself (rename(2), EACCES).
        (void)open_to_remove(folder.get(), each);
        std::string up = std::string(kQuarantinePrefix) + "drop-" + std::to_string(++count);
        const int error = rename_new(folder.get(), each.c_str(), parent, up.c_str());
        if (error == EEXIST) continue;  // of a removal that was broken off; the next number
        if (error != 0) return base::system_error("remove", each, error);
        waiting.push_back(std::move(up));
      }
    }
    if (::unlinkat(parent, here.c_str(), AT_REMOVEDIR) != 0) return base::system_error("remove", here, errno);
  }
  return {};
}

}  // namespace

base::Result<QuarantineStore> QuarantineStore::open(const std::string& path) {
  base::Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return QuarantineStore({}, path);
  struct stat found{};
  if (!fd || ::fstat(fd.get(), &found) != 0) return base::system_error("open the quarantine", path, errno);
  if (found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return base::refuse("open the quarantine", path, "others could have written it, refusing",
                        "chmod 700 it and own it");
  }
  return QuarantineStore(std::move(fd), path);
}

base::Result<QuarantineItem> QuarantineStore::find(std::string_view id) const {
  const auto none = [&] {
    return base::refuse("find in the quarantine", id, "there is no such thing", "see 'belljar quarantine ls'");
  };
  const size_t slash = id.find('/');
  if (!fd_ || slash == std::string_view::npos) return none();
  const std::string number(id.substr(slash + 1));
  if (!is_session(id.substr(0, slash)) || !is_number(number)) return none();
  const base::Fd folder = folder_of(fd_.get(), id.substr(0, slash));
  if (!folder) return none();
  QuarantineItem out;
  out.id = id;
  out.origin = text_in(folder.get(), number + std::string(kOriginSuffix));
  out.at = text_in(folder.get(), number + std::string(kElsewhereSuffix));
  if (out.at.empty()) out.at = path_ + "/" + std::string(id);
  if (!out.origin.starts_with('/') || !out.at.starts_with('/')) return none();
  struct stat found{};
  std::string leaf;
  const auto parent = parent_of(out.at, leaf);
  if (parent && ::fstatat(parent->get(), leaf.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
    out.mode = found.st_mode;
    out.since = found.st_ctim.tv_sec;  // a move changes it
  }
  return out;
}

base::Result<std::vector<QuarantineItem>> QuarantineStore::list() const {
  std::vector<QuarantineItem> out;
  if (!fd_) return out;
  for (const std::string& session : names_in(fd_.get())) {
    const base::Fd folder = is_session(session) ? folder_of(fd_.get(), session) : base::Fd();
    if (!folder) continue;
    for (const std::string& name : names_in(folder.get())) {
      if (!name.ends_with(kOriginSuffix)) continue;
      auto item = find(session + "/" + name.substr(0, name.size() - kOriginSuffix.size()));
      if (item && item->mode != 0 && out.size() < kMostItems) out.push_back(std::move(*item));
    }
  }
  std::ranges::sort(out, {}, [](const QuarantineItem& item) { return std::pair(item.since, item.id); });
  return out;
}

base::Result<std::string> QuarantineStore::restore(const QuarantineItem& item, const std::string& to) const {
  const std::string target = to.empty() ? item.origin : to;
  std::string from_leaf;
  std::string leaf;
  BELLJAR_ASSIGN(const base::Fd from, parent_of(item.at, from_leaf));
  BELLJAR_ASSIGN(const base::Fd folder, parent_of(target, leaf));
  if (const int code = rename_new(from.get(), from_leaf.c_str(), folder.get(), leaf.c_str()); code != 0) {
    return base::system_error("restore", target, code,
                              code == EEXIST  ? "something is there: move it away, or say --to PATH"
                              : code == EXDEV ? "it lies on another file system: move '" + item.at + "' there yourself"
                                              : "");
  }
  undo_inert(folder.get(), leaf.c_str());
  forget(item);
  return target;
}

base::Status QuarantineStore::drop(const QuarantineItem& item) const {
  std::string leaf;
  BELLJAR_ASSIGN(const base::Fd parent, parent_of(item.at, leaf));
  if (S_ISDIR(item.mode)) {
    BELLJAR_TRY(remove_folder(parent.get(), leaf));
  } else if (::unlinkat(parent.get(), leaf.c_str(), 0) != 0 && errno != ENOENT) {
    return base::system_error("remove", item.at, errno);
  }
  forget(item);
  return {};
}

void QuarantineStore::forget(const QuarantineItem& item) const {
  const size_t slash = item.id.find('/');
  const base::Fd folder = folder_of(fd_.get(), item.id.substr(0, slash));
  if (!folder) return;
  const std::string number = item.id.substr(slash + 1);
  for (const std::string_view suffix : {kOriginSuffix, kElsewhereSuffix}) {
    (void)::unlinkat(folder.get(), (number + std::string(suffix)).c_str(), 0);
  }
  // The last one takes the folder with it, and the one beside the work folder's files.
  (void)::unlinkat(fd_.get(), item.id.substr(0, slash).c_str(), AT_REMOVEDIR);
  const std::string place = base::parent_of(item.at);
  if (base::name_of(place).starts_with(kQuarantinePrefix)) (void)::rmdir(place.c_str());
}

}  // namespace belljar::workspace
