// What of TLS a guest says in a tunnel to an allowed host, and whom it names there, judged from inside the guest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"
#include "support/tls_host.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class HelloTest : public ::testing::Test {
 protected:
  HelloTest() : hosts_({"good.test", "other.test", "second.test"}) {}

  void SetUp() override {
    // As in the tests of the agents: root's files are nobody's in the user namespace that plays the host.
    std::filesystem::create_directories(home_ + "/bin");
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name, home_ + "/bin/" + name);
    }
    std::filesystem::create_directories(work_);
    make_certificates(temp_.path(), {"good.test"});
    server_ = std::make_unique<Process>(hosts_.start(tls_server(temp_.path(), TestHosts::kInternet)));
    ASSERT_EQ(server_->read_line(), "ready");
  }
  Output script(const std::string& text, std::vector<std::string> options) {
    options.insert(options.end(), {"--report", temp_ / "report"});
    Command command = sealed_script(work_, text, options);
    if (command.argv[0] == belljar_program()) command.argv[0] = home_ + "/bin/belljar";
    command.env = {{"HOME", home_}, {"PATH", home_ + "/bin:/usr/local/bin:/usr/bin:/bin"}};
    return run(hosts_.as_caller(std::move(command)));
  }

  TestHosts hosts_;
  TempDir temp_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/work";
  std::unique_ptr<Process> server_;
};

// The bwrap tier has no way for programs that know no proxy.
TEST_F(HelloTest, MustNameTheHostThatWasAskedFor) {
  const std::string direct_good = by_bubblewrap() ? "" : "direct good.test 200\n";
  for (const char* other : {"other.test", "second.test"}) {
    const std::string name = other;
    const Output output = script(hellos("good.test", name, !by_bubblewrap()),
                                 {"--allow-host", "good.test", "--allow-host", "second.test"});
    EXPECT_EQ(output.out, "connect good.test 200\nsocks good.test 200\n" + direct_good + "openssl 1\nconnect " + name +
                              " 000\nsocks " + name + " 000\n" + (by_bubblewrap() ? "" : "direct " + name + " 000\n") +
                              "openssl 0\nopenssl 0\nplain 000\n")
        << output.err;
    EXPECT_THAT(output.err, HasSubstr("refused good.test:443: sni_mismatch"));
    const json report = json::parse(read_text(temp_ / "report"));
    const std::string denials = report["denials"].dump();
    for (const char* reason : {"sni_mismatch", "no_sni", "not_tls"}) EXPECT_THAT(denials, HasSubstr(reason));
    EXPECT_THAT(denials, HasSubstr("the hello names '" + name + "'"));
  }
  // Not a byte of those came to the server.
  const std::string heard = read_text(temp_ / "heard");
  EXPECT_THAT(heard, HasSubstr("good.test\n"));
  for (const char* word : {"other", "second", "something", "None"}) EXPECT_THAT(heard, Not(HasSubstr(word)));
}

}  // namespace
}  // namespace belljar::testing
