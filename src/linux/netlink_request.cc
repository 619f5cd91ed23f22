#include "linux/netlink_request.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace belljar::linux {
namespace {

// The errno in the acknowledgements of one datagram; `seen` grows by their number.
int first_error(const char* data, size_t size, size_t& seen) {
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, data, sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > size) return EPROTO;
    if (header.nlmsg_type == NLMSG_ERROR) {
      int code = 0;
      if (header.nlmsg_len < sizeof header + sizeof code) return EPROTO;
      std::memcpy(&code, data + sizeof header, sizeof code);
      if (code != 0) return -code;
      ++seen;
    }
    const size_t step = NLMSG_ALIGN(header.nlmsg_len);
    if (step >= size) return 0;
    data += step;
    size -= step;
  }
  return 0;
}

int read_answers(int socket, size_t answers) {
  std::array<char, 4096> buffer;
  for (size_t seen = 0; seen < answers;) {
    const ssize_t n = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EPROTO;
    const int error = first_error(buffer.data(), static_cast<size_t>(n), seen);
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace

int netlink_talk(int protocol, const NetlinkRequest& request, size_t answers) {
  if (!request.valid()) return EMSGSIZE;
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (fd < 0) return errno;
  const ssize_t sent = ::send(fd, request.data(), request.size(), 0);
  int error = sent < 0 ? errno : 0;
  if (sent >= 0 && static_cast<size_t>(sent) != request.size()) error = EMSGSIZE;
  if (error == 0) error = read_answers(fd, answers);
  ::close(fd);
  return error;
}

}  // namespace belljar::linux
