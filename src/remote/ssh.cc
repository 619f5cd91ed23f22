#include "remote/ssh.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/io.h"
#include "base/reap.h"
#include "base/text.h"
#include "remote/outbox.h"
#include "remote/terminal_pair.h"
#include "session/terminal.h"

namespace belljar::remote {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20U;
constexpr int kExecFailed = 127;
constexpr int kSshFailed = 255;
constexpr size_t kMostWaits = 16;
constexpr int kLastWords = 64;  // reads of what an ssh that has ended had said

[[noreturn]] void become_ssh(const std::vector<std::string>& arguments, char* const* variables, int in, int out,
                             int err, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kExecFailed);
  // What is ignored stays so in ssh: the signals of the terminal are told to the command over the link.
  for (const int number : {SIGINT, SIGQUIT, SIGTSTP, SIGHUP}) ::signal(number, SIG_IGN);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvpe(words[0], words.data(), variables);
  ::_exit(kExecFailed);
}

int exit_code_of(pid_t pid) {
  const int status = base::reap(pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSshFailed;
}

// What the person's configuration comes to for this connection. Empty when ssh does not say; it complains when it is to
// connect.
std::string configuration_for(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin() + 1, "-G");
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::array<int, 2> pair{};
  if (!null || ::pipe2(pair.data(), O_CLOEXEC) != 0) return {};
  const base::Fd out(pair[0]);
  base::Fd theirs(pair[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return {};
  if (pid == 0) become_ssh(arguments, ::environ, null.get(), theirs.get(), null.get(), parent);
  theirs.reset();
  const auto text = base::read_to_end(out.get(), kMaxOutput, "what ssh printed");
  return exit_code_of(pid) == 0 ? text.value_or("") : "";
}

// What ssh itself and a ProxyCommand of it cannot be without and that says nothing secret, and the language, which the
// launch order tells in any case.
bool is_for_ssh(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {"PATH",        "HOME",
                                                       "SHELL",       "SSH_AUTH_SOCK",
                                                       "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
                                                       "DISPLAY",     "WAYLAND_DISPLAY",
                                                       "KRB5CCNAME",  "TERM",
                                                       "LANG",        "LANGUAGE"};
  return name.starts_with("LC_") || std::ranges::find(kNames, name) != kNames.end();
}

// Of this process's variables, those that an ssh of this configuration would not send, for execvpe(3). The option
// `SendEnv=-*` would not do: ssh reads its arguments first, and what the files name is added after them.
std::vector<char*> variables_for(std::string_view configuration) {
  const std::vector<std::string> sent = sent_names(configuration);
  std::vector<char*> out;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view words = *variable;
    const std::string name(words.substr(0, words.find('=')));
    const auto names_it = [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
    if (is_for_ssh(name) || std::ranges::none_of(sent, names_it)) out.push_back(*variable);
  }
  out.push_back(nullptr);
  return out;
}

// What ssh gets as its standard error for the person's terminal: another one, since it tells the person to touch their
// key only where it sees a terminal. `words` carries it on.
base::Result<base::Fd> open_words(session::Relay& words) {
  BELLJAR_ASSIGN(TerminalPair pair, open_terminal_pair("start ssh"));
  termios mode{};
  if (::tcgetattr(pair.slave.get(), &mode) == 0) {
    ::cfmakeraw(&mode);
    ::tcsetattr(pair.slave.get(), TCSANOW, &mode);
  }
  words = session::Relay(session::Relay::Role::kToCaller, STDERR_FILENO, std::move(pair.master));
  const bool utf8 = session::speaks_utf8(::getenv("LC_ALL"), ::getenv("LC_CTYPE"), ::getenv("LANG"));
  words.set_filter(std::make_unique<session::TerminalFilter>(
      session::TerminalFilter::Options{.clipboard_write = false, .utf8 = utf8}));
  return std::move(pair.slave);
}

// Sends all of `input` and returns all that comes, while ssh runs.
base::Result<std::string> exchange(Ssh& ssh, std::string_view input) {
  Outbox to_ssh;
  to_ssh.add(input);
  std::string out;
  bool sent = true;
  for (;;) {
    if (ssh.in() && (to_ssh.empty() || !sent)) ssh.in().reset();
    std::array<pollfd, 2> wait{pollfd{ssh.out().get(), POLLIN, 0}, pollfd{ssh.in().get(), POLLOUT, 0}};
    if (ssh.poll(wait, -1) < 0 && errno != EINTR) return base::system_error("wait for", "ssh", errno);
    if (wait[1].revents != 0) sent = to_ssh.flush(ssh.in().get(), SIZE_MAX);
    if (wait[0].revents != 0 && !read_some(ssh.out().get(), kChunk, out)) break;
    if (out.size() > kMaxOutput) return base::system_error("read", "what ssh printed", EFBIG);
  }
  ssh.in().reset();
  if (!sent || !to_ssh.empty()) return base::refuse("prepare the target", "", "it did not take all that was sent");
  return out;
}

// Those that `pid` has started and those that they have.
// NOLINTNEXTLINE(misc-no-recursion)
void find_descendants(std::string_view pid, std::vector<base::Fd>& out) {
  const std::string id(pid);
  const std::string text = base::read_file("/proc/" + id + "/task/" + id + "/children").value_or("");
  for (const std::string_view child : base::split(text, ' ')) {
    uint64_t number = 0;
    if (!base::parse_uint(child, number)) continue;
    base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(number), 0)));
    if (!process) continue;
    out.push_back(std::move(process));
    find_descendants(child, out);
  }
}

}  // namespace

std::vector<std::string> ssh_arguments(std::string_view destination, std::string_view command) {
  std::vector<std::string> out = {"ssh", "-T", "-a", "-x"};
  for (const char* option :
       {"ForwardAgent=no", "ForwardX11=no", "ForwardX11Trusted=no", "ClearAllForwardings=yes", "Tunnel=no",
        "PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no", "EscapeChar=none"}) {
    out.emplace_back("-o");
    out.emplace_back(option);
  }
  out.emplace_back("--");
  out.emplace_back(destination);
  out.emplace_back(command);
  return out;
}

Master master_of(std::string_view configuration) {
  const auto value = [&](std::string_view key) -> std::string_view {
    for (const std::string_view line : base::split(configuration, '\n')) {
      if (line.starts_with(key) && line.substr(key.size()).starts_with(' ')) return line.substr(key.size() + 1);
    }
    return {};
  };
  const std::string_view master = value("controlmaster");
  if (master.empty()) return Master::kUnknown;
  const std::string_view path = value("controlpath");
  if (master == "false" || master == "no" || path.empty() || path == "none") return Master::kNone;
  return value("controlpersist") == "no" ? Master::kForeground : Master::kPersistent;
}

std::vector<std::string> sent_names(std::string_view configuration) {
  if (configuration.empty()) return {"*"};
  constexpr std::string_view kKey = "sendenv ";
  std::vector<std::string> out;
  for (const std::string_view line : base::split(configuration, '\n')) {
    if (line.starts_with(kKey)) out.emplace_back(line.substr(kKey.size()));
  }
  return out;
}

base::Result<Ssh> Ssh::start(std::string_view destination, std::string_view command) {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0) return base::system_error("start ssh", destination, errno);
  base::Fd theirs_in(to[0]);
  base::Fd ours_in(to[1]);
  if (::pipe2(from.data(), O_CLOEXEC) != 0) return base::system_error("start ssh", destination, errno);
  base::Fd ours_out(from[0]);
  base::Fd theirs_out(from[1]);
  std::vector<std::string> arguments = ssh_arguments(destination, command);
  const std::string configuration = configuration_for(arguments);
  const std::vector<char*> variables = variables_for(configuration);
  Ssh out;
  out.master_ = master_of(configuration);
  if (out.master_ == Master::kForeground) arguments.insert(arguments.begin() + 1, {"-o", "ControlMaster=no"});
  base::Fd theirs_err;
  if (::isatty(STDERR_FILENO) == 1) {
    BELLJAR_ASSIGN(theirs_err, open_words(out.words_));
  }
  const pid_t parent = ::getpid();
  out.pid_ = ::fork();
  if (out.pid_ < 0) return base::system_error("start ssh", destination, errno);
  if (out.pid_ == 0) {
    become_ssh(arguments, variables.data(), theirs_in.get(), theirs_out.get(),
               theirs_err ? theirs_err.get() : STDERR_FILENO, parent);
  }
  make_nonblocking(ours_in.get());
  make_nonblocking(ours_out.get());
  out.in_ = std::move(ours_in);
  out.out_ = std::move(ours_out);
  return out;
}

Ssh& Ssh::operator=(Ssh&& other) noexcept {
  end();
  pid_ = std::exchange(other.pid_, -1);
  master_ = other.master_;
  words_ = std::move(other.words_);
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  return *this;
}

int Ssh::poll(std::span<pollfd> wait, int timeout) {
  std::array<pollfd, kMostWaits + 2> all{};
  std::ranges::copy(wait, all.begin());
  pollfd& heard = all.at(wait.size());
  pollfd& shown = all.at(wait.size() + 1);
  words_.want(heard, shown);
  const int ready = ::poll(all.data(), wait.size() + 2, timeout);
  if (ready > 0) words_.step(heard, shown);
  for (size_t i = 0; i < wait.size(); ++i) wait[i].revents = ready > 0 ? all.at(i).revents : int16_t{0};
  return ready;
}

int Ssh::wait() {
  if (pid_ < 0) return kSshFailed;
  // Who writes to a terminal that nobody reads does not end.
  const base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  while (!words_.done() && ended.revents == 0) (void)poll({&ended, 1}, -1);
  for (int i = 0; i < kLastWords && !words_.done() && poll({}, 0) > 0; ++i) {
  }
  return exit_code_of(std::exchange(pid_, -1));
}

void Ssh::end() {
  in_.reset();
  out_.reset();
  if (pid_ < 0) return;
  // ssh ends a ProxyCommand or a jump by SIGHUP, which these ignore as ssh was told to, and else they wait on a dead
  // link for as long as TCP does. Where ssh has left a master behind, they carry that one.
  std::vector<base::Fd> jumps;
  if (master_ == Master::kNone || master_ == Master::kForeground) find_descendants(std::to_string(pid_), jumps);
  ::kill(pid_, SIGTERM);
  (void)wait();
  for (const base::Fd& jump : jumps) ::syscall(SYS_pidfd_send_signal, jump.get(), SIGTERM, nullptr, 0);
}

base::Result<std::string> ssh_output(std::string_view destination, std::string_view command, std::string_view input) {
  BELLJAR_ASSIGN(Ssh ssh, Ssh::start(destination, command));
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;  // NOLINT(cppcoreguidelines-pro-type-union-access)
  ::sigaction(SIGPIPE, &ignore, &before);
  auto text = exchange(ssh, input);
  ::sigaction(SIGPIPE, &before, nullptr);
  ssh.out().reset();
  const int code = ssh.wait();
  if (code == kExecFailed) {
    return base::refuse("run ssh", destination, "no ssh is installed here", "install openssh-client");
  }
  if (code == kSshFailed)
    return base::refuse("reach the target", destination, "ssh could not", "try: ssh " + std::string(destination));
  if (code != 0) {
    return base::refuse("prepare the target", destination, "a command there failed with code " + std::to_string(code));
  }
  return text;
}

}  // namespace belljar::remote
