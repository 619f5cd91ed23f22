#include "workspace/protected.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/path.h"
#include "base/text.h"

namespace belljar::workspace {
namespace {

constexpr size_t kMostUnseen = 100;

bool name_matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= name.size(); ++at) {
    if (name_matches(rest, name.substr(at))) return true;
  }
  return false;
}

using Parts = std::vector<std::string_view>;

bool parts_match(const Parts& pattern, size_t p, const Parts& path, size_t at) {
  if (p == pattern.size()) return at == path.size();
  if (pattern[p] == "**") {
    for (size_t next = at; next <= path.size(); ++next) {
      if (parts_match(pattern, p + 1, path, next)) return true;
    }
    return false;
  }
  return at < path.size() && name_matches(pattern[p], path[at]) && parts_match(pattern, p + 1, path, at + 1);
}

EntryKind kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return EntryKind::kFolder;
  if (S_ISREG(mode)) return EntryKind::kFile;
  return S_ISLNK(mode) ? EntryKind::kLink : EntryKind::kOther;
}

class Finder : public TreeVisitor {
 public:
  explicit Finder(const std::vector<std::string>& approved) : approved_(approved) {}

  bool on_entry(const TreeEntry& entry) override {
    ++out_.entries;
    if (entry.type == DT_SOCK || entry.type == DT_FIFO) out_.special.push_back({entry.path(), entry.type == DT_SOCK});
    const NameKind name = protected_name(entry.name);
    if (name == NameKind::kNone) return true;
    if (!is_repository(name) && lies_in_packages(entry.folder_path)) return true;
    const std::string path = entry.path();
    if (name != NameKind::kQuarantine && is_approved(approved_, path)) return true;
    FileLook found;
    if (!look_at(entry.folder, entry.name.data(), found)) return false;
    out_.known.push_back({path, name, kind_of(found.mode), false, found.id});
    return false;
  }

  bool on_repository(int folder, std::string_view path) override {
    if (is_approved(approved_, path)) return true;
    FileLook found;
    if (!look_at(folder, "", found)) return true;
    out_.known.push_back({std::string(path), NameKind::kGit, EntryKind::kFolder, true, found.id});
    return path.empty();
  }

  bool on_shut(int parent, const char* name, std::string_view path) override {
    FileLook found;
    if (!look_at(parent, name, found)) return false;
    out_.shut.push_back({std::string(path), NameKind::kNone, EntryKind::kFolder, false, found.id});
    return true;
  }

  void on_unseen(std::string_view path, int /*code*/) override {
    if (out_.unseen.size() < kMostUnseen) out_.unseen.emplace_back(path);
  }

  Protected take() {
    std::ranges::sort(out_.known, {}, &Known::path);
    return std::move(out_);
  }

 private:
  const std::vector<std::string>& approved_;
  Protected out_;
};

class SpecialFinder : public TreeVisitor {
 public:
  // Paths begin with `prefix`.
  SpecialFinder(std::string prefix, bool in_repository) : prefix_(std::move(prefix)), in_repository_(in_repository) {}

  bool on_entry(const TreeEntry& entry) override {
    if (entry.type == DT_SOCK || entry.type == DT_FIFO) out_.push_back({prefix_ + entry.path(), entry.type == DT_SOCK});
    // Where git and others keep their many objects, those of submodules too, they bind nothing.
    return !in_repository_ || (entry.name != "objects" && entry.name != "store");
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view /*path*/, int /*code*/) override {}

  std::vector<Special> take() { return std::move(out_); }

 private:
  std::string prefix_;
  bool in_repository_;
  std::vector<Special> out_;
};

// What is in a folder that programs obey is in view as well, and the walk that found it has not looked into it.
void add_special_within(int root, Protected& found) {
  for (const Known& known : found.known) {
    // A root that has the shape of a repository was walked.
    if (known.kind != EntryKind::kFolder || known.path.empty()) continue;
    constexpr uint64_t kStay = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    const auto folder = base::open_resolved(root, known.path, O_RDONLY | O_DIRECTORY, kStay);
    if (!folder) continue;  // it is read-only in the guest, and so stays shut
    SpecialFinder finder(known.path + "/", is_repository(known.name));
    if (!walk_tree(folder->get(), finder, {})) continue;
    std::ranges::move(finder.take(), std::back_inserter(found.special));
  }
  std::ranges::sort(found.special, {}, &Special::path);
}

class OddFinder : public TreeVisitor {
 public:
  explicit OddFinder(bool work_folder) : work_folder_(work_folder) {}

  bool on_entry(const TreeEntry& entry) override {
    if (entry.type == DT_DIR) return !work_folder_ || !entry.folder_path.empty() || kept_by_git(entry.name);
    FileLook found;
    if (entry.type != DT_REG && look_at(entry.folder, entry.name.data(), found)) {
      out_.push_back({entry.path(), NameKind::kNone, kind_of(found.mode), false, found.id});
    }
    return false;
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view /*path*/, int /*code*/) override {}

  std::vector<Known> take() { return std::move(out_); }

 private:
  bool work_folder_;
  std::vector<Known> out_;
};

class ElsewhereFinder : public TreeVisitor {
 public:
  explicit ElsewhereFinder(const ElsewhereOptions& options) : options_(options) {}

  bool on_entry(const TreeEntry& entry) override {
    const std::string path = entry.path();
    if (options_.settings && (lies_in_packages(path) || path == "worktrees")) return false;
    FileLook look;
    if (entry.type == DT_LNK) out_.links.push_back(path);
    if (options_.names && entry.type == DT_REG && look_at(entry.folder, entry.name.data(), look) && look.links > 1) {
      out_.names.push_back(path);
    }
    if (static_cast<size_t>(std::ranges::count(path, '/')) + 1 >= options_.depth) return false;
    if (++entries_ <= options_.most) return true;
    out_.complete = out_.complete && entry.type != DT_DIR;
    return false;
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view /*path*/, int /*code*/) override {}

  Elsewhere take() {
    std::ranges::sort(out_.links);
    std::ranges::sort(out_.names);
    return std::move(out_);
  }

 private:
  const ElsewhereOptions& options_;
  Elsewhere out_;
  size_t entries_ = 0;
};

class NameFinder : public TreeVisitor {
 public:
  explicit NameFinder(const std::set<FileId>& files) : files_(files) {}

  bool on_entry(const TreeEntry& entry) override {
    FileLook look;
    if (entry.type == DT_REG && look_at(entry.folder, entry.name.data(), look) && files_.contains(look.id)) {
      out_.emplace_back(entry.path(), look.id);
    }
    return true;
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view /*path*/, int /*code*/) override {}

  std::vector<std::pair<std::string, FileId>> take() { return std::move(out_); }

 private:
  const std::set<FileId>& files_;
  std::vector<std::pair<std::string, FileId>> out_;
};

}  // namespace

bool look_at(int folder, const char* name, FileLook& out) {
  struct statx found{};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(folder, name, flags, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) return false;
  out.id.device = (uint64_t{found.stx_dev_major} << 32U) | found.stx_dev_minor;
  out.id.inode = found.stx_ino;
  constexpr uint64_t kNanoseconds = 1'000'000'000;
  const bool knows_birth = (found.stx_mask & STATX_BTIME) != 0;
  out.id.born =
      knows_birth ? static_cast<uint64_t>(found.stx_btime.tv_sec) * kNanoseconds + found.stx_btime.tv_nsec : 0;
  out.mode = found.stx_mode;
  out.links = found.stx_nlink;
  out.changed = found.stx_ctime.tv_sec * int64_t{kNanoseconds} + found.stx_ctime.tv_nsec;
  return true;
}

void pack_id(std::string& out, const FileId& id) {
  base::pack_number(out, id.device);
  base::pack_number(out, id.inode);
  base::pack_number(out, id.born);
}

FileId unpack_id(base::Unpacker& in) {
  FileId out;
  out.device = in.number();
  out.inode = in.number();
  out.born = in.number();
  return out;
}

bool matches(std::string_view pattern, std::string_view path) {
  return parts_match(base::split(pattern, '/'), 0, base::split(path, '/'), 0);
}

bool is_approved(const std::vector<std::string>& patterns, std::string_view path) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, path); });
}

base::Result<Protected> find_protected(int root, const std::vector<std::string>& approved) {
  Finder finder(approved);
  BELLJAR_TRY(walk_tree(root, finder, {}));
  Protected out = finder.take();
  add_special_within(root, out);
  return out;
}

base::Result<Elsewhere> find_elsewhere(int root, const ElsewhereOptions& options) {
  ElsewhereFinder finder(options);
  BELLJAR_TRY(walk_tree(root, finder, {}));
  return finder.take();
}

base::Result<std::vector<std::pair<std::string, FileId>>> find_names(int root, const std::set<FileId>& files) {
  NameFinder finder(files);
  BELLJAR_TRY(walk_tree(root, finder, {}));
  return finder.take();
}

base::Result<std::vector<Special>> find_special(int root) {
  SpecialFinder finder({}, false);
  BELLJAR_TRY(walk_tree(root, finder, {}));
  std::vector<Special> out = finder.take();
  std::ranges::sort(out, {}, &Special::path);
  return out;
}

base::Result<std::vector<Known>> find_odd_in_git(int root, bool work_folder) {
  OddFinder finder(work_folder);
  BELLJAR_TRY(walk_tree(root, finder, {}));
  return finder.take();
}

}  // namespace belljar::workspace
