#include "remote/ssh.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/io.h"
#include "base/reap.h"
#include "base/text.h"

namespace belljar::remote {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20U;
constexpr int kExecFailed = 127;
constexpr int kSshFailed = 255;

[[noreturn]] void become_ssh(const std::vector<std::string>& arguments, int in, int out, int err, pid_t parent) {
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
  ::execvp(words[0], words.data());
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
  if (pid == 0) become_ssh(arguments, null.get(), theirs.get(), null.get(), parent);
  theirs.reset();
  const auto text = base::read_to_end(out.get(), kMaxOutput, "what ssh printed");
  return exit_code_of(pid) == 0 ? text.value_or("") : "";
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
        "PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no", "EscapeChar=none", "SendEnv=-*"}) {
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
  Ssh out;
  out.master_ = master_of(configuration_for(arguments));
  if (out.master_ == Master::kForeground) arguments.insert(arguments.begin() + 1, {"-o", "ControlMaster=no"});
  const pid_t parent = ::getpid();
  out.pid_ = ::fork();
  if (out.pid_ < 0) return base::system_error("start ssh", destination, errno);
  if (out.pid_ == 0) become_ssh(arguments, theirs_in.get(), theirs_out.get(), STDERR_FILENO, parent);
  out.in_ = std::move(ours_in);
  out.out_ = std::move(ours_out);
  return out;
}

Ssh& Ssh::operator=(Ssh&& other) noexcept {
  end();
  pid_ = std::exchange(other.pid_, -1);
  master_ = other.master_;
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  return *this;
}

int Ssh::wait() {
  return pid_ < 0 ? kSshFailed : exit_code_of(std::exchange(pid_, -1));
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
  // The scripts of this project read all of their input before they print.
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;  // NOLINT(cppcoreguidelines-pro-type-union-access)
  ::sigaction(SIGPIPE, &ignore, &before);
  const bool sent = base::write_all(ssh.in().get(), input);
  ssh.in().reset();
  ::sigaction(SIGPIPE, &before, nullptr);
  auto text = base::read_to_end(ssh.out().get(), kMaxOutput, "what ssh printed");
  const int code = ssh.wait();
  if (code == kExecFailed) {
    return base::refuse("run ssh", destination, "no ssh is installed here", "install openssh-client");
  }
  if (code == kSshFailed)
    return base::refuse("reach the target", destination, "ssh could not", "try: ssh " + std::string(destination));
  if (!text) return text;
  if (code != 0 || !sent) {
    return base::refuse("prepare the target", destination, "a command there failed with code " + std::to_string(code));
  }
  return text;
}

}  // namespace belljar::remote
