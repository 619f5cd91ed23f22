// The heaviest that a guest can do: bodies larger than any memory, heads without end, thousands of idle tunnels. The
// proxy is a process of its own, as in a session, so that what is looked at is its memory; and somebody else is served
// meanwhile. shared/cases/egress.md, E13.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "egress/test_proxy.h"
#include "egress/test_world.h"
#include "net/hello_bytes.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BELLJAR_SANITIZED
#endif
#endif

namespace belljar::egress {
namespace {

using net::testing::hello_for;
using testing::Peer;
using testing::ProxyProcess;
using testing::Upstream;
using testing::World;

// So much of a TLS server's answer that no second hello comes: an alert.
constexpr std::string_view kAnswer("\x15\x03\x03\x00\x02\x02\x50", 7);

#ifdef BELLJAR_SANITIZED
// Half the way, and still more than 32 bits count: the suite is run four times in an hour, and the kernel, which moves
// the bytes, is the same one. The sanitizer keeps what was freed, up to a bound of its own.
constexpr uint64_t kBody = 5'000'000'000;
constexpr size_t kMostMemory = size_t{96} << 20U;
constexpr size_t kMostIdle = size_t{64} << 10U;
#else
constexpr uint64_t kBody = 10'000'000'000;
constexpr size_t kMostMemory = size_t{8} << 20U;
constexpr size_t kMostIdle = size_t{4} << 10U;
#endif
// Of plain HTTP, whose bodies are copied: longer than all buffers together. That their counters are wide enough is
// shown by BodyCopier.PassesBodiesBeyondFourGibibytes.
constexpr uint64_t kPlainBody = 1'000'000'000;

// A file that is one hole: its bytes take neither disk nor memory.
class Hole {
 public:
  explicit Hole(uint64_t size) : size_(size), fd_(::memfd_create("hole", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(fd_.get(), static_cast<off_t>(size)), 0);
  }
  [[nodiscard]] uint64_t size() const { return size_; }
  // True when the peer has taken all of it.
  [[nodiscard]] bool pour_into(const Peer& peer) const {
    off_t offset = 0;
    while (static_cast<uint64_t>(offset) < size_) {
      if (::sendfile(peer.fd(), fd_.get(), &offset, size_t{16} << 20U) <= 0) return false;
    }
    return true;
  }

 private:
  uint64_t size_;
  base::Fd fd_;
};

// Takes up to `size` bytes off without looking at them (MSG_TRUNC, tcp(7)); how many there were before the end.
uint64_t discard(const Peer& peer, uint64_t size = UINT64_MAX) {
  uint64_t got = 0;
  while (got < size) {
    const ssize_t n = ::recv(peer.fd(), nullptr, std::min<uint64_t>(size - got, 4U << 20U), MSG_TRUNC);
    if (n <= 0) break;
    got += static_cast<uint64_t>(n);
  }
  return got;
}

// Of a session that allows one host, on every port.
struct OneHost : World {
  explicit OneHost(const base::Fd& listener) {
    port = testing::port_of(listener);
    options.max_connections = 8192;
    allow("ok.example:*");
    name("ok.example", {"127.0.0.1"});
    ::signal(SIGPIPE, SIG_IGN);  // sendfile(2) cannot be told
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  }
};

class BurdenTest : public ::testing::Test {
 protected:
  BurdenTest() { proxy.begin(); }

  // One small exchange of somebody else's: served within the thirty seconds that Peer waits.
  void expect_served(const Upstream& upstream) const {
    const std::string target = upstream.at("ok.example");
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send("GET http://" + target + "/small HTTP/1.1\r\nHost: " + target + "\r\n\r\n"));
    const std::string head = peer.read_head();
    ASSERT_TRUE(head.starts_with("HTTP/1.1 200 ")) << head << "errno " << peer.error();
    ASSERT_EQ(peer.read(2), "ok");
  }
  // Serves others while `work` lasts. How much more memory than before the proxy has had.
  size_t most_memory_during(const Upstream& upstream, const std::function<void()>& work) {
    expect_served(upstream);
    const size_t before = proxy.memory();
    std::atomic<bool> over = false;
    std::thread worker([&] {
      work();
      over = true;
    });
    size_t most = before;
    size_t served = 0;
    while (!over && !HasFatalFailure()) {
      expect_served(upstream);
      most = std::max(most, proxy.memory());
      ++served;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    worker.join();
    EXPECT_GT(served, 0U);
    return most - before;
  }
  static void answer_small(Peer& peer) { peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); }

  base::Fd listener = testing::listen_on("127.0.0.1");
  OneHost world{listener};
  ProxyProcess proxy{world, listener};
};

TEST_F(BurdenTest, TenGigabytesEachWayThroughATunnel) {
  const Hole hole(kBody);
  const std::string hello = hello_for("ok.example");
  Upstream upstream([&](Peer& peer) {
    if (peer.read(1) != "\x16") {
      peer.read_head();
      return answer_small(peer);
    }
    peer.read(hello.size() - 1);
    peer.send(kAnswer);
    std::thread sender([&] {
      EXPECT_TRUE(hole.pour_into(peer));
      peer.end_writing();
    });
    EXPECT_EQ(discard(peer), kBody);
    sender.join();
  });
  const size_t memory = most_memory_during(upstream, [&] {
    Peer peer = world.tunnel(upstream.at("ok.example"));
    ASSERT_TRUE(peer.send(hello));
    ASSERT_EQ(peer.read(kAnswer.size()), kAnswer);
    std::thread sender([&] {
      EXPECT_TRUE(hole.pour_into(peer));
      peer.end_writing();
    });
    EXPECT_EQ(discard(peer), kBody);
    sender.join();
  });
  EXPECT_LT(memory, kMostMemory);
  RecordProperty("memory", static_cast<int>(memory));
}

TEST_F(BurdenTest, AGigabyteEachWayOfPlainHttp) {
  const Hole hole(kPlainBody);
  const std::string length = "Content-Length: " + std::to_string(kPlainBody) + "\r\n\r\n";
  Upstream upstream([&](Peer& peer) {
    if (peer.read_head().starts_with("GET ")) return answer_small(peer);
    // Both bodies at once: an early answer.
    std::thread sender([&] {
      peer.send("HTTP/1.1 200 OK\r\n" + length);
      EXPECT_TRUE(hole.pour_into(peer));
    });
    EXPECT_EQ(discard(peer, kPlainBody), kPlainBody);
    sender.join();
  });
  const size_t memory = most_memory_during(upstream, [&] {
    const std::string target = upstream.at("ok.example");
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send("POST http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\n" + length));
    std::thread sender([&] { EXPECT_TRUE(hole.pour_into(peer)); });
    EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 "));
    EXPECT_EQ(discard(peer, kPlainBody), kPlainBody);
    sender.join();
  });
  EXPECT_LT(memory, kMostMemory);
  RecordProperty("memory", static_cast<int>(memory));
}

TEST_F(BurdenTest, AMegabyteOfHeadersFromSixtyFourAtOnce) {
  Upstream upstream([](Peer& peer) {
    EXPECT_TRUE(peer.read_head().starts_with("GET /small "));
    answer_small(peer);
  });
  const size_t memory = most_memory_during(upstream, [&] {
    const std::string target = upstream.at("ok.example");
    const std::string head = "GET http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\nX: ";
    const std::string megabyte(size_t{1} << 20U, 'x');
    std::vector<std::thread> guests;
    for (int i = 0; i < 64; ++i) {
      guests.emplace_back([&] {
        Peer peer = world.guest();
        // Refused at a sixteenth of it; whether the answer survives the close of a connection with bytes unread is
        // the kernel's matter.
        peer.send(head + megabyte);
        peer.read_all();
        EXPECT_NE(peer.error(), EAGAIN) << "it was left open";
      });
    }
    for (std::thread& guest : guests) guest.join();
  });
  EXPECT_LT(memory, kMostMemory);
}

TEST_F(BurdenTest, ThousandsOfIdleTunnels) {
  constexpr size_t kTunnels = 3000;
  const base::Fd service = testing::listen_on("127.0.0.1", 0, 4096);
  std::thread holder([&] {
    std::vector<Peer> held;
    for (;;) {
      base::Fd fd(::accept4(service.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) return;
      held.emplace_back(std::move(fd));
      held.back().send(kAnswer);
    }
  });
  Upstream upstream([](Peer& peer) {
    peer.read_head();
    answer_small(peer);
  });
  expect_served(upstream);
  const size_t before = proxy.memory();
  const std::string target = "ok.example:" + std::to_string(testing::port_of(service));
  std::vector<Peer> tunnels;
  while (tunnels.size() < kTunnels && !HasFailure()) {
    tunnels.push_back(world.tunnel(target));
    EXPECT_TRUE(tunnels.back().send(hello_for("ok.example")));
    EXPECT_EQ(tunnels.back().read(kAnswer.size()), kAnswer);
  }
  EXPECT_LT((proxy.memory() - before) / kTunnels, kMostIdle);
  EXPECT_GE(proxy.descriptors("socket:"), 2 * kTunnels) << "they are there";
  EXPECT_LE(proxy.descriptors("pipe:"), 2U * 32) << "idle tunnels hold no pipe; the pool has a few";
  expect_served(upstream);
  tunnels.clear();
  ::shutdown(service.get(), SHUT_RD);
  holder.join();
}

}  // namespace
}  // namespace belljar::egress
