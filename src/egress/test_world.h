// A proxy, its guests and its upstreams on loopback, for tests.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "egress/proxy.h"
#include "net/address.h"
#include "net/event_loop.h"
#include "net/hello_bytes.h"
#include "net/resolver.h"
#include "net/stream.h"
#include "net/test_address.h"
#include "policy/host_rule.h"

namespace belljar::egress::testing {

inline base::Fd listen_on(const std::string& ip, uint16_t port = 0, int backlog = 512) {
  base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) std::abort();
  sockaddr_storage address{};
  const socklen_t length = net::Endpoint{net::testing::ip(ip), port}.to_sockaddr(address);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  EXPECT_EQ(::listen(fd.get(), backlog), 0);
  return fd;
}

inline uint16_t port_of(const base::Fd& fd) {
  return net::local_endpoint(fd.get())->port;
}

// A blocking socket. Reads give up after thirty seconds, so that a defect is a failure and not a hang.
class Peer {
 public:
  Peer() = default;
  explicit Peer(base::Fd fd) : fd_(std::move(fd)) {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  static Peer to(uint16_t port) {
    base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) std::abort();
    sockaddr_storage address{};
    const socklen_t length = net::Endpoint{net::testing::ip("127.0.0.1"), port}.to_sockaddr(address);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
    return Peer(std::move(fd));
  }

  // False when the peer is gone. MSG_NOSIGNAL: a test must not die of SIGPIPE.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Up to `size` bytes, or less at the end of the stream.
  std::string read(size_t size) {
    std::string out;
    std::array<char, size_t{64} << 10U> buffer;
    while (out.size() < size) {
      const ssize_t n = ::recv(fd_.get(), buffer.data(), std::min(size - out.size(), buffer.size()), 0);
      if (n <= 0) {
        error_ = n < 0 ? errno : 0;
        break;
      }
      out.append(buffer.data(), static_cast<size_t>(n));
    }
    return out;
  }
  std::string read_all() { return read(SIZE_MAX); }
  // Up to and with `mark`.
  std::string read_until(std::string_view mark) {
    std::string out;
    while (!out.ends_with(mark)) {
      const std::string next = read(1);
      if (next.empty()) break;
      out += next;
    }
    return out;
  }
  std::string read_head() { return read_until("\r\n\r\n"); }
  // errno of the last read that gave less than asked; 0 for an orderly end.
  [[nodiscard]] int error() const { return error_; }
  void end_writing() { ::shutdown(fd_.get(), SHUT_WR); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    fd_.reset();
  }
  void close() { fd_.reset(); }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  base::Fd fd_;
  int error_ = 0;
};

// A request to the proxy in plain HTTP; `more` are whole lines of its head.
inline std::string get(const std::string& authority, const std::string& more = {}) {
  return "GET http://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n" + more + "\r\n";
}

// What an Upstream does that sends back what it gets, a byte at a time, and is a TLS server where that begins as TLS.
inline void echo(Peer& peer) {
  std::string byte = peer.read(1);
  if (byte == "\x16" && !peer.send(net::testing::server_hello())) return;
  for (; !byte.empty(); byte = peer.read(1)) {
    if (!peer.send(byte)) return;
  }
}

// A server on 127.0.0.1 with a thread per connection.
class Upstream {
 public:
  using Handler = std::function<void(Peer&)>;
  explicit Upstream(Handler handler, const std::string& ip = "127.0.0.1")
      : handler_(std::move(handler)), listener_(listen_on(ip)), port_(port_of(listener_)) {
    acceptor_ = std::thread([this] {
      for (;;) {
        base::Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!fd) return;
        ++connections_;
        const std::lock_guard lock(mutex_);
        workers_.emplace_back([this, peer = std::make_shared<Peer>(std::move(fd))] {
          handler_(*peer);
          peer->close();
        });
      }
    });
  }
  ~Upstream() {
    ::shutdown(listener_.get(), SHUT_RD);
    acceptor_.join();
    for (std::thread& worker : workers_) worker.join();
  }
  [[nodiscard]] uint16_t port() const { return port_; }
  // Its authority, by a name that leads to it.
  [[nodiscard]] std::string at(const std::string& host) const { return host + ":" + std::to_string(port_); }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  Handler handler_;
  base::Fd listener_;
  uint16_t port_;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

// Answers from a table and counts. A host with several answers gives one after the other and keeps to the last.
class TableResolver final : public net::Resolver, private net::Alarm {
 public:
  struct Table {
    std::map<std::string, std::vector<net::Resolution>> answers;
    std::vector<std::string> asked;
    std::mutex mutex;
  };
  TableResolver(net::EventLoop& loop, Table& table) : table_(table), timer_(loop, *this) {}

  Id resolve(const std::string& host, Callback done) override {
    net::Resolution answer{net::ResolveStatus::kNotFound, "no such host", {}, {}};
    {
      const std::lock_guard lock(table_.mutex);
      table_.asked.push_back(host);
      if (const auto found = table_.answers.find(host); found != table_.answers.end()) {
        answer = found->second.front();
        if (found->second.size() > 1) found->second.erase(found->second.begin());
      }
    }
    waiting_.emplace_back(++last_, std::move(answer), std::move(done));
    timer_.arm(std::chrono::nanoseconds(0));
    return last_;
  }
  void cancel(Id id) override {
    std::erase_if(waiting_, [&](const auto& entry) { return std::get<Id>(entry) == id; });
  }

 private:
  void on_alarm() override {
    while (!waiting_.empty()) {
      const auto [id, answer, done] = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      done(answer);
    }
  }
  Table& table_;
  net::Timer timer_;
  Id last_ = 0;
  std::vector<std::tuple<Id, net::Resolution, Callback>> waiting_;
};

inline net::Resolution addresses(const std::vector<std::string>& texts) {
  net::Resolution out{net::ResolveStatus::kOk, {}, {}, {}};
  for (const std::string& text : texts) out.addresses.push_back(net::testing::ip(text));
  return out;
}

// What tests may dial: 127.0.0.x and nothing else.
inline bool is_test_address(const net::IpAddress& address) {
  return !address.is_v6() && address.v4_value() >> 8U == 0x7f0000U;
}

class World {
 public:
  World() {
    options.addresses = {&is_test_address, true};
    options.make_resolver = [this](net::EventLoop& loop) { return std::make_unique<TableResolver>(loop, table); };
  }
  ~World() { stop(); }

  void allow(const std::string& rule) { options.rules.push_back(*policy::parse_host_rule(rule, "test")); }
  // `host` resolves to `texts`; a second call for the same host is its second answer.
  void name(const std::string& host, const std::vector<std::string>& texts) {
    table.answers[host].push_back(addresses(texts));
  }
  void allow_upstream(const std::string& host, const Upstream& upstream) {
    allow(host + ":" + std::to_string(upstream.port()));
    name(host, {"127.0.0.1"});
  }
  void start() {
    base::Fd listener = listen_on("127.0.0.1");
    port = port_of(listener);
    auto made = Proxy::create(std::move(listener), options);
    ASSERT_TRUE(made) << made.error().message();
    proxy = std::move(*made);
    thread = std::thread([this] { EXPECT_TRUE(proxy->run()); });
  }
  void stop() {
    if (!thread.joinable()) return;
    proxy->stop();
    thread.join();
  }
  // Stops the proxy.
  std::vector<Denial> denials() {
    stop();
    return proxy->denials();
  }
  // The code of the only denial; stops the proxy.
  std::string denied() {
    const auto all = denials();
    return all.size() == 1 ? std::string(code_of(all.front().reason)) : std::to_string(all.size()) + " denials";
  }

  [[nodiscard]] Peer guest() const { return Peer::to(port); }
  // A guest with a tunnel that was granted.
  [[nodiscard]] Peer tunnel(const std::string& authority) const {
    Peer peer = guest();
    EXPECT_TRUE(peer.send("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"));
    EXPECT_EQ(peer.read_head(), "HTTP/1.1 200 Connection established\r\n\r\n");
    return peer;
  }

  Options options;
  TableResolver::Table table;
  uint16_t port = 0;
  std::unique_ptr<Proxy> proxy;
  std::thread thread;
};

inline size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

}  // namespace belljar::egress::testing
