#include "net/ares_resolver.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "net/hello_bytes.h"
#include "net/stream.h"
#include "net/test_address.h"

namespace belljar::net {
namespace {

using testing::number;
using testing::vector;

constexpr uint16_t kA = 1;
constexpr uint16_t kCname = 5;
constexpr uint16_t kAaaa = 28;

// A name server on loopback that answers from a table, counts what it is asked, and is silent about "silent.", and
// without a table about everything.
class NameServer {
 public:
  struct Answer {
    int rcode = 0;
    std::vector<std::string> addresses;
    std::string cname;
  };

  explicit NameServer(std::map<std::string, Answer> table) : table_(std::move(table)) {
    fd_ = base::Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd_) std::abort();
    sockaddr_storage address{};
    const socklen_t length = Endpoint{testing::ip("127.0.0.1"), 0}.to_sockaddr(address);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
    port_ = local_endpoint(fd_.get())->port;
    thread_ = std::thread([this] { serve(); });
  }
  ~NameServer() {
    ::shutdown(fd_.get(), SHUT_RD);  // wakes recvfrom, though the socket is not connected
    thread_.join();
  }

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int queries() const { return queries_; }

 private:
  void serve() {
    std::array<char, 1500> buffer{};
    for (;;) {
      sockaddr_storage from{};
      socklen_t length = sizeof from;
      auto* peer = reinterpret_cast<sockaddr*>(&from);
      const ssize_t n = ::recvfrom(fd_.get(), buffer.data(), buffer.size(), 0, peer, &length);
      if (n < 12) return;
      ++queries_;
      const std::string reply = answer({buffer.data(), static_cast<size_t>(n)});
      if (!reply.empty()) ::sendto(fd_.get(), reply.data(), reply.size(), 0, peer, length);
    }
  }

  static std::string encode(const std::string& name) {
    std::string out;
    size_t at = 0;
    while (at < name.size()) {
      const size_t dot = std::min(name.find('.', at), name.size());
      out += vector(name.substr(at, dot - at), 1);
      at = dot + 1;
    }
    return out + '\0';
  }

  static std::string record(const std::string& name, uint16_t type, const std::string& data) {
    return encode(name) + number(type, 2) + number(1, 2) + number(0, 4) + vector(data, 2);
  }

  std::string answer(std::string_view query) {
    std::string name;
    size_t at = 12;
    while (query[at] != 0) {
      const auto label = size_t{static_cast<unsigned char>(query[at])};
      name += std::string(query.substr(at + 1, label)) + ".";
      at += label + 1;
    }
    if (table_.empty()) return {};
    name.pop_back();
    const std::string_view question = query.substr(12, at + 5 - 12);
    const auto type = static_cast<uint16_t>(static_cast<unsigned char>(query[at + 2]));
    const auto found = table_.find(name);
    if (found == table_.end())
      return std::string(query.substr(0, 2)) + number(0x8183, 2) + number(1, 2) + number(0, 6) + std::string(question);
    if (name == "silent.example") return {};
    std::string records;
    size_t count = 0;
    std::string owner = name;
    if (!found->second.cname.empty()) {
      records += record(name, kCname, encode(found->second.cname));
      owner = found->second.cname;
      ++count;
    }
    for (const std::string& text : found->second.addresses) {
      const IpAddress ip = testing::ip(text);
      if (ip.is_v6() != (type == kAaaa)) continue;
      const std::string data =
          ip.is_v6() ? std::string(ip.v6_bytes().begin(), ip.v6_bytes().end()) : number(ip.v4_value(), 4);
      records += record(owner, ip.is_v6() ? kAaaa : kA, data);
      ++count;
    }
    return std::string(query.substr(0, 2)) + number(0x8180U | static_cast<unsigned>(found->second.rcode), 2) +
           number(1, 2) + number(count, 2) + number(0, 4) + std::string(question) + records;
  }

  std::map<std::string, Answer> table_;
  base::Fd fd_;
  uint16_t port_ = 0;
  std::atomic<int> queries_ = 0;
  std::thread thread_;
};

class AresResolverTest : public ::testing::Test {
 protected:
  AresResolverTest()
      : server({{"both.example", {0, {"192.0.2.1", "2001:db8::1", "192.0.2.2"}, {}}},
                {"only6.example", {0, {"2001:db8::6"}, {}}},
                {"alias.example", {0, {"192.0.2.9"}, "target.example"}},
                {"broken.example", {2, {}, {}}},
                {"empty.example", {0, {}, {}}},
                {"silent.example", {0, {}, {}}}}) {
    AresOptions options;
    options.servers = server.address();
    options.hosts_file = false;
    options.first_timeout_ms = 50;
    options.tries = 1;
    resolver = make_ares_resolver(*loop, options);
  }

  Resolution look_up(const std::string& host) {
    Resolution out;
    bool inside = true;
    resolver->resolve(host, [&](const Resolution& resolution) {
      EXPECT_FALSE(inside) << "called before resolve() returned";
      out = resolution;
      loop->stop();
    });
    inside = false;
    EXPECT_TRUE(loop->run());
    return out;
  }

  static std::vector<std::string> texts(const Resolution& resolution) {
    std::vector<std::string> out;
    out.reserve(resolution.addresses.size());
    for (const IpAddress& address : resolution.addresses) out.push_back(address.text());
    std::sort(out.begin(), out.end());
    return out;
  }

  NameServer server;
  std::unique_ptr<EventLoop> loop = *EventLoop::create();
  std::unique_ptr<Resolver> resolver;
};

TEST_F(AresResolverTest, GivesEveryAddressOfBothFamilies) {
  const Resolution resolution = look_up("both.example");
  EXPECT_EQ(resolution.status, ResolveStatus::kOk);
  EXPECT_EQ(texts(resolution), (std::vector<std::string>{"192.0.2.1", "192.0.2.2", "2001:db8::1"}));
}

TEST_F(AresResolverTest, OneFamilyIsEnough) {
  EXPECT_EQ(texts(look_up("only6.example")), std::vector<std::string>{"2001:db8::6"});
}

TEST_F(AresResolverTest, FollowsAnAlias) {
  const Resolution resolution = look_up("alias.example");
  EXPECT_EQ(texts(resolution), std::vector<std::string>{"192.0.2.9"});
  ASSERT_FALSE(resolution.aliases.empty());
  for (const std::string& alias : resolution.aliases) EXPECT_EQ(alias, "target.example");
}

TEST_F(AresResolverTest, TellsTheFailuresApart) {
  EXPECT_EQ(look_up("missing.example").status, ResolveStatus::kNotFound);
}

TEST_F(AresResolverTest, ANameWithoutAddressesIsNotFound) {
  EXPECT_EQ(look_up("empty.example").status, ResolveStatus::kNotFound);
}

TEST_F(AresResolverTest, AServerFailureIsNotAMissingName) {
  EXPECT_EQ(look_up("broken.example").status, ResolveStatus::kFailed);
}

TEST_F(AresResolverTest, ASilentServerIsATimeout) {
  EXPECT_EQ(look_up("silent.example").status, ResolveStatus::kTimeout);
}

TEST_F(AresResolverTest, AsksForTheNameAsItStands) {
  ::setenv("LOCALDOMAIN", "example", 1);  // a search list by environment, as resolv.conf(5) allows
  EXPECT_EQ(look_up("both").status, ResolveStatus::kNotFound);
  ::unsetenv("LOCALDOMAIN");
  EXPECT_EQ(server.queries(), 2);  // A and AAAA of `both`, nothing of `both.example`
}

TEST_F(AresResolverTest, ACancelledLookupTellsNobody) {
  const auto id = resolver->resolve("both.example", [](const Resolution&) { ADD_FAILURE(); });
  resolver->cancel(id);
  EXPECT_EQ(look_up("only6.example").status, ResolveStatus::kOk);
}

// A laptop that has changed its network: the old server will never answer.
TEST_F(AresResolverTest, WhatIsUnderWayIsPutToTheNewServers) {
  AresOptions options;
  const NameServer deaf({});
  options.servers = deaf.address();
  options.hosts_file = false;
  options.first_timeout_ms = 3'600'000;
  resolver = make_ares_resolver(*loop, options);
  int answers = 0;
  std::vector<std::string> found;
  for (const char* host : {"both.example", "only6.example"}) {
    resolver->resolve(host, [&](const Resolution& resolution) {
      EXPECT_EQ(resolution.status, ResolveStatus::kOk) << resolution.detail;
      for (const std::string& text : texts(resolution)) found.push_back(text);
      if (++answers == 2) loop->stop();
    });
  }
  const auto cancelled = resolver->resolve("alias.example", [](const Resolution&) { ADD_FAILURE(); });
  resolver->cancel(cancelled);
  resolver->change_servers(server.address());
  EXPECT_EQ(answers, 0) << "called before change_servers() returned";
  EXPECT_TRUE(loop->run());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::string>{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::6"}));
  EXPECT_EQ(server.queries(), 4);
}

TEST_F(AresResolverTest, AListThatIsNoneChangesNothing) {
  resolver->resolve("both.example", [&](const Resolution& resolution) {
    EXPECT_EQ(resolution.status, ResolveStatus::kOk);
    loop->stop();
  });
  resolver->change_servers("no address");
  EXPECT_TRUE(loop->run());
  EXPECT_EQ(look_up("only6.example").status, ResolveStatus::kOk);
}

TEST_F(AresResolverTest, MayBeDestroyedWithLookupsUnderWay) {
  resolver->resolve("silent.example", [](const Resolution&) { ADD_FAILURE(); });
  resolver->resolve("both.example", [](const Resolution&) { ADD_FAILURE(); });
  resolver.reset();
}

TEST(AresResolverHosts, TheHostsFileIsAskedFirst) {
  auto loop = *EventLoop::create();
  AresOptions options;
  options.servers = "127.0.0.1:9";  // nobody
  const auto resolver = make_ares_resolver(*loop, options);
  Resolution found;
  bool inside = true;
  resolver->resolve("localhost", [&](const Resolution& resolution) {
    EXPECT_FALSE(inside);
    found = resolution;
    loop->stop();
  });
  inside = false;
  EXPECT_TRUE(loop->run());
  ASSERT_EQ(found.status, ResolveStatus::kOk);
  for (const IpAddress& address : found.addresses) EXPECT_EQ(classify(address), AddressClass::kLoopback);
}

}  // namespace
}  // namespace belljar::net
