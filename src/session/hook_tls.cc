#include "session/hook_tls.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/io.h"
#include "base/pair.h"
#include "base/reap.h"
#include "linux/descriptor_passing.h"
#include "tiers/jail/launch.h"

namespace belljar::session {
namespace {

constexpr std::string_view kSpeakingTls = "speak TLS with the hook";
constexpr auto kReadyTime = std::chrono::seconds(20);

struct SpawnActions {
  SpawnActions() { ::posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t actions{};
};

struct SpawnAttributes {
  SpawnAttributes() { ::posix_spawnattr_init(&attributes); }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  posix_spawnattr_t attributes{};
};

constexpr int kAuthorities = 3;  // its descriptor for the certificates, if it is given any

base::Result<base::Fd> file_of(const std::string& authorities) {
  if (authorities.empty()) return base::Fd();
  base::Fd file(::memfd_create("belljar-authorities", MFD_CLOEXEC));
  if (!file) return base::system_error(kSpeakingTls, "memfd_create", errno);
  if (!base::write_all(file.get(), authorities)) return base::system_error(kSpeakingTls, "the authorities", errno);
  return file;
}

// With `theirs` as 0, no other file but that of the authorities, a session of its own and none of the launcher's
// variables but the one.
base::Result<pid_t> spawn(const std::string& program, const std::string& host, int theirs, int authorities) {
  const SpawnActions files;
  auto* actions = const_cast<posix_spawn_file_actions_t*>(&files.actions);
  ::posix_spawn_file_actions_adddup2(actions, theirs, STDIN_FILENO);
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(actions, number, "/dev/null", O_RDWR, 0);
  }
  // Even when it has that very number: then its close-on-exec flag goes (posix_spawn_file_actions_adddup2(3)).
  if (authorities >= 0) ::posix_spawn_file_actions_adddup2(actions, authorities, kAuthorities);
  ::posix_spawn_file_actions_addclosefrom_np(actions, authorities >= 0 ? kAuthorities + 1 : STDERR_FILENO + 1);
  const SpawnAttributes how;
  auto* attributes = const_cast<posix_spawnattr_t*>(&how.attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(attributes, &none);
  ::posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words{program, host};
  std::vector<std::string> variables;
  if (authorities >= 0) {
    variables.push_back("SSL_CERT_FILE=/proc/self/fd/" + std::to_string(kAuthorities));
  } else if (const char* file = ::getenv("SSL_CERT_FILE")) {
    variables.push_back(std::string("SSL_CERT_FILE=") + file);
  }
  std::vector<char*> argv;
  std::vector<char*> environment;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) environment.push_back(variable.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), actions, attributes, argv.data(), environment.data());
  if (error != 0) return base::system_error(kSpeakingTls, program, error);
  return pid;
}

}  // namespace

base::Result<HookTls> HookTls::start(const std::string& program, const std::string& host,
                                     const std::string& authorities) {
  struct stat found{};
  if (::lstat(program.c_str(), &found) != 0) {
    return base::system_error("open", program, errno, "belljar-tls belongs beside belljar; install both");
  }
  BELLJAR_TRY(tiers::jail::check_guest_program(program, found));
  base::Fd ours;
  base::Fd theirs;
  BELLJAR_TRY(base::make_pair(SOCK_SEQPACKET, ours, theirs));
  BELLJAR_ASSIGN(const base::Fd file, file_of(authorities));
  BELLJAR_ASSIGN(const pid_t pid, spawn(program, host, theirs.get(), file.get()));
  HookTls out(std::move(ours), pid);
  theirs.reset();
  const auto deadline = base::Deadline::after(kReadyTime);
  pollfd wait{out.socket_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, deadline.poll_timeout());
  } while (ready < 0 && errno == EINTR);
  std::array<char, 256> text{};
  base::Fd none;
  if (ready != 1 || linux::receive_with_descriptor(out.socket_.get(), text.data(), text.size(), none) != 0) {
    return base::refuse(kSpeakingTls, host, "belljar-tls does not answer, refusing");
  }
  text.back() = '\0';
  if (text[0] != '\0') {
    return base::refuse(kSpeakingTls, host, std::string(text.data()) + ", refusing",
                        "install ca-certificates, or name a file by SSL_CERT_FILE");
  }
  return out;
}

HookTls::HookTls(HookTls&& other) noexcept : socket_(std::move(other.socket_)), pid_(std::exchange(other.pid_, -1)) {}

HookTls& HookTls::operator=(HookTls&& other) noexcept {
  if (this == &other) return *this;
  end();
  socket_ = std::move(other.socket_);
  pid_ = std::exchange(other.pid_, -1);
  return *this;
}

// A hang-up of its socket ends it.
void HookTls::end() {
  socket_.reset();
  const pid_t pid = std::exchange(pid_, -1);
  (void)base::reap(pid);
}

base::Result<base::Fd> HookTls::secure(int connected) const {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) {
    return base::system_error(kSpeakingTls, "", errno);
  }
  base::Fd ours(pair[0]);
  const base::Fd theirs(pair[1]);
  const char byte = 0;
  const std::array<int, 2> given{connected, theirs.get()};
  const int error = linux::send_with_descriptors(socket_.get(), &byte, 1, given.data(), given.size());
  if (error != 0) return base::system_error(kSpeakingTls, "", error);
  return ours;
}

}  // namespace belljar::session
