#include "workspace/private_git.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/child_group.h"
#include "base/fd.h"
#include "base/pair.h"
#include "base/text.h"
#include "linux/landlock_domain.h"
#include "linux/seal.h"

namespace belljar::workspace {
namespace {

constexpr size_t kMostWords = 4096;  // of what it says on its error output
constexpr const char* kPath = "PATH=/usr/local/bin:/usr/bin:/bin";

std::vector<std::string> environment_of(const GitCall& call) {
  std::vector<std::string> out = {kPath,
                                  "HOME=/nonexistent",
                                  "XDG_CONFIG_HOME=/nonexistent",
                                  "LC_ALL=C",
                                  "TZ=UTC",
                                  "GIT_CONFIG_NOSYSTEM=1",
                                  "GIT_CONFIG_GLOBAL=/dev/null",
                                  "GIT_ATTR_NOSYSTEM=1",
                                  "GIT_TERMINAL_PROMPT=0",
                                  "GIT_ASKPASS=/bin/false",
                                  "SSH_ASKPASS=/bin/false",
                                  "GIT_EDITOR=/bin/false",
                                  "GIT_PAGER=cat",
                                  "GIT_ALLOW_PROTOCOL=file",
                                  "GIT_NO_LAZY_FETCH=1",
                                  "GIT_NO_REPLACE_OBJECTS=1"};
  for (const std::string& one : call.environment) {
    // The later of two would not count with every libc.
    const std::string name = one.substr(0, one.find('=') + 1);
    std::erase_if(out, [&](const std::string& other) { return other.starts_with(name); });
    out.push_back(one);
  }
  return out;
}

std::vector<std::string> words_of(const GitCall& call) {
  std::vector<std::string> out = {"git", "--no-pager", "--literal-pathspecs"};
  for (const char* setting :
       {"core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
        "core.fsmonitor=false", "core.untrackedCache=false", "core.logAllRefUpdates=false", "core.pager=cat",
        "core.autocrlf=false", "core.quotePath=true", "gc.auto=0", "maintenance.auto=false", "commit.gpgSign=false",
        "submodule.recurse=false", "diff.external=", "fetch.fsckObjects=false"}) {
    out.emplace_back("-c");
    out.emplace_back(setting);
  }
  out.insert(out.end(), call.arguments.begin(), call.arguments.end());
  return out;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// What git may touch, and be done to. Opened before the fork; put up in the child.
class Fence {
 public:
  base::Status open(const GitCall& call) {
    features_ = linux::landlock_features(linux::landlock_abi());
    features_.tcp = features_.abstract_sockets;  // ABI 6, which has both
    if (!features_.files) return {};
    for (const char* path :
         {"/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.preload", "/dev/urandom"}) {
      BELLJAR_TRY(add(path, {}));
    }
    for (const std::string& path : call.reads) BELLJAR_TRY(add(path, {}));
    BELLJAR_TRY(add("/dev/null", {.device = true}));
    return add(call.folder, {.writable = true});
  }
  // Async-signal-safe.
  [[nodiscard]] bool put_up() const {
    if (linux::set_no_new_privs() != 0) return false;
    return !features_.files || linux::landlock_restrict(rules_, features_) == 0;
  }

 private:
  base::Status add(const std::string& path, linux::LandlockRule rule) {
    base::Fd opened(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!opened && errno == ENOENT) return {};
    if (!opened) return base::system_error("let git see", path, errno);
    rule.fd = opened.get();
    rules_.push_back(rule);
    opened_.push_back(std::move(opened));
    return {};
  }

  linux::LandlockFeatures features_;
  std::vector<base::Fd> opened_;
  std::vector<linux::LandlockRule> rules_;
};

// In the forked child. Does not return.
[[noreturn]] void become(const GitCall& call, const Fence& fence, char* const* words, char** environment, int in,
                         int out, int err, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::getppid() == parent && ::setpgid(0, 0) == 0 && ::chdir(call.folder.c_str()) == 0 && fence.put_up() &&
      ::dup2(in, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0 &&
      ::close_range(STDERR_FILENO + 1, UINT_MAX, 0) == 0) {
    for (const char* program : {"/usr/local/bin/git", "/usr/bin/git", "/bin/git"}) {
      ::execve(program, words, environment);
    }
  }
  ::_exit(127);
}

enum class Read : uint8_t { kWhole, kCut, kTooMuch, kLate };

Read read_both(const GitCall& call, int out, int err, GitSaid& said, std::string& words,
               const base::Deadline& deadline) {
  std::array<pollfd, 2> wait{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  std::array<char, 65536> bytes{};
  while (wait[0].fd >= 0 || wait[1].fd >= 0) {
    const int ready = ::poll(wait.data(), wait.size(), deadline.poll_timeout());
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Read::kLate;
    for (size_t i = 0; i < wait.size(); ++i) {
      if (wait[i].revents == 0) continue;
      const ssize_t n = ::read(wait[i].fd, bytes.data(), bytes.size());
      if (n > 0) (i == 0 ? said.out : words).append(bytes.data(), static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) wait[i].fd = -1;
    }
    if (words.size() > kMostWords) words.erase(0, words.size() - kMostWords);
    if (said.out.size() > call.most) {
      said.out.resize(call.most);
      said.was_cut = true;
      return call.cut ? Read::kCut : Read::kTooMuch;
    }
  }
  return Read::kWhole;
}

// The first line that says that it is why, else the last.
std::string reason_in(std::string words) {
  while (words.ends_with('\n')) words.pop_back();
  const auto lines = base::split(words, '\n');
  for (const std::string_view line : lines) {
    if (line.starts_with("fatal: ") || line.starts_with("error: ")) return std::string(line);
  }
  return std::string(lines.back());
}

}  // namespace

base::Result<GitSaid> run_git(const GitCall& call, const base::Deadline& deadline) {
  const std::string operation = "run git " + (call.arguments.empty() ? std::string() : call.arguments.front());
  base::Pipe out;
  base::Pipe err;
  BELLJAR_TRY(out.open());
  BELLJAR_TRY(err.open());
  Fence fence;
  BELLJAR_TRY(fence.open(call));
  const base::Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return base::system_error(operation, call.folder, errno);
  const std::vector<std::string> words = words_of(call);
  const std::vector<std::string> environment = environment_of(call);
  const std::vector<char*> word_pointers = pointers(words);
  std::vector<char*> environment_pointers = pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return base::system_error(operation, call.folder, errno);
  if (pid == 0) {
    become(call, fence, word_pointers.data(), environment_pointers.data(), call.input >= 0 ? call.input : null.get(),
           out.in.get(), err.in.get(), parent);
  }
  base::ChildGroup child(pid);
  out.in.reset();
  err.in.reset();
  GitSaid said;
  std::string complaints;
  const Read read = read_both(call, out.out.get(), err.out.get(), said, complaints, deadline);
  if (read == Read::kCut) return said;
  if (read == Read::kLate) return base::refuse(operation, call.folder, "the time was up, refusing");
  if (read == Read::kTooMuch) return base::system_error(operation, call.folder, EFBIG);
  const int code = child.wait();
  if (code == 127) return base::refuse(operation, call.folder, "no git is installed here", "install git");
  if (code != 0) {
    return base::refuse(operation, call.folder,
                        "it ended with " + std::to_string(code) + ": " + base::escape(reason_in(complaints)));
  }
  if (deadline.passed()) return base::refuse(operation, call.folder, "the time was up, refusing");
  return said;
}

}  // namespace belljar::workspace
