// What real name servers answer, and what the way out makes of it: shared/cases/egress.md, E9 and E10.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCurl = "curl -sS --max-time 50 ";

class ResolverTest : public ::testing::Test {
 protected:
  ResolverTest() : hosts_({}) {}

  void SetUp() override {
    std::filesystem::create_directories(work_);
    std::filesystem::create_directories(home_ + "/bin");
    // In the user namespace that an ordinary user's test plays the host in, belljar trusts none of root's files.
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name, home_ + "/bin/" + name);
    }
    // The private address is within reach, else its absence would show nothing.
    must_run({.argv = {"ip", "route", "add", "10.9.0.0/16", "via", TestHosts::kInternet}});
    internet_ = std::make_unique<Process>(hosts_.start(
        {.argv = {"sh", "-ec",
                  "ip address add 45.45.45.3/24 dev wire; ip address add 10.9.9.9/32 dev lo; exec python3 \"$@\"", "sh",
                  std::string(BELLJAR_TESTS_DIR) + "/resolver/internet.py", temp_ / "log"},
         .err = Stream::from(2)}));
    ASSERT_EQ(internet_->read_line(), "ready");
  }

  [[nodiscard]] Command sealed_guest(const std::string& script) const {
    Command command = sealed_script(work_, script,
                                    {"--report", temp_ / "report", "--allow-host", "*.test", "--deny-host",
                                     "denied.test", "--deny-host", "*.denied.test"});
    command.argv[0] = home_ + "/bin/belljar";
    command.env = {{"HOME", home_}};
    return hosts_.as_caller(std::move(command));
  }
  Output guest(const std::string& script) { return run(sealed_guest(script), std::chrono::seconds(120)); }

  // How often the log has `line`.
  [[nodiscard]] size_t logged(const std::string& line) const {
    const std::string text = "\n" + read_text(temp_ / "log");
    size_t out = 0;
    for (size_t at = text.find("\n" + line + "\n"); at != std::string::npos;
         at = text.find("\n" + line + "\n", at + 1)) {
      ++out;
    }
    return out;
  }
  [[nodiscard]] bool asked_for(const std::string& name) const {
    return read_text(temp_ / "log").contains("ask " + name + " ");
  }
  // The reasons of the denials of `host` in the settlement.
  [[nodiscard]] std::vector<std::string> reasons(const std::string& host) const {
    std::vector<std::string> out;
    const auto report = nlohmann::json::parse(read_text(temp_ / "report"), nullptr, false);
    for (const auto& denial : report["denials"]) {
      if (denial["host"] == host) out.push_back(denial["reason"]);
    }
    return out;
  }

  TestHosts hosts_;
  TempDir temp_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/project";
  std::unique_ptr<Process> internet_;
};

// What the refusals lean on.
TEST_F(ResolverTest, ThePrivateAddressAnswersWithoutTheSeal) {
  const Output output = run(hosts_.as_caller({.argv = {"curl", "-sS", "--noproxy", "*", "http://10.9.9.9/"}}));
  EXPECT_EQ(output.out, "reached 10.9.9.9\n") << output.err;
}

TEST_F(ResolverTest, ADeniedNameIsNeverLookedUp) {
  const std::string curl = kCurl;
  // By the proxy, by SOCKS, by the guest's own resolver, in another spelling, and one that no rule speaks of.
  const Output output =
      guest(curl + "http://denied.test/; " + curl + "http://x.DENIED.test./; " + curl +
            "--proxy socks5h://${HTTP_PROXY#http://} http://denied.test/; getent hosts denied.test; " + curl +
            "--noproxy '*' http://denied.test/; " + curl + "http://no.rule.example/; " + curl + "http://plain.test/");
  EXPECT_THAT(output.out, HasSubstr("host_denied"));
  EXPECT_THAT(output.out, HasSubstr("reached 45.45.45.2")) << "this name server is the one that is asked" << output.err;
  EXPECT_TRUE(asked_for("plain.test"));
  const std::string log = read_text(temp_ / "log");
  EXPECT_THAT(log, Not(HasSubstr("denied.test")));
  EXPECT_THAT(log, Not(HasSubstr("no.rule")));
}

TEST_F(ResolverTest, ANameThatTurnsPrivateIsNotFollowed) {
  const Output output = guest(std::string(kCurl) + "http://rebind.test/; " + kCurl + "http://rebind.test/");
  EXPECT_THAT(output.out, ::testing::StartsWith("reached 45.45.45.2\n")) << output.err;
  EXPECT_THAT(output.out, HasSubstr("address_not_public"));
  EXPECT_THAT(output.out, HasSubstr("10.9.9.9"));
  EXPECT_EQ(logged("web 10.9.9.9 rebind.test"), 0U);
  EXPECT_EQ(logged("web 45.45.45.2 rebind.test"), 1U);
}

TEST_F(ResolverTest, OfAMixedAnswerThePublicAddressIsDialled) {
  const Output output = guest(std::string(kCurl) + "http://mixed.test/; " + kCurl + "http://many.test/; " + kCurl +
                              "http://six.test/; " + kCurl + "http://private.test/");
  EXPECT_THAT(output.out, ::testing::StartsWith("reached 2606:4545::2\nreached 45.45.45.2\nreached 2606:4545::2\n"))
      << output.err;
  EXPECT_EQ(reasons("private.test"), std::vector<std::string>{"address_not_public"});
  EXPECT_THAT(read_text(temp_ / "log"), Not(HasSubstr("web 10.")));
  EXPECT_EQ(logged("ask many.test A"), 2U) << "the second time by TCP, since 300 addresses fit into no datagram";
}

TEST_F(ResolverTest, AnAliasOfADeniedNameIsDenied) {
  const Output output = guest(std::string(kCurl) + "http://alias.test/");
  EXPECT_THAT(output.out, HasSubstr("host_denied"));
  EXPECT_EQ(reasons("alias.test"), std::vector<std::string>{"host_denied"});
  EXPECT_THAT(read_text(temp_ / "log"), Not(HasSubstr("web ")));
}

TEST_F(ResolverTest, AnAnswerWithoutTimeToLiveIsAskedForAnew) {
  const Output output =
      guest(std::string("for i in 1 2 3; do ") + kCurl + "http://zero.test/; " + kCurl + "http://plain.test/; done");
  EXPECT_EQ(output.out.size(), 6 * std::string("reached 45.45.45.2\n").size()) << output.out << output.err;
  EXPECT_EQ(logged("ask zero.test A"), 3U);
  EXPECT_EQ(logged("ask plain.test A"), 1U);
}

TEST_F(ResolverTest, EachFailureHasItsReason) {
  const std::string body = std::string(kCurl) + "-w ' %{http_code}\\n' ";
  const Output output =
      guest(body + "http://broken.test/ & " + body + "http://gone.test/ & " + body + "http://silent.test/ & wait");
  for (const char* host : {"broken.test", "gone.test", "silent.test"}) {
    EXPECT_EQ(reasons(host), std::vector<std::string>{"resolve_failed"}) << host << output.out << output.err;
  }
  for (const char* detail : {"every name server failed", "no such host", "no name server answered in time"}) {
    EXPECT_THAT(output.out, HasSubstr(detail));
  }
}

// The launcher can open no file any more: somebody else tells it.
TEST_F(ResolverTest, AChangedResolvConfIsFollowed) {
  Process process(sealed_guest(std::string(kCurl) + "http://plain.test/ >/dev/null; echo begun; until " + kCurl +
                               "-f http://moved.test/ 2>/dev/null; do sleep 0.2; done"));
  ASSERT_EQ(process.read_line(), "begun");
  ASSERT_TRUE(eventually([&] { return asked_for("moved.test"); })) << "the first name server, which knows it not";
  hosts_.set_name_servers("nameserver 45.45.45.3\n");
  EXPECT_EQ(process.read_line(), "reached 45.45.45.2");
  EXPECT_EQ(process.wait().code, 0);
}

}  // namespace
}  // namespace belljar::testing
