#include "workspace/work_commit.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "base/path.h"
#include "base/text.h"

namespace belljar::workspace {
namespace {

constexpr std::string_view kCommitting = "make the commit";

// In git's quotes: fast-import reads C's escapes (git-fast-import(1), "<path>").
std::string git_quoted(std::string_view path) {
  std::string out = "\"";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20U || byte == 0x7fU) {
      std::array<char, 8> octal{};
      std::snprintf(octal.data(), octal.size(), "\\%03o", static_cast<unsigned>(byte));
      out += octal.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

bool copy_content(const Manifest& manifest, const WorkChange& change, int to) {
  std::array<char, 65536> bytes{};
  for (uint64_t done = 0; done < change.size;) {
    const ssize_t n =
        ::pread(manifest.content.get(), bytes.data(), std::min<uint64_t>(bytes.size(), change.size - done),
                static_cast<off_t>(change.at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || !base::write_all(to, bytes.data(), static_cast<size_t>(n))) return false;
    done += static_cast<uint64_t>(n);
  }
  return true;
}

// The whole of what fast-import is told, in a file without a name.
base::Result<base::Fd> import_file(const Manifest& manifest, const CommitWords& words, const std::string& place) {
  base::Fd out(::open(place.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  std::string head = "commit refs/heads/" + words.branch + "\ncommitter " + words.name + " <" + words.mail + "> " +
                     std::to_string(words.time) + " +0000\ndata " + std::to_string(words.message.size()) + "\n" +
                     words.message + "\nfrom " + manifest.base + "\n";
  // What goes, goes first: a file may have become a folder.
  for (const WorkChange& one : manifest.changes) {
    if (one.kind == WorkChange::Kind::kDeleted) head += "D " + git_quoted(one.path) + "\n";
  }
  if (!out || !base::write_all(out.get(), head)) return base::system_error(kCommitting, place, errno);
  for (const WorkChange& one : manifest.changes) {
    if (one.kind == WorkChange::Kind::kDeleted) continue;
    std::array<char, 16> mode{};
    std::snprintf(mode.data(), mode.size(), "%06o", static_cast<unsigned>(one.mode));
    const std::string line = "M " + std::string(mode.data()) + " inline " + git_quoted(one.path) + "\ndata " +
                             std::to_string(one.size) + "\n";
    if (!base::write_all(out.get(), line) || !copy_content(manifest, one, out.get()) ||
        !base::write_all(out.get(), "\n")) {
      return base::system_error(kCommitting, place, errno);
    }
  }
  if (!base::write_all(out.get(), "done\n") || ::lseek(out.get(), 0, SEEK_SET) != 0) {
    return base::system_error(kCommitting, place, errno);
  }
  return out;
}

base::Status check_words(const CommitWords& words) {
  for (const std::string* text : {&words.name, &words.mail}) {
    if (!base::is_utf8(*text) || text->find_first_of(std::string_view("<>\n\0", 4)) != std::string::npos) {
      return base::refuse(kCommitting, *text, "an author's name or mail is no such text, refusing");
    }
  }
  if (words.mail.empty() || words.message.empty() || !base::is_utf8(words.message) || words.message.contains('\0')) {
    return base::refuse(kCommitting, words.message, "its message is none, refusing");
  }
  return {};
}

}  // namespace

WorkCommit::WorkCommit(WorkCommit&& other) noexcept
    : place_(std::exchange(other.place_, {})),
      objects_(std::move(other.objects_)),
      base_(std::move(other.base_)),
      branch_(std::move(other.branch_)),
      id_(std::move(other.id_)) {}

WorkCommit::~WorkCommit() {
  std::error_code ignored;
  if (!place_.empty()) std::filesystem::remove_all(place_, ignored);
}

base::Result<GitSaid> WorkCommit::git(std::vector<std::string> arguments, const base::Deadline& deadline, int input,
                                      size_t most, bool cut) const {
  return run_git({.folder = place_,
                  .arguments = std::move(arguments),
                  .reads = {objects_},
                  .environment = {"GIT_DIR=" + place_, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects_},
                  .input = input,
                  .most = most,
                  .cut = cut},
                 deadline);
}

base::Result<WorkCommit> WorkCommit::make(const Clone& clone, const Manifest& manifest, const CommitWords& words,
                                          const std::string& place, const base::Deadline& deadline) {
  BELLJAR_TRY(check_words(words));
  if (!manifest.objections.empty()) {
    const Objection& first = manifest.objections.front();
    return base::refuse(kCommitting, first.path,
                        first.reason +
                            (manifest.objections.size() == 1
                                 ? std::string()
                                 : ", and there are " + std::to_string(manifest.objections.size() - 1) + " more such") +
                            ", refusing",
                        "belljar task inspect lists them");
  }
  if (manifest.changes.empty()) return base::refuse(kCommitting, "", "nothing was changed, refusing");
  BELLJAR_TRY(clone.verify());
  if (manifest.base != clone.record().commit) {
    return base::refuse(kCommitting, manifest.base, "it is another clone's base, refusing");
  }
  if (::mkdir(place.c_str(), 0700) != 0) return base::system_error(kCommitting, place, errno);
  WorkCommit out;
  out.place_ = place;
  out.objects_ = clone.record().path + "/.git/objects";
  out.base_ = manifest.base;
  out.branch_ = words.branch;
  BELLJAR_TRY(
      run_git({.folder = place,
               .arguments = {"init", "--quiet", "--bare", "--template=", "--initial-branch=none",
                             std::string("--object-format=") + (out.base_.size() == 64 ? "sha256" : "sha1"), "."}},
              deadline));
  BELLJAR_ASSIGN(const base::Fd import, import_file(manifest, words, place));
  BELLJAR_TRY(out.git({"fast-import", "--quiet", "--done", "--date-format=raw"}, deadline, import.get()));
  BELLJAR_ASSIGN(GitSaid said, out.git({"rev-parse", "--verify", "refs/heads/" + words.branch}, deadline));
  while (said.out.ends_with('\n')) said.out.pop_back();
  out.id_ = std::move(said.out);
  // A clone that was replaced meanwhile lent its objects.
  BELLJAR_TRY(clone.verify());
  return out;
}

base::Result<GitSaid> WorkCommit::diff(size_t most, const base::Deadline& deadline) const {
  return git({"diff-tree", "-p", "-r", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index",
              base_, id_},
             deadline, -1, most, true);
}

base::Status WorkCommit::bundle(const std::string& path, const base::Deadline& deadline) const {
  BELLJAR_TRY(git({"bundle", "create", "--quiet", "out.bundle", base_ + "..refs/heads/" + branch_}, deadline));
  const std::string made = place_ + "/out.bundle";
  const base::Fd from(::open(made.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!from) return base::system_error(kCommitting, made, errno);
  // It may lie in a folder that an agent could write: no link is followed on the way.
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  const auto folder = base::open_resolved(AT_FDCWD, parent, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  if (!folder) {
    return base::system_error("write the bundle", path, folder.error().code,
                              folder.error().code == ELOOP ? "a link is in the way; name the real path" : "");
  }
  const base::Fd to(::openat(folder->get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!to) return base::system_error("write the bundle", path, errno, "it must be a new file");
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t n = ::read(from.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 && ::fsync(to.get()) == 0) return {};
    if (n <= 0 || !base::write_all(to.get(), bytes.data(), static_cast<size_t>(n))) {
      const int code = errno;
      ::unlinkat(folder->get(), name.c_str(), 0);
      return base::system_error("write the bundle", path, code);
    }
  }
}

}  // namespace belljar::workspace
