// A host that reaches the net by an HTTP proxy only, which wants credentials: the guest goes the same way and never
// sees them (shared/cases/egress.md, E16).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// It knows the hosts, as nobody else does; user:s3cret.
constexpr const char* kProxy = R"(
const http = require('http'), net = require('net');
const good = 'Basic ' + Buffer.from('user:s3cret').toString('base64');
http.createServer((q, a) => a.end('from ' + q.headers.host + ' ' + (q.headers['proxy-authorization'] || 'no credentials')))
  .listen(8000, '127.0.0.1');
http.createServer((q, a) => {
  if (q.headers['proxy-authorization'] !== good) return a.writeHead(407).end();
  a.end('proxied ' + q.url + '\n');
}).on('connect', (q, s, head) => {
  if (q.headers['proxy-authorization'] !== good) return s.end('HTTP/1.1 407 No\r\n\r\n');
  const far = net.connect(8000, '127.0.0.1', () => { s.write('HTTP/1.1 200 OK\r\n\r\n'); far.write(head); far.pipe(s); s.pipe(far); });
  s.on('error', () => far.destroy());
}).listen(3128, '45.45.45.2', () => console.log('up'));
)";

class UpstreamTest : public ::testing::Test {
 protected:
  UpstreamTest() : hosts_({"nowhere.test"}) {}

  void SetUp() override {
    std::filesystem::create_directories(home_ + "/bin");
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name, home_ + "/bin/" + name);
    }
    std::filesystem::create_directories(work_);
    internet_ = std::make_unique<Process>(hosts_.start({.argv = {"node", "-e", kProxy}}));
    ASSERT_EQ(internet_->read_line(), "up");
  }
  Output session(const std::string& script, const std::string& credentials = "user:s3cret@",
                 const std::string& setting = "upstream_proxy = \"environment\"\n") {
    write_file(home_ + "/p.toml", "[isolation]\n" + setting +
                                      "allow_hosts = [\"far.test\", { host = \"any.test:22\", tls "
                                      "= \"any\" }]\n");
    Command command = sealed_script(work_, script, {"--policy", home_ + "/p.toml", "--report", temp_ / "end.json"});
    command.argv[0] = home_ + "/bin/belljar";
    command.env["HOME"] = home_;
    command.env["HTTPS_PROXY"] = "http://" + credentials + "45.45.45.2:3128";
    return run(hosts_.as_caller(std::move(command)));
  }

  TestHosts hosts_;
  TempDir temp_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/project";
  std::unique_ptr<Process> internet_;
};

TEST_F(UpstreamTest, CarriesWhatIsAllowedAndNothingElse) {
  const Output output = session(
      "curl -sS --max-time 20 http://far.test/a; "
      "curl -sS --max-time 20 -p http://any.test:22/b; echo; curl -sS --max-time 20 http://denied.test/ | head -1\n"
      "unset http_proxy HTTP_PROXY all_proxy ALL_PROXY; curl -sS --max-time 20 http://far.test/c");
  EXPECT_THAT(output.out, HasSubstr("proxied http://far.test/a\n")) << output.err;
  EXPECT_THAT(output.out, HasSubstr("from any.test:22 no credentials\n"));
  EXPECT_THAT(output.out, HasSubstr("host_not_allowed"));
  EXPECT_THAT(output.out, HasSubstr("proxied http://far.test/c\n"));
  EXPECT_THAT(output.err, HasSubstr("weaker than it could be: upstream_proxy = 45.45.45.2:3128"));
}

TEST_F(UpstreamTest, TheGuestNeverSeesTheCredentials) {
  const Output output = session(
      "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'; "
      "curl -sS --max-time 20 -v http://far.test/ 2>&1");
  const std::string all = output.out + output.err + read_text(temp_ / "end.json");
  EXPECT_THAT(all, HasSubstr("proxied"));
  EXPECT_THAT(all, Not(HasSubstr("s3cret")));
  EXPECT_THAT(all, Not(HasSubstr("dXNlcjpzM2NyZXQ")));
}

TEST_F(UpstreamTest, WithoutTheSettingItIsNeitherUsedNorSeen) {
  const Output output = session(
      "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; curl -sS --max-time 20 -w '%{http_code}\\n' http://far.test/",
      "user:s3cret@", "");
  EXPECT_THAT(output.out, HasSubstr("resolve_failed"));
  EXPECT_THAT(output.out, HasSubstr("502\n"));
  const std::string all = output.out + output.err + read_text(temp_ / "end.json");
  EXPECT_THAT(all, Not(HasSubstr("proxied")));
  EXPECT_THAT(all, Not(HasSubstr("s3cret")));
  EXPECT_THAT(all, Not(HasSubstr("3128")));
}

TEST_F(UpstreamTest, WrongCredentialsAreABadGateway) {
  const Output output =
      session("curl -sS --max-time 20 -o out -w '%{http_code}\\n' http://far.test/; cat out", "user:wrong@");
  EXPECT_THAT(output.out, HasSubstr("502\n"));
  EXPECT_THAT(output.out, HasSubstr("the upstream proxy: it answered 407"));
}

}  // namespace
}  // namespace belljar::testing
