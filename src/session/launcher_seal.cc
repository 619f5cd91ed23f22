#include "session/launcher_seal.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "linux/capabilities.h"
#include "linux/landlock_domain.h"
#include "linux/launcher_filter.h"
#include "linux/seal.h"
#include "policy/hook_url.h"

namespace belljar::session {
namespace {

constexpr std::string_view kOperation = "seal the launcher";
constexpr int kTcpAbi = 4;

base::Status check(int error, std::string_view step) {
  if (error == 0) return {};
  return base::system_error(kOperation, step, error, "see 'belljar doctor'");
}

}  // namespace

DialPorts dial_ports(std::span<const policy::HostRule> rules) {
  DialPorts out{false, {53, 80, 443}};
  for (const policy::HostRule& rule : rules) {
    if (rule.deny) continue;
    if (rule.any_port) out.any = true;
    out.ports.insert(out.ports.end(), rule.ports.begin(), rule.ports.end());
    if (rule.port) {
      out.ports.push_back(*rule.port);
    } else if (rule.ports.empty()) {
      out.ports.insert(out.ports.end(), {80, 443});  // see policy::matches()
    }
  }
  std::ranges::sort(out.ports);
  const auto repeated = std::ranges::unique(out.ports);
  out.ports.erase(repeated.begin(), repeated.end());
  return out;
}

DialPorts launcher_ports(const plan::Plan& plan) {
  DialPorts out = dial_ports(plan.hosts);
  out.any = out.any || plan.ask;
  if (plan.upstream) out.ports.push_back(plan.upstream->port);
  if (const auto hook = policy::parse_hook_url(plan.hook.url)) out.ports.push_back(hook->port);
  return out;
}

bool covers(const DialPorts& ports, const policy::HostRule& rule) {
  if (ports.any) return true;
  const DialPorts wanted = dial_ports(std::span(&rule, 1));
  return !wanted.any && std::ranges::all_of(wanted.ports, [&](uint16_t port) {
    return std::ranges::find(ports.ports, port) != ports.ports.end();
  });
}

base::Status seal_thread(const DialPorts& ports) {
  BELLJAR_TRY(check(linux::set_no_new_privs(), "no_new_privs"));
  const int abi = linux::landlock_abi();
  linux::LandlockFeatures features = linux::landlock_features(abi);
  features.signals = false;  // the guest is outside of the domain, and is to be signalled
  features.tcp = abi >= kTcpAbi && !ports.any;
  if (features.files) {
    BELLJAR_TRY(check(linux::landlock_restrict({}, features, features.tcp ? ports.ports : std::vector<uint16_t>{}),
                      "landlock"));
  }
  return check(linux::drop_held_capabilities(), "capabilities");
}

base::Status seal_process() {
  BELLJAR_TRY(check(linux::install_filter_on_all_threads(linux::launcher_filter()), "the system-call filter"));
  // landlock would let O_PATH through, so this asks the filter.
  const base::Fd root(::open("/", O_PATH | O_CLOEXEC));
  if (root || errno != EACCES) return base::refuse(kOperation, "", "a file could still be opened, refusing");
  return {};
}

void close_all_but(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned next = 0;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > next) ::close_range(next, number - 1, 0);
    next = number + 1;
  }
  ::close_range(next, UINT_MAX, 0);
}

base::Status close_inherited() {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir("/proc/self/fd"), &::closedir);
  if (!listing) return base::system_error(kOperation, "/proc/self/fd", errno);
  std::vector<int> inherited;
  while (const dirent* entry = ::readdir(listing.get())) {
    uint64_t number = 0;
    if (!base::parse_uint(&entry->d_name[0], number)) continue;
    const int fd = static_cast<int>(number);
    if (fd > STDERR_FILENO && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) inherited.push_back(fd);
  }
  for (const int fd : inherited) ::close(fd);
  return {};
}

}  // namespace belljar::session
