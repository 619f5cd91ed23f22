#include "linux/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"

namespace belljar::linux {
namespace {

using Kind = CgroupGround::Kind;
constexpr uint64_t kPeriodUs = 100'000;  // of the cpu quota; the kernel's own default
// Where the launcher waits when it has to leave its own group to its guests.
constexpr const char* kOwnLeaf = "belljar.launcher";

base::Status write_file(int folder, const std::string& path, const char* file, std::string_view text) {
  const base::Fd fd(::openat(folder, file, O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return base::system_error("set the limit", path + "/" + file, errno, "see 'belljar doctor'");
  }
  return {};
}

std::optional<std::string> read_at(int folder, const char* file) {
  const base::Fd fd(::openat(folder, file, O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  auto text = base::read_to_end(fd.get(), size_t{64} << 10U, file);
  if (!text) return std::nullopt;
  return std::move(*text);
}

// The value of `key` in lines of `KEY VALUE`.
std::optional<uint64_t> value_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : base::split(text, '\n')) {
    uint64_t value = 0;
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ' &&
        base::parse_uint(line.substr(key.size() + 1), value)) {
      return value;
    }
  }
  return std::nullopt;
}

base::Status limit_memory(int version, int folder, const std::string& path, uint64_t bytes) {
  const std::string text = std::to_string(bytes);
  if (version == 2) {
    BELLJAR_TRY(write_file(folder, path, "memory.max", text));
    // Absent in a kernel without swap accounting.
    if (::faccessat(folder, "memory.swap.max", F_OK, 0) != 0) return {};
    return write_file(folder, path, "memory.swap.max", "0");
  }
  BELLJAR_TRY(write_file(folder, path, "memory.limit_in_bytes", text));
  // Memory and swap together no more than memory alone, or never swapped where that is not counted.
  if (::faccessat(folder, "memory.memsw.limit_in_bytes", F_OK, 0) == 0) {
    return write_file(folder, path, "memory.memsw.limit_in_bytes", text);
  }
  return write_file(folder, path, "memory.swappiness", "0");
}

base::Status limit_cpu(int version, int folder, const std::string& path, uint64_t percent) {
  const std::string quota = std::to_string(percent * kPeriodUs / 100);
  if (version == 2) return write_file(folder, path, "cpu.max", quota + " " + std::to_string(kPeriodUs));
  BELLJAR_TRY(write_file(folder, path, "cpu.cfs_period_us", std::to_string(kPeriodUs)));
  return write_file(folder, path, "cpu.cfs_quota_us", quota);
}

bool lock(int folder) {
  return ::flock(folder, LOCK_EX | LOCK_NB) == 0;
}

bool names(int folder, const char* name, int group) {
  struct stat by_name{};
  struct stat by_descriptor{};
  return ::fstatat(folder, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(group, &by_descriptor) == 0 &&
         by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev;
}

// Groups of launchers that were killed: ours by name, held by nobody, empty (else rmdir(2) says EBUSY).
void remove_left_groups(const std::string& parent) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(parent.c_str()), &::closedir);
  if (!folder) return;
  while (const dirent* entry = ::readdir(folder.get())) {
    const char* name = static_cast<const char*>(entry->d_name);
    if (!std::string_view(name).starts_with(kCgroupPrefix)) continue;
    const base::Fd group(::openat(::dirfd(folder.get()), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // The name may mean another group by now than the one that is locked. Once it is this one it stays so: nobody but
    // the holder of the lock removes it.
    if (group && lock(group.get()) && names(::dirfd(folder.get()), name, group.get())) {
      (void)::unlinkat(::dirfd(folder.get()), name, AT_REMOVEDIR);
    }
  }
}

// A new group, locked. Whoever clears up may take it for a left one in the moment before it is locked: then, when that
// one is done with it, once more.
base::Result<base::Fd> make_locked(const std::string& path) {
  for (int i = 0; i < 100; ++i) {
    if (::mkdir(path.c_str(), 0755) != 0) break;
    base::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder && errno != ENOENT) break;
    if (!folder) continue;
    while (::flock(folder.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    if (::access(path.c_str(), F_OK) == 0) return folder;
  }
  return base::system_error("make the group", path, errno, "see 'belljar doctor'");
}

// The launcher leaves its own group, so that this may give its controllers to its groups. Stays there: it is alone.
base::Status move_below(const std::string& folder) {
  const std::string leaf = folder + "/" + kOwnLeaf;
  if (::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return base::system_error("make the group", leaf, errno);
  return write_file(AT_FDCWD, leaf, (leaf + "/cgroup.procs").c_str(), "0");
}

base::Status give_on(const std::string& folder, const char* controller) {
  const std::string file = folder + "/cgroup.subtree_control";
  std::string given = read_at(AT_FDCWD, file.c_str()).value_or("");
  std::ranges::replace(given, '\n', ' ');
  for (const std::string_view word : base::split(given, ' ')) {
    if (word == controller) return {};
  }
  const std::string text = std::string("+") + controller;
  const base::Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), text.data(), text.size()) < 0) {
    return base::system_error("give on the controller", controller, errno, "see 'belljar doctor'");
  }
  return {};
}

}  // namespace

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this != &other) {
    (void)remove();
    groups_ = std::exchange(other.groups_, {});
  }
  return *this;
}

Cgroup::~Cgroup() {
  (void)remove();
}

base::Status Cgroup::add(const std::string& name, const CgroupGround& ground, Controller controller) {
  const auto index = static_cast<size_t>(controller);
  if (!ground.usable() || ground.kind == Kind::kSystemd) {
    return base::refuse("make a group for", name_of(controller), ground.fault, "see 'belljar doctor'");
  }
  if (ground.version == 2) {
    if (ground.kind == Kind::kV2Alone) BELLJAR_TRY(move_below(ground.folder));
    BELLJAR_TRY(give_on(ground.folder, name_of(controller)));
  }
  const std::string path = ground.folder + "/" + name;
  const auto same = std::ranges::find(groups_, path, &Group::path);
  if (same != groups_.end()) {
    same->has[index] = true;
    return {};
  }
  remove_left_groups(ground.folder);
  BELLJAR_ASSIGN(base::Fd folder, make_locked(path));
  Group& group = groups_.emplace_back();
  group.version = ground.version;
  group.path = path;
  group.has[index] = true;
  group.folder = std::move(folder);
  if (group.version == 2) return {};
  group.entry.reset(::openat(group.folder.get(), "tasks", O_WRONLY | O_CLOEXEC));
  return group.entry ? base::Status() : base::system_error("open", path + "/tasks", errno);
}

base::Status Cgroup::limit(const CgroupLimits& limits) {
  if (const Group* memory = with(Controller::kMemory); memory != nullptr && limits.memory_bytes) {
    BELLJAR_TRY(limit_memory(memory->version, memory->folder.get(), memory->path, *limits.memory_bytes));
  }
  if (const Group* cpu = with(Controller::kCpu); cpu != nullptr && limits.cpu_percent) {
    BELLJAR_TRY(limit_cpu(cpu->version, cpu->folder.get(), cpu->path, *limits.cpu_percent));
  }
  if (const Group* pids = with(Controller::kPids); pids != nullptr && limits.pids) {
    BELLJAR_TRY(write_file(pids->folder.get(), pids->path, "pids.max", std::to_string(*limits.pids)));
  }
  return {};
}

base::Result<Cgroup> Cgroup::make(const std::string& name, const CgroupWanted& wanted, const CgroupGrounds& grounds) {
  Cgroup out;
  for (size_t i = 0; i < kControllers.size(); ++i) {
    if (wanted[i]) BELLJAR_TRY(out.add(name, grounds[i], kControllers[i]));
  }
  return out;
}

const Cgroup::Group* Cgroup::with(Controller controller) const {
  for (const Group& group : groups_) {
    if (group.has[static_cast<size_t>(controller)]) return &group;
  }
  return nullptr;
}

int Cgroup::folder_for_clone() const {
  for (const Group& group : groups_) {
    if (group.version == 2) return group.folder.get();
  }
  return -1;
}

std::vector<int> Cgroup::entries() const {
  std::vector<int> out;
  for (const Group& group : groups_) {
    if (group.entry) out.push_back(group.entry.get());
  }
  return out;
}

base::Status Cgroup::enter(pid_t pid) const {
  for (const Group& group : groups_) {
    BELLJAR_TRY(write_file(group.folder.get(), group.path, "cgroup.procs", std::to_string(pid)));
  }
  return {};
}

std::optional<std::string> Cgroup::Group::read(const char* file) const {
  const auto open = std::ranges::find(counters, file, [](const auto& counter) { return counter.first; });
  if (open == counters.end()) return read_at(folder.get(), file);
  // From the start each time: the kernel writes the file anew for every reader of its first byte.
  std::string text(size_t{64} << 10U, '\0');
  const ssize_t n = ::pread(open->second.get(), text.data(), text.size(), 0);
  if (n < 0) return std::nullopt;
  text.resize(static_cast<size_t>(n));
  return text;
}

std::optional<uint64_t> Cgroup::Group::number(const char* file) const {
  const auto text = read(file);
  uint64_t value = 0;
  if (!text || !base::parse_uint(base::split(*text, '\n').front(), value)) return std::nullopt;
  return value;
}

std::optional<uint64_t> Cgroup::Group::keyed(const char* file, std::string_view key) const {
  const auto text = read(file);
  return text ? value_of(*text, key) : std::nullopt;
}

void Cgroup::open_counters() {
  for (Group& group : groups_) {
    for (const char* file : {"memory.peak", "memory.max_usage_in_bytes", "memory.events", "memory.oom_control",
                             "cpu.stat", "pids.events"}) {
      base::Fd fd(::openat(group.folder.get(), file, O_RDONLY | O_CLOEXEC));
      if (fd) group.counters.emplace_back(file, std::move(fd));
    }
  }
}

CgroupCounters Cgroup::counters() const {
  CgroupCounters out;
  if (const Group* memory = with(Controller::kMemory)) {
    const bool v2 = memory->version == 2;
    out.memory_peak = memory->number(v2 ? "memory.peak" : "memory.max_usage_in_bytes");
    out.memory_kills = memory->keyed(v2 ? "memory.events" : "memory.oom_control", "oom_kill");
  }
  if (const Group* cpu = with(Controller::kCpu)) {
    out.throttled = cpu->keyed("cpu.stat", "nr_throttled");
    out.cpu_us = cpu->keyed("cpu.stat", "usage_usec");
  }
  if (const Group* pids = with(Controller::kPids)) out.pids_refused = pids->keyed("pids.events", "max");
  return out;
}

std::vector<std::string> Cgroup::paths() const {
  std::vector<std::string> out;
  for (const Group& group : groups_) out.push_back(group.path);
  return out;
}

bool Cgroup::kill() const {
  bool all = !groups_.empty();
  for (const Group& group : groups_) {
    all = write_file(group.folder.get(), group.path, "cgroup.kill", "1").has_value() && all;
  }
  return all;
}

std::vector<std::string> Cgroup::remove(std::chrono::milliseconds patience) {
  const std::vector<std::string> mine = paths();
  groups_.clear();
  return remove_groups(mine, patience);
}

std::vector<std::string> remove_groups(std::span<const std::string> paths, std::chrono::milliseconds patience) {
  std::vector<std::string> left;
  const base::Deadline deadline = base::Deadline::after(patience);
  for (const std::string& path : paths) {
    // A process that has just ended is still counted for a moment.
    while (::rmdir(path.c_str()) != 0 && errno != ENOENT) {
      if (errno != EBUSY || deadline.passed()) {
        left.push_back(path);
        break;
      }
      ::usleep(1000);
    }
  }
  return left;
}

}  // namespace belljar::linux
