// Rules that change while a session runs, judged from inside the guest: shared/cases/egress.md, E17.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/host_service.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ReloadTest : public ::testing::Test {
 protected:
  Command start_script(const std::string& script) {
    Command command =
        sealed_script(work_.path(), script, {"--policy", other_ / "p.toml", "--report", other_ / "end.json"});
    command.env["XDG_STATE_HOME"] = state_.path();
    return command;
  }
  void allow(const std::string& ports) { write_file(other_ / "p.toml", "[isolation]\nhost_ports = [" + ports + "]\n"); }
  Command reload_command(std::vector<std::string> words) {
    words.insert(words.begin(), {belljar_program(), "reload"});
    Command command{.argv = std::move(words), .cwd = work_.path()};
    command.env["XDG_STATE_HOME"] = state_.path();
    return command;
  }
  Output reload(std::vector<std::string> words = {}) { return run(reload_command(std::move(words))); }
  static std::string curl(const HostService& service, const std::string& path = "/") {
    return "curl -sS -N --max-time 60 http://host.belljar:" + service.port() + path;
  }
  // In the guest: until this test has made a file of that name.
  static std::string wait_for(const std::string& name) { return "until [ -e " + name + " ]; do sleep 0.05; done\n"; }
  void tell(const std::string& name) { write_file(work_ / name, ""); }

  TempDir work_;
  TempDir other_;
  TempDir state_;
  HostService one_;
  HostService two_;
};

TEST_F(ReloadTest, CutsLetsInAndLeavesAlone) {
  allow(one_.port() + ", " + two_.port());
  Process guest(start_script(curl(one_, "/hold") + " > one & one=$!\n" + curl(two_, "/hold") + " > two & two=$!\n" +
                             "until grep -q held one && grep -q held two; do sleep 0.05; done; echo held\n" +
                             "wait $one; echo one ended $?; kill -0 $two && echo two lives\n" + curl(one_) + "\n" +
                             curl(two_) + "; echo\n" + wait_for("again") + curl(one_) + "; echo; kill $two"));
  ASSERT_EQ(guest.read_line(), "held");
  allow(two_.port());
  const Output cut = reload();
  EXPECT_EQ(cut.code, 0) << cut.err;
  EXPECT_THAT(cut.out, HasSubstr(": 1 rules, 1 connection cut\n"));
  EXPECT_EQ(guest.read_line(), "one ended 56");
  EXPECT_EQ(guest.read_line(), "two lives");
  EXPECT_THAT(guest.read_line().value_or(""), HasSubstr("'host.belljar' port " + one_.port()));
  EXPECT_THAT(guest.read_line().value_or(""), HasSubstr("rule: host.belljar:" + two_.port()));
  EXPECT_THAT(guest.read_line().value_or(""), HasSubstr("to allow it"));
  EXPECT_THAT(guest.read_line().value_or(""), HasSubstr("belljar reload --host-port " + one_.port()));
  EXPECT_THAT(guest.read_line().value_or(""), HasSubstr("trying again"));
  EXPECT_EQ(guest.read_line(), "from the host");
  const Output back = reload({"--host-port", one_.port()});
  EXPECT_THAT(back.out, HasSubstr(": 2 rules, 0 connections cut\n")) << back.err;
  // What was given to one reload stays for the next.
  EXPECT_THAT(reload().out, HasSubstr(": 2 rules, 0 connections cut\n"));
  tell("again");
  EXPECT_EQ(guest.read_line(), "from the host");
  guest.wait();
  const auto report = nlohmann::json::parse(read_text(other_ / "end.json"));
  EXPECT_THAT(report["denials"].dump(), HasSubstr("the rules have changed"));
}

TEST_F(ReloadTest, ManyAtOnceLoseNothing) {
  allow(one_.port());
  Process guest(start_script("echo up\nsleep 600"));
  ASSERT_EQ(guest.read_line(), "up");
  std::vector<Process> all;
  for (const char* host : {"a.test", "b.test", "c.test", "d.test", "e.test", "f.test"}) {
    all.emplace_back(reload_command({"--deny-host", host}));
  }
  for (Process& each : all) EXPECT_EQ(each.wait().code, 0);
  EXPECT_THAT(reload().out, HasSubstr(": 7 rules, 0 connections cut\n"));
  guest.signal(SIGTERM);
  guest.wait();
}

TEST_F(ReloadTest, ChangesNothingWhenThePolicyIsNoGoodOrOpensTheNetwork) {
  allow(one_.port());
  Process guest(start_script("echo up\n" + wait_for("go") + curl(one_) + "; echo"));
  ASSERT_EQ(guest.read_line(), "up");
  for (const char* policy : {"[isolation]\nhost_portz = [1]\n", "[isolation]\nnetwork = \"allow\"\n", "rubbish"}) {
    write_file(other_ / "p.toml", policy);
    const Output refused = reload();
    EXPECT_EQ(refused.code, 125) << policy;
  }
  // Landlock has shut the launcher off from ports that no rule named at its start.
  allow(one_.port() + ", " + two_.port());
  const Output port = reload();
  EXPECT_EQ(port.code, 125);
  EXPECT_THAT(port.err, HasSubstr("has shut itself off from that port"));
  tell("go");
  EXPECT_EQ(guest.read_line(), "from the host");
}

TEST_F(ReloadTest, NamesTheSessionsAndRefusesToGuess) {
  allow(one_.port());
  EXPECT_THAT(reload().err, HasSubstr("no such session runs"));
  Process first(start_script("echo up; sleep 600"));
  ASSERT_EQ(first.read_line(), "up");
  Process second(start_script("echo up; sleep 600"));
  ASSERT_EQ(second.read_line(), "up");
  const std::string list = reload({"--list"}).out;
  EXPECT_EQ(std::ranges::count(list, '\n'), 2) << list;
  EXPECT_THAT(list, HasSubstr("  " + work_.path() + "\n"));
  EXPECT_THAT(reload().err, HasSubstr("more than one session is meant"));
  EXPECT_EQ(reload({list.substr(0, 16)}).code, 0);
  second.signal(SIGTERM);
  second.wait();
  EXPECT_EQ(reload().code, 0);
  first.signal(SIGTERM);
  first.wait();
  EXPECT_EQ(reload({"--list"}).out, "");
  // Nothing is left of the doors.
  EXPECT_TRUE(std::filesystem::is_empty(state_ / "belljar/sessions"));
}

// The door lies where no guest can write; a guest that is given the state folder gets none.
TEST_F(ReloadTest, TheGuestHasNoDoor) {
  allow(one_.port());
  Command command = sealed_script(
      work_.path(), "ls -R $STATE 2>&1; for f in $STATE/belljar/sessions/*; do echo x > $f && echo wrote; done; true",
      {"--policy", other_ / "p.toml", "--env", "STATE=" + state_.path(), "--read", state_.path()});
  command.env["XDG_STATE_HOME"] = state_.path();
  const Output read = run(command);
  EXPECT_THAT(read.out, Not(HasSubstr("wrote")));
  *std::ranges::find(command.argv, "--read") = "--write";
  const Output write = run(command);
  EXPECT_THAT(write.out, Not(HasSubstr("wrote"))) << write.out << write.err;
}

}  // namespace
}  // namespace belljar::testing
