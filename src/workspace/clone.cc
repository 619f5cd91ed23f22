#include "workspace/clone.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/io.h"
#include "base/pack.h"
#include "base/path.h"
#include "base/private_folder.h"
#include "base/random.h"
#include "base/text.h"
#include "workspace/private_git.h"

namespace belljar::workspace {
namespace {

constexpr std::string_view kOperation = "clone the project";
constexpr size_t kMostText = 8192;
constexpr size_t kMostListing = size_t{256} << 20U;
constexpr uint32_t kSubmodule = 0160000;
constexpr uint64_t kFormat = 1;

// What git shall not do with files on their way to and from its objects: nothing (gitattributes(5)). Here it outranks
// every .gitattributes of the tree.
constexpr std::string_view kNoAttributes = "* -text -eol -ident -filter -working-tree-encoding -merge\n";
// Sizes and times are what git may go by: inode, owner and ctime are others in every volume.
constexpr std::string_view kConfig =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = false\n"
    "\tcheckStat = minimal\n\ttrustctime = false\n";
constexpr std::string_view kConfigSha256 =
    "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = false\n"
    "\tcheckStat = minimal\n\ttrustctime = false\n[extensions]\n\tobjectformat = sha256\n";

base::Result<base::Fd> open_folder(const std::string& path) {
  return base::open_resolved(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

base::Status write_new(const std::string& path, std::string_view text) {
  ::unlink(path.c_str());
  const base::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file || !base::write_all(file.get(), text)) return base::system_error(kOperation, path, errno);
  return {};
}

bool is_object_id(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct Head {
  std::string commit{};
  std::string branch{};
};

// "ref: refs/heads/main\tHEAD\n<id>\tHEAD\n" (git-ls-remote(1)).
base::Result<Head> read_head(const std::string& project, std::string_view said) {
  Head out{.branch = "task"};
  constexpr std::string_view kRef = "ref: refs/heads/";
  for (std::string_view line : base::split(said, '\n')) {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos || line.substr(tab + 1) != "HEAD") continue;
    line = line.substr(0, tab);
    if (line.starts_with(kRef)) {
      out.branch = line.substr(kRef.size());
    } else {
      out.commit = line;
    }
  }
  if (!is_object_id(out.commit)) {
    return base::refuse(kOperation, project, "it has no commit, refusing", "commit what the task is to begin with");
  }
  return out;
}

// git's safe.directory is about configuration that would be obeyed; none of a source repository's is by upload-pack
// but that of the user and the system (git-config(1), uploadpack.packObjectsHook). Root may take anybody's project.
std::vector<std::string> source_environment(const std::string& place, bool& written) {
  written = ::geteuid() == 0 && write_new(place + ".gitconfig", "[safe]\n\tdirectory = *\n").has_value();
  if (!written) return {};
  return {"GIT_CONFIG_GLOBAL=" + place + ".gitconfig"};
}

// A path that a file of git's names, after `prefix` and up to the line's end; relative to the folder `from`.
std::string named_by(const std::string& file, std::string_view prefix, const std::string& from) {
  const auto text = base::read_regular_file(file, kMostText, false);
  if (!text || !text->starts_with(prefix)) return {};
  const std::string path = text->substr(prefix.size(), text->find('\n') - prefix.size());
  return base::real_path(path.starts_with('/') ? path : from + "/" + path).value_or("");
}

// What git may read for the repository at `project`. For a linked worktree that is the repository it belongs to, found
// by the worktree's `.git` file, which may be a guest's work, and believed when it lies in that repository, outside of
// the project, and names the worktree in turn (gitrepository-layout(5), worktrees/<id>). Refused when it borrows
// objects (alternates): whoever wrote that file could name them from any repository of the person's.
base::Result<std::vector<std::string>> readable(const std::string& project) {
  std::vector<std::string> out{project};
  std::string repository = project + "/.git";
  struct stat found{};
  if (::lstat(repository.c_str(), &found) == 0 && !S_ISDIR(found.st_mode)) {
    const std::string own = named_by(repository, "gitdir: ", project);
    const auto here = base::real_path(repository);
    const std::string worktrees = own.empty() ? "" : base::parent_of(own);
    const std::string whole = worktrees.empty() ? "" : base::parent_of(worktrees);
    struct stat half{};
    // What lies in the project is the project's word alone.
    const bool knows = here && !own.empty() && !base::is_within(own, base::parent_of(*here)) &&
                       base::name_of(worktrees) == "worktrees" && named_by(own + "/gitdir", "", own) == *here &&
                       named_by(own + "/commondir", "", own) == whole && ::stat(own.c_str(), &half) == 0 &&
                       half.st_uid == found.st_uid && ::stat((whole + "/objects").c_str(), &half) == 0 &&
                       S_ISDIR(half.st_mode) && half.st_uid == found.st_uid;
    if (!knows) {
      return base::refuse(kOperation, repository, "it leads to no repository that knows of it, refusing",
                          "name the repository itself");
    }
    repository = whole;
    out.push_back(repository);
  }
  if (const std::string lent = repository + "/objects/info/alternates"; ::lstat(lent.c_str(), &found) == 0) {
    return base::refuse(kOperation, lent, "the repository borrows objects of another, refusing",
                        "make them its own by git repack -a -d, and remove that file");
  }
  return out;
}

base::Status fetch(const std::string& project, const std::string& place, Head& head, const base::Deadline& deadline) {
  bool written = false;
  const std::vector<std::string> environment = source_environment(place, written);
  BELLJAR_ASSIGN(std::vector<std::string> reads, readable(project));
  if (written) reads.push_back(place + ".gitconfig");
  const auto with = [&](std::vector<std::string> words) {
    return run_git({.folder = place, .arguments = std::move(words), .reads = reads, .environment = environment},
                   deadline);
  };
  auto status = [&]() -> base::Status {
    BELLJAR_ASSIGN(const GitSaid said, with({"ls-remote", "--symref", "--", project, "HEAD"}));
    BELLJAR_ASSIGN(head, read_head(project, said.out));
    BELLJAR_TRY(with({"init", "--quiet", "--template=", "--initial-branch=" + head.branch,
                      std::string("--object-format=") + (head.commit.size() == 64 ? "sha256" : "sha1"), "."}));
    BELLJAR_TRY(with({"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance",
                      "--no-write-fetch-head", "--update-head-ok", "--update-shallow", "--", project,
                      "+HEAD:refs/heads/" + head.branch}));
    return {};
  }();
  if (written) ::unlink((place + ".gitconfig").c_str());
  return status;
}

base::Result<BaseTree> list(const std::string& place, const std::string& commit, const base::Deadline& deadline) {
  BELLJAR_ASSIGN(const GitSaid said, run_git({.folder = place,
                                              .arguments = {"ls-tree", "-r", "-z", "--full-tree", "--long", commit},
                                              .most = kMostListing},
                                             deadline));
  BaseTree out;
  // "<mode> <type> <id> <size, padded>\t<path>\0" (git-ls-tree(1)).
  for (const std::string_view line : base::split(said.out, '\0')) {
    if (line.empty()) continue;
    const size_t tab = line.find('\t');
    std::vector<std::string_view> words;
    for (const std::string_view word : base::split(line.substr(0, tab), ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    if (tab == std::string_view::npos || words.size() != 4 || !is_object_id(words[2])) {
      return base::refuse("list the commit", commit, "git's answer is none, refusing");
    }
    BaseEntry entry{.id = std::string(words[2])};
    for (const char c : words[0]) entry.mode = entry.mode << 3U | static_cast<uint32_t>(c - '0');
    if (words[3] != "-" && !base::parse_uint(words[3], entry.size)) {
      return base::refuse("list the commit", commit, "git's answer is none, refusing");
    }
    out.emplace(line.substr(tab + 1), std::move(entry));
  }
  return out;
}

base::Status check_out(const std::string& project, const std::string& place, const Head& head,
                       const base::Deadline& deadline) {
  BELLJAR_ASSIGN(const BaseTree tree, list(place, head.commit, deadline));
  for (const auto& [path, entry] : tree) {
    if (entry.mode != kSubmodule) continue;
    return base::refuse(kOperation, project + "/" + path, "it is a submodule, refusing",
                        "a task's storage holds one repository");
  }
  const std::string git = place + "/.git/";
  if (::mkdir((git + "info").c_str(), 0755) != 0 && errno != EEXIST) return base::system_error(kOperation, git, errno);
  BELLJAR_TRY(write_new(git + "info/attributes", kNoAttributes));
  BELLJAR_TRY(run_git({.folder = place, .arguments = {"reset", "--quiet", "--hard", head.commit, "--"}}, deadline));
  for (const char* name : {"ORIG_HEAD", "FETCH_HEAD", "description"}) ::unlink((git + name).c_str());
  return write_new(git + "config", head.commit.size() == 64 ? kConfigSha256 : kConfig);
}

base::Result<FileId> identity_of(int fd) {
  FileLook found;
  if (!look_at(fd, "", found)) return base::system_error("identify the folder", "", errno);
  return found.id;
}

}  // namespace

std::string encode(const CloneRecord& record) {
  std::string out;
  base::pack_number(out, kFormat);
  for (const std::string* text : {&record.path, &record.token, &record.commit, &record.branch}) {
    base::pack_text(out, *text);
  }
  for (const FileId* id : {&record.folder, &record.metadata}) pack_id(out, *id);
  return out;
}

base::Result<CloneRecord> decode_clone(std::string_view record) {
  base::Unpacker in(record);
  CloneRecord out;
  const uint64_t format = in.number();
  for (std::string* text : {&out.path, &out.token, &out.commit, &out.branch}) *text = in.text(kMostText);
  for (FileId* id : {&out.folder, &out.metadata}) *id = unpack_id(in);
  if (format != kFormat || !in.at_end() || !is_object_id(out.commit) || out.token.empty()) {
    return base::refuse("read the record of a clone", out.path, "it is not whole, or of another version, refusing");
  }
  return out;
}

base::Result<Clone> Clone::open(CloneRecord record) {
  BELLJAR_ASSIGN(base::Fd folder, open_folder(record.path));
  BELLJAR_ASSIGN(base::Fd metadata, base::open_resolved(folder.get(), ".git", O_RDONLY | O_DIRECTORY,
                                                        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV));
  return Clone(std::move(record), std::move(folder), std::move(metadata));
}

base::Result<Clone> Clone::make(const std::string& project, const std::string& place, const base::Deadline& deadline) {
  BELLJAR_TRY(base::open_private_folder(base::parent_of(place), kOperation));
  if (project.contains('\n')) return base::refuse(kOperation, project, "git cannot be told such a path, refusing");
  if (::mkdir(place.c_str(), 0700) != 0) return base::system_error(kOperation, place, errno);
  CloneRecord record{.path = place};
  record.token = base::random_hex(16);
  Head head;
  BELLJAR_TRY(fetch(project, place, head, deadline));
  BELLJAR_TRY(check_out(project, place, head, deadline));
  record.commit = head.commit;
  record.branch = head.branch;
  BELLJAR_ASSIGN(Clone out, open(std::move(record)));
  BELLJAR_ASSIGN(out.record_.folder, identity_of(out.folder_.get()));
  BELLJAR_ASSIGN(out.record_.metadata, identity_of(out.metadata_.get()));
  return out;
}

base::Result<Clone> Clone::reopen(CloneRecord record) {
  BELLJAR_ASSIGN(Clone out, open(std::move(record)));
  BELLJAR_TRY(out.verify());
  return out;
}

base::Status Clone::verify() const {
  const auto differs = [&](const std::string& path) {
    return base::refuse("verify the clone", path, "another folder stands there now, refusing",
                        "remove the task and make it again");
  };
  BELLJAR_ASSIGN(const Clone now, open(record_));
  BELLJAR_ASSIGN(const FileId folder, identity_of(now.folder_.get()));
  BELLJAR_ASSIGN(const FileId metadata, identity_of(now.metadata_.get()));
  BELLJAR_ASSIGN(const FileId held, identity_of(folder_.get()));
  BELLJAR_ASSIGN(const FileId held_metadata, identity_of(metadata_.get()));
  if (folder != record_.folder || held != record_.folder) return differs(record_.path);
  if (metadata != record_.metadata || held_metadata != record_.metadata) return differs(record_.path + "/.git");
  return {};
}

base::Result<TreeSize> Clone::measure(TreeKind kind, const base::Deadline& deadline) const {
  if (kind == TreeKind::kWork) return measure_tree(folder(), record_.path, kind, deadline);
  return measure_tree(metadata(), record_.path + "/.git", kind, deadline);
}

base::Status Clone::write(TreeKind kind, TreeSink& sink, const base::Deadline& deadline) const {
  if (kind == TreeKind::kWork) return write_tree(folder(), record_.path, kind, sink, deadline);
  return write_tree(metadata(), record_.path + "/.git", kind, sink, deadline);
}

base::Status Clone::discard_checkout() const {
  BELLJAR_TRY(verify());
  std::error_code error;
  std::filesystem::directory_iterator entries(record_.path, error);
  for (const auto end = std::filesystem::directory_iterator(); !error && entries != end; entries.increment(error)) {
    if (entries->path().filename() != ".git") std::filesystem::remove_all(entries->path(), error);
    if (error) break;
  }
  if (error) return base::system_error("remove the checkout", record_.path, error.value());
  return {};
}

base::Result<BaseTree> Clone::tree(const base::Deadline& deadline) const {
  BELLJAR_TRY(verify());
  return list(record_.path, record_.commit, deadline);
}

}  // namespace belljar::workspace
