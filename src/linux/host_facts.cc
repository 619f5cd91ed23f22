#include "linux/host_facts.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/text.h"
#include "linux/landlock_domain.h"

namespace belljar::linux {
namespace {

std::string failure(const Trial& trial) {
  return trial.step + ": " + std::strerror(trial.error);
}

std::string set_sysctl(const std::string& name, const std::string& value) {
  return "sudo sysctl -w " + name + "=" + value + "\n" + "echo '" + name + " = " + value +
         "' | sudo tee -a /etc/sysctl.d/60-belljar.conf    # to keep it after a restart";
}

constexpr const char* kContainerRemedy =
    "This looks like the inside of a container, whose engine refuses it. Start belljar outside, or start the container "
    "with\n  docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
    "--security-opt systempaths=unconfined …";

std::string apparmor_remedy(const HostEvidence& evidence) {
  return "sudo tee /etc/apparmor.d/belljar <<'END'\n" + apparmor_profile(evidence.program) +
         "END\nsudo apparmor_parser -r /etc/apparmor.d/belljar";
}

bool inside_something(const HostEvidence& evidence) {
  return evidence.container || evidence.seccomp_mode != 0;
}

// Why a trial in a new user namespace failed, as far as the other findings tell. The checks go from what certainly
// explains the errno to what may.
std::string namespace_remedy(const HostEvidence& evidence, const Trial& trial) {
  const bool refused = trial.error == EPERM || trial.error == EACCES;
  if (trial.error == ENOSPC || evidence.max_user_namespaces == 0U) {
    return evidence.max_user_namespaces == 0U
               ? set_sysctl("user.max_user_namespaces", "15000")
               : "A limit of nested or of total namespaces is reached: see the files in /proc/sys/user. Start belljar "
                 "outside of other sandboxes.";
  }
  if (trial.error == EINVAL || trial.error == ENOSYS) {
    return "The kernel was built without this namespace (CONFIG_USER_NS, CONFIG_NAMESPACES): install your "
           "distribution's standard kernel.";
  }
  if (refused && evidence.uid != 0 && evidence.unprivileged_userns_clone == 0U) {
    return set_sysctl("kernel.unprivileged_userns_clone", "1");
  }
  if (refused && evidence.uid != 0 && evidence.apparmor_restrict_unprivileged_userns.value_or(0) != 0) {
    return apparmor_remedy(evidence);
  }
  if (refused && evidence.chroot) {
    return "The kernel refuses user namespaces in a chroot: enter the folder with pivot_root instead, for example by "
           "systemd-nspawn -D FOLDER.";
  }
  if (refused && inside_something(evidence)) return kContainerRemedy;
  if (evidence.uid == 0)
    return "Root lacks a capability here (CAP_SYS_ADMIN): start belljar as an ordinary user, or outside.";
  return "A security module refuses it (look for a line with 'denied' in the output of\n  sudo journalctl -k -n 50\n), "
         "or "
         "this is a chroot, where the kernel refuses user namespaces.";
}

HostFact from_trial(std::string key, Need need, std::string what, const Trial& trial, std::string worked,
                    std::string remedy) {
  return {std::move(key),
          need,
          trial.worked(),
          std::move(what),
          trial.worked() ? std::move(worked) : failure(trial),
          trial.worked() ? std::string{} : std::move(remedy)};
}

HostFact judge_kernel(const HostEvidence& evidence) {
  // mount_setattr, by which binds become nosuid, nodev and read-only as a tree, is the newest call that has no
  // substitute.
  const bool ok = kernel_at_least(evidence.kernel, 5, 12);
  return {"kernel",
          Need::kJail,
          ok,
          "Linux 5.12 or newer",
          "this is Linux " + evidence.kernel,
          ok ? "" : "Install a newer kernel: Debian 12, Ubuntu 22.04 and RHEL 9 have one."};
}

HostFact judge_mounts(const HostEvidence& evidence) {
  return from_trial("mounts", Need::kJail, "mounts in a namespace", evidence.mounts,
                    "a tmpfs was made and attached by the new mount calls",
                    namespace_remedy(evidence, evidence.mounts));
}

HostFact judge_proc(const HostEvidence& evidence) {
  std::string remedy = namespace_remedy(evidence, evidence.proc);
  // mount_too_revealing (fs/namespace.c): a user namespace may mount proc only where the whole of one is visible.
  if (evidence.proc.error == EPERM && evidence.mounts.worked()) {
    remedy =
        "Something is mounted over files of /proc here, as container engines do, and the kernel then lets no user "
        "namespace have a proc of its own.\nStart belljar outside, or start the container with\n"
        "  docker run --security-opt systempaths=unconfined …";
  }
  return from_trial("proc", Need::kJail, "a proc of the guest's own", evidence.proc, "mounted in a new pid namespace",
                    std::move(remedy));
}

HostFact judge_seccomp(const HostEvidence& evidence) {
  return from_trial("seccomp", Need::kJail, "system-call filter", evidence.seccomp, "the agent's filter was installed",
                    "The kernel needs CONFIG_SECCOMP_FILTER: install your distribution's standard kernel.");
}

// Root's guest gets a host id that owns nothing and sees its folder through an id map. Without one it can still be the
// folder's owner, unless that is root.
HostFact judge_idmap(const HostEvidence& evidence, const Trial& trial) {
  const Need need = evidence.folder_uid == 0 ? Need::kJail : Need::kHardening;
  HostFact fact = from_trial("id_mapped", need, "id-mapped mounts", trial, "the current folder was mounted so", "");
  if (fact.ok) return fact;
  const std::string where = base::shell_quote(evidence.folder);
  fact.remedy =
      "Work in a folder on ext4, xfs, btrfs or tmpfs; overlay and network filesystems have no id-mapped mounts.";
  if (trial.error == EINVAL && trial.step.starts_with("mount_setattr")) {
    fact.why = "the filesystem of " + where + " does not support them (" + failure(trial) + ")";
  }
  if (need == Need::kJail) fact.remedy += "\nOr give the folder to an ordinary user:\n  chown -R USER " + where;
  return fact;
}

HostFact judge_landlock(const HostEvidence& evidence) {
  HostFact fact{"landlock", Need::kHardening, false, "landlock", "", ""};
  const LandlockFeatures features = landlock_features(evidence.landlock_abi);
  fact.ok = features.files && features.abstract_sockets && features.signals;
  if (evidence.landlock_abi > 0) {
    fact.why = "ABI " + std::to_string(evidence.landlock_abi);
    if (!fact.ok) {
      fact.why += features.files ? ": files, but no scope for abstract sockets and signals (ABI 6)"
                                 : ": no moving of files between folders, so not used (ABI 2)";
      fact.remedy = "Linux 6.12 or newer has all of it.";
    }
  } else if (evidence.landlock_error == EOPNOTSUPP) {
    fact.why = "in the kernel, but not enabled at boot";
    fact.remedy =
        "Put landlock first in the list of security modules. The present list is in "
        "/sys/kernel/security/lsm. In /etc/default/grub:\n  GRUB_CMDLINE_LINUX=\"lsm=landlock,THE,PRESENT,LIST\"\n"
        "then\n  sudo update-grub && sudo reboot";
  } else {
    fact.why = std::string("not there: ") + std::strerror(evidence.landlock_error);
    fact.remedy = inside_something(evidence)
                      ? kContainerRemedy
                      : "Install a kernel with CONFIG_SECURITY_LANDLOCK (Linux 6.12 has all of it).";
  }
  return fact;
}

HostFact judge_open_files(const HostEvidence& evidence) {
  constexpr uint64_t kEnough = 4096;
  const bool ok = evidence.open_files >= kEnough;
  return {
      "open_files",
      Need::kHardening,
      ok,
      "open files",
      "at most " + (evidence.open_files == UINT64_MAX ? "any number" : std::to_string(evidence.open_files)) +
          " in a process (ulimit -Hn)",
      ok ? "" : "echo '* hard nofile 65536' | sudo tee /etc/security/limits.d/60-belljar.conf    # then log in again"};
}

HostFact judge_cgroups(const HostEvidence& evidence) {
  HostFact fact{"cgroups", Need::kLimits, true, "limits of memory, cpu and pids", "", ""};
  bool any_v2 = false;
  for (const CgroupController& controller : evidence.cgroups) {
    if (!fact.why.empty()) fact.why += "; ";
    fact.why += controller.name;
    any_v2 = any_v2 || controller.version == 2;
    if (controller.version == 0) {
      fact.why += " in no hierarchy";
    } else {
      fact.why += " v" + std::to_string(controller.version);
    }
    if (controller.error != 0 || !controller.fault.empty()) fact.ok = false;
    if (controller.version != 0 && !controller.fault.empty()) {
      fact.why += " not ours: " + controller.fault;
    } else if (controller.error != 0) {
      fact.why +=
          " not ours: mkdir in " + base::shell_quote(controller.folder) + ": " + std::strerror(controller.error);
    }
  }
  if (evidence.cgroups.empty()) {
    fact.ok = false;
    fact.why = "no cgroup filesystem was found";
  }
  if (fact.ok) return fact;
  fact.remedy = any_v2 && evidence.uid != 0
                    ? "Start belljar in a scope of your own systemd:\n  systemd-run --user --scope -p Delegate=yes "
                      "belljar run …\nand let systemd hand the controllers to users:\n"
                      "  sudo mkdir -p /etc/systemd/system/user@.service.d\n"
                      "  printf '[Service]\\nDelegate=cpu memory pids\\n' | sudo tee "
                      "/etc/systemd/system/user@.service.d/60-belljar.conf\n  sudo systemctl daemon-reload"
                    : "Boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1 on the kernel command line), or start "
                      "belljar as root where the hierarchies are writable.";
  return fact;
}

HostFact judge_redirect(const HostEvidence& evidence) {
  const bool kernel = std::string_view(evidence.redirect.step) == "nf_tables redirect";
  return from_trial(
      "redirect", Need::kByName, "nf_tables with redirect", evidence.redirect,
      "a network namespace leads its own connections to a port of its own",
      kernel ? "Load the parts of the kernel that do it: sudo modprobe -a nf_tables nft_chain_nat nft_redir\n"
               "Without them programs that read no proxy variable reach no host (transparent = \"auto\"), or no "
               "session starts (\"required\")."
             : namespace_remedy(evidence, evidence.redirect));
}

HostFact judge_overlay(const HostEvidence& evidence) {
  return from_trial(
      "overlay", Need::kWorkspace, "overlay filesystem", evidence.overlay, "mounted in a namespace",
      evidence.overlay.error == ENODEV ? "sudo modprobe overlay" : namespace_remedy(evidence, evidence.overlay));
}

HostFact judge_bwrap(const HostEvidence& evidence) {
  const Bubblewrap& bwrap = evidence.bwrap;
  HostFact fact{"bwrap", Need::kBwrap, false, "bubblewrap", bwrap.fault, bwrap.remedy};
  if (!bwrap.fault.empty()) {
    if (!bwrap.path.empty()) fact.why = bwrap.path + ": " + fact.why;
    return fact;
  }
  fact.ok = evidence.bwrap_said.empty();
  fact.why = fact.ok ? bwrap.path + ", version " + to_text(bwrap.version) + ", made every namespace"
                     : base::escape(evidence.bwrap_said);
  if (fact.ok && bwrap.follows_links()) {
    fact.why += "; below " + to_text(kFirstWithoutLinks) +
                " it follows links that appear while it sets up (CVE-2026-87766), so no two sessions may write to a "
                "folder";
  }
  if (!fact.ok) fact.remedy = bubblewrap_remedy(evidence.bwrap_said);
  return fact;
}

HostFact judge_docker(const HostEvidence& evidence) {
  HostFact fact{"docker", Need::kDocker, false, "docker", "", ""};
  const std::string socket = base::shell_quote(evidence.docker_socket);
  if (evidence.docker.empty()) {
    fact.why = "no docker in PATH";
    fact.remedy = "sudo apt-get install docker.io";
    return fact;
  }
  fact.ok = evidence.docker_error == 0;
  if (fact.ok) {
    fact.why = "the engine at " + socket + " answers";
  } else if (evidence.docker_error == EAFNOSUPPORT) {
    fact.why = "DOCKER_HOST is " + socket + ", not a unix socket";
    fact.remedy = "Point it at an engine of this machine: unset DOCKER_HOST";
  } else {
    fact.why = "connect to " + socket + ": " + std::strerror(evidence.docker_error);
    fact.remedy =
        evidence.docker_error == EACCES
            ? "Use a rootless engine, or start belljar as root. (Membership in the group docker amounts to root.)"
            : "sudo systemctl start docker";
  }
  return fact;
}

}  // namespace

std::vector<HostFact> judge(const HostEvidence& evidence) {
  std::vector<HostFact> facts;
  facts.push_back(judge_kernel(evidence));
  facts.push_back(from_trial("user_namespaces", Need::kJail, "user namespaces", evidence.user_namespace,
                             "one was made and its ids mapped", namespace_remedy(evidence, evidence.user_namespace)));
  facts.push_back(from_trial("namespaces", Need::kJail, "pid, net, ipc, uts, cgroup namespaces", evidence.namespaces,
                             "one of each was made", namespace_remedy(evidence, evidence.namespaces)));
  facts.push_back(judge_mounts(evidence));
  facts.push_back(judge_proc(evidence));
  facts.push_back(judge_seccomp(evidence));
  if (evidence.idmap) facts.push_back(judge_idmap(evidence, *evidence.idmap));
  facts.push_back(judge_landlock(evidence));
  facts.push_back(judge_open_files(evidence));
  facts.push_back(judge_cgroups(evidence));
  facts.push_back(judge_redirect(evidence));
  facts.push_back(judge_overlay(evidence));
  facts.push_back(judge_bwrap(evidence));
  facts.push_back(judge_docker(evidence));
  return facts;
}

bool jail_can_start(const std::vector<HostFact>& facts) {
  return std::ranges::all_of(facts, [](const HostFact& fact) { return fact.ok || fact.need != Need::kJail; });
}

std::string apparmor_profile(const std::string& program) {
  std::string path;
  for (const char c : program) {
    // What a path pattern or a quoted string gives a meaning to (apparmor.d(5), "Globbing").
    if (std::strchr("\\\"*?[]{}^@", c) != nullptr && c != '\0') path += '\\';
    path += c;
  }
  // `flags=(unconfined)` gives the program a name that a rule can be tied to and confines nothing else.
  return "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile belljar \"" + path +
         "\" flags=(unconfined) {\n  userns,\n  include if exists <local/belljar>\n}\n";
}

bool kernel_at_least(const std::string& release, unsigned major, unsigned minor) {
  unsigned found_major = 0;
  unsigned found_minor = 0;
  const char* end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, found_major);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return false;
  const auto second = std::from_chars(first.ptr + 1, end, found_minor);
  if (second.ec != std::errc{}) return false;
  return found_major > major || (found_major == major && found_minor >= minor);
}

}  // namespace belljar::linux
