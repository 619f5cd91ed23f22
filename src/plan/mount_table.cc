#include "plan/mount_table.h"

#include <algorithm>
#include <tuple>

#include "base/path.h"

namespace belljar::plan {
namespace {

auto depth(const std::string& path) {
  return path == "/" ? 0 : std::ranges::count(path, '/');
}

}  // namespace

void MountTable::add(Mount mount) {
  std::string target = mount.target;
  mounts_.insert_or_assign(std::move(target), std::move(mount));
}

const Mount* MountTable::at(std::string_view target) const {
  const auto found = mounts_.find(target);
  return found == mounts_.end() ? nullptr : &found->second;
}

const Mount* MountTable::covering(std::string_view path) const {
  for (std::string here(path); !here.empty(); here = base::parent_of(here)) {
    const Mount* mount = at(here);
    const bool as_below =
        mount != nullptr && (mount->kind == MountKind::kReadOnly || mount->kind == MountKind::kPrivate);
    if (mount != nullptr && !as_below) return mount;
    if (here == "/") return nullptr;
  }
  return nullptr;
}

bool MountTable::shows(std::string_view path) const {
  const Mount* mount = covering(path);
  return mount != nullptr && (mount->kind == MountKind::kBind || mount->kind == MountKind::kDevice) &&
         mount->source == mount->target;
}

bool MountTable::writes(std::string_view path) const {
  return shows(path) && written_at(path);
}

std::optional<std::string> MountTable::written_at(std::string_view path) const {
  for (std::string here(path); here != "/"; here = base::parent_of(here)) {
    const Mount* mount = at(here);
    if (mount == nullptr) continue;
    if (mount->kind != MountKind::kBind || !mount->writable) return std::nullopt;
    return mount->source + std::string(path.substr(here.size()));
  }
  return std::nullopt;
}

const Mount* MountTable::below(std::string_view path) const {
  const std::string prefix = path == "/" ? "/" : std::string(path) + "/";
  const auto found = mounts_.upper_bound(prefix);
  return found != mounts_.end() && found->first.starts_with(prefix) ? &found->second : nullptr;
}

bool MountTable::has_entry_in(std::string_view path) const {
  const std::string prefix = path == "/" ? "/" : std::string(path) + "/";
  for (auto at = mounts_.upper_bound(prefix); at != mounts_.end() && at->first.starts_with(prefix); ++at) {
    const Mount& mount = at->second;
    const bool entry = mount.kind == MountKind::kLink || mount.kind == MountKind::kBind;
    if (entry && base::parent_of(at->first) == path) return true;
  }
  return false;
}

const LinkFact* MountTable::made_by_guest(const std::vector<LinkFact>& links) const {
  // What the guest has under another name is not at `link.path` for it, and its own to write all the same.
  const auto elsewhere = [&](const LinkFact& link) {
    return std::ranges::any_of(mounts_, [&](const auto& entry) {
      const Mount& mount = entry.second;
      return mount.kind == MountKind::kBind && mount.writable && mount.source != mount.target &&
             base::is_within(link.path, mount.source);
    });
  };
  const auto found =
      std::ranges::find_if(links, [&](const LinkFact& link) { return writes(link.path) || elsewhere(link); });
  return found == links.end() ? nullptr : &*found;
}

void MountTable::add_links(const std::vector<LinkFact>& links, std::string_view reason) {
  for (const LinkFact& link : links) {
    if (shows(link.path) || at(link.path) != nullptr) continue;
    add({.kind = MountKind::kLink, .target = link.path, .source = link.target, .reason = std::string(reason)});
  }
}

std::vector<Mount> MountTable::in_order() const {
  std::vector<Mount> out;
  for (const auto& [target, mount] : mounts_) {
    const bool plain = mount.kind == MountKind::kLink || mount.kind == MountKind::kFolder;
    if (plain && shows(base::parent_of(target))) continue;
    out.push_back(mount);
  }
  std::ranges::sort(out, {}, [](const Mount& mount) {
    return std::tuple(mount.kind == MountKind::kMask, depth(mount.target), std::string_view(mount.target));
  });
  return out;
}

}  // namespace belljar::plan
