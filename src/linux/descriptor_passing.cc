#include "linux/descriptor_passing.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace belljar::linux {
namespace {
constexpr size_t kMostDescriptors = 16;

// Room for one message and its descriptors; `message` points into it.
struct Incoming {
  iovec part{};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
  msghdr message{};
};

// recvmsg(2), again after EINTR: the size, or -1 with errno.
// A peer that ends with messages unread is told of first, before what it has said itself (af_unix,
// unix_release_sock()).
ssize_t receive(int socket, void* data, size_t size, int flags, Incoming& in) {
  in.part = {data, size};
  in.message.msg_iov = &in.part;
  in.message.msg_iovlen = 1;
  in.message.msg_control = in.control;
  in.message.msg_controllen = sizeof in.control;
  for (bool reset = false;;) {
    const ssize_t n = ::recvmsg(socket, &in.message, MSG_CMSG_CLOEXEC | flags);
    if (n >= 0) return n;
    if (errno == ECONNRESET && !reset) {
      reset = true;
    } else if (errno != EINTR) {
      return n;
    }
  }
}

}  // namespace

int send_with_descriptors(int socket, const void* data, size_t size, const int* fds, size_t count) {
  if (count > kMostDescriptors) return EINVAL;
  iovec part{const_cast<void*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * count);
    std::memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
  }
  for (;;) {
    const ssize_t n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (n >= 0) return static_cast<size_t>(n) == size ? 0 : EMSGSIZE;
    if (errno != EINTR) return errno;
  }
}

int send_with_descriptor(int socket, const void* data, size_t size, int fd) {
  return send_with_descriptors(socket, data, size, &fd, fd >= 0 ? 1 : 0);
}

int receive_with_descriptors(int socket, void* data, size_t size, int* fds, size_t count) {
  if (count > kMostDescriptors) return EINVAL;
  Incoming in;
  const ssize_t n = receive(socket, data, size, 0, in);
  if (n < 0) return errno;
  const msghdr& message = in.message;
  if (n == 0) return EPIPE;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int) * count) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      static_cast<size_t>(n) != size) {
    return EPROTO;
  }
  std::memcpy(fds, CMSG_DATA(header), sizeof(int) * count);
  return 0;
}

int receive_with_descriptor(int socket, void* data, size_t size, base::Fd& fd, int flags) {
  Incoming in;
  const ssize_t n = receive(socket, data, size, flags, in);
  if (n < 0) return errno;
  msghdr& message = in.message;
  size_t received = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int got = -1;
      std::memcpy(&got, CMSG_DATA(header) + i * sizeof(int), sizeof got);
      base::Fd owned(got);
      if (received++ == 0) fd = std::move(owned);
    }
  }
  if (n == 0) return EPIPE;
  const bool lost = (message.msg_flags & MSG_CTRUNC) != 0;
  if (received > (lost ? 0 : 1) || (message.msg_flags & MSG_TRUNC) != 0 || static_cast<size_t>(n) != size) {
    return EPROTO;
  }
  return lost ? EMFILE : 0;
}

}  // namespace belljar::linux
