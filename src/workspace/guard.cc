#include "workspace/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "base/io.h"
#include "base/pack.h"
#include "base/path.h"
#include "base/text.h"
#include "workspace/private_changes.h"
#include "workspace/quarantine.h"

namespace belljar::workspace {
namespace {

constexpr uint64_t kMostItems = 100'000;
constexpr uint64_t kMostPath = uint64_t{1} << 16U;
constexpr size_t kMostLinks = 20'000;
constexpr size_t kMostLinkText = 512;
constexpr int kMostRounds = 3;

// The second walk: puts into quarantine what was not there before.
class Sweep : public TreeVisitor {
 public:
  Sweep(const Guard& guard, int root, const base::Deadline& deadline, Settled& out)
      : guard_(guard), out_(out), quarantine_(guard.quarantine, guard.session, root, guard.root, deadline) {
    for (const Known& known : guard.known) by_id_[known.id].push_back(&known);
  }

  bool on_entry(const TreeEntry& entry) override {
    const NameKind name = protected_name(entry.name);
    if (entry.type == DT_LNK) note_link(entry);
    if (name == NameKind::kNone) return true;
    if (!is_repository(name) && lies_in_packages(entry.folder_path)) return true;
    const std::string path = entry.path();
    // A folder that may be there is not what is inside it; a repository is looked into no more than before.
    if (name != NameKind::kQuarantine && is_approved(guard_.approved, path)) return !is_repository(name);
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

  // `path` is relative to the work folder, or absolute.
  void on_unseen(std::string_view path, int code) override {
    if (code == ESTALE) moved_ = true;
    unseen_.emplace(std::string(path.substr(0, kMostUnseenPath)), code);
    if (unseen_.size() > kMostUnseen) unseen_.erase(std::prev(unseen_.end()));
  }

  // Puts `leaf` of the open folder away; `path` is relative to the work folder, or absolute.
  void put(int folder, const std::string& leaf, const std::string& path) {
    Quarantined moved = quarantine_.put(folder, leaf, path);
    if (moved.moved_to.empty() && moved.reason.empty()) return;
    put_.insert(path);
    if (moved.moved_to.empty())
      out_.add_unreleased("'" + moved.path + "' is new and could not be moved: " + moved.reason);
    out_.add(std::move(moved));
  }

  // Links that the walk came by, and whether those are all. To follow them is for after the walk: a guest can make
  // links that take long.
  [[nodiscard]] const std::vector<std::string>& links() const { return links_; }
  [[nodiscard]] bool all_links() const { return all_links_; }
  // Puts a link away that leads to a folder that nobody looks through. No program has a reason for it: in the guest
  // those folders have other names. One that stays within the work folder leads no further than another link of it,
  // which has its own turn; and none that a program makes has a text that long.
  // False when it cannot be read.
  bool judge_link(int folder, const std::string& leaf, const std::string& path) {
    std::array<char, kMostLinkText> text{};
    const ssize_t size = ::readlinkat(folder, leaf.c_str(), text.data(), text.size());
    if (size < 0) return errno == ENOENT || errno == EINVAL;  // gone, or no link any more
    bool leads = static_cast<size_t>(size) == text.size();
    if (!leads) {
      const base::Fd end(::openat(folder, leaf.c_str(), O_PATH | O_CLOEXEC));
      const auto real = end ? base::real_path(end.get()) : base::system_error("open", leaf, errno);
      leads = real && std::ranges::any_of(guard_.unswept,
                                          [&](const std::string& tree) { return base::is_within(*real, tree); });
    }
    if (leads) put(folder, leaf, path);
    return true;
  }

  // True when somebody moved folders about while they were looked at, so that another round is due.
  bool begin_again() {
    if (!std::exchange(moved_, false)) return false;
    std::erase_if(unseen_, [](const auto& each) { return !each.first.starts_with('/'); });
    return true;
  }
  // What had a protected name and is nowhere any more. A mount point cannot be removed, except from another mount
  // namespace (nested = true).
  void tell_gone(int root) {
    for (const Known& known : guard_.known) {
      if (known.name == NameKind::kNone || known.path.empty() || seen_.contains(&known) || put_.contains(known.path)) {
        continue;
      }
      const auto there =
          base::open_resolved(root, known.path, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
      if (!there && there.error().code == ENOENT) out_.add_note("'" + known.path + "' is gone");
    }
  }
  void tell_unseen() {
    for (const auto& [path, code] : unseen_) {
      const std::string where = path.starts_with('/') ? path : guard_.root + "/" + path;
      out_.add_unreleased(
          base::system_error("look for what the guest left in", where, code, "look there before you use it")
              .error()
              .message());
    }
  }

 private:
  void note_link(const TreeEntry& entry) {
    if (guard_.unswept.empty()) return;
    if (links_.size() < kMostLinks) {
      links_.push_back(entry.path());
    } else {
      all_links_ = false;
    }
  }

  static constexpr size_t kMostUnseen = 20;
  static constexpr size_t kMostUnseenPath = 512;

  [[nodiscard]] bool is_as_before(const std::string& path, const FileLook& found) {
    const auto same = by_id_.find(found.id);
    if (same == by_id_.end()) return false;
    const auto& all = same->second;
    seen_.insert(all.begin(), all.end());
    if (std::ranges::any_of(all, [&](const Known* each) { return each->path == path; })) return true;
    const Known& known = *all.front();
    // The folder above it was moved, and its mount with it: a folder is the host's own, and still as it was. A link or
    // a file that names a repository may lead somewhere else from here, and a file may have a second name.
    if (known.kind != EntryKind::kFolder && (is_repository(known.name) || !S_ISREG(found.mode))) return false;
    if (S_ISREG(found.mode) && found.links > 1) return false;
    const bool beside = base::parent_of("/" + known.path) == base::parent_of("/" + path);
    out_.add_note("'" + known.path + "' is now at '" + path + (beside ? "'" : "': a folder above it was moved"));
    return true;
  }

  const Guard& guard_;
  Settled& out_;
  Quarantine quarantine_;
  std::map<FileId, std::vector<const Known*>> by_id_;  // several for the names of one file
  std::set<const Known*> seen_;
  std::set<std::string> put_;  // where what was put away has been
  std::map<std::string, int> unseen_;
  std::vector<std::string> links_;  // relative paths
  bool all_links_ = true;
  bool moved_ = false;
};

// All links, where they are too many to keep, or too deep.
class LinkSweep : public TreeVisitor {
 public:
  LinkSweep(Sweep& sweep, const base::Deadline& deadline) : sweep_(sweep), deadline_(deadline) {}
  bool on_entry(const TreeEntry& entry) override {
    if (entry.type == DT_LNK && !deadline_.passed()) {
      (void)sweep_.judge_link(entry.folder, std::string(entry.name), entry.path());
    }
    return true;
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view /*path*/, int /*code*/) override {}

 private:
  Sweep& sweep_;
  const base::Deadline& deadline_;
};

base::Status sweep_links(int root, const base::Deadline& deadline, Sweep& sweep) {
  bool all = sweep.all_links();
  for (size_t i = 0; all && i < sweep.links().size(); ++i) {
    if (deadline.passed()) return base::system_error("follow the links", "", ETIME);
    const std::string& path = sweep.links()[i];
    const size_t slash = path.rfind('/');
    const auto folder = base::open_resolved(root, slash == std::string::npos ? "." : path.substr(0, slash),
                                            O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    // In a shut folder, or too deep for a path.
    all = folder || folder.error().code == ENOENT || folder.error().code == ENOTDIR;
    if (folder) all = sweep.judge_link(folder->get(), std::string(base::name_of(path)), path);
  }
  if (all) return {};
  LinkSweep visitor(sweep, deadline);
  BELLJAR_TRY(walk_tree(root, visitor, {.deadline = deadline, .force_own = true}));
  if (deadline.passed()) return base::system_error("follow the links", "", ETIME);
  return {};
}

// What git obeys in a folder of its own, and links and their like at any depth: git appends to logs, writes messages
// and removes old packs through a link. All else in it is the guest's.
class GitSweep : public TreeVisitor {
 public:
  GitSweep(const Guard& guard, const GitFolder& folder, Sweep& sweep) : guard_(guard), folder_(folder), sweep_(sweep) {
    for (const Known& known : folder.known) known_.emplace(known.path, known.id);
  }

  bool on_entry(const TreeEntry& entry) override {
    const bool obeyed = folder_.whole && (entry.folder_path.empty()             ? obeyed_by_git(entry.name)
                                          : entry.folder_path == "objects/info" ? names_more_objects(entry.name)
                                                                                : false);
    if (!obeyed && entry.type == DT_DIR) {
      return !entry.folder_path.empty() || !folder_.tree || kept_by_git(entry.name);
    }
    FileLook found;
    if ((!obeyed && entry.type == DT_REG) || !look_at(entry.folder, entry.name.data(), found)) return false;
    const std::string name = entry.path();
    if (const auto known = known_.find(name); known != known_.end() && known->second == found.id) return false;
    const bool inside = base::is_within(folder_.path, guard_.root) && folder_.path != guard_.root;
    const std::string path = inside ? folder_.path.substr(guard_.root.size() + 1) : folder_.path;
    if (name == "config" && !folder_.config.empty()) {
      put_back_config(entry.folder, path + "/" + name);
    } else {
      sweep_.put(entry.folder, std::string(entry.name), path + "/" + name);
    }
    return false;
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view path, int code) override {
    sweep_.on_unseen(folder_.path + "/" + std::string(path), code);
  }

 private:
  // The host's own git replaces the file when it changes it, and the guest's mount went with the old one: so whose the
  // new one is cannot be told. Exchanged, so that there is a config at any moment.
  void put_back_config(int folder, const std::string& path) {
    const std::string fresh = std::string(kQuarantinePrefix) + guard_.session + "-config";
    FileLook left;
    if (look_at(folder, fresh.c_str(), left)) sweep_.put(folder, fresh, path);  // of an end that was cut off
    if (is_kept_config(folder)) return;
    if (write_config(folder, fresh.c_str())) {
      if (::renameat2(folder, fresh.c_str(), folder, "config", RENAME_EXCHANGE) == 0) {
        sweep_.put(folder, fresh, path);
        return;
      }
      ::unlinkat(folder, fresh.c_str(), 0);  // NFS exchanges nothing
    }
    sweep_.put(folder, "config", path);
    (void)write_config(folder, "config");
  }

  // Put back by an end that was cut off, or changed and changed back.
  [[nodiscard]] bool is_kept_config(int folder) const {
    const base::Fd file(::openat(folder, "config", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat found{};
    if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_nlink != 1) return false;
    const auto text = base::read_to_end(file.get(), folder_.config.size(), "config");
    return text && *text == folder_.config;
  }

  [[nodiscard]] bool write_config(int folder, const char* name) const {
    struct stat owner{};
    const base::Fd file(::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!file || ::fstat(folder, &owner) != 0 || !base::write_all(file.get(), folder_.config)) return false;
    return ::geteuid() != 0 || ::fchown(file.get(), owner.st_uid, owner.st_gid) == 0;
  }

  const Guard& guard_;
  const GitFolder& folder_;
  Sweep& sweep_;
  std::map<std::string, FileId> known_;
};

// Programs of the host write through links in the agent's history, wait at FIFOs, and take a repository for one.
class HistorySweep : public TreeVisitor {
 public:
  HistorySweep(const std::string& root, int64_t begun, Sweep& sweep) : root_(root), begun_(begun), sweep_(sweep) {}

  bool on_entry(const TreeEntry& entry) override {
    const bool repository = is_repository(protected_name(entry.name));
    if (!repository && (entry.type == DT_REG || entry.type == DT_DIR)) return true;
    put_new(entry.folder, std::string(entry.name), root_ + "/" + entry.path());
    return false;
  }
  bool on_repository(int folder, std::string_view path) override {
    put_new(folder, "HEAD", root_ + "/" + (path.empty() ? "" : std::string(path) + "/") + "HEAD");
    return true;
  }
  void on_unseen(std::string_view path, int code) override { sweep_.on_unseen(root_ + "/" + std::string(path), code); }

 private:
  void put_new(int folder, const std::string& name, const std::string& path) {
    FileLook found;
    if (look_at(folder, name.c_str(), found) && found.changed >= begun_) sweep_.put(folder, name, path);
  }

  const std::string& root_;
  int64_t begun_;
  Sweep& sweep_;
};

void sweep_history(const Guard& guard, const std::string& path, const base::Deadline& deadline, Sweep& sweep) {
  const auto itself =
      base::open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (!itself) {
    if (itself.error().code != ENOENT) sweep.on_unseen(path, itself.error().code);
    return;
  }
  HistorySweep visitor(path, guard.begun, sweep);
  if (const auto walked = walk_tree(itself->get(), visitor, {.deadline = deadline, .force_own = true}); !walked) {
    sweep.on_unseen(path, walked.error().code);
  }
}

void sweep_git(const Guard& guard, const GitFolder& folder, const base::Deadline& deadline, Sweep& sweep) {
  const auto itself =
      base::open_resolved(AT_FDCWD, folder.path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  FileLook found;
  // What came in its place is put away whole.
  if (itself && (!look_at(itself->get(), "", found) || found.id != folder.id)) return;
  const OpenedFolder open = itself ? OpenedFolder::reopen(itself->get(), true) : OpenedFolder();
  if (!open) {
    if (!itself) errno = itself.error().code;
    const bool replaced = errno == ENOENT || errno == ELOOP || errno == ENOTDIR;
    if (!replaced) sweep.on_unseen(folder.path, errno);
    return;
  }
  GitSweep visitor(guard, folder, sweep);
  if (const auto walked = walk_tree(open.fd(), visitor, {.deadline = deadline, .force_own = true}); !walked) {
    sweep.on_unseen(folder.path, walked.error().code);
  }
}

// Looks at what lies now at `path`, under which something is obeyed: puts it away unless it is `before`. No link was on
// the way: one that is there now is what the host would follow.
void sweep_target(const Guard& guard, int root, const std::string& path, const FileId& before, Sweep& sweep) {
  std::vector<OpenedFolder> way;
  const auto names = base::split(path, '/');
  std::string at;
  for (size_t i = 0; i < names.size(); ++i) {
    const int folder = way.empty() ? root : way.back().fd();
    const std::string name(names[i]);
    at += (at.empty() ? "" : "/") + name;
    FileLook found;
    if (is_approved(guard.approved, at)) return;
    if (!look_at(folder, name.c_str(), found)) {
      if (errno != ENOENT && errno != ENAMETOOLONG) sweep.on_unseen(guard.root + "/" + at, errno);
      return;
    }
    const bool last = i + 1 == names.size();
    if (last ? found.id != before : S_ISLNK(found.mode)) sweep.put(folder, name, at);
    if (last || !S_ISDIR(found.mode)) return;
    way.push_back(OpenedFolder::open(folder, name.c_str(), true));
    if (!way.back()) return sweep.on_unseen(guard.root + "/" + at, errno);
  }
}

void sweep_targets(const Guard& guard, int root, Sweep& sweep) {
  for (const std::string& path : guard.watched) sweep_target(guard, root, path, {}, sweep);
  // Those that no name tells the walk of.
  for (const Known& known : guard.known) {
    if (known.name == NameKind::kNone) sweep_target(guard, root, known.path, known.id, sweep);
  }
}

base::Status sweep(const Guard& guard, int root, const base::Deadline& deadline, Settled& out) {
  Sweep visitor(guard, root, deadline, out);
  sweep_targets(guard, root, visitor);
  for (const GitFolder& folder : guard.git_folders) sweep_git(guard, folder, deadline, visitor);
  for (const std::string& path : guard.histories) sweep_history(guard, path, deadline, visitor);
  const WalkOptions options{.deadline = deadline, .force_own = true};
  for (int round = 0; round < kMostRounds; ++round) {
    BELLJAR_TRY(walk_tree(root, visitor, options));
    if (round + 1 == kMostRounds || !visitor.begin_again()) break;
  }
  BELLJAR_TRY(sweep_links(root, deadline, visitor));
  visitor.tell_gone(root);
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
  base::pack_number(out, guard.unswept.size());
  for (const std::string& path : guard.unswept) base::pack_text(out, path);
  base::pack_number(out, guard.git_folders.size());
  for (const GitFolder& folder : guard.git_folders) {
    base::pack_number(out, folder.whole ? 1 : 0);
    base::pack_number(out, folder.tree ? 1 : 0);
    base::pack_text(out, folder.path);
    pack_id(out, folder.id);
    pack_known(out, folder.known);
    base::pack_text(out, folder.config);
  }
  base::pack_number(out, guard.histories.size());
  for (const std::string& path : guard.histories) base::pack_text(out, path);
  base::pack_number(out, static_cast<uint64_t>(guard.begun));
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
  for (uint64_t left = in.number(kMostItems); left > 0 && in.good(); --left) out.unswept.push_back(in.text(kMostPath));
  for (uint64_t left = in.number(kMostItems); left > 0 && in.good(); --left) {
    GitFolder folder;
    folder.whole = in.number(1) == 1;
    folder.tree = in.number(1) == 1;
    folder.path = in.text(kMostPath);
    folder.id = unpack_id(in);
    folder.known = unpack_known(in);
    folder.config = in.text(kMostPath);
    out.git_folders.push_back(std::move(folder));
  }
  for (uint64_t left = in.number(kMostItems); left > 0 && in.good(); --left)
    out.histories.push_back(in.text(kMostPath));
  out.begun = static_cast<int64_t>(in.number(INT64_MAX));
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

base::Result<Settled> settle(const Guard& guard, int scratch, const base::Deadline& deadline) {
  Settled out;
  BELLJAR_ASSIGN(const base::Fd itself, base::open_resolved(AT_FDCWD, guard.root, O_PATH | O_DIRECTORY,
                                                            RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  FileLook found;
  if (!look_at(itself.get(), "", found)) return base::system_error("open", guard.root, errno);
  if (found.id != guard.id) {
    return base::refuse("look for what the guest left in", guard.root, "it is another folder than at the launch",
                        "look for the one that was there");
  }
  const OpenedFolder root = OpenedFolder::reopen(itself.get(), true);
  if (!root) return base::system_error("look into", guard.root, errno);
  const auto swept = sweep(guard, root.fd(), deadline, out);
  if (!swept && swept.error().code != ETIME) out.add_unreleased(swept.error().message());
  if (deadline.passed()) {
    out.set_unfinished();
    out.add_unreleased("look for what the guest left in '" + guard.root +
                       "': it did not come to an end in time (do not use the folder before the next launch in it, or "
                       "'belljar recover', has done so)");
  }
  for (const PrivateCopy& copy : guard.copies) {
    if (const auto listed = list_changes(copy, scratch, deadline, out); !listed) out.add_note(listed.error().message());
  }
  return out;
}

}  // namespace belljar::workspace
