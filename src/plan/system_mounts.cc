#include "plan/system_mounts.h"

#include <algorithm>
#include <array>

#include "base/path.h"

namespace belljar::plan {
namespace {

constexpr std::array kSystemTrees = {"/usr", "/bin",  "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
                                     "/etc", "/boot", "/proc", "/sys", "/dev",   "/run",   "/nix"};

// Folders of sources that images keep below /usr; they hold no program that the host runs.
constexpr std::array kSourceTrees = {"/usr/src", "/usr/local/src"};

void add_root_entries(MountTable& table, const Facts& facts) {
  for (const auto& [path, entry] : facts.root_entries) {
    if (entry.kind == RootEntry::Kind::kLink) {
      table.add({.kind = MountKind::kLink, .target = path, .source = entry.target, .reason = "as on the host"});
    } else if (entry.kind == RootEntry::Kind::kFolder) {
      table.add({.target = path, .source = path, .reason = "the host's programs and settings, read-only"});
    }
  }
  for (const std::string& secret : facts.etc_secrets) {
    table.add({.kind = MountKind::kMask, .target = secret, .optional = true, .reason = "a secret of the host"});
  }
}

void add_proc(MountTable& table, bool nested) {
  table.add({.kind = MountKind::kProc, .target = "/proc", .reason = "the guest's own processes"});
  // The kernel mounts a new proc in a user namespace only where one is in view on which nothing is mounted
  // (mount_too_revealing() in fs/namespace.c). What is here belongs to the host's root, whom the guest is not.
  if (nested) return;
  // What a container engine shuts as well: these are the host's whatever the namespaces (proc(5)).
  for (const char* name :
       {"acpi", "asound", "interrupts", "kallsyms", "kcore", "keys", "key-users", "kpagecount", "kpageflags",
        "latency_stats", "sched_debug", "scsi", "sysrq-trigger", "timer_list", "timer_stats"}) {
    table.add({.kind = MountKind::kMask,
               .target = std::string("/proc/") + name,
               .optional = true,
               .reason = "tells about or steers the host's kernel"});
  }
  for (const char* name : {"bus", "fs", "irq", "sys"}) {
    table.add({.kind = MountKind::kReadOnly,
               .target = std::string("/proc/") + name,
               .optional = true,
               .reason = "settings of the kernel"});
  }
}

void add_dev(MountTable& table, const Facts& facts) {
  table.add({.kind = MountKind::kFolder, .target = "/dev", .reason = "the guest's own devices"});
  for (const std::string& name : facts.devices) {
    const std::string path = "/dev/" + name;
    table.add(
        {.kind = MountKind::kDevice, .target = path, .source = path, .writable = true, .reason = "harmless device"});
  }
  constexpr std::array<std::array<const char*, 2>, 5> kLinks = {{{"fd", "/proc/self/fd"},
                                                                 {"stdin", "/proc/self/fd/0"},
                                                                 {"stdout", "/proc/self/fd/1"},
                                                                 {"stderr", "/proc/self/fd/2"},
                                                                 {"ptmx", "pts/ptmx"}}};
  for (const auto& [name, target] : kLinks) {
    table.add({.kind = MountKind::kLink,
               .target = std::string("/dev/") + name,
               .source = target,
               .reason = "as every Linux has it"});
  }
  table.add({.kind = MountKind::kPts, .target = "/dev/pts", .reason = "the guest's own terminals"});
}

void add_scratch(MountTable& table) {
  for (const char* path : {"/tmp", "/run", "/var/tmp", "/dev/shm"}) {
    table.add({.kind = MountKind::kScratch, .target = path, .writable = true, .reason = "empty, gone at the end"});
  }
  table.add({.kind = MountKind::kLink, .target = "/var/run", .source = "/run", .reason = "as every Linux has it"});
}

// The guest's own resolver answers at once, so nobody waits longer for it than a moment. musl takes no REFUSED for an
// answer and waits for the time-out.
constexpr const char* kOwnResolver = "nameserver 127.0.0.1\noptions timeout:1 attempts:3\n";

void add_resolver(MountTable& table, const Facts& facts, bool isolated, std::vector<std::string>& notes) {
  const PathFact& resolver = facts.resolver;
  if (resolver.kind != FileKind::kFile) {
    // Without the file it is 127.0.0.1 as well (resolv.conf(5)).
    if (!resolver.links.empty() && !isolated) {
      notes.push_back("/etc/resolv.conf is a link to '" + resolver.links.back().target +
                      "', which is missing: host names may not resolve");
    }
    return;
  }
  const bool shown = table.shows(resolver.real);
  if (shown && (!isolated || table.at(resolver.real) != nullptr)) return;
  if (!shown) table.add_links(resolver.links, "leads to the resolver's settings");
  table.add({.kind = MountKind::kFile,
             .target = resolver.real,
             .source = isolated ? kOwnResolver : facts.resolver_text,
             .reason = isolated ? "the guest's own resolver" : "content of /etc/resolv.conf"});
}

}  // namespace

void add_system(MountTable& table, const Facts& facts, bool nested) {
  add_root_entries(table, facts);
  add_proc(table, nested);
  add_dev(table, facts);
  add_scratch(table);
  if (facts.cpu_topology) {
    table.add({.target = "/sys/devices/system/cpu",
               .source = "/sys/devices/system/cpu",
               .reason = "how many processors there are"});
  }
}

void add_etc_links(MountTable& table, const Facts& facts, bool isolated, std::vector<std::string>& notes) {
  add_resolver(table, facts, isolated, notes);
  const PathFact& zone = facts.localtime;
  if (zone.kind == FileKind::kFile && !table.shows(zone.real)) {
    table.add_links(zone.links, "leads to the time zone");
    table.add({.target = zone.real, .source = zone.real, .reason = "the time zone"});
  }
}

bool is_system_path(std::string_view path) {
  if (std::ranges::any_of(kSourceTrees,
                          [&](const char* tree) { return base::is_within(path, tree) && path != tree; })) {
    return false;
  }
  return std::ranges::any_of(kSystemTrees, [&](const char* tree) { return base::is_within(path, tree); });
}

}  // namespace belljar::plan
