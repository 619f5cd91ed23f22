#include "remote/ssh.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/io.h"

namespace belljar::remote {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20U;
constexpr int kExecFailed = 127;

[[noreturn]] void become_ssh(const std::vector<std::string>& arguments, int in, int out, pid_t parent) {
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
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(kExecFailed);
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

base::Result<Ssh> Ssh::start(std::string_view destination, std::string_view command) {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0) return base::system_error("start ssh", destination, errno);
  base::Fd theirs_in(to[0]);
  base::Fd ours_in(to[1]);
  if (::pipe2(from.data(), O_CLOEXEC) != 0) return base::system_error("start ssh", destination, errno);
  base::Fd ours_out(from[0]);
  base::Fd theirs_out(from[1]);
  const std::vector<std::string> arguments = ssh_arguments(destination, command);
  Ssh out;
  const pid_t parent = ::getpid();
  out.pid_ = ::fork();
  if (out.pid_ < 0) return base::system_error("start ssh", destination, errno);
  if (out.pid_ == 0) become_ssh(arguments, theirs_in.get(), theirs_out.get(), parent);
  out.in_ = std::move(ours_in);
  out.out_ = std::move(ours_out);
  return out;
}

Ssh& Ssh::operator=(Ssh&& other) noexcept {
  end();
  pid_ = std::exchange(other.pid_, -1);
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  return *this;
}

int Ssh::wait() {
  if (pid_ < 0) return 255;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

void Ssh::end() {
  in_.reset();
  out_.reset();
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  (void)wait();
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
  if (code == 255)
    return base::refuse("reach the target", destination, "ssh could not", "try: ssh " + std::string(destination));
  if (!text) return text;
  if (code != 0 || !sent) {
    return base::refuse("prepare the target", destination, "a command there failed with code " + std::to_string(code));
  }
  return text;
}

}  // namespace belljar::remote
