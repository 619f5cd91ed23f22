// What of a target is the person's own ssh configuration's to say: jump hosts, shared connections, whose key is
// believed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/belljar.h"
#include "support/seat.h"
#include "support/ssh_target.h"

namespace belljar::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SshConfigTest : public SshTest {
 protected:
  explicit SshConfigTest(const std::string& sshd = {}) : SshTest(sshd) {}

  // ssh_config(5) takes the first word on each thing.
  void configure_first(const std::string& text) const {
    write_file(near_ / "ssh_config", text + read_text(near_ / "ssh_config"));
  }
  [[nodiscard]] Output ssh(std::vector<std::string> words) const {
    words.insert(words.begin(), near_ / "bin/ssh");
    return run(hosts_.as_caller({.argv = std::move(words)}));
  }
  [[nodiscard]] size_t connections(const std::string& from) const {
    const std::string word = " from " + from + " ";
    size_t count = 0;
    std::istringstream log(sshd_->log());
    for (std::string line; std::getline(log, line);) {
      if (line.contains("Accepted publickey") && line.contains(word)) ++count;
    }
    return count;
  }
  // What a launch has here: belljar and what it has started.
  [[nodiscard]] std::vector<std::string> left_here() const {
    std::vector<std::string> out = processes_with(near_ / "programs/belljar");
    for (std::string& line : processes_with(near_ / "ssh_config")) out.push_back(std::move(line));
    return out;
  }
};

// ---- jump hosts ----

// `over` listens on the loopback of the jump host only, at another odd port.
class SshJumpTest : public SshConfigTest {
 protected:
  SshJumpTest() : SshConfigTest("ListenAddress 127.0.0.1:2022\n") {
    configure_first(
        "Host hop\n  HostName 45.45.45.2\n  Port 2222\nHost over\n  HostName 127.0.0.1\n  Port 2022\n"
        "  ProxyJump hop\nHost hop over\n  User " +
        account_.name + "\n  IdentityFile " + sshd_->key() + "\n  UserKnownHostsFile " + (near_ / "known_hosts") +
        "\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n");
    write_file(near_ / "known_hosts",
               "[45.45.45.2]:2222 " + sshd_->host_key() + "[127.0.0.1]:2022 " + sshd_->host_key());
  }
  [[nodiscard]] Command over(const std::string& script, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"run", "--target", "ssh:over"});
    options.insert(options.end(), {"--", "sh", "-c", script});
    return belljar(std::move(options));
  }
  [[nodiscard]] Command sleeper_over(std::vector<std::string> options = {}) const {
    return over("echo started; exec sleep 600 # " + kMarker, std::move(options));
  }
};

TEST_F(SshJumpTest, ALaunchGoesByOne) {
  Command command = over("cat; echo error >&2; pwd; exit 7");
  command.in = Stream::pipe("some input\n");
  const Output output = run(command);
  EXPECT_EQ(output.code, 7) << output.err;
  EXPECT_EQ(output.out, "some input\n" + work_ + "\n");
  EXPECT_EQ(output.err, "error\n");
  // Each of them by the jump host, from where alone the target is to be had.
  EXPECT_GE(connections("127.0.0.1"), 1U);
  EXPECT_EQ(connections("127.0.0.1"), connections(TestHosts::kHost));
  for (const int number : {SIGTERM, SIGINT}) {
    Process running(sleeper_over());
    ASSERT_EQ(running.read_line(), "started");
    running.signal(number);
    EXPECT_EQ(running.wait().code, 128 + number);
    EXPECT_THAT(left(), IsEmpty());
    EXPECT_TRUE(eventually([&] { return left_here().empty(); }));
  }
}

TEST_F(SshJumpTest, TheGuestEndsWithTheLinkAndNothingIsLeftOnEitherSide) {
  {
    Process running(sleeper_over());
    ASSERT_EQ(running.read_line(), "started");
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().code, 137);
    EXPECT_TRUE(eventually([&] { return left().empty() && left_here().empty(); }, std::chrono::seconds(20)));
  }
  {
    Process running(sleeper_over());
    ASSERT_EQ(running.read_line(), "started");
    sshd_->kill_sessions();
    const Output output = running.wait();
    EXPECT_EQ(output.code, 125);
    EXPECT_THAT(output.err, HasSubstr("the link has ended before the command had"));
    EXPECT_TRUE(eventually([&] { return left().empty() && left_here().empty(); }, std::chrono::seconds(20)));
  }
  Process running(sleeper_over({"--link-timeout", "3s"}));
  ASSERT_EQ(running.read_line(), "started");
  must_run({.argv = {"ip", "link", "set", "wire", "down"}});
  const Output output = running.wait();
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("the link was silent for 3 s: lost"));
  // The jump too, which on a dead connection hears of nothing.
  EXPECT_TRUE(eventually([&] { return left_here().empty(); })) << ::testing::PrintToString(left_here());
  EXPECT_TRUE(eventually([] { return left().empty(); }, std::chrono::seconds(20)));
  must_run({.argv = {"ip", "link", "set", "wire", "up"}});
}

TEST_F(SshJumpTest, TheKeysOfBothAreTheKnownOnes) {
  const std::string hop = "[45.45.45.2]:2222 " + sshd_->host_key();
  const std::string target = "[127.0.0.1]:2022 " + sshd_->host_key();
  for (const std::string& known : {hop, target}) {
    write_file(near_ / "known_hosts", known);
    const Output output = run(over("echo started"));
    EXPECT_EQ(output.code, 125);
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, AllOf(HasSubstr("Host key verification failed."), HasSubstr("ssh could not"))) << known;
  }
}

// ---- a connection that is shared ----

class SshMasterTest : public SshConfigTest {
 protected:
  ~SshMasterTest() override { (void)ssh({"-O", "exit", "there"}); }

  // `persist`: whether and how long ssh keeps the connection when nobody uses it.
  void share(const std::string& persist) const {
    configure_first("Host there\n  ControlMaster auto\n  ControlPath " + (near_ / "master") + "\n  ControlPersist " +
                    persist + "\n");
  }
  // The process that holds the connection; empty when there is none.
  [[nodiscard]] std::string master() const {
    const std::string said = ssh({"-O", "check", "there"}).err;
    const size_t at = said.find("(pid=");
    return at == std::string::npos ? "" : said.substr(at + 5, said.find(')', at) - at - 5);
  }
};

TEST_F(SshMasterTest, TheFirstLaunchMakesItAndOthersShareIt) {
  share("1h");
  ASSERT_EQ(master(), "");
  Command command = there("cat; echo error >&2; exit 7");
  command.in = Stream::pipe("some input\n");
  const Output first = run(command);
  EXPECT_EQ(first.code, 7) << first.err;
  EXPECT_EQ(first.out, "some input\n");
  EXPECT_EQ(first.err, "error\n");
  const std::string kept = master();
  ASSERT_NE(kept, "");
  // The check of the target, the copies and the launch are sessions of one connection.
  EXPECT_EQ(connections(TestHosts::kHost), 1U);
  Process beside(there("echo started; cat; exit 3"));
  ASSERT_EQ(beside.read_line(), "started");
  EXPECT_EQ(beside.wait().code, 3);
  for (const int number : {SIGTERM, SIGKILL}) {
    Process running(sleeper());
    ASSERT_EQ(running.read_line(), "started");
    running.signal(number);
    EXPECT_EQ(running.wait().code, 128 + number);
    EXPECT_TRUE(eventually([] { return left().empty(); }, std::chrono::seconds(20)));
  }
  EXPECT_TRUE(eventually([&] { return processes_with(near_ / "programs/belljar").empty(); }));
  EXPECT_EQ(master(), kept);
  EXPECT_EQ(connections(TestHosts::kHost), 1U);
  // What the person's own configuration would open is open in it neither.
  EXPECT_FALSE(std::filesystem::exists(near_ / "local-command"));
  EXPECT_THAT(must_run({.argv = {"cat", "/proc/net/tcp"}}), Not(HasSubstr(":23E7")));
}

TEST_F(SshMasterTest, LaunchesEndWithIt) {
  share("1h");
  ASSERT_EQ(run(there("true")).code, 0);
  Process one(sleeper());
  Process other(sleeper());
  ASSERT_EQ(one.read_line(), "started");
  ASSERT_EQ(other.read_line(), "started");
  ASSERT_EQ(::kill(std::stoi(master()), SIGKILL), 0);
  for (Process* process : {&one, &other}) {
    const Output output = process->wait();
    EXPECT_EQ(output.code, 125);
    EXPECT_THAT(output.err, HasSubstr("the link has ended before the command had"));
  }
  EXPECT_TRUE(eventually([] { return left().empty(); }, std::chrono::seconds(20)));
  // The next one makes another.
  EXPECT_EQ(run(there("echo again")).out, "again\n");
  EXPECT_NE(master(), "");
}

TEST_F(SshMasterTest, ItGoesWhenTheConfigurationSaysSo) {
  share("1");
  ASSERT_EQ(run(there("exit 4")).code, 4);
  EXPECT_TRUE(eventually([&] { return master().empty(); }));
  EXPECT_THAT(left_here(), IsEmpty());
}

// Without ControlPersist the ssh of the first launch would be the master, and end with that launch.
TEST_F(SshMasterTest, NoLaunchHangsByAnothersConnection) {
  share("no");
  Process first(there("echo started; sleep 600 # " + kMarker));
  ASSERT_EQ(first.read_line(), "started");
  Command command = there("echo started; cat; exit 5");
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const base::Fd input(ends[0]);
  base::Fd ours(ends[1]);
  command.in = Stream::from(input.get());
  Process second(command);
  ASSERT_EQ(second.read_line(), "started");
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait().code, 143);
  ASSERT_EQ(::write(ours.get(), "typed\n", 6), 6);
  EXPECT_EQ(second.read_line(), "typed");
  ours.reset();
  EXPECT_EQ(second.wait().code, 5);
  EXPECT_TRUE(eventually([&] { return left().empty() && left_here().empty(); }));
}

TEST_F(SshMasterTest, ThatThePersonHasMadeIsSharedAndStays) {
  share("no");
  const Output made = ssh({"-M", "-N", "-f", "-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "there"});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string kept = master();
  ASSERT_NE(kept, "");
  EXPECT_EQ(run(there("exit 6")).code, 6);
  Process running(sleeper());
  ASSERT_EQ(running.read_line(), "started");
  running.signal(SIGKILL);
  (void)running.wait();
  EXPECT_TRUE(eventually([] { return left().empty(); }, std::chrono::seconds(20)));
  EXPECT_EQ(master(), kept);
  EXPECT_EQ(connections(TestHosts::kHost), 1U);
}

// ---- what a session of ssh's gives and takes ----

class SshSessionTest : public SshConfigTest {
 protected:
  SshSessionTest() : SshConfigTest("AcceptEnv *\n") {}

  // bash(1) reads it when it is what sshd starts.
  void on_login(const std::string& script) const { write_file(hosts_.home() + "/.bashrc", script); }
};

TEST_F(SshSessionTest, NoVariableIsSentThatTheConfigurationNames) {
  configure_first("Host *\n  SendEnv SECRET_* LEFT\nHost there\n  SendEnv OTHER_SECRET\n");
  on_login("env >>\"$HOME/seen\"\n");
  const auto seen_after = [&](Command command) {
    for (const char* name : {"SECRET_TOKEN", "OTHER_SECRET", "LEFT"}) command.env[name] = "s3cret";
    write_file(hosts_.home() + "/seen", "");
    const Output output = run(command);
    EXPECT_EQ(output.code, 0) << output.err;
    return read_text(hosts_.home() + "/seen");
  };
  Command plain = belljar({"true"});
  plain.argv = {near_ / "bin/ssh", "-T", "there", "true"};
  EXPECT_THAT(seen_after(plain), HasSubstr("OTHER_SECRET=s3cret")) << "as ssh alone does";
  // Also in the connections by which the target is checked and the programs are copied.
  EXPECT_THAT(seen_after(there("true")), AllOf(HasSubstr("SSH_CONNECTION="), Not(HasSubstr("s3cret"))));
  EXPECT_EQ(copies().size(), 1U);
  EXPECT_THAT(seen_after(there("true")), AllOf(HasSubstr("SSH_CONNECTION="), Not(HasSubstr("s3cret"))));
}

// Its session has a standard error of its own, which ssh passes on as it is.
TEST_F(SshSessionTest, WhatTheTargetSaysIsFilteredOnATerminal) {
  on_login("printf '\\033]52;c;ZXZpbA==\\007%8000s words\\n' >&2\n");
  Command plain = belljar({"true"});
  plain.argv = {near_ / "bin/ssh", "-T", "there", "true"};
  for (const bool filtered : {false, true, true}) {
    Seat seat;
    seat.start(filtered ? there("echo rea\"\"dy") : plain);
    ASSERT_TRUE(seat.shows(" words"));
    if (filtered) {
      ASSERT_TRUE(seat.shows("ready"));
    }
    EXPECT_EQ(seat.process().wait().code, 0);
    EXPECT_EQ(seat.screen().contains("ZXZpbA=="), !filtered);
  }
  // Elsewhere it is the caller's, byte for byte.
  EXPECT_THAT(run(there("true")).err, HasSubstr("\033]52;c;ZXZpbA==\007"));
}

// ---- known hosts ----

TEST_F(SshConfigTest, AnUnknownOrAChangedKeyIsRefusedWithTheReasonThatSshGives) {
  const auto refused = [&](const std::string& reason) {
    const Output output = run(there("echo started"));
    EXPECT_EQ(output.code, 125);
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, AllOf(HasSubstr(reason), HasSubstr("Host key verification failed."),
                                  HasSubstr("reach the target"), HasSubstr("ssh could not")));
    EXPECT_THAT(copies(), IsEmpty());
    EXPECT_THAT(sshd_->log(), Not(HasSubstr("Accepted")));
  };
  write_file(near_ / "known_hosts", "");
  refused("No ED25519 host key is known for [45.45.45.2]:2222");
  // Another's: that of the key to come in by.
  write_file(near_ / "known_hosts", "[45.45.45.2]:2222 " + read_text(sshd_->key() + ".pub"));
  refused("REMOTE HOST IDENTIFICATION HAS CHANGED!");
}

TEST_F(SshConfigTest, AnUnknownKeyIsThePersonsToAcceptAtTheirTerminal) {
  write_file(near_ / "known_hosts", "");
  configure_first("Host there\n  StrictHostKeyChecking ask\n");
  for (const char* answer : {"no", "yes"}) {
    Seat seat;
    seat.start(there("echo rea\"\"dy; exit 9"));
    ASSERT_TRUE(seat.shows("Are you sure you want to continue connecting"));
    seat.type(std::string(answer) + "\r");
    const bool accepted = std::string(answer) == "yes";
    ASSERT_TRUE(seat.shows(accepted ? "ready" : "Host key verification failed."));
    EXPECT_EQ(seat.process().wait().code, accepted ? 9 : 125);
  }
  EXPECT_THAT(read_text(near_ / "known_hosts"), HasSubstr("[45.45.45.2]:2222 ssh-ed25519"));
  EXPECT_EQ(run(there("exit 8")).code, 8) << "and known from then on";
}

}  // namespace
}  // namespace belljar::testing
