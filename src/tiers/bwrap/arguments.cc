#include "tiers/bwrap/arguments.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/path.h"

namespace belljar::tiers::bwrap {
namespace {

using plan::Mount;
using plan::MountKind;

// What `--dev` makes (bwrap(1)): the names that a plan has as well are left to it.
constexpr std::array<std::string_view, 6> kOwnDevices = {"null", "zero", "full", "random", "urandom", "tty"};
constexpr std::array<std::string_view, 6> kOwnLinks = {"fd", "stdin", "stdout", "stderr", "ptmx", "core"};

constexpr uint64_t kPage = 4096;

bool is_own(const std::array<std::string_view, 6>& names, const std::string& target) {
  return base::parent_of(target) == "/dev" && std::ranges::find(names, base::name_of(target)) != names.end();
}

// The deepest mount at or above `path` that decides what lies there; null when the guest's own root does.
const Mount* holder_of(const plan::Plan& plan, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& mount : plan.mounts) {
    if (mount.kind == MountKind::kReadOnly || mount.kind == MountKind::kMask || mount.kind == MountKind::kFile ||
        mount.kind == MountKind::kCopy || mount.kind == MountKind::kLink || mount.kind == MountKind::kFolder ||
        !base::is_within(path, mount.target)) {
      continue;
    }
    if (best == nullptr || mount.target.size() > best->target.size()) best = &mount;
  }
  return best;
}

// What the guest has at `path`, as the host names it; nothing where only the guest has anything.
std::optional<std::string> host_path(const plan::Plan& plan, const std::string& path) {
  const Mount* holder = holder_of(plan, path);
  if (holder == nullptr) return std::nullopt;
  // The kernel's settings are the same in every proc.
  if (holder->kind == MountKind::kProc) return path;
  if (holder->kind != MountKind::kBind) return std::nullopt;
  return holder->source + path.substr(holder->target.size());
}

class Builder {
 public:
  Builder(const plan::Plan& plan, const TargetFacts& facts,
          const std::map<std::string, std::string, std::less<>>& copies, bool landlock)
      : plan_(plan), facts_(facts), copies_(copies), landlock_(landlock) {}

  base::Result<Arguments> run() {
    begin();
    for (const Mount& mount : plan_.mounts) {
      way_to(base::parent_of(mount.target));
      BELLJAR_TRY(add(mount));
    }
    end();
    return std::move(out_);
  }

 private:
  void say(std::initializer_list<std::string> words) { out_.words.insert(out_.words.end(), words); }
  std::string data(std::string content) {
    out_.texts.push_back({std::move(content)});
    return std::to_string(kFirstData + static_cast<int>(out_.texts.size()) - 1);
  }
  guest::ExpectedMount& expect(std::string path) {
    out_.names.push_back(std::move(path));
    out_.mounts.push_back({.path = out_.names.back()});
    return out_.mounts.back();
  }
  void begin();
  void end();
  void way_to(const std::string& folder);
  base::Status add(const Mount& mount);
  base::Status add_bind(const Mount& mount);
  base::Status add_file(const Mount& mount);
  base::Status add_mask(const Mount& mount);
  base::Status add_read_only(const Mount& mount);
  void add_copy(const Mount& mount);
  void add_scratch(const Mount& mount);
  // Whether something lies there to be covered, and if so whether it is a folder.
  [[nodiscard]] std::optional<bool> there(const std::string& target) const {
    const auto path = host_path(plan_, target);
    const auto found = path ? facts_.there.find(*path) : facts_.there.end();
    return found == facts_.there.end() ? std::nullopt : std::optional(found->second);
  }
  // Where bubblewrap finds what the host has at the target.
  [[nodiscard]] std::string source_at(const std::string& target) const;

  const plan::Plan& plan_;
  const TargetFacts& facts_;
  const std::map<std::string, std::string, std::less<>>& copies_;
  bool landlock_;
  std::set<std::string> made_;
  Arguments out_;
};

void Builder::begin() {
  say({plan_.bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"});
  if (plan_.network == policy::Network::kDeny) say({"--unshare-net"});
  say({"--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"});
  say({"--uid", std::to_string(plan_.identity.guest_uid), "--gid", std::to_string(plan_.identity.guest_gid)});
  say({"--hostname", plan_.hostname, "--info-fd", std::to_string(kInfo)});
  expect("/");
  for (const Mount& mount : plan_.mounts) {
    if (mount.kind == MountKind::kScratch) out_.scratch.push_back(mount.target);
  }
  const auto home = std::ranges::find(out_.scratch, plan_.private_home);
  if (home != out_.scratch.end()) std::iter_swap(out_.scratch.begin(), home);
  // Whole pages, since tmpfs counts in those (tmpfs(5)).
  const uint64_t count = std::max<uint64_t>(out_.scratch.size(), 1);
  out_.scratch_share = std::max(plan_.limits.scratch_bytes / count / kPage * kPage, kPage);
}

void Builder::end() {
  if (landlock_) {
    say({"--perms", "0700", "--size", std::to_string(kPage), "--tmpfs", kCanary});
    expect(kCanary).writable = true;
  }
  // Last: what lies in them has been made.
  say({"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"});
  // Bubblewrap's own proc shows what it has inherited; the guest sees no file of that name (execve(2) of a descriptor).
  say({"/proc/self/fd/" + std::to_string(kGuestProgram)});
}

// Folders of the guest's own root that nothing else makes. Left to bubblewrap they would be open to the guest's user
// alone.
void Builder::way_to(const std::string& folder) {
  if (folder == "/" || holder_of(plan_, folder) != nullptr || !made_.insert(folder).second) return;
  way_to(base::parent_of(folder));
  if (folder != "/dev") say({"--dir", folder});
}

base::Status Builder::add_bind(const Mount& mount) {
  if (mount.kind == MountKind::kDevice) {
    guest::ExpectedMount& expected = expect(mount.target);
    expected.device = expected.writable = true;
    if (is_own(kOwnDevices, mount.target)) return {};
    say({"--dev-bind-try", mount.source, mount.target});
    expected.optional = true;
    return {};
  }
  const std::string number = std::to_string(out_.sources.size());
  out_.sources.push_back({mount.source, mount.writable, mount.idmap, mount.optional, mount.target});
  say({std::string(mount.writable ? "--bind" : "--ro-bind") + (mount.optional ? "-try" : ""),
       facts_.stage.empty() ? mount.source : facts_.stage + "/" + number, mount.target});
  guest::ExpectedMount& expected = expect(mount.target);
  expected.writable = mount.writable;
  expected.below = true;
  expected.optional = mount.optional;
  return {};
}

std::string Builder::source_at(const std::string& target) const {
  const Mount* holder = holder_of(plan_, target);
  std::string path = host_path(plan_, target).value_or(target);
  if (facts_.stage.empty() || holder->kind != MountKind::kBind) return path;
  const auto at = std::ranges::find(out_.sources, holder->target, &Source::target);
  return facts_.stage + "/" + std::to_string(at - out_.sources.begin()) + target.substr(holder->target.size());
}

base::Status Builder::add_file(const Mount& mount) {
  const Mount* holder = holder_of(plan_, mount.target);
  if (holder != nullptr && holder->kind != MountKind::kScratch && !there(mount.target)) {
    if (mount.optional) return {};
    return base::refuse("plan a mount", mount.target, "it would have to be made in a folder of the host");
  }
  say({"--perms", "0644", "--ro-bind-data", data(mount.source), mount.target});
  expect(mount.target).optional = mount.optional;
  return {};
}

base::Status Builder::add_mask(const Mount& mount) {
  const auto folder = there(mount.target);
  guest::ExpectedMount& expected = expect(mount.target);
  expected.optional = true;
  if (!folder) return {};  // nothing there to hide; the probe looks again
  if (!*folder) {
    say({"--perms", "0444", "--ro-bind-data", data(""), mount.target});
    return {};
  }
  say({"--perms", "0555", "--size", std::to_string(kPage), "--tmpfs", mount.target, "--remount-ro", mount.target});
  return {};
}

base::Status Builder::add_read_only(const Mount& mount) {
  if (!there(mount.target)) {
    if (!mount.optional)
      return base::refuse("make read-only", mount.target, "there is nothing of the host's, refusing");
    expect(mount.target).optional = true;
    return {};
  }
  say({"--ro-bind", source_at(mount.target), mount.target});
  guest::ExpectedMount& expected = expect(mount.target);
  expected.below = true;
  expected.optional = mount.optional;
  return {};
}

// In a folder of the guest's own. Where the policy gives the folder around it, the file itself is there.
void Builder::add_copy(const Mount& mount) {
  const auto content = copies_.find(mount.target);
  const Mount* holder = holder_of(plan_, mount.target);
  if (content == copies_.end() || (holder != nullptr && holder->kind != MountKind::kScratch)) return;
  say({"--perms", "0600", "--file", data(content->second), mount.target});
}

void Builder::add_scratch(const Mount& mount) {
  const bool shared = mount.target == "/tmp" || mount.target == "/var/tmp" || mount.target == "/dev/shm";
  say({"--perms", shared ? "1777" : "0755", "--size", std::to_string(out_.scratch_share), "--tmpfs", mount.target});
  expect(mount.target).writable = true;
}

base::Status Builder::add(const Mount& mount) {
  switch (mount.kind) {
    case MountKind::kBind:
    case MountKind::kDevice:
      return add_bind(mount);
    case MountKind::kScratch:
      add_scratch(mount);
      return {};
    case MountKind::kFolder:
      if (mount.target == "/dev") {
        say({"--dev", "/dev"});
        expect("/dev");
      } else {
        say({"--dir", mount.target});
      }
      return {};
    case MountKind::kLink:
      if (!is_own(kOwnLinks, mount.target)) say({"--symlink", mount.source, mount.target});
      return {};
    case MountKind::kFile:
      return add_file(mount);
    case MountKind::kCopy:
      add_copy(mount);
      return {};
    case MountKind::kProc:
      say({"--proc", mount.target});
      expect(mount.target).writable = true;
      return {};
    case MountKind::kPts: {
      guest::ExpectedMount& expected = expect(mount.target);  // `--dev` has made it
      expected.device = expected.writable = true;
      return {};
    }
    case MountKind::kMask:
      return add_mask(mount);
    case MountKind::kReadOnly:
      return add_read_only(mount);
    case MountKind::kPrivate:
      break;
  }
  return base::refuse("plan a mount", mount.target, "bubblewrap cannot make it, refusing");
}

}  // namespace

std::vector<std::string> covered_paths(const plan::Plan& plan) {
  std::vector<std::string> out;
  for (const Mount& mount : plan.mounts) {
    if (mount.kind != MountKind::kMask && mount.kind != MountKind::kReadOnly && mount.kind != MountKind::kFile)
      continue;
    if (auto path = host_path(plan, mount.target)) out.push_back(std::move(*path));
  }
  return out;
}

base::Result<Arguments> arguments_of(const plan::Plan& plan, const TargetFacts& facts,
                                     const std::map<std::string, std::string, std::less<>>& copies, bool landlock) {
  return Builder(plan, facts, copies, landlock).run();
}

}  // namespace belljar::tiers::bwrap
