#include "linux/bubblewrap.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/clock.h"
#include "base/fd.h"
#include "base/reap.h"
#include "base/text.h"
#include "linux/user_namespace.h"

namespace belljar::linux {
namespace {

constexpr auto kMostTime = std::chrono::seconds(10);
constexpr size_t kMostText = size_t{64} << 10U;

constexpr const char* kInstall = "install it: apt-get install bubblewrap";

// As of belljar-guest: a program that others could have written would run with the caller's rights.
std::string fault_of_file(const struct stat& file) {
  if ((file.st_mode & (S_ISUID | S_ISGID)) != 0) {
    return "it is set-uid: such a bubblewrap neither forbids namespaces inside nor maps ids as told";
  }
  const bool outsiders = file.st_uid != 0 && file.st_uid != ::geteuid() && !is_mapped_uid(0);
  const bool trusted = file.st_uid == 0 || file.st_uid == ::geteuid() || outsiders;
  if (!trusted || (file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others could have written it";
  return {};
}

struct Pipe {
  base::Fd out, in;
  bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    out.reset(ends[0]);
    in.reset(ends[1]);
    return true;
  }
};

// In the forked child. Does not return.
[[noreturn]] void become(char* const* words, int out, int err) {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0 && ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 &&
      ::dup2(err, STDERR_FILENO) >= 0 && ::close_range(STDERR_FILENO + 1, UINT_MAX, 0) == 0) {
    std::array<char*, 1> environment{nullptr};
    ::execve(words[0], words, environment.data());
  }
  ::_exit(127);
}

// Reads both to their ends. False when it took too long or was too much.
bool read_both(const Pipe& out, const Pipe& err, Said& said) {
  const base::Deadline deadline = base::Deadline::after(kMostTime);
  std::array<pollfd, 2> wait{{{out.out.get(), POLLIN, 0}, {err.out.get(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&said.out, &said.err};
  while (wait[0].fd >= 0 || wait[1].fd >= 0) {
    const int ready = ::poll(wait.data(), wait.size(), deadline.poll_timeout());
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    for (size_t i = 0; i < wait.size(); ++i) {
      if (wait[i].revents == 0) continue;
      std::array<char, 4096> bytes{};
      const ssize_t n = ::read(wait[i].fd, bytes.data(), bytes.size());
      if (n > 0) texts[i]->append(bytes.data(), static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) wait[i].fd = -1;
      if (texts[i]->size() > kMostText) return false;
    }
  }
  return true;
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

bool parse_bubblewrap_version(std::string_view text, BubblewrapVersion& out) {
  constexpr std::string_view kName = "bubblewrap ";
  if (!text.starts_with(kName)) return false;
  const auto numbers = base::split(text.substr(kName.size(), text.find('\n') - kName.size()), '.');
  if (numbers.size() < 2 || numbers.size() > 3) return false;
  std::array<uint64_t, 3> values{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!base::parse_uint(numbers[i], values[i]) || values[i] > 10000) return false;
  }
  out = {static_cast<unsigned>(values[0]), static_cast<unsigned>(values[1]), static_cast<unsigned>(values[2])};
  return true;
}

std::string to_text(const BubblewrapVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
}

Said ask_program(const std::vector<std::string>& words) {
  Said said;
  Pipe out;
  Pipe err;
  if (words.empty() || !out.open() || !err.open()) return said;
  std::vector<std::string> kept = words;
  std::vector<char*> pointers;
  for (std::string& word : kept) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return said;
  if (pid == 0) become(pointers.data(), out.in.get(), err.in.get());
  out.in.reset();
  err.in.reset();
  const bool whole = read_both(out, err, said);
  if (!whole) ::kill(pid, SIGKILL);
  const int status = base::reap(pid);
  said.status = whole ? status : -1;
  return said;
}

Bubblewrap find_bubblewrap(std::string_view path) {
  Bubblewrap out;
  struct stat file{};
  for (const std::string_view folder : base::split(path, ':')) {
    if (!folder.starts_with('/')) continue;
    std::string candidate = std::string(folder) + "/bwrap";
    if (::stat(candidate.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || ::access(candidate.c_str(), X_OK) != 0) {
      continue;
    }
    out.path = std::move(candidate);
    break;
  }
  if (out.path.empty()) {
    out.fault = "there is no bwrap in PATH";
    out.remedy = kInstall;
    return out;
  }
  out.fault = fault_of_file(file);
  if (!out.fault.empty()) {
    out.remedy = "use the distribution's: a program of root's that only root can write, without set-uid bits";
    return out;
  }
  const Said said = ask_program({out.path, "--version"});
  if (said.status != 0 || !parse_bubblewrap_version(said.out, out.version)) {
    out.fault = "it does not tell its version";
    out.remedy = kInstall;
  } else if (out.version < kFirstBubblewrap) {
    out.fault = "it is bubblewrap " + to_text(out.version) +
                ", which cannot forbid namespaces inside; the first that can is " + to_text(kFirstBubblewrap);
    out.remedy = "upgrade bubblewrap";
  }
  return out;
}

std::string try_bubblewrap(const Bubblewrap& bwrap) {
  const Said said =
      ask_program({bwrap.path, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
                   "--unshare-cgroup", "--disable-userns", "--die-with-parent", "--as-pid-1", "--ro-bind", "/", "/",
                   "--proc", "/proc", "--dev", "/dev", "--", "/bin/true"});
  if (said.status == 0) return {};
  std::string line = first_line(said.err);
  return line.empty() ? "it failed without a word" : line;
}

std::string bubblewrap_remedy(std::string_view said) {
  const auto has = [&](std::string_view part) { return said.find(part) != std::string_view::npos; };
  if (has("Can't mount proc")) {
    return "parts of /proc are masked here, as in most containers: start the container with an unmasked /proc "
           "(docker: --security-opt systempaths=unconfined)";
  }
  if (has("namespace") || has("uid map") || has("RTM_NEWADDR") || has("RTM_NEWLINK")) {
    return "this host does not let bubblewrap make namespaces: load the distribution's AppArmor profile for it "
           "(Ubuntu: apt-get install apparmor-profiles, profile bwrap-userns-restrict), or allow them "
           "(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces); see 'belljar doctor'";
  }
  return "see 'belljar doctor'";
}

}  // namespace belljar::linux
