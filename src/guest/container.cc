#include "guest/container.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/io.h"
#include "base/path.h"
#include "guest/protocol.h"
#include "linux/descriptor_passing.h"

namespace belljar::guest {
namespace {

constexpr int kBacklog = 1024;

// Above all the numbers that are about to be given away.
int move_up(int fd) {
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd);
  ::close(fd);
  return moved;
}

bool put(int fd, int number) {
  const bool done = ::dup2(fd, number) == number;
  ::close(fd);
  return done;
}

bool leads_to_mount(const Config& config, std::string_view path) {
  for (const ExpectedMount& mount : config.mounts) {
    if (base::is_within(mount.path, path)) return true;
  }
  return false;
}

std::string first_stranger(const Config& config, const std::string& folder) {
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return folder;
  std::string out;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name(static_cast<const char*>(entry->d_name));
    if (name == "." || name == "..") continue;
    const std::string path = folder + "/" + std::string(name);
    if (!leads_to_mount(config, path)) out = path;
  }
  ::closedir(entries);
  return out;
}

int make_parents(std::string_view path, std::string_view home) {
  for (size_t at = path.find('/', home.size() + 1); at != std::string_view::npos; at = path.find('/', at + 1)) {
    const std::string folder(path.substr(0, at));
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  }
  return 0;
}

int make_file(const std::string& path, std::string_view content) {
  const base::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return errno;
  return base::write_all(file.get(), content) ? 0 : errno;
}

bool send_tagged(int fd) {
  const uint32_t tag = kMagic;
  return fd >= 0 && linux::send_with_descriptor(kControlFd, &tag, sizeof tag, fd) == 0;
}

}  // namespace

bool meet_launcher() {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path), kMeetingSocket, std::strlen(kMeetingSocket));
  const int control = move_up(socket);
  if (::connect(control, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  ContainerOrder order;
  std::array<int, 4> given{};
  if (linux::receive_with_descriptors(control, &order, sizeof order, given.data(), given.size()) != 0 ||
      order.magic != kMagic) {
    return false;
  }
  for (int& fd : given) fd = move_up(fd);
  const int scratch = move_up(::open(kMeetingParent, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return put(given[1], STDIN_FILENO) && put(given[2], STDOUT_FILENO) && put(given[3], STDERR_FILENO) &&
         put(given[0], kConfigFd) && put(scratch, kScratchFd) && put(control, kControlFd);
}

std::string left_in_scratch(const Config& config) {
  for (const ExpectedMount& mount : config.mounts) {
    // A task's work is no scratch.
    if (!mount.tmpfs || mount.path == config.work_folder || mount.path == config.metadata) continue;
    if (std::string found = first_stranger(config, std::string(mount.path)); !found.empty()) return found;
  }
  return {};
}

int make_home(const Config& config, std::string_view& path) {
  for (const HomeEntry& entry : config.home_entries) {
    path = entry.path;
    if (!base::is_within(entry.path, config.home) || entry.path == config.home) return EINVAL;
    if (const int error = make_parents(entry.path, config.home); error != 0) return error;
    const std::string name(entry.path);
    const std::string target(entry.link ? entry.content : std::string_view());
    const int error =
        entry.link ? (::symlink(target.c_str(), name.c_str()) == 0 ? 0 : errno) : make_file(name, entry.content);
    if (error != 0) return error;
  }
  return 0;
}

bool hand_out_of_container(const Config& config) {
  if (config.isolated_network) {
    const base::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(config.proxy_port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener.get(), kBacklog) != 0 || !send_tagged(listener.get())) {
      return false;
    }
  }
  const std::string home(config.home);
  const base::Fd root(::open(home.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return send_tagged(root.get());
}

}  // namespace belljar::guest
