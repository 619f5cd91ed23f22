// The helpers themselves: a test that leans on them must be able to fail.
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

TEST(Process, GivesCodeOutputAndErrors) {
  const Output output = run({.argv = {"sh", "-c", "cat; echo bad >&2; exit 3"}, .in = Stream::pipe("text")});
  EXPECT_EQ(output.code, 3);
  EXPECT_EQ(output.out, "text");
  EXPECT_EQ(output.err, "bad\n");
}

TEST(Process, SaysASignalAsAShellDoes) {
  EXPECT_EQ(run({.argv = {"sh", "-c", "kill -KILL $$"}}).code, 137);
}

TEST(Process, ClosesADescriptor) {
  EXPECT_EQ(run({.argv = {"sh", "-c", "test ! -e /proc/self/fd/0"}, .in = Stream::closed()}).code, 0);
  EXPECT_EQ(run({.argv = {"sh", "-c", "test -e /proc/self/fd/0"}}).code, 0);
}

TEST(Process, DiesWhenItsObjectGoes) {
  const std::string marker = "98765." + std::to_string(::getpid());
  {
    const Process process({.argv = {"sleep", marker}, .out = Stream::null(), .err = Stream::null()});
    EXPECT_TRUE(eventually([&] { return processes_with(marker).size() == 1; }));
  }
  EXPECT_TRUE(processes_with(marker).empty());
}

TEST(TestHosts, AreReachedByNameAndLeadNowhereElse) {
  TestHosts hosts({"model.test"});
  Process server = hosts.start({.argv = {"openssl", "s_server", "-accept", "45.45.45.2:4433", "-nocert", "-cipher",
                                         "ALL:@SECLEVEL=0", "-tls1_2"}});
  const auto connect = [&](const std::string& where) {
    return run(hosts.as_caller({.argv = {"bash", "-c", "exec 3<>/dev/tcp/" + where}})).code;
  };
  EXPECT_TRUE(eventually([&] { return connect("model.test/4433") == 0; }));
  EXPECT_NE(connect("model.test/4434"), 0);
  EXPECT_NE(connect("elsewhere.test/4433"), 0);
  EXPECT_EQ(run({.argv = {"ip", "route", "show", "default"}}).out, "");
}

TEST(TestHosts, RunTheProgramAsWhoStartedTheTest) {
  const std::string uid = std::to_string(::geteuid());
  TestHosts hosts({});
  const Output output =
      run(hosts.as_caller({.argv = {"sh", "-c", "id -u; sed -n 's/^CapEff:.//p' /proc/self/status"}}));
  if (uid == "0") {
    EXPECT_EQ(output.out.substr(0, 2), "0\n");
  } else {
    EXPECT_EQ(output.out, uid + "\n0000000000000000\n");
  }
  write_file(hosts.home() + "/file", "x");
  EXPECT_EQ(run(hosts.as_caller({.argv = {"sh", "-c", "echo y >/home/belljar-tester/file"}})).code, 0);
}

}  // namespace
}  // namespace belljar::testing
