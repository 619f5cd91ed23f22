// Launches on a target: a real sshd in a network namespace of its own, and the person's real ssh.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
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

TEST_F(SshTest, StreamsExitCodeAndFolderAreAsLocal) {
  // Well below the link's own signs of life, which would hide bytes that are left lying.
  Command command = there("cat; echo error >&2; pwd; echo made >made; exit 7",
                          {"--link-timeout", "1h", "--report", near_ / "end.json"});
  command.in = Stream::pipe("some input\n");
  const Output output = run(command);
  EXPECT_EQ(output.code, 7) << output.err;
  EXPECT_EQ(output.out, "some input\n" + work_ + "\n");
  EXPECT_EQ(output.err, "error\n");
  EXPECT_EQ(read_text(work_ + "/made"), "made\n");
  const auto report = nlohmann::json::parse(read_text(near_ / "end.json"));
  EXPECT_EQ(report["tier"], "jail");
  EXPECT_EQ(report["work_folder"], work_);
  EXPECT_EQ(report["exit"]["code"], 7);
  EXPECT_FALSE(report["probe"].is_null());
  // No input at all is its end at once.
  EXPECT_EQ(run(there("cat; echo after", {"--link-timeout", "1h"})).out, "after\n");
  // 2 MiB each way, with a reader that begins late.
  Command large = there("sleep 0.2; cat");
  large.in = Stream::pipe(std::string(size_t{2} << 20U, 'x') + "end");
  const Output all = run(large);
  EXPECT_EQ(all.out.size(), (size_t{2} << 20U) + 3);
  EXPECT_TRUE(all.out.ends_with("xend"));
  EXPECT_EQ(run(there("kill -9 $$")).code, 137);
  EXPECT_EQ(run(belljar({"run", "--target", "ssh:there", "--", "no-such-program"})).code, 127);
}

TEST_F(SshTest, ADeniedNetworkIsOneThere) {
  Command service{.argv = {"python3", "-u", "-c",
                           "import http.server as h\n"
                           "class S(h.BaseHTTPRequestHandler):\n"
                           "  def do_GET(s):\n"
                           "    s.send_response(200); s.send_header('Content-Length','4'); s.end_headers()\n"
                           "    s.wfile.write(b'near'); print('served', s.client_address[0])\n"
                           "x=h.HTTPServer(('45.45.45.1',80),S); print('ready'); x.serve_forever()"}};
  service.err = Stream::null();
  Process server(service);
  ASSERT_EQ(server.read_line(), "ready");
  const std::string curl = "curl -sS --max-time 20 ";
  const Output output = run(there(curl + "http://near.test/; echo; " + curl + "http://other.test/; " + curl +
                                      "--noproxy '*' http://45.45.45.1/ 2>&1; cat /proc/net/dev | wc -l",
                                  {"--allow-host", "near.test"}));
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("near\n"), HasSubstr("host_not_allowed"), HasSubstr("onnect"), HasSubstr("\n3\n")))
      << output.err;
  EXPECT_THAT(output.err, HasSubstr("refused other.test:80: host_not_allowed"));
  // The proxy stands beside the guest: it came from the target.
  EXPECT_EQ(server.read_line(), "served 45.45.45.2");
}

TEST_F(SshTest, TheProgramsAreCopiedOnceAndExecutedOnlyAsTheyWereSent) {
  ASSERT_EQ(run(there("true")).code, 0);
  ASSERT_EQ(copies().size(), 1U);
  const std::string copy = copies().front();
  const auto copied = std::filesystem::last_write_time(copy + "/belljar");
  ASSERT_EQ(run(there("true")).code, 0);
  EXPECT_EQ(std::filesystem::last_write_time(copy + "/belljar"), copied);
  EXPECT_EQ(copies().size(), 1U);
  // No guest sees them, even when the folder is named.
  EXPECT_EQ(run(there("ls -a " + cache() + " 2>/dev/null | wc -l")).out, "0\n");
  for (const char* name : {"/belljar", "/belljar-guest"}) {
    write_file(near_ / "evil", "#!/bin/sh\ntouch " + (near_ / "pwned") + "\n");
    std::filesystem::remove(copy + name);
    std::filesystem::copy_file(near_ / "evil", copy + name);
    const Output output = run(there("echo fine"));
    EXPECT_EQ(output.out, "fine\n") << output.err;
    EXPECT_GT(std::filesystem::file_size(copy + name), 10000U);
  }
  EXPECT_EQ(read_text(near_ / "pwned"), "");
  EXPECT_FALSE(std::filesystem::exists(near_ / "pwned"));
}

TEST_F(SshTest, NothingReachesBack) {
  const Output output = run(there("env; ls /tmp"));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_FALSE(std::filesystem::exists(near_ / "local-command"));
  EXPECT_THAT(output.out, Not(HasSubstr("SSH_")));
  Process running(sleeper());
  ASSERT_EQ(running.read_line(), "started");
  // 9191 and 9292 of the configuration.
  const std::string listening = must_run({.argv = {"sh", "-c", "cat /proc/net/tcp"}});
  EXPECT_THAT(listening, Not(HasSubstr(":23E7")));
  running.signal(SIGTERM);
  EXPECT_EQ(running.wait().code, 143);
}

TEST_F(SshTest, SignalsEndItAsLocal) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    Process running(sleeper());
    ASSERT_EQ(running.read_line(), "started");
    running.signal(number);
    EXPECT_EQ(running.wait().code, 128 + number);
    EXPECT_THAT(left(), IsEmpty());
  }
}

TEST_F(SshTest, TheGuestEndsWithTheLink) {
  {
    Process running(sleeper());
    ASSERT_EQ(running.read_line(), "started");
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().code, 137);
    EXPECT_TRUE(eventually([] { return left().empty(); }, std::chrono::seconds(20)));
  }
  Process running(sleeper());
  ASSERT_EQ(running.read_line(), "started");
  sshd_->kill_sessions();
  const Output output = running.wait();
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("the link has ended before the command had"));
  EXPECT_TRUE(eventually([] { return left().empty(); }, std::chrono::seconds(20)));
}

// No packet passes any more and nobody says so.
TEST_F(SshTest, TheGuestEndsWithASilentLink) {
  Process running(sleeper({"--link-timeout", "3s"}));
  ASSERT_EQ(running.read_line(), "started");
  must_run({.argv = {"ip", "link", "set", "wire", "down"}});
  const Output output = running.wait();
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("the link was silent for 3 s: lost"));
  EXPECT_TRUE(eventually([] { return left().empty(); }, std::chrono::seconds(20)));
  // So that the sshd of that connection hears that nobody is there, and ends too.
  must_run({.argv = {"ip", "link", "set", "wire", "up"}});
}

TEST_F(SshTest, ATerminalIsOne) {
  const base::Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_EQ(::grantpt(master.get()) | ::unlockpt(master.get()), 0);
  std::array<char, 64> name{};
  ASSERT_EQ(::ptsname_r(master.get(), name.data(), name.size()), 0);
  const base::Fd slave(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  winsize size{};
  size.ws_row = 31;
  size.ws_col = 97;
  ::ioctl(slave.get(), TIOCSWINSZ, &size);
  termios before{};
  ::tcgetattr(slave.get(), &before);
  Command command = there(
      "stty size; read line; echo \"got $line\"; trap 'stty size; exit 5' WINCH; echo wait; while :; do sleep 0.1; "
      "done");
  command.in = command.out = command.err = Stream::from(slave.get());
  command.new_terminal_session = true;
  Process running(command);
  std::string seen;
  const auto see = [&](const std::string& text) {
    return eventually(
        [&] {
          pollfd wait{master.get(), POLLIN, 0};
          std::array<char, 4096> bytes{};
          if (::poll(&wait, 1, 10) > 0) {
            const ssize_t n = ::read(master.get(), bytes.data(), bytes.size());
            if (n > 0) seen.append(bytes.data(), static_cast<size_t>(n));
          }
          return seen.contains(text);
        },
        std::chrono::seconds(30));
  };
  ASSERT_TRUE(see("31 97")) << seen;
  ASSERT_GT(::write(master.get(), "typed\r", 6), 0);
  ASSERT_TRUE(see("got typed")) << seen;
  ASSERT_TRUE(see("wait")) << seen;
  size.ws_row = 40;
  ::ioctl(master.get(), TIOCSWINSZ, &size);
  ASSERT_TRUE(see("40 97")) << seen;
  EXPECT_EQ(running.wait().code, 5);
  termios after{};
  ::tcgetattr(slave.get(), &after);
  EXPECT_EQ(after.c_lflag, before.c_lflag);
}

TEST_F(SshTest, SecretsTravelInsideTheLinkAndByNameOnly) {
  Command command = there("echo \"[$API_TOKEN][$OTHER][$LEFT]\"; exec sleep 600 # " + kMarker,
                          {"--env", "API_TOKEN", "--env", "OTHER=0ther-s3cret"});
  command.env["API_TOKEN"] = "passed-s3cret";
  command.env["LEFT"] = "here";
  Process running(command);
  EXPECT_EQ(running.read_line(), "[passed-s3cret][0ther-s3cret][]");
  // On no command line but the person's own.
  EXPECT_THAT(processes_with("passed-s3cret"), IsEmpty());
  for (const std::string& line : processes_with("0ther-s3cret")) EXPECT_THAT(line, HasSubstr("--target ssh:there"));
  running.signal(SIGTERM);
  (void)running.wait();
}

TEST_F(SshTest, WhatATargetCannotHoldIsRefusedBeforeAnythingStarts) {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--expose", "3000"},
                                             {"--host-port", "5432"},
                                             {"--hook-url", "http://127.0.0.1:7/x"},
                                             {"--hook-url", "https://localhost/x"},
                                             {"--audit", "/tmp/a"}}) {
    const Output output = run(there("true", options));
    EXPECT_EQ(output.code, 125);
    EXPECT_THAT(output.err, HasSubstr("refusing (")) << options[0];
  }
  EXPECT_THAT(sshd_->log(), Not(HasSubstr("Accepted")));
  EXPECT_THAT(run(belljar({"run", "--folder", "~/x", "--", "true"})).err, HasSubstr("none is named"));
  Output missing = run(there("true", {"--folder", "/no/such/folder"}));
  // ssh(1) fails when the far side is gone before its own farewell, which a launch this short can bring about.
  for (int i = 0; i < 3 && missing.err.contains("Broken pipe"); ++i) {
    missing = run(there("true", {"--folder", "/no/such/folder"}));
  }
  EXPECT_THAT(missing.err, HasSubstr("enter the work folder on the target"));
  EXPECT_THAT(run(belljar({"run", "--target", "ssh:nowhere.test", "--", "true"})).err, HasSubstr("ssh could not"));
}

TEST_F(SshTest, ATargetIsCheckedOnceAndALaunchOnItResumed) {
  EXPECT_THAT(run(belljar({"target", "show", "ssh:there"})).err, HasSubstr("nothing is known of it"));
  const Output first = run(there("pwd", {"--keep"}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(run(belljar({"target", "show", "ssh:there"})).out, HasSubstr("home             " + hosts_.home()));
  const size_t at = first.err.find("belljar: session ");
  ASSERT_NE(at, std::string::npos);
  const Output again = run(belljar({"run", "--resume", first.err.substr(at + 17, 16)}));
  EXPECT_EQ(again.out, work_ + "\n") << again.err;
  EXPECT_THAT(run(belljar({"plan", "--target", "ssh:there", "--", "true"})).out, HasSubstr(work_));
  EXPECT_THAT(run(belljar({"probe", "--target", "ssh:there"})).out, HasSubstr("ok      seccomp"));
  // Checked once: one connection for the check, one that finds no programs, one that copies them, and one a launch.
  size_t accepted = 0;
  const std::string log = sshd_->log();
  for (size_t pos = log.find("Accepted"); pos != std::string::npos; pos = log.find("Accepted", pos + 1)) ++accepted;
  EXPECT_EQ(accepted, 7U) << log;
}

}  // namespace
}  // namespace belljar::testing
