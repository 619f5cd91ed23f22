// The floor that bench_egress shows beside the proxies: takes CONNECT, dials one fixed address, answers 200 and
// splices. No rule, no check of a name, an address or a hello, no deadline, no cap, no record; one epoll loop. usage:
// bare-relay ADDRESS (a listening socket at descriptor 3)
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kListener = 3;
constexpr size_t kPipe = size_t{256} << 10U;
constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

struct Tunnel;

struct Side {
  Tunnel* tunnel = nullptr;
  int fd = -1;
  bool ended = false;  // its end of stream was passed on
};

struct Tunnel {
  Side client;
  Side upstream;
  std::string head;
  bool relaying = false;
  bool dead = false;
};

int epoll_fd = -1;
std::vector<std::array<int, 2>> spare_pipes;
std::vector<Tunnel*> dead;

void watch(Side& side) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &side;
  ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, side.fd, &event);
}

void end(Tunnel& tunnel) {
  if (tunnel.dead) return;
  tunnel.dead = true;
  ::close(tunnel.client.fd);
  if (tunnel.upstream.fd >= 0) ::close(tunnel.upstream.fd);
  dead.push_back(&tunnel);
}

std::array<int, 2> take_pipe() {
  std::array<int, 2> ends{};
  if (!spare_pipes.empty()) {
    ends = spare_pipes.back();
    spare_pipes.pop_back();
  } else if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) == 0) {
    ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kPipe));
  }
  return ends;
}

// Whether the tunnel lives on. What the other side does not take is sent by polling: good enough for a floor.
bool pump(Side& from, Side& to) {
  if (from.ended) return true;
  const std::array<int, 2> pipe = take_pipe();
  bool fine = true;
  for (;;) {
    const ssize_t n = ::splice(from.fd, nullptr, pipe[1], nullptr, kPipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n == 0) {
      from.ended = true;
      ::shutdown(to.fd, SHUT_WR);
    }
    if (n < 0 && errno != EAGAIN) fine = false;
    if (n <= 0) break;
    for (ssize_t left = n; left > 0 && fine;) {
      const ssize_t sent = ::splice(pipe[0], nullptr, to.fd, nullptr, static_cast<size_t>(left), SPLICE_F_MOVE);
      if (sent > 0) {
        left -= sent;
      } else if (errno == EAGAIN) {
        epoll_event event{};
        const int once = ::epoll_create1(EPOLL_CLOEXEC);
        event.events = EPOLLOUT;
        ::epoll_ctl(once, EPOLL_CTL_ADD, to.fd, &event);
        ::epoll_wait(once, &event, 1, -1);
        ::close(once);
      } else {
        fine = false;
      }
    }
    if (!fine) {
      ::close(pipe[0]);
      ::close(pipe[1]);
      return false;
    }
  }
  spare_pipes.push_back(pipe);
  return fine;
}

void read_head(Tunnel& tunnel, const char* address) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::recv(tunnel.client.fd, buffer.data(), buffer.size(), 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) return end(tunnel);
  tunnel.head.append(buffer.data(), static_cast<size_t>(n));
  if (tunnel.head.find("\r\n\r\n") == std::string::npos) return;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  ::inet_pton(AF_INET, address, &to.sin_addr);
  to.sin_port = htons(static_cast<uint16_t>(std::atoi(tunnel.head.c_str() + tunnel.head.find(':') + 1)));
  tunnel.upstream.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(tunnel.upstream.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::connect(tunnel.upstream.fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  watch(tunnel.upstream);
}

void on_event(Side& side, uint32_t events, const char* address) {
  Tunnel& tunnel = *side.tunnel;
  if (tunnel.dead) return;
  if ((events & EPOLLERR) != 0) return end(tunnel);
  if (tunnel.upstream.fd < 0) return read_head(tunnel, address);
  if (!tunnel.relaying) {
    if (&side != &tunnel.upstream || (events & EPOLLOUT) == 0) return;
    tunnel.relaying = true;
    ::send(tunnel.client.fd, kEstablished.data(), kEstablished.size(), MSG_NOSIGNAL);
    return;
  }
  if (!pump(tunnel.client, tunnel.upstream) || !pump(tunnel.upstream, tunnel.client) ||
      (tunnel.client.ended && tunnel.upstream.ended)) {
    end(tunnel);
  }
}

void accept_all() {
  for (;;) {
    const int fd = ::accept4(kListener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    auto* tunnel = new Tunnel;
    tunnel->client = {tunnel, fd};
    tunnel->upstream = {tunnel};
    watch(tunnel->client);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ::signal(SIGPIPE, SIG_IGN);
  ::fcntl(kListener, F_SETFL, O_NONBLOCK);
  const int on = 1;
  ::setsockopt(kListener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, kListener, &event);
  std::array<epoll_event, 64> batch{};
  for (;;) {
    const int n = ::epoll_wait(epoll_fd, batch.data(), static_cast<int>(batch.size()), -1);
    for (int i = 0; i < n; ++i) {
      const epoll_event& each = batch[static_cast<size_t>(i)];
      if (each.data.ptr == nullptr) {
        accept_all();
      } else {
        on_event(*static_cast<Side*>(each.data.ptr), each.events, argv[1]);
      }
    }
    for (Tunnel* tunnel : dead) delete tunnel;
    dead.clear();
  }
}
