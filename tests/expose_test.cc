// `--expose`: from this host's loopback to a server in the guest, and nothing else.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

sockaddr_storage address_of(const char* text, uint16_t port) {
  sockaddr_storage out{};
  auto* four = reinterpret_cast<sockaddr_in*>(&out);
  auto* six = reinterpret_cast<sockaddr_in6*>(&out);
  if (::inet_pton(AF_INET, text, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
  } else if (::inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
  }
  return out;
}

base::Fd bound(const char* text, uint16_t port) {
  const sockaddr_storage address = address_of(text, port);
  base::Fd out(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) out.reset();
  return out;
}

// One that nobody has now, on IPv4 and IPv6.
uint16_t free_port() {
  for (;;) {
    const base::Fd four = bound("127.0.0.1", 0);
    sockaddr_in found{};
    socklen_t length = sizeof found;
    if (!four || ::getsockname(four.get(), reinterpret_cast<sockaddr*>(&found), &length) != 0) std::abort();
    const uint16_t port = ntohs(found.sin_port);
    if (bound("::1", port)) return port;
  }
}

base::Fd connected(const char* text, uint16_t port) {
  const sockaddr_storage address = address_of(text, port);
  base::Fd out(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(out.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) out.reset();
  return out;
}

std::string read_all(int socket) {
  std::string out;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (n <= 0) return n < 0 ? out + "<broken>" : out;
    out.append(buffer.data(), static_cast<size_t>(n));
  }
}

std::string said_by(const char* host, uint16_t port, const std::string& text) {
  const base::Fd socket = connected(host, port);
  if (!socket) return "<refused>";
  ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  ::shutdown(socket.get(), SHUT_WR);
  return read_all(socket.get());
}

// Perl: answers each connection with what it was sent, after `mark` and a colon, and says when it listens.
std::string echo_server(const std::string& host, int port, const std::string& mark = "guest") {
  return "$| = 1; $SIG{CHLD} = 'IGNORE';"
         "my $s = IO::Socket::IP->new(LocalHost => '" +
         host + "', LocalPort => " + std::to_string(port) +
         ", Listen => 512, ReuseAddr => 1) or die $@;"
         "print qq(listening\\n);"
         "while (my $p = $s->accept) {"
         "  next if fork;"
         "  my $t = ''; while (sysread($p, my $part, 65536)) { $t .= $part }"
         "  print $p '" +
         mark + ":', $t; close $p; exit 0 }";
}

class ExposeTest : public ::testing::Test {
 protected:
  Command perl(const std::string& script, const std::vector<std::string>& options) {
    return sealed(work_.path(), {"perl", "-MIO::Socket::IP", "-e", script}, options);
  }
  static std::string text(uint16_t port) { return std::to_string(port); }

  TempDir work_;
  uint16_t port_ = free_port();
};

TEST_F(ExposeTest, LeadsToTheServerInTheGuest) {
  Process guest(perl(echo_server("127.0.0.1", 8080), {"--expose", text(port_) + ":8080"}));
  ASSERT_EQ(guest.read_line(), "listening");
  EXPECT_EQ(said_by("127.0.0.1", port_, "hello"), "guest:hello");
  EXPECT_EQ(said_by("::1", port_, "again"), "guest:again");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(said_by("127.0.0.1", port_, large), "guest:" + large);
}

TEST_F(ExposeTest, LeadsToAServerThatListensOnIPv6Only) {
  Process guest(perl(echo_server("::1", port_), {"--expose", text(port_)}));
  ASSERT_EQ(guest.read_line(), "listening");
  EXPECT_EQ(said_by("127.0.0.1", port_, "hello"), "guest:hello");
}

TEST_F(ExposeTest, LeadsToEachOfSeveral) {
  const uint16_t other = free_port();
  const std::string script =
      "if (fork) { " + echo_server("127.0.0.1", 7001, "one") + " } " + echo_server("127.0.0.1", 7002, "two");
  Process guest(perl(script, {"--expose", text(port_) + ":7001", "--expose", text(other) + ":7002"}));
  ASSERT_EQ(guest.read_line(), "listening");
  ASSERT_EQ(guest.read_line(), "listening");
  EXPECT_EQ(said_by("127.0.0.1", port_, "a"), "one:a");
  EXPECT_EQ(said_by("127.0.0.1", other, "b"), "two:b");
}

TEST_F(ExposeTest, IsOnThisHostsLoopbackOnly) {
  Process guest(perl(echo_server("0.0.0.0", port_), {"--expose", text(port_)}));
  ASSERT_EQ(guest.read_line(), "listening");
  ASSERT_EQ(said_by("127.0.0.1", port_, ""), "guest:");
  EXPECT_EQ(said_by("127.0.0.2", port_, ""), "<refused>");
  ifaddrs* all = nullptr;
  ASSERT_EQ(::getifaddrs(&all), 0);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> name{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, name.data(), name.size());
    if (std::string_view(name.data()).starts_with("127.")) continue;
    EXPECT_EQ(said_by(name.data(), port_, ""), "<refused>") << name.data();
  }
  ::freeifaddrs(all);
}

TEST_F(ExposeTest, ReachesNoOtherPortOfTheGuest) {
  const uint16_t other = free_port();
  Process guest(perl(echo_server("127.0.0.1", other), {"--expose", text(port_)}));
  ASSERT_EQ(guest.read_line(), "listening");
  // Nobody listens on the port that is exposed: the connection is taken and closed, before or after our end of it.
  EXPECT_THAT(said_by("127.0.0.1", port_, ""), ::testing::AnyOf("<broken>", ""));
  EXPECT_EQ(said_by("127.0.0.1", other, ""), "<refused>");
}

// The port that is exposed is the host's. From the inside there is the guest's own, and no way out.
TEST_F(ExposeTest, IsNoWayOutForTheGuest) {
  const base::Fd secret = bound("127.0.0.1", 0);
  ASSERT_EQ(::listen(secret.get(), 1), 0);
  sockaddr_in found{};
  socklen_t length = sizeof found;
  ASSERT_EQ(::getsockname(secret.get(), reinterpret_cast<sockaddr*>(&found), &length), 0);
  const std::string script = "for my $port (" + text(ntohs(found.sin_port)) + ", " + text(port_) +
                             ") { for my $host ('127.0.0.1', '::1') {"
                             "  my $s = IO::Socket::IP->new(PeerHost => $host, PeerPort => $port);"
                             "  print $s ? 'connected' : $!, qq(\n) } }";
  const Output output = run(perl(script, {"--expose", text(port_)}));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "Connection refused\nConnection refused\nConnection refused\nConnection refused\n");
}

TEST_F(ExposeTest, ServesManyConnections) {
  Process guest(perl(echo_server("127.0.0.1", 8080), {"--expose", text(port_) + ":8080"}));
  ASSERT_EQ(guest.read_line(), "listening");
  std::vector<base::Fd> sockets;
  for (int i = 0; i < 200; ++i) {
    sockets.push_back(connected("127.0.0.1", port_));
    ASSERT_TRUE(sockets.back()) << i;
  }
  for (size_t i = 0; i < sockets.size(); ++i) {
    const std::string each = std::to_string(i);
    ASSERT_EQ(::send(sockets[i].get(), each.data(), each.size(), MSG_NOSIGNAL), ssize_t(each.size()));
    ::shutdown(sockets[i].get(), SHUT_WR);
  }
  for (size_t i = 0; i < sockets.size(); ++i) EXPECT_EQ(read_all(sockets[i].get()), "guest:" + std::to_string(i));
  sockets.clear();
  for (int i = 0; i < 300; ++i) ASSERT_EQ(said_by("127.0.0.1", port_, "x"), "guest:x") << i;
}

TEST_F(ExposeTest, ClosesWithTheGuest) {
  Process guest(perl(echo_server("127.0.0.1", port_), {"--expose", text(port_)}));
  ASSERT_EQ(guest.read_line(), "listening");
  const base::Fd open = connected("127.0.0.1", port_);
  ASSERT_TRUE(open);
  ASSERT_EQ(said_by("127.0.0.1", port_, ""), "guest:");
  guest.signal(SIGTERM);
  EXPECT_EQ(guest.wait().code, 128 + SIGTERM);
  EXPECT_THAT(read_all(open.get()), Not(HasSubstr("guest:x")));
  EXPECT_EQ(said_by("127.0.0.1", port_, ""), "<refused>");
}

TEST_F(ExposeTest, NamesAPortThatIsTaken) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    const base::Fd taken = bound(host, 0);
    sockaddr_storage found{};
    socklen_t length = sizeof found;
    ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&found), &length), 0);
    ASSERT_EQ(::listen(taken.get(), 1), 0);
    const std::string port = text(ntohs(reinterpret_cast<const sockaddr_in*>(&found)->sin_port));
    const Output output = run(sealed_script(work_.path(), "echo started", {"--expose", port}));
    EXPECT_EQ(output.code, 125);
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, HasSubstr("expose '" + port + "': Address already in use"));
  }
}

TEST_F(ExposeTest, RefusesWhatIsNoPort) {
  for (const char* port : {"0", "65536", "x", "", "3000:", ":3000", "3000:0", "1:2:3", "-1"}) {
    const Output output = run(sealed_script(work_.path(), "echo started", {"--expose", port}));
    EXPECT_EQ(output.code, 125) << port;
    EXPECT_THAT(output.err, HasSubstr("--expose")) << port;
  }
  EXPECT_THAT(run(sealed_script(work_.path(), "true", {"--expose", "3000:61080"})).err, HasSubstr("way out"));
  if (::geteuid() == 0) return;
  const Output output = run(sealed_script(work_.path(), "echo started", {"--expose", "80"}));
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("expose '80': Permission denied"));
  EXPECT_THAT(output.err, HasSubstr("--expose 8080:80"));
}

TEST_F(ExposeTest, IsShownInPlanBadgeAndSettlement) {
  const std::string option = text(port_) + ":3000";
  Command plan{.argv = {belljar_program(), "plan", "--json", "--expose", option, "--", "true"}, .cwd = work_.path()};
  const auto planned = nlohmann::json::parse(run(plan).out);
  EXPECT_EQ(planned.at("expose"), nlohmann::json::array({{{"host", port_}, {"guest", 3000}}}));
  plan.argv.erase(plan.argv.begin() + 2);
  EXPECT_THAT(run(plan).out, HasSubstr("127.0.0.1:" + text(port_)));
  write_file(work_ / "policy.toml", "[isolation]\nexpose = [" + text(port_) + ", \"" + text(free_port()) + ":81\"]\n");
  const TempDir elsewhere;
  const Output output =
      run(sealed_script(work_.path(), "true", {"--policy", work_ / "policy.toml", "--report", elsewhere / "report"}));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr("127.0.0.1:" + text(port_)));
  const auto settled = nlohmann::json::parse(read_text(elsewhere / "report"));
  EXPECT_THAT(settled.dump(), HasSubstr("127.0.0.1:" + text(port_)));
}

TEST_F(ExposeTest, IsNotNeededWithTheHostsNetwork) {
  const Output output = run(sealed_script(work_.path(), "echo started", {"--net", "allow", "--expose", text(port_)}));
  EXPECT_EQ(output.code, 0);
  EXPECT_EQ(output.out, "started\n");
  const Command plan{.argv = {belljar_program(), "plan", "--net", "allow", "--expose", text(port_), "--", "true"},
                     .cwd = work_.path()};
  EXPECT_THAT(run(plan).out, HasSubstr("expose has no effect with network = allow"));
}

}  // namespace
}  // namespace belljar::testing
