#include "session/find_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

namespace belljar::session {
namespace {

using plan::FileKind;
using plan::PathFact;
using plan::ProgramFact;
using plan::ProgramFile;

constexpr size_t kFirstLine = 256;  // BINPRM_BUF_SIZE of the kernel
constexpr size_t kMaxFiles = 6;     // the kernel follows four interpreters; env adds one each

class Finder {
 public:
  Finder(std::string_view path, std::string folder, std::string home, Walker& walker)
      : folders_(plan::path_folders(path)), folder_(std::move(folder)), home_(std::move(home)), walker_(walker) {}

  ProgramFact find(const std::string& name) {
    ProgramFact out;
    std::optional<ProgramFile> file = name.contains('/') ? by_path(name) : in_path(name);
    if (!file) {
      out.state = denied_ ? ProgramFact::State::kNotExecutable : ProgramFact::State::kNotFound;
      return out;
    }
    out.state = ProgramFact::State::kFound;
    out.files.push_back(std::move(*file));
    for (size_t i = 0; i < out.files.size() && out.files.size() < kMaxFiles; ++i) add_interpreter(out, i);
    return out;
  }

 private:
  std::optional<ProgramFile> executable(const std::string& path) {
    ProgramFile out{.path = path, .file = walker_.walk(path)};
    if (out.file.kind == FileKind::kAbsent) return std::nullopt;
    // access(2) by root says yes to what has any x bit; by others, what they may execute.
    if (out.file.kind != FileKind::kFile || ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) {
      denied_ = true;
      return std::nullopt;
    }
    find_environment(out);
    return out;
  }

  std::optional<ProgramFile> by_path(const std::string& name) {
    const std::string whole = name.front() == '/' ? name : folder_ + "/" + name;
    const size_t slash = whole.rfind('/');
    const std::string last = whole.substr(slash + 1);
    if (last.empty() || last == "." || last == "..") {
      denied_ = walker_.exists(whole);
      return std::nullopt;
    }
    // The folder by its real path, so that the guest needs none of the links that lead there.
    const PathFact folder = walker_.walk(whole.substr(0, slash + 1));
    return executable((folder.real == "/" ? "" : folder.real) + "/" + last);
  }

  std::optional<ProgramFile> in_path(const std::string& name) {
    for (const std::string& folder : folders_) {
      if (auto found = executable((folder == "/" ? "" : folder) + "/" + name)) return found;
    }
    return std::nullopt;
  }

  // A Python environment is told by the file beside `bin`, also when the program in it is a link to a python outside.
  void find_environment(ProgramFile& file) const {
    std::vector<std::string> places{file.file.real};
    for (const plan::LinkFact& link : file.file.links) places.push_back(link.path);
    for (const std::string& place : places) {
      const std::string folder = base::parent_of(base::parent_of(place));
      if (folder != "/" && walker_.exists(folder + "/pyvenv.cfg")) {
        file.venv = walker_.walk(folder);
        return;
      }
    }
  }

  // The nearest folder with a package.json, below the home and at most four up.
  void find_package(ProgramFile& file) const {
    std::string folder = base::parent_of(file.file.real);
    for (int i = 0; i < 4 && folder != "/" && !base::is_within(home_, folder); ++i) {
      if (walker_.exists(folder + "/package.json")) {
        file.package = folder;
        return;
      }
      folder = base::parent_of(folder);
    }
  }

  void add_interpreter(ProgramFact& out, size_t index) {
    const std::vector<std::string> words = first_line(out.files[index].file.real);
    if (words.empty()) return;
    if (base::name_of(words.back()).starts_with("node") || base::name_of(words.back()).starts_with("bun")) {
      find_package(out.files[index]);
    }
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      std::optional<ProgramFile> file = word.contains('/') ? by_path(word) : in_path(word);
      if (!file) {
        out.missing.push_back(word);
        return;
      }
      if (word.contains('/')) file->script = out.files[index].file.real;
      const bool again = std::ranges::any_of(out.files, [&](const ProgramFile& f) { return f.path == file->path; });
      if (!again) out.files.push_back(std::move(*file));
    }
  }

  // The interpreter of a script; and after `env` the program it looks for.
  static std::vector<std::string> first_line(const std::string& real) {
    const base::Fd fd(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) return {};
    std::array<char, kFirstLine> buffer{};
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    std::string_view text(buffer.data(), n > 0 ? static_cast<size_t>(n) : 0);
    if (!text.starts_with("#!")) return {};
    text = text.substr(2, text.find_first_of(std::string_view("\n\0", 2)) - 2);
    std::vector<std::string> words;
    for (size_t at = 0; (at = text.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
      const size_t end = std::min(text.find_first_of(" \t\r", at), text.size());
      words.emplace_back(text.substr(at, end - at));
      at = end;
    }
    if (words.empty() || words[0].front() != '/') return {};
    std::vector<std::string> out{words[0]};
    if (base::name_of(words[0]) != "env") return out;
    const auto plain = std::find_if(words.begin() + 1, words.end(),
                                    [](const std::string& word) { return word.front() != '-' && !word.contains('='); });
    if (plain != words.end()) out.push_back(*plain);
    return out;
  }

  std::vector<std::string> folders_;
  std::string folder_;
  std::string home_;
  Walker& walker_;
  bool denied_ = false;
};

}  // namespace

ProgramFact find_program(const std::string& name, std::string_view path, const std::string& folder,
                         const std::string& home, Walker& walker) {
  return Finder(path, folder, home, walker).find(name);
}

}  // namespace belljar::session
