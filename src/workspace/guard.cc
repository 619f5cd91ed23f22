#include "workspace/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/io.h"
#include "base/pack.h"
#include "base/path.h"
#include "workspace/private_changes.h"
#include "workspace/quarantine.h"

namespace belljar::workspace {
namespace {

constexpr uint64_t kMostItems = 100'000;
constexpr uint64_t kMostPath = uint64_t{1} << 16U;
constexpr auto kMostTime = std::chrono::seconds(40);
constexpr int kMostRounds = 3;

// The second walk: puts into quarantine what was not there before.
class Sweep : public TreeVisitor {
 public:
  Sweep(const Guard& guard, int root, Settled& out)
      : guard_(guard), out_(out), quarantine_(guard.quarantine, guard.session, root, guard.root) {
    for (const Known& known : guard.known) {
      by_id_.emplace(known.id, &known);
    }
  }

  bool on_entry(const TreeEntry& entry) override {
    const NameKind name = protected_name(entry.name);
    if (name == NameKind::kNone) return true;
    if (name != NameKind::kGit && lies_in_packages(entry.folder_path)) return true;
    const std::string path = entry.path();
    // A folder that may be there is not what is inside it; `.git` is looked into no more than before.
    if (name != NameKind::kQuarantine && is_approved(guard_.approved, path)) return name != NameKind::kGit;
    FileLook found;
    if (!look_at(entry.folder, entry.name.data(), found)) return false;
    if (is_as_before(path, found) || quarantine_.is_own(found.id)) return false;
    put(entry.folder, std::string(entry.name), path);
    return false;
  }

  bool on_repository(int folder, std::string_view path) override {
    FileLook found;
    if (is_approved(guard_.approved, path) || !look_at(folder, "", found)) return true;
    if (is_as_before(std::string(path), found)) return path.empty();
    put(folder, "HEAD", path.empty() ? "HEAD" : std::string(path) + "/HEAD");
    return true;
  }

  void on_unseen(std::string_view path, int code) override {
    if (code == ESTALE) moved_ = true;
    unseen_.emplace(std::string(path.substr(0, kMostUnseenPath)), code);
    if (unseen_.size() > kMostUnseen) unseen_.erase(std::prev(unseen_.end()));
  }

  // Puts `leaf` of the open folder away; `path` is relative to the work folder, or absolute.
  void put(int folder, const std::string& leaf, const std::string& path) {
    Quarantined moved = quarantine_.put(folder, leaf, path);
    if (moved.moved_to.empty() && moved.reason.empty()) return;
    if (moved.moved_to.empty())
      out_.add_unreleased("'" + moved.path + "' is new and could not be moved: " + moved.reason);
    out_.add(std::move(moved));
  }

  // True when somebody moved folders about while they were looked at, so that another round is due.
  bool begin_again() {
    if (!std::exchange(moved_, false)) return false;
    unseen_.clear();
    return true;
  }
  void tell_unseen() {
    for (const auto& [path, code] : unseen_) {
      out_.add_unreleased(base::system_error("look for what the guest left in", guard_.root + "/" + path, code,
                                             "look there before you use it")
                              .error()
                              .message());
    }
  }

 private:
  static constexpr size_t kMostUnseen = 20;
  static constexpr size_t kMostUnseenPath = 512;

  [[nodiscard]] bool is_as_before(const std::string& path, const FileLook& found) {
    const auto same = by_id_.find(found.id);
    if (same == by_id_.end()) return false;
    const Known& known = *same->second;
    if (known.path == path) return true;
    // The folder above it was moved, and its mount with it: a folder is the host's own, and still as it was. A link or
    // a file that names a repository may lead somewhere else from here, and a file may have a second name.
    if (known.kind != EntryKind::kFolder && (known.name == NameKind::kGit || !S_ISREG(found.mode))) return false;
    if (S_ISREG(found.mode) && found.links > 1) return false;
    out_.add_note("'" + known.path + "' is now at '" + path + "': a folder above it was moved");
    return true;
  }

  const Guard& guard_;
  Settled& out_;
  Quarantine quarantine_;
  std::map<FileId, const Known*> by_id_;
  std::map<std::string, int> unseen_;
  bool moved_ = false;
};

// What git obeys in a folder of its own, and links and their like at any depth: git appends to logs and writes messages
// through a link. All else in it is the guest's. Objects are written under new names only and not looked through.
class GitSweep : public TreeVisitor {
 public:
  GitSweep(const Guard& guard, const GitFolder& folder, Sweep& sweep) : guard_(guard), folder_(folder), sweep_(sweep) {}

  bool on_entry(const TreeEntry& entry) override {
    const bool top = entry.folder_path.empty();
    const bool obeyed = folder_.whole && top && obeyed_by_git(entry.name);
    if (!obeyed && entry.type == DT_DIR) return !(folder_.whole && top && entry.name == "objects");
    FileLook found;
    if ((!obeyed && entry.type == DT_REG) || !look_at(entry.folder, entry.name.data(), found)) return false;
    const std::string name = entry.path();
    const auto same = [&](const Known& known) { return known.path == name && known.id == found.id; };
    if (std::ranges::any_of(folder_.known, same)) return false;
    const bool inside = base::is_within(folder_.path, guard_.root) && folder_.path != guard_.root;
    const std::string path = inside ? folder_.path.substr(guard_.root.size() + 1) : folder_.path;
    sweep_.put(entry.folder, std::string(entry.name), path + "/" + name);
    if (name == "config" && !folder_.config.empty()) put_back_config(entry.folder);
    return false;
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view path, int code) override { sweep_.on_unseen(path, code); }

 private:
  // The host's own git replaces the file when it changes it, and the guest's mount went with the old one: so whose the
  // new one is cannot be told.
  void put_back_config(int folder) const {
    struct stat owner{};
    const base::Fd file(::openat(folder, "config", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!file || ::fstat(folder, &owner) != 0) return;
    (void)base::write_all(file.get(), folder_.config);
    if (::geteuid() == 0) (void)!::fchown(file.get(), owner.st_uid, owner.st_gid);
  }

  const Guard& guard_;
  const GitFolder& folder_;
  Sweep& sweep_;
};

void sweep_git(const Guard& guard, const GitFolder& folder, const base::Deadline& deadline, Sweep& sweep) {
  const auto open =
      base::open_resolved(AT_FDCWD, folder.path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  FileLook found;
  // Another folder in its place was put away whole.
  if (!open || !look_at(open->get(), "", found) || found.id != folder.id) return;
  GitSweep visitor(guard, folder, sweep);
  (void)walk_tree(open->get(), visitor, {.deadline = deadline, .force_own = true});
}

// What lies now where a protected link leads, unless it is what lay there.
void sweep_target(int root, const std::string& path, const FileId& before, Sweep& sweep) {
  const std::string parent = base::parent_of("/" + path).substr(1);
  const auto folder = base::open_resolved(root, parent.empty() ? "." : parent, O_PATH | O_DIRECTORY,
                                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  const std::string leaf(base::name_of("/" + path));
  FileLook found;
  if (folder && look_at(folder->get(), leaf.c_str(), found) && found.id != before) {
    sweep.put(folder->get(), leaf, path);
  }
}

void sweep_targets(const Guard& guard, int root, Sweep& sweep) {
  for (const std::string& path : guard.watched) sweep_target(root, path, {}, sweep);
  // Those that no name tells the walk of.
  for (const Known& known : guard.known) {
    if (known.name == NameKind::kNone) sweep_target(root, known.path, known.id, sweep);
  }
}

base::Status sweep(const Guard& guard, int root, const base::Deadline& deadline, Settled& out) {
  Sweep visitor(guard, root, out);
  sweep_targets(guard, root, visitor);
  for (const GitFolder& folder : guard.git_folders) sweep_git(guard, folder, deadline, visitor);
  const WalkOptions options{.deadline = deadline, .force_own = true};
  for (int round = 0; round < kMostRounds; ++round) {
    BELLJAR_TRY(walk_tree(root, visitor, options));
    if (round + 1 == kMostRounds || !visitor.begin_again()) break;
  }
  visitor.tell_unseen();
  return {};
}

void pack_known(std::string& out, const std::vector<Known>& list) {
  base::pack_number(out, list.size());
  for (const Known& known : list) {
    base::pack_text(out, known.path);
    base::pack_number(out, static_cast<uint64_t>(known.name));
    base::pack_number(out, static_cast<uint64_t>(known.kind));
    base::pack_number(out, known.repository ? 1 : 0);
    pack_id(out, known.id);
  }
}

std::vector<Known> unpack_known(base::Unpacker& in) {
  std::vector<Known> out;
  for (uint64_t left = in.number(kMostItems); left > 0 && in.good(); --left) {
    Known known;
    known.path = in.text(kMostPath);
    known.name = static_cast<NameKind>(in.number(static_cast<uint64_t>(NameKind::kQuarantine)));
    known.kind = static_cast<EntryKind>(in.number(static_cast<uint64_t>(EntryKind::kOther)));
    known.repository = in.number(1) == 1;
    known.id = unpack_id(in);
    out.push_back(std::move(known));
  }
  return out;
}

}  // namespace

std::string encode(const Guard& guard) {
  std::string out;
  base::pack_text(out, guard.root);
  pack_id(out, guard.id);
  pack_known(out, guard.known);
  base::pack_number(out, guard.approved.size());
  for (const std::string& pattern : guard.approved) base::pack_text(out, pattern);
  base::pack_number(out, guard.watched.size());
  for (const std::string& path : guard.watched) base::pack_text(out, path);
  base::pack_number(out, guard.git_folders.size());
  for (const GitFolder& folder : guard.git_folders) {
    base::pack_number(out, folder.whole ? 1 : 0);
    base::pack_text(out, folder.path);
    pack_id(out, folder.id);
    pack_known(out, folder.known);
    base::pack_text(out, folder.config);
  }
  base::pack_number(out, guard.copies.size());
  for (const PrivateCopy& copy : guard.copies) {
    base::pack_text(out, copy.target);
    base::pack_text(out, copy.upper);
  }
  base::pack_text(out, guard.quarantine);
  base::pack_text(out, guard.session);
  return out;
}

base::Result<Guard> decode_guard(std::string_view bytes) {
  base::Unpacker in(bytes);
  Guard out;
  out.root = in.text(kMostPath);
  out.id = unpack_id(in);
  out.known = unpack_known(in);
  for (uint64_t left = in.number(kMostItems); left > 0 && in.good(); --left) out.approved.push_back(in.text(kMostPath));
  for (uint64_t left = in.number(kMostItems); left > 0 && in.good(); --left) out.watched.push_back(in.text(kMostPath));
  for (uint64_t left = in.number(kMostItems); left > 0 && in.good(); --left) {
    GitFolder folder;
    folder.whole = in.number(1) == 1;
    folder.path = in.text(kMostPath);
    folder.id = unpack_id(in);
    folder.known = unpack_known(in);
    folder.config = in.text(kMostPath);
    out.git_folders.push_back(std::move(folder));
  }
  for (uint64_t left = in.number(kMostItems); left > 0 && in.good(); --left) {
    PrivateCopy copy;
    copy.target = in.text(kMostPath);
    copy.upper = in.text(kMostPath);
    out.copies.push_back(std::move(copy));
  }
  out.quarantine = in.text(kMostPath);
  out.session = in.text(kMostPath);
  if (!in.at_end()) return base::refuse("read what a session guards", "", "it is not whole");
  return out;
}

base::Result<Settled> settle(const Guard& guard, int scratch) {
  Settled out;
  const auto deadline = base::Deadline::after(kMostTime);
  BELLJAR_ASSIGN(const base::Fd root, base::open_resolved(AT_FDCWD, guard.root, O_RDONLY | O_DIRECTORY,
                                                          RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  FileLook found;
  if (!look_at(root.get(), "", found)) return base::system_error("open", guard.root, errno);
  if (found.id != guard.id) {
    return base::refuse("look for what the guest left in", guard.root, "it is another folder than at the launch",
                        "look for the one that was there");
  }
  if (const auto swept = sweep(guard, root.get(), deadline, out); !swept) {
    out.add_unreleased(swept.error().message());
  }
  for (const PrivateCopy& copy : guard.copies) {
    if (const auto listed = list_changes(copy, scratch, deadline, out); !listed) out.add_note(listed.error().message());
  }
  return out;
}

}  // namespace belljar::workspace
