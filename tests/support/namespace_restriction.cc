#include "support/namespace_restriction.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "support/must.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

constexpr uint64_t kSysAdmin = uint64_t{1} << 21U;  // CAP_SYS_ADMIN of capability.h

base::Fd ask_about_namespaces() {
  // clone3(2) has its flags in memory, which a filter cannot read.
  std::array<sock_filter, 8> program{
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 4, 0, SYS_clone3},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_clone},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_unshare},
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args)},
      sock_filter{BPF_JMP | BPF_JSET | BPF_K, 0, 1, CLONE_NEWUSER},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter{program.size(), program.data()};
  const auto load = [&] {
    return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
  };
  base::Fd out(load());
  if (!out && errno == EACCES && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) out = base::Fd(load());
  must(out.valid(), "seccomp listener");
  return out;
}

bool wants_user_namespace(const seccomp_notif& request) {
  if (request.data.nr != SYS_clone3) return true;
  uint64_t flags = 0;
  const iovec here{&flags, sizeof flags};
  const iovec there{reinterpret_cast<void*>(request.data.args[0]), sizeof flags};
  const auto pid = static_cast<pid_t>(request.pid);
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof flags && (flags & CLONE_NEWUSER) != 0;
}

uint64_t effective_capabilities(const std::string& process) {
  const std::string text = read_text(process + "/status");
  const size_t at = text.find("\nCapEff:\t");
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + 9, 16), nullptr, 16);
}

}  // namespace

NamespaceRestriction::NamespaceRestriction(std::string profiled) : profiled_(std::move(profiled)) {
  // Before the filter, which it would inherit, and to begin which it would have to answer itself.
  thread_ = std::jthread([this](const std::stop_token& stop) {
    listening_.wait();
    serve(stop);
  });
  listener_ = ask_about_namespaces();
  listening_.count_down();
}

bool NamespaceRestriction::allows(pid_t pid) const {
  const std::string process = "/proc/" + std::to_string(pid);
  std::error_code error;
  if (std::filesystem::read_symlink(process + "/ns/pid", error) !=
      std::filesystem::read_symlink("/proc/self/ns/pid", error)) {
    return true;
  }
  struct stat program{};
  struct stat allowed{};
  if (::stat((process + "/exe").c_str(), &program) == 0 && ::stat(profiled_.c_str(), &allowed) == 0 &&
      program.st_ino == allowed.st_ino && program.st_dev == allowed.st_dev) {
    return true;
  }
  return (effective_capabilities(process) & kSysAdmin) != 0;
}

void NamespaceRestriction::serve(const std::stop_token& stop) const {
  while (!stop.stop_requested()) {
    pollfd wait{listener_.get(), POLLIN, 0};
    if (::poll(&wait, 1, 50) <= 0) continue;
    seccomp_notif request{};
    if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) continue;
    seccomp_notif_resp answer{};
    answer.id = request.id;
    if (wants_user_namespace(request) && !allows(static_cast<pid_t>(request.pid))) {
      answer.error = -EPERM;
    } else {
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

}  // namespace belljar::testing
