#include "tiers/docker/meeting.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"

namespace belljar::tiers::docker {
namespace {

constexpr const char* kMeeting = "meet the container";
constexpr size_t kMostGuest = size_t{64} << 20U;
constexpr const char* kSocketName = "control";

base::Status write_new(int folder, const std::string& name, std::string_view bytes, mode_t mode) {
  const base::Fd file(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || !base::write_all(file.get(), bytes) || ::fchmod(file.get(), mode) != 0) {
    return base::system_error(kMeeting, name, errno);
  }
  return {};
}

base::Result<base::Fd> listen_in(int folder) {
  base::Fd out(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  // By the folder's descriptor: an address holds 108 bytes (unix(7)).
  const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + kSocketName;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (!out || ::bind(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::fchmodat(folder, kSocketName, 0666, 0) != 0 || ::listen(out.get(), 1) != 0) {
    return base::system_error(kMeeting, kSocketName, errno);
  }
  return out;
}

bool wait_for(int fd, const base::Deadline& deadline) {
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, deadline.poll_timeout());
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

bool hung_up(int fd) {
  pollfd wait{fd, 0, 0};
  return ::poll(&wait, 1, 0) > 0 && (wait.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

base::Result<Meeting> Meeting::make(std::string path, const std::string& guest) {
  Meeting out;
  out.path_ = std::move(path);
  BELLJAR_ASSIGN(const std::string program, base::read_regular_file(guest, kMostGuest, false));
  if (::mkdir(out.path_.c_str(), 0700) != 0) return base::system_error(kMeeting, out.path_, errno);
  BELLJAR_ASSIGN(out.folder_, base::open_resolved(AT_FDCWD, out.path_, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS));
  BELLJAR_TRY(write_new(out.folder_.get(), "belljar-guest", program, 0555));
  BELLJAR_ASSIGN(out.listener_, listen_in(out.folder_.get()));
  // The guest may have another id than the launcher; others of this host do not get through the parent.
  if (::fchmod(out.folder_.get(), 0755) != 0) return base::system_error(kMeeting, out.path_, errno);
  return out;
}

base::Result<std::string> Meeting::add_file(const std::string& name, std::string_view text) {
  BELLJAR_TRY(write_new(folder_.get(), name, text, 0444));
  return path_ + "/" + name;
}

base::Result<std::string> Meeting::add_folder(const std::string& name) {
  if (::mkdirat(folder_.get(), name.c_str(), 0555) != 0) return base::system_error(kMeeting, name, errno);
  return path_ + "/" + name;
}

base::Result<Visitor> Meeting::receive(uid_t uid, std::string_view id, const base::Deadline& deadline) {
  const auto stranger = [](std::string_view what) {
    return base::refuse(kMeeting, what, "somebody else came, refusing", "nothing was started");
  };
  if (!wait_for(listener_.get(), deadline)) {
    return base::refuse(kMeeting, id, "its first process did not come in time, refusing",
                        "see the container engine's log");
  }
  Visitor out;
  out.control = base::Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  listener_.reset();
  ::unlinkat(folder_.get(), kSocketName, 0);
  if (!out.control) return base::system_error(kMeeting, id, errno);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(out.control.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return base::system_error(kMeeting, id, errno);
  }
  if (peer.uid != uid || peer.pid <= 0) return stranger("user " + std::to_string(peer.uid));
  out.pid = peer.pid;
  out.pidfd = base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
  if (!out.pidfd) return base::system_error(kMeeting, id, errno);
  const auto group = base::read_file("/proc/" + std::to_string(peer.pid) + "/cgroup");
  // While the conversation stands, its process lives and its number is nobody else's.
  if (!group || hung_up(out.control.get())) return base::refuse(kMeeting, id, "its first process has ended, refusing");
  if (id.empty() || !group->contains(id)) return stranger("process " + std::to_string(peer.pid));
  return out;
}

base::Status remove_meeting(const std::string& path) {
  constexpr const char* kRemove = "remove the folder of the container";
  const bool of_session =
      std::ranges::all_of(base::name_of(path), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (base::normal_path(path) != path || !of_session || base::name_of(path).empty()) {
    return base::refuse(kRemove, path, "it is not one of ours, refusing");
  }
  auto folder = base::open_resolved(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  if (!folder) return folder.error().code == ENOENT ? base::Status() : std::unexpected(folder.error());
  const int fd = folder->get();
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(folder->release()), &::closedir);
  std::vector<std::string> names;
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) names.emplace_back(&entry->d_name[0]);
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    if (::unlinkat(fd, name.c_str(), 0) != 0 && ::unlinkat(fd, name.c_str(), AT_REMOVEDIR) != 0) {
      return base::system_error(kRemove, path + "/" + name, errno);
    }
  }
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) return base::system_error(kRemove, path, errno);
  return {};
}

}  // namespace belljar::tiers::docker
