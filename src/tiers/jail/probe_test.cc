// For every check of the probe: a real launch with just that protection taken away, and the refusal that names it.
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/io.h"
#include "tiers/jail/jail_fixture.h"

namespace belljar::tiers::jail {
namespace {

using guest::Check;

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::abort();
}

Protections& protections(Scene& scene) {
  return scene.prepared.program.protections;
}
void share(Scene& scene, uint64_t namespace_flag) {
  protections(scene).namespaces &= ~namespace_flag;
}
void skip(Scene& scene, uint32_t steps) {
  scene.prepared.config.steps &= ~steps;
}

// ------------------------------------------------------------------------------------ what a launcher may bring along

bool write_text(const char* path, const std::string& text) {
  const base::Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return fd && base::write_all(fd.get(), text);
}

// A user namespace in which an ordinary user is who the arguments say.
void become_in_user_namespace(uid_t uid, gid_t gid, uint64_t more_namespaces = 0) {
  const std::string outside_uid = std::to_string(::geteuid());
  const std::string outside_gid = std::to_string(::getegid());
  must(::unshare(static_cast<int>(more_namespaces | CLONE_NEWUSER)) == 0, "unshare");
  must(write_text("/proc/self/setgroups", "deny"), "setgroups");
  must(write_text("/proc/self/uid_map", std::to_string(uid) + " " + outside_uid + " 1"), "uid_map");
  must(write_text("/proc/self/gid_map", std::to_string(gid) + " " + outside_gid + " 1"), "gid_map");
}

// New namespaces for the launcher; an ordinary user needs a user namespace for that, in which it stays itself.
void unshare_as_caller(uint64_t flags) {
  if (::geteuid() != 0) return become_in_user_namespace(::geteuid(), ::getegid(), flags);
  must(::unshare(static_cast<int>(flags)) == 0, "unshare");
}

// Goes on in a child; the parent waits for it and says nothing.
void go_on_in_child() {
  const pid_t pid = ::fork();
  must(pid >= 0, "fork");
  if (pid == 0) return;
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

// An ordinary user's capabilities in its user namespace end with the next execve(2), but for ambient ones.
void keep_network_rights_over_exec() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  must(::syscall(SYS_capget, &header, sets.data()) == 0, "capget");
  sets[0].inheritable |= 1U << CAP_NET_ADMIN;
  must(::syscall(SYS_capset, &header, sets.data()) == 0, "capset");
  must(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0) == 0, "ambient");
}

// The guest gets this network namespace for its own: it is neither the one that prepare() saw nor empty. Its loopback
// is brought up here, because a guest of an ordinary user has no rights over a namespace that it did not make.
void give_network(Scene& scene, const char* ip_batch) {
  unshare_as_caller(CLONE_NEWNET);
  share(scene, CLONE_NEWNET);
  keep_network_rights_over_exec();
  const std::string command = std::string("printf '") + ip_batch + "' | ip -batch -";
  must(std::system(command.c_str()) == 0, "ip");
  protections(scene).loopback = false;
}

struct Denial {
  uint32_t call;
  uint32_t argument;
  uint32_t mask;
  uint32_t value;  // refused when argument & mask == value
  uint32_t code;
};

// A filter that the guest inherits and that stands in for its own with something left out: it makes the kernel report
// a filter, refuses what the checks before try, and lets the rest pass.
void inherit_filter(const std::vector<Denial>& denials) {
  std::vector<sock_filter> code;
  for (const Denial& denial : denials) {
    const auto argument = static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * denial.argument);
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denial.call, 0, 4));
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument));
    code.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, denial.mask));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denial.value, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | denial.code));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  must(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

constexpr Denial kUnshare{SYS_unshare, 0, 0, 0, EPERM};
constexpr Denial kNetlink{SYS_socket, 0, UINT32_MAX, AF_NETLINK, EAFNOSUPPORT};
constexpr Denial kSetUid{SYS_fchmod, 1, S_ISUID, S_ISUID, EPERM};
constexpr Denial kSetGid{SYS_fchmod, 1, S_ISGID, S_ISGID, EPERM};
constexpr Denial kPushInput{SYS_ioctl, 1, UINT32_MAX, TIOCSTI, EPERM};

void without_own_filter(Scene& scene, const std::vector<Denial>& denials) {
  skip(scene, guest::kStepSeccomp);
  inherit_filter(denials);
}

// The launcher already has the limits before `from`, and the guest sets none.
void limits_up_to(Scene& scene, int count) {
  const guest::Config& config = scene.prepared.config;
  const std::array<std::pair<__rlimit_resource, uint64_t>, 3> limits{
      {{RLIMIT_CORE, 1}, {RLIMIT_NPROC, config.processes}, {RLIMIT_NOFILE, config.open_files}}};
  for (int i = 0; i < count; ++i) {
    const auto& [resource, value] = limits.at(static_cast<size_t>(i));
    const rlimit limit{value, value};
    must(::setrlimit(resource, &limit) == 0, "setrlimit");
  }
  skip(scene, guest::kStepLimits);
}

// ------------------------------------------------------------------------------------------------------- the cases

struct Case {
  Check check;
  const char* situation;
  // Before anything is prepared: what the launcher is or has.
  void (*launcher)(Scene&);
  // Takes the protection away.
  void (*take_away)(Scene&);
  // Patterns (fnmatch(3)) of what the launch says when root or an ordinary user starts it. Without its hint.
  const char* root;
  const char* user;
};

void PrintTo(const Case& test, std::ostream* out) {
  *out << test.situation;
}

constexpr const char* kProved = "proved";
void nothing(Scene&) {}

#define BELLJAR_BOTH(text) text, text

constexpr Case kCases[] = {
    // The kernel lets an ordinary user mount no proc for a pid namespace that is not his.
    {Check::kFirstProcess, "PidNamespaceShared", nothing, [](Scene& scene) { share(scene, CLONE_NEWPID); },
     "probe first-process 'getpid': expected 1, found *", "mount the guest's proc 'proc': Operation not permitted*"},

    {Check::kNamespaces, "UserNamespaceShared", nothing,
     [](Scene& scene) {
       share(scene, CLONE_NEWUSER);
       // Both would change the launcher's own namespace, and the kernel refuses that to the guest's user.
       protections(scene).limit_namespaces = false;
       protections(scene).drop_bounding_set = false;
       skip(scene, guest::kStepCapabilities);
     },
     "probe namespaces 'user': expected an own namespace, found the launcher's*",
     "make the guest's namespaces: Operation not permitted*"},
    {Check::kNamespaces, "MountNamespaceShared", nothing, [](Scene& scene) { share(scene, CLONE_NEWNS); },
     "probe namespaces 'mnt': expected an own namespace, found the launcher's*",
     "make private '/': Operation not permitted*"},
    {Check::kNamespaces, "NetworkNamespaceShared", nothing,
     [](Scene& scene) {
       share(scene, CLONE_NEWNET);
       // Nothing of the launcher's network is to be touched here.
       protections(scene).loopback = false;
       protections(scene).listener = false;
     },
     BELLJAR_BOTH("probe namespaces 'net': expected an own namespace, found the launcher's*")},
    {Check::kNamespaces, "IpcNamespaceShared", nothing, [](Scene& scene) { share(scene, CLONE_NEWIPC); },
     BELLJAR_BOTH("probe namespaces 'ipc': expected an own namespace, found the launcher's*")},
    {Check::kNamespaces, "UtsNamespaceShared", nothing,
     [](Scene& scene) {
       share(scene, CLONE_NEWUTS);
       protections(scene).hostname = false;  // it would be the launcher's
     },
     BELLJAR_BOTH("probe namespaces 'uts': expected an own namespace, found the launcher's*")},
    {Check::kNamespaces, "CgroupNamespaceShared", nothing, [](Scene& scene) { share(scene, CLONE_NEWCGROUP); },
     BELLJAR_BOTH("probe namespaces 'cgroup': expected an own namespace, found the launcher's*")},

    // An ordinary user's guest is whoever the launcher is when it starts.
    {Check::kIdentity, "AnotherUser", nothing,
     [](Scene& scene) {
       scene.prepared.program.identity.guest_uid += 1;
       if (!scene.root) become_in_user_namespace(::geteuid() + 1, ::getegid());
     },
     BELLJAR_BOTH("probe identity 'uid': expected *, found *")},
    {Check::kIdentity, "AnotherGroup", nothing,
     [](Scene& scene) {
       scene.prepared.program.identity.guest_gid += 1;
       if (!scene.root) become_in_user_namespace(::geteuid(), ::getegid() + 1);
     },
     BELLJAR_BOTH("probe identity 'gid': expected *, found *")},

    {Check::kHostRoot, "UserIsRootOutside", nothing,
     [](Scene& scene) {
       scene.prepared.program.identity.host_uid = 0;
       if (scene.root) return;
       become_in_user_namespace(0, ::getegid());
       scene.prepared.config.uid = 0;
     },
     BELLJAR_BOTH("probe host-root '/proc/self/uid_map': expected an id that is not root outside, found 0*")},
    {Check::kHostRoot, "GroupIsRootOutside", nothing,
     [](Scene& scene) {
       scene.prepared.program.identity.host_gid = 0;
       if (scene.root) return;
       become_in_user_namespace(::geteuid(), 0);
       scene.prepared.config.gid = 0;
     },
     BELLJAR_BOTH("probe host-root '/proc/self/gid_map': expected an id that is not root outside, found 0*")},

    // An ordinary user cannot drop the groups of whoever started it: there they stay, and the evidence counts them.
    {Check::kGroups, "SupplementaryGroupKept",
     [](Scene& scene) {
       const gid_t group = 4242;
       if (scene.root) must(::setgroups(1, &group) == 0, "setgroups");
     },
     [](Scene& scene) { protections(scene).drop_groups = false; },
     "probe groups 'supplementary groups': expected 0, found 1*", kProved},

    {Check::kCapabilities, "BoundingSetKept", nothing,
     [](Scene& scene) {
       protections(scene).drop_bounding_set = false;
       skip(scene, guest::kStepCapabilities);
     },
     BELLJAR_BOTH("probe capabilities 'CapBnd': expected 0000000000000000, found *")},
    // An ordinary user's guest is root inside only when its launcher was root, which is refused even before.
    {Check::kCapabilities, "RootInsideWithCapabilities", nothing,
     [](Scene& scene) {
       scene.prepared.program.identity.guest_uid = 0;
       scene.prepared.config.uid = 0;
       protections(scene).drop_bounding_set = false;
       skip(scene, guest::kStepCapabilities);
       if (!scene.root) become_in_user_namespace(0, ::getegid());
     },
     "probe capabilities 'CapPrm': expected 0000000000000000, found *", "probe host-root '/proc/self/uid_map': *"},

    {Check::kNoNewPrivileges, "NotSet", nothing,
     [](Scene& scene) {
       // The kernel takes neither from a process that could gain privileges.
       skip(scene, guest::kStepNoNewPrivileges | guest::kStepLandlock | guest::kStepSeccomp);
     },
     BELLJAR_BOTH("probe no-new-privileges 'NoNewPrivs': expected 1, found 0*")},

    {Check::kSeccomp, "NoFilter", nothing, [](Scene& scene) { skip(scene, guest::kStepSeccomp); },
     BELLJAR_BOTH("probe seccomp 'Seccomp': expected 2, found 0*")},
    {Check::kSeccomp, "FilterWithoutNamespaceRule", nothing, [](Scene& scene) { without_own_filter(scene, {}); },
     BELLJAR_BOTH("probe seccomp 'unshare': expected EPERM, found ENOSPC*")},
    {Check::kSeccomp, "FilterWithoutSocketRule", nothing, [](Scene& scene) { without_own_filter(scene, {kUnshare}); },
     BELLJAR_BOTH("probe seccomp 'socket(NETLINK_GENERIC)': expected EAFNOSUPPORT, found it was carried out*")},

    {Check::kSetIdBits, "FilterWithoutSetUidRule", nothing,
     [](Scene& scene) { without_own_filter(scene, {kUnshare, kNetlink}); },
     BELLJAR_BOTH("probe set-id-bits 'fchmod 4700': expected EPERM, found it was carried out*")},
    {Check::kSetIdBits, "FilterWithoutSetGidRule", nothing,
     [](Scene& scene) { without_own_filter(scene, {kUnshare, kNetlink, kSetUid}); },
     BELLJAR_BOTH("probe set-id-bits 'fchmod 2700': expected EPERM, found it was carried out*")},

    {Check::kTerminalInjection, "FilterWithoutInputRule", nothing,
     [](Scene& scene) { without_own_filter(scene, {kUnshare, kNetlink, kSetUid, kSetGid}); },
     BELLJAR_BOTH("probe terminal-injection 'ioctl(TIOCSTI)': expected EPERM, found ENOTTY*")},
    {Check::kTerminalInjection, "FilterWithoutConsoleRule", nothing,
     [](Scene& scene) { without_own_filter(scene, {kUnshare, kNetlink, kSetUid, kSetGid, kPushInput}); },
     BELLJAR_BOTH("probe terminal-injection 'ioctl(TIOCLINUX)': expected EPERM, found ENOTTY*")},

    {Check::kNamespaceLimit, "NotSet", nothing, [](Scene& scene) { protections(scene).limit_namespaces = false; },
     BELLJAR_BOTH("probe namespace-limit 'max_user_namespaces': expected 0, found *")},

    {Check::kNotDumpable, "Traceable", nothing, [](Scene& scene) { skip(scene, guest::kStepNotDumpable); },
     BELLJAR_BOTH("probe not-dumpable 'dumpable': expected 0, found 1*")},

    {Check::kParentDeathSignal, "NotArmed", nothing, [](Scene& scene) { protections(scene).death_signal = false; },
     BELLJAR_BOTH("probe parent-death 'parent-death signal': expected 9, found 0*")},

    {Check::kDescriptors, "InheritedAndKept",
     [](Scene&) { must(::fcntl(STDERR_FILENO, F_DUPFD, 1000) == 1000, "dup"); },
     [](Scene& scene) {
       protections(scene).close_descriptors = false;
       skip(scene, guest::kStepDescriptors);
     },
     BELLJAR_BOTH("probe descriptors 'descriptor': expected none inherited, found 1000*")},

    {Check::kKeyring, "LaunchersKept",
     [](Scene&) { must(::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) > 0, "keyctl"); },
     [](Scene& scene) { skip(scene, guest::kStepKeyring); },
     BELLJAR_BOTH("probe keyring 'session keyring': expected an own one, found the launcher's*")},

    {Check::kMounts, "BindsHonourSetId", nothing,
     [](Scene& scene) { protections(scene).bind_attributes &= ~uint64_t{MOUNT_ATTR_NOSUID}; },
     BELLJAR_BOTH("probe mounts '/*': expected nosuid, found r*")},
    {Check::kMounts, "BindsHonourDevices", nothing,
     [](Scene& scene) { protections(scene).bind_attributes &= ~uint64_t{MOUNT_ATTR_NODEV}; },
     BELLJAR_BOTH("probe mounts '/*': expected nodev, found r*")},
    {Check::kMounts, "ReadFolderWritable", nothing,
     [](Scene& scene) { scene.step(Op::kBind, scene.reading()).writable = true; },
     BELLJAR_BOTH("probe mounts '*/reading': expected read-only, found rw*")},
    {Check::kMounts, "WritableBelowReadFolder", nothing,
     [](Scene& scene) {
       scene.add_step(Op::kBind, scene.reading() + "/inner", scene.folder + "/other");
       scene.step(Op::kBind, scene.reading() + "/inner").writable = true;
     },
     BELLJAR_BOTH("probe mounts '*/reading/inner': expected read-only, found rw*")},
    {Check::kMounts, "GitWritable", nothing,
     [](Scene& scene) { scene.remove_step(Op::kReadOnly, scene.work() + "/.git"); },
     BELLJAR_BOTH("probe mounts '*/work/.git': expected a mount of its own, found none*")},
    {Check::kMounts, "SettingsNotCopied", nothing,
     [](Scene& scene) { scene.remove_step(Op::kPrivate, scene.work() + "/.claude"); },
     BELLJAR_BOTH("probe mounts '*/work/.claude': expected a mount of its own, found none*")},
    {Check::kMounts, "HostsSettingsInPlaceOfACopy", nothing,
     [](Scene& scene) {
       scene.remove_step(Op::kPrivate, scene.work() + "/.claude");
       scene.add_step(Op::kBind, scene.work() + "/.claude", scene.folder + "/other");
       scene.step(Op::kBind, scene.work() + "/.claude").writable = true;
     },
     BELLJAR_BOTH("probe mounts '*/work/.claude': expected a private copy, found *")},
    {Check::kMounts, "LinkNotPinned", nothing,
     [](Scene& scene) { scene.remove_step(Op::kReadOnly, scene.work() + "/.gemini"); },
     BELLJAR_BOTH("probe mounts '*/work/.gemini': expected a mount of its own, found none*")},
    {Check::kMounts, "KernelSettingsWritable", nothing,
     [](Scene& scene) { scene.remove_step(Op::kReadOnly, "/proc/sys"); },
     BELLJAR_BOTH("probe mounts '/proc/sys': expected a mount of its own, found none*")},
    {Check::kMounts, "SecretNotMasked", nothing, [](Scene& scene) { scene.remove_step(Op::kMask, "/etc/shadow"); },
     BELLJAR_BOTH("probe mounts '/etc/shadow': expected a mount of its own, found none*")},
    {Check::kMounts, "OneMountTooMany", nothing,
     [](Scene& scene) {
       scene.add_step(Op::kFolder, "/more", "");
       scene.add_step(Op::kBind, "/more", scene.folder + "/other");
     },
     BELLJAR_BOTH("probe mounts '/more': expected no such mount, found *")},
    {Check::kMounts, "HostRootStillThere", nothing, [](Scene& scene) { protections(scene).detach_old_root = false; },
     BELLJAR_BOTH("probe mounts '/*': expected *")},
    {Check::kMounts, "RootWritable", nothing, [](Scene& scene) { protections(scene).root_read_only = false; },
     BELLJAR_BOTH("probe mounts '/': expected read-only, found rw*")},

    {Check::kProc, "ProcOfAnotherPidNamespace", nothing,
     [](Scene& scene) {
       // A proc without anything mounted on it, which the machine's own may not be.
       unshare_as_caller(CLONE_NEWNS | CLONE_NEWPID);
       go_on_in_child();
       must(::mount("proc", "/proc", "proc", 0, nullptr) == 0, "mount proc");
       scene.add_step(Op::kBind, "/proc", "/proc", "/proc");
     },
     BELLJAR_BOTH("probe proc '/proc/self': expected 1, found *")},

    {Check::kScratch, "LargerThanPlanned", nothing, [](Scene& scene) { scene.prepared.program.scratch_bytes *= 2; },
     BELLJAR_BOTH("probe scratch 'bytes of /tmp': expected 33554432, found 67108864*")},
    {Check::kScratch, "MoreFilesThanPlanned", nothing, [](Scene& scene) { scene.prepared.program.scratch_files *= 2; },
     BELLJAR_BOTH("probe scratch 'files of /tmp': expected 4096, found 8192*")},

    {Check::kWorkFolder, "AnotherFolder", nothing,
     [](Scene& scene) {
       // It has the same shape, so that everything else can be set up.
       Step& step = scene.step(Op::kBind, scene.work());
       step.source = scene.step(Op::kBind, scene.reading()).source;
     },
     BELLJAR_BOTH("probe work-folder '*/work': expected the work folder of the plan, found another folder*")},
    // Only root's launches have an id map for files: an ordinary user's guest is that user.
    {Check::kWorkFolder, "IdsNotMapped", nothing,
     [](Scene& scene) { scene.step(Op::kBind, scene.work()).idmap = false; },
     "probe work-folder '*/work': expected owned by the guest, found 65534*", kProved},

    {Check::kHostname, "TheLaunchers", nothing, [](Scene& scene) { protections(scene).hostname = false; },
     BELLJAR_BOTH("probe hostname 'hostname': expected belljar, found *")},

    {Check::kInterfaces, "LoopbackDown", nothing,
     [](Scene& scene) {
       protections(scene).loopback = false;
       protections(scene).listener = false;  // it needs the loopback's address
     },
     BELLJAR_BOTH("probe interfaces 'lo': expected up, found down*")},
    {Check::kInterfaces, "AnotherInterfaceUp", nothing,
     [](Scene& scene) {
       give_network(scene, "link set lo up\\nlink add wire type veth peer name end\\nlink set wire up\\n");
     },
     BELLJAR_BOTH("probe interfaces 'wire': expected no interface but lo, found up*")},

    {Check::kLoopback, "NoListener", nothing, [](Scene& scene) { protections(scene).listener = false; },
     BELLJAR_BOTH("probe loopback 'the way out': expected a listener on 127.0.0.1:61080, found none*")},

    {Check::kWayOut, "RouteToAHost", nothing,
     [](Scene& scene) { give_network(scene, "link set lo up\\nroute add 192.0.2.0/24 dev lo\\n"); },
     BELLJAR_BOTH("probe way-out 'route to 192.0.2.1': expected ENETUNREACH, found it was carried out*")},
    {Check::kWayOut, "RouteToMetadata", nothing,
     [](Scene& scene) { give_network(scene, "link set lo up\\nroute add 169.254.169.254 dev lo\\n"); },
     BELLJAR_BOTH("probe way-out 'route to 169.254.169.254': expected ENETUNREACH, found it was carried out*")},

    {Check::kRedirect, "NoRoutes", nothing, [](Scene& scene) { protections(scene).synthetic_routes = false; },
     BELLJAR_BOTH("probe redirect '198.18.0.0': expected led to the way out, found ENETUNREACH*")},
    {Check::kRedirect, "NoRedirect", nothing, [](Scene& scene) { protections(scene).redirect = false; },
     BELLJAR_BOTH("probe redirect '198.18.0.0': expected led to the way out, found ECONNREFUSED*")},
    {Check::kResolver, "NobodyThere", nothing, [](Scene& scene) { protections(scene).resolver = false; },
     BELLJAR_BOTH("probe resolver 'localhost': expected 127.0.0.1 from the resolver, found ECONNREFUSED*")},
    {Check::kResolver, "NoLocalhost", nothing, [](Scene& scene) { scene.confuse_resolver = true; },
     BELLJAR_BOTH("probe resolver 'localhost': expected 127.0.0.1 from the resolver, found another answer*")},

    {Check::kLandlock, "NotRestricted", nothing, [](Scene& scene) { skip(scene, guest::kStepLandlock); },
     BELLJAR_BOTH(
         "probe landlock 'create a file outside the granted trees': expected EACCES, found it was carried out*")},

    {Check::kLimits, "CoreDumps", nothing, [](Scene& scene) { limits_up_to(scene, 0); },
     BELLJAR_BOTH("probe limits 'RLIMIT_CORE': expected 1, found *")},
    {Check::kLimits, "Processes", nothing, [](Scene& scene) { limits_up_to(scene, 1); },
     BELLJAR_BOTH("probe limits 'RLIMIT_NPROC': expected *, found *")},
    {Check::kLimits, "OpenFiles", nothing, [](Scene& scene) { limits_up_to(scene, 2); },
     BELLJAR_BOTH("probe limits 'RLIMIT_NOFILE': expected *, found *")},
    {Check::kEntrusted, "FileThatMustNotBe", nothing,
     [](Scene& scene) { scene.prepared.config.files.push_back({.path = "/etc/passwd", .absent = true}); },
     BELLJAR_BOTH("probe entrusted '/etc/passwd': expected nothing, found there*")},
    {Check::kLimits, "FileSize", nothing, [](Scene& scene) { limits_up_to(scene, 3); },
     BELLJAR_BOTH("probe limits 'RLIMIT_FSIZE': expected 67108864, found *")},
};

constexpr bool every_check_has_a_case() {
  for (auto check = static_cast<uint32_t>(Check::kNone) + 1; check < static_cast<uint32_t>(Check::kCount); ++check) {
    bool found = false;
    for (const Case& each : kCases) found = found || each.check == static_cast<Check>(check);
    if (!found) return false;
  }
  return true;
}
static_assert(every_check_has_a_case(), "a check of the probe that no test has seen refuse");

class ProbeTest : public ::testing::TestWithParam<Case> {};

TEST_P(ProbeTest, Refuses) {
  const Case& test = GetParam();
  const TestFolder folder;
  const std::string said = in_launcher([&] {
    Scene scene = empty_scene(folder.path());
    test.launcher(scene);
    set_scene(scene, {});
    test.take_away(scene);
    return launch(scene);
  });
  const std::string wanted = ::geteuid() == 0 ? test.root : test.user;
  EXPECT_EQ(::fnmatch(wanted.c_str(), said.c_str(), FNM_NOESCAPE), 0) << said << "\nbut wanted\n" << wanted;
}

TEST(ProbeCasesTest, NameTheirChecks) {
  for (const Case& test : kCases) {
    const std::string start = std::string("probe ") + guest::check_name(test.check) + " '";
    EXPECT_TRUE(std::string_view(test.root).starts_with(start)) << test.situation;
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name;
  for (const char each : std::string(guest::check_name(info.param.check)) + "_" + info.param.situation) {
    if (each != '-') name += each;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Without, ProbeTest, ::testing::ValuesIn(kCases), name_of);

// The other half of every case above: with nothing taken away the same launches pass.
class IntactLaunchTest : public ::testing::TestWithParam<Case> {};

TEST_P(IntactLaunchTest, Proves) {
  const TestFolder folder;
  const std::string said = in_launcher([&] {
    Scene scene = empty_scene(folder.path());
    GetParam().launcher(scene);
    set_scene(scene, {});
    return launch(scene);
  });
  EXPECT_EQ(said, kProved);
}

std::vector<Case> cases_with_a_launcher_of_their_own() {
  std::vector<Case> out{kCases[0]};
  for (const Case& each : kCases) {
    if (each.launcher != nothing) out.push_back(each);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(With, IntactLaunchTest, ::testing::ValuesIn(cases_with_a_launcher_of_their_own()), name_of);

// What a guest with nested = true must have, and must not be without.
struct NestedCase {
  const char* situation;
  void (*take_away)(Scene&);
  const char* said;  // a pattern, as above
};

void PrintTo(const NestedCase& test, std::ostream* out) {
  *out << test.situation;
}

constexpr NestedCase kNestedCases[] = {
    {"Nothing", nothing, kProved},
    {"FilterThatRefusesMounts", [](Scene&) { inherit_filter({{SYS_mount, 3, MS_NOSUID, MS_NOSUID, EPERM}}); },
     "probe namespace-limit 'a sandbox inside': expected a user namespace and a proc of its own, found EPERM*"},
    // It is another mount than the plan's too, but that the probe sees later.
    {"ProcWithAMountOnIt", [](Scene& scene) { scene.add_step(Op::kReadOnly, "/proc/sys", "", "/proc"); },
     "probe namespace-limit 'a sandbox inside': expected a user namespace and a proc of its own, found EPERM*"},
    {"NoLimit", [](Scene& scene) { protections(scene).limit_namespaces = false; },
     "probe namespace-limit 'max_user_namespaces': expected 256, found *"},
    {"NoFilter", [](Scene& scene) { skip(scene, guest::kStepSeccomp); },
     "probe seccomp 'Seccomp': expected 2, found 0*"},
    {"FilterWithoutSocketRule", [](Scene& scene) { without_own_filter(scene, {}); },
     "probe seccomp 'socket(NETLINK_GENERIC)': expected EAFNOSUPPORT, found it was carried out*"},
};

class NestedProbeTest : public ::testing::TestWithParam<NestedCase> {};

TEST_P(NestedProbeTest, Says) {
  const TestFolder folder;
  const std::string said = in_launcher([&] {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {.nested = true});
    GetParam().take_away(scene);
    return launch(scene);
  });
  EXPECT_EQ(::fnmatch(GetParam().said, said.c_str(), FNM_NOESCAPE), 0) << said << "\nbut wanted\n" << GetParam().said;
}

INSTANTIATE_TEST_SUITE_P(With, NestedProbeTest, ::testing::ValuesIn(kNestedCases),
                         [](const auto& each) { return std::string(each.param.situation); });

TEST(ProbeRecordTest, TellsWhatWasFound) {
  const TestFolder folder;
  const std::string said = in_launcher([&]() -> std::string {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {});
    const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    auto guest = start(scene.prepared, {{null.get(), null.get(), null.get()}});
    if (!guest) return guest.error().message();
    const auto record = prove(*guest);
    if (!record) return record.error().message();
    const int groups = scene.root ? 0 : ::getgroups(0, nullptr);
    if (record->uid != scene.plan.identity.guest_uid) return "uid " + std::to_string(record->uid);
    if (record->gid != scene.plan.identity.guest_gid) return "gid " + std::to_string(record->gid);
    if (record->groups != static_cast<uint32_t>(groups)) return "groups " + std::to_string(record->groups);
    if (record->mounts < scene.plan.mounts.size() / 2) return "mounts " + std::to_string(record->mounts);
    if (record->seccomp_filters < 1) return "filters " + std::to_string(record->seccomp_filters);
    return kProved;
  });
  EXPECT_EQ(said, kProved);
}

// A work folder of root's gives a guest that is somebody else outside, whose files are root's all the same.
TEST(ProbeRecordTest, ProvesInAFolderOfRoots) {
  const TestFolder folder;
  const std::string said = in_launcher([&] {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {.owner = 0});
    if (scene.root && scene.plan.identity.host_uid == 0) return std::string("root outside");
    return launch(scene);
  });
  EXPECT_EQ(said, kProved);
}

}  // namespace
}  // namespace belljar::tiers::jail
