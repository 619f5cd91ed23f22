#include "session/walk.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <deque>
#include <optional>
#include <string_view>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"

namespace belljar::session {
namespace {

constexpr size_t kMaxLinks = 40;
constexpr size_t kSmallFile = 64U << 10U;

// File systems by magic number (statfs(2)) and the first kernel in which they allow id-mapped mounts
// (mount_setattr(2), "Notes").
struct FileSystem {
  uint32_t magic;
  const char* name;
  int major;  // 0: never
  int minor;
};

constexpr std::array kFileSystems = {
    FileSystem{0xEF53, "ext4", 5, 12},        FileSystem{0x58465342, "xfs", 5, 12},
    FileSystem{0x4D44, "vfat", 5, 12},        FileSystem{0x9123683E, "btrfs", 5, 15},
    FileSystem{0xF2F52010, "f2fs", 5, 18},    FileSystem{0xE0F5E1E2, "erofs", 5, 19},
    FileSystem{0x01021994, "tmpfs", 6, 3},    FileSystem{0x73717368, "squashfs", 6, 2},
    FileSystem{0xCA451A4E, "bcachefs", 6, 7}, FileSystem{0x794C7630, "overlay", 0, 0},
    FileSystem{0x6969, "nfs", 0, 0},          FileSystem{0x65735546, "fuse", 0, 0},
    FileSystem{0x2FC12FC1, "zfs", 0, 0},      FileSystem{0x01021997, "9p", 0, 0},
};

std::optional<uint32_t> magic_of(const std::string& path) {
  struct statfs info{};
  if (::statfs(path.c_str(), &info) != 0) return std::nullopt;
  return static_cast<uint32_t>(info.f_type);
}

const FileSystem* known(uint32_t magic) {
  for (const FileSystem& entry : kFileSystems) {
    if (entry.magic == magic) return &entry;
  }
  return nullptr;
}

void prepend(std::deque<std::string>& rest, std::string_view text) {
  const auto parts = base::split(text, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->empty() && *part != ".") rest.emplace_front(*part);
  }
}

std::string below(std::string folder, const std::string& name) {
  if (folder != "/") folder += '/';
  return folder + name;
}

std::string link_text(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t n = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (n <= 0 || static_cast<size_t>(n) == buffer.size()) return {};
  return {buffer.data(), static_cast<size_t>(n)};
}

// Stops at `here`, with what is left of the path put on as text.
void stop(plan::PathFact& out, std::string here, const std::deque<std::string>& rest) {
  for (const std::string& name : rest) {
    if (name == "..") out.left.push_back(here);
    here = name == ".." ? base::parent_of(here) : below(here, name);
  }
  out.kind = plan::FileKind::kAbsent;
  out.real = std::move(here);
}

}  // namespace

const Walker::Entry& Walker::look(const std::string& path) {
  const auto [at, fresh] = entries_.try_emplace(path);
  Entry& entry = at->second;
  struct stat info{};
  if (!fresh) return entry;
  if (::lstat(path.c_str(), &info) != 0) {
    entry.shut = errno == EACCES;
    return entry;
  }
  entry.exists = true;
  entry.mode = info.st_mode;
  entry.uid = info.st_uid;
  entry.gid = info.st_gid;
  entry.device = info.st_dev;
  if (S_ISLNK(info.st_mode)) entry.link = link_text(path);
  return entry;
}

bool Walker::exists(const std::string& path) {
  return look(path).exists;
}

plan::PathFact Walker::walk(const std::string& path) {
  plan::PathFact out;
  std::deque<std::string> rest;
  prepend(rest, path);
  std::string here = "/";
  while (!rest.empty()) {
    const std::string name = std::move(rest.front());
    rest.pop_front();
    if (name == "..") {
      out.left.push_back(here);
      here = base::parent_of(here);
      continue;
    }
    std::string next = below(here, name);
    const Entry& entry = look(next);
    if (!entry.exists || (S_ISLNK(entry.mode) && (entry.link.empty() || out.links.size() == kMaxLinks))) {
      out.shut = entry.shut;
      stop(out, std::move(next), rest);
      return out;
    }
    if (!S_ISLNK(entry.mode)) {
      here = std::move(next);
      continue;
    }
    if (entry.link.front() == '/') here.assign(1, '/');
    prepend(rest, entry.link);
    out.links.push_back({std::move(next), entry.link});
  }
  const Entry& entry = look(here);
  out.real = here;
  if (!entry.exists) return out;
  out.kind = S_ISDIR(entry.mode)    ? plan::FileKind::kFolder
             : S_ISREG(entry.mode)  ? plan::FileKind::kFile
             : S_ISSOCK(entry.mode) ? plan::FileKind::kSocket
             : S_ISFIFO(entry.mode) ? plan::FileKind::kFifo
                                    : plan::FileKind::kOther;
  out.uid = entry.uid;
  out.gid = entry.gid;
  out.mode = entry.mode & 07777U;
  out.idmap_possible = ids_ && can_map_ids(here, entry.device);
  return out;
}

bool Walker::can_map_ids(const std::string& path, dev_t device) {
  const auto [at, fresh] = devices_.try_emplace(device, false);
  if (!fresh) return at->second;
  const auto magic = magic_of(path);
  const FileSystem* found = magic ? known(*magic) : nullptr;
  if (found == nullptr || found->major == 0) return false;
  utsname system{};
  int major = 0;
  int minor = 0;
  // NOLINTNEXTLINE(cert-err34-c): two small numbers; a value that does not fit reads as a kernel that cannot.
  if (::uname(&system) != 0 || std::sscanf(static_cast<const char*>(system.release), "%d.%d", &major, &minor) != 2) {
    return false;
  }
  at->second = major > found->major || (major == found->major && minor >= found->minor);
  return at->second;
}

std::optional<std::string> path_named_by(const std::string& file, std::string_view prefix, const std::string& folder) {
  const auto text = base::read_file(file, kSmallFile, false);
  if (!text || !text->starts_with(prefix)) return std::nullopt;
  std::string path = text->substr(prefix.size());
  const size_t end = path.find_last_not_of("\r\n");
  if (end == std::string::npos || path.contains('\0')) return std::nullopt;
  path.resize(end + 1);
  return path.front() == '/' ? path : folder + "/" + path;
}

std::string file_system_name(const std::string& path) {
  const auto magic = magic_of(path);
  if (!magic) return "unknown";
  if (const FileSystem* found = known(*magic)) return found->name;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%x", *magic);
  return text.data();
}

}  // namespace belljar::session
