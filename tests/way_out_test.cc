// The rules of the way out as a person says them, judged from inside the guest. Of shared/cases/egress.md: E11 and E14.
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

class WayOutTest : public ::testing::Test {
 protected:
  Output script(const std::string& text, const std::vector<std::string>& options = {}) {
    return run(sealed_script(work_.path(), text, options));
  }
  TempDir work_;
};

TEST_F(WayOutTest, ReachesAGrantedPortOfTheHostAndNoOtherWay) {
  const HostService granted;
  const HostService other;
  const std::string curl = "curl -sS --max-time 20 ";
  const Output output = script(curl + "http://host.belljar:" + granted.port() + "/; echo; " +                //
                                   curl + "http://host.belljar:" + other.port() + "/; " +                    //
                                   curl + "--noproxy '*' http://127.0.0.1:" + granted.port() + "/ 2>&1; " +  //
                                   curl + "--noproxy '' http://127.0.0.1:" + granted.port() + "/ 2>&1; true",
                               {"--host-port", granted.port(), "--report", work_ / "end.json"});
  EXPECT_THAT(output.out, HasSubstr("from the host\n"));
  EXPECT_THAT(output.out, HasSubstr("start the session with: --host-port " + other.port()));
  EXPECT_THAT(output.out, HasSubstr("onnect"));  // the guest's own loopback has no such service
  EXPECT_THAT(output.out, HasSubstr("host_not_allowed"));
  EXPECT_EQ(output.out.find("from the host"), output.out.rfind("from the host")) << output.out;
  const auto report = nlohmann::json::parse(read_text(work_ / "end.json"));
  ASSERT_EQ(report["allowed"].size(), 1U);
  EXPECT_EQ(report["allowed"][0]["rule_id"], "host_port:" + granted.port());
  EXPECT_EQ(report["allowed"][0]["rule"], "host.belljar:" + granted.port() + " (--host-port)");
  EXPECT_EQ(report["denials"].size(), 2U);
}

TEST_F(WayOutTest, DeniesWhatAFlagDeniesAndSaysWhichRule) {
  const Output output = script("curl -s --max-time 20 -x \"$http_proxy\" http://a.test/",
                               {"--allow-host", "*.test:*", "--deny-host", "a.test"});
  EXPECT_THAT(output.out, HasSubstr("host_denied"));
  EXPECT_THAT(output.out, HasSubstr("rule: a.test (--deny-host)"));
  EXPECT_THAT(output.err, HasSubstr("refused a.test:80: host_denied"));
}

TEST_F(WayOutTest, SaysHowManyRefusalsAreNotListed) {
  const Output output = script(
      "exec /bin/bash -c 'p=${http_proxy##*:}; p=${p%/}; for ((i = 0; i < 1030; ++i)); do exec "
      "3<>/dev/tcp/127.0.0.1/$p; "
      "printf \"CONNECT h$i.test:443 HTTP/1.1\\r\\nHost: h$i.test:443\\r\\n\\r\\n\" >&3; read -r line <&3; exec 3>&-; "
      "done; "
      "echo $line'",
      {"--report", work_ / "end.json"});
  EXPECT_THAT(output.out, HasSubstr("403"));
  // The agent decides how many there are, and they are the person's screen's; the settlement has them all.
  EXPECT_THAT(output.err, HasSubstr("refused h19.test:443"));
  EXPECT_THAT(output.err, Not(HasSubstr("refused h20.test:443")));
  EXPECT_THAT(output.err, HasSubstr("belljar: refused: 1004 more (--report FILE lists them)"));
  const auto report = nlohmann::json::parse(read_text(work_ / "end.json"));
  ASSERT_EQ(report["denials"].size(), 1024U);
  EXPECT_EQ(report["denials"][1023]["host"], "h1023.test");
  EXPECT_THAT(output.err, HasSubstr("belljar: refused 6 times more, of hosts that are too many to be listed"));
}

TEST_F(WayOutTest, TheAuditFileTellsOfEveryVerdict) {
  const HostService service;
  const TempDir other;
  write_file(other / "p.toml", "[isolation]\nhost_ports = [" + service.port() + "]\n[audit]\nfile = \"" +
                                   (other / "audit.jsonl") + "\"\nchain = true\nrequired = true\n");
  const Output output = script("curl -s http://host.belljar:" + service.port() + "/; curl -s http://no.test/; true",
                               {"--policy", other / "p.toml", "--report", other / "end.json"});
  EXPECT_THAT(output.out, HasSubstr("from the host")) << output.err;
  const std::string text = read_text(other / "audit.jsonl");
  EXPECT_THAT(text, HasSubstr("\"verdict\":\"allow\",\"reason\":\"\",\"rule\":\"host_port:" + service.port() + "\""));
  EXPECT_THAT(text, HasSubstr("\"method\":\"GET\",\"host\":\"host.belljar\""));
  EXPECT_THAT(text, HasSubstr("\"verdict\":\"deny\",\"reason\":\"host_not_allowed\""));
  EXPECT_THAT(text, HasSubstr("\"event\":\"end\""));
  const auto report = nlohmann::json::parse(read_text(other / "end.json"));
  EXPECT_EQ(report["audit"]["lost"], 0);
  const std::string last = report["audit"]["chain"];
  Command verify{.argv = {belljar_program(), "audit", "verify", "--last", last, other / "audit.jsonl"}};
  const Output good = run(verify);
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr(": good: 5 lines, last " + last));
  std::string changed = text;
  changed.replace(changed.find("no.test"), 2, "on");
  write_file(other / "audit.jsonl", changed);
  const Output bad = run(verify);
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("does not follow from the lines before it"));
}

TEST_F(WayOutTest, TheAuditFileIsOutOfTheGuestsReach) {
  const Output inside = script("true", {"--audit", work_ / "audit.jsonl"});
  EXPECT_EQ(inside.code, 125);
  EXPECT_THAT(inside.err, HasSubstr("the guest can write there, refusing"));
  const TempDir other;
  ASSERT_EQ(::symlink((other / "elsewhere").c_str(), (other / "link").c_str()), 0);
  const Output link = script("true", {"--audit", other / "link"});
  EXPECT_EQ(link.code, 125);
  EXPECT_THAT(link.err, HasSubstr("a link is in the way"));
}

// A limit on the size of files stands for a full disk; the guest, which inherits it, writes none.
TEST_F(WayOutTest, TheAuditFileThatIsRequiredEndsTheSessionWhenTheDiskIsFull) {
  const TempDir other;
  write_file(other / "p.toml", "[audit]\nfile = \"" + (other / "audit.jsonl") + "\"\nrequired = true\n");
  Command command = sealed_script(work_.path(), "while :; do curl -s -o /dev/null http://no.test/; done",
                                  {"--policy", other / "p.toml"});
  // 4 MiB less two lines are there already.
  write_file(other / "audit.jsonl", std::string((4U << 20U) - 400, '\n'));
  command.argv.insert(command.argv.begin(), {"sh", "-c", "trap '' XFSZ; ulimit -f 8192; exec \"$@\"", "sh"});
  const Output output = run(command);
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("events were lost: File too large"));
}

}  // namespace
}  // namespace belljar::testing
