// A service of the host that a guest may be granted.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace belljar::testing {

// An HTTP server on the host's own loopback. It answers `from the host`, and to `/hold` a part of an answer.
class HostService {
 public:
  HostService() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HostService() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] std::string port() const { return std::to_string(port_); }

 private:
  void serve() {
    for (;;) {
      base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) return;
      std::array<char, 4096> request{};
      const ssize_t n = ::recv(peer.get(), request.data(), request.size(), 0);
      if (n <= 0) continue;
      if (std::string_view(request.data(), static_cast<size_t>(n)).starts_with("GET /hold ")) {
        hold(std::move(peer));
        continue;
      }
      constexpr std::string_view kAnswer =
          "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\nfrom the host";
      [[maybe_unused]] const ssize_t sent = ::send(peer.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
    }
  }
  // An answer without an end.
  void hold(base::Fd peer) {
    constexpr std::string_view kBegin = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nheld\n\r\n";
    [[maybe_unused]] const ssize_t n = ::send(peer.get(), kBegin.data(), kBegin.size(), MSG_NOSIGNAL);
    held_.push_back(std::move(peer));
  }

  base::Fd listener_;
  std::vector<base::Fd> held_;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace belljar::testing
