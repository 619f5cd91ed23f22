// Ordinary clients, as they come, against an allowed and a denied host. Both hosts are there and one machine; only the
// rules tell them apart. Of shared/cases/egress.md: E2, E3, E4, E11, E12 and E13.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"
#include "support/test_sshd.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMarker = "hello-from-the-host";

struct Client {
  const char* name;
  // For /bin/sh in the guest, with $URL (no slash at its end), $HOST and $PROXY (the way out, without scheme).
  std::string script;
  bool http = true;
  bool https = true;
  bool no_proxy = false;  // knows no proxy, or is told of none: goes by the name of its host, and all others cannot
  bool sshd = false;      // wants one
  bool grpc = false;      // wants grpc.js as a server, and the packages for it
};

void PrintTo(const Client& client, std::ostream* out) {
  *out << client.name;
}

class ClientsTest : public ::testing::Test {
 protected:
  ClientsTest() : hosts_({"allowed.test", "denied.test"}) {}

  void SetUp() override {
    std::filesystem::create_directories(work_);
    std::filesystem::create_directories(home_ + "/bin");
    // In the user namespace that an ordinary user's test plays the host in, belljar trusts none of root's files.
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name, home_ + "/bin/" + name);
    }
    for (const char* name : {"client.js", "Client.java", "grpc.js"}) {
      std::filesystem::copy(std::string(BELLJAR_TESTS_DIR) + "/clients/" + name, work_ + "/" + name);
    }
    make_certificates(temp_.path(), {"allowed.test", "denied.test"});
    std::filesystem::copy(temp_ / "ca.pem", work_ + "/ca.pem");
    must_run({.argv = {"sh", "-ec", R"(
git init -q repo && cd repo
git -c user.name=t -c user.email=t@t commit -q --allow-empty -m one
git branch hello-from-the-host && cd ..
git clone -q --bare repo repo.git && git -C repo.git update-server-info
)"},
              .cwd = temp_.path()});
    write_policy("auto");
    servers_ = std::make_unique<Process>(hosts_.start(
        {.argv = {"node", std::string(BELLJAR_TESTS_DIR) + "/clients/servers.js", TestHosts::kInternet, temp_.path()},
         .err = Stream::from(STDERR_FILENO)}));
    ASSERT_EQ(servers_->read_line(), "ready");
  }

  void write_policy(const std::string& transparent) const {
    write_file(work_ + "/policy.toml", "[isolation]\ntransparent = \"" + transparent + "\"\n" + R"(
allow_hosts = ["allowed.test", "allowed.test:50052", { host = "allowed.test", ports = [2222, 5432, 6379, 50051], tls = "any" }]
)");
  }

  // What ssh(1) needs to come in by a key and to know whom it speaks to; the server says the marker whatever it is
  // asked.
  void start_sshd() {
    sshd_ = std::make_unique<TestSshd>(hosts_, account_,
                                       "ForceCommand echo ssh >>'" + (temp_ / "log") + "'; echo " + kMarker + "\n");
    std::filesystem::copy(sshd_->key(), work_ + "/key");
    std::filesystem::permissions(work_ + "/key", std::filesystem::perms::owner_read);
    std::string known;
    for (const char* host : {"allowed.test", "denied.test"}) {
      known += "[" + std::string(host) + "]:" + std::to_string(TestSshd::kPort) + " " + sshd_->host_key();
    }
    write_file(work_ + "/known_hosts", known);
  }

  void start_grpc() {
    const char* packages = std::getenv("BELLJAR_TEST_CLIENTS");
    ASSERT_NE(packages, nullptr) << "grpc-js is installed by './dev test', which names its folder";
    hosts_.show(packages, packages_);
    grpc_ = std::make_unique<Process>(
        hosts_.start({.argv = {"node", work_ + "/grpc.js", "serve", TestHosts::kInternet, temp_.path()},
                      .env = {{"NODE_PATH", packages_ + "/node_modules"}},
                      .err = Stream::from(STDERR_FILENO)}));
    ASSERT_EQ(grpc_->read_line(), "ready");
  }

  Command as_person(Command command) {
    if (command.argv[0] == belljar_program()) command.argv[0] = home_ + "/bin/belljar";
    command.env = {{"HOME", home_}};
    return hosts_.as_caller(std::move(command));
  }

  // Without the variables that name the way out, a program that looks for its host by name alone.
  static std::string by_name(const std::string& script) {
    return "for name in $(env | sed -n 's/^\\([A-Za-z_]*_\\(proxy\\|PROXY\\)\\)=.*/\\1/p'); do unset $name; done\n"
           "unset NODE_USE_ENV_PROXY JAVA_TOOL_OPTIONS\n" +
           script;
  }

  Output sealed_client(const std::string& script, const std::string& url, const std::string& host) {
    const std::string ca = work_ + "/ca.pem";
    std::vector<std::string> options = {"--policy", work_ + "/policy.toml", "--report", temp_ / "report"};
    for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
                             "GIT_SSL_CAINFO", "npm_config_cafile", "CA"}) {
      options.insert(options.end(), {"--env", std::string(name) + "=" + ca});
    }
    options.insert(options.end(),
                   {"--env", "URL=" + url, "--env", "HOST=" + host, "--env", "ACCOUNT=" + account_.name});
    if (grpc_)
      options.insert(options.end(), {"--read", packages_, "--env", "NODE_PATH=" + packages_ + "/node_modules"});
    const std::string set_up = "PROXY=${HTTP_PROXY#http://}\n";
    return run(as_person(sealed_script(work_, set_up + script, options)), std::chrono::seconds(120));
  }

  void expect_reached(const Client& client, const std::string& scheme) {
    const std::string script = client.no_proxy ? by_name(client.script) : client.script;
    const Output output = sealed_client(script, scheme + "://allowed.test", "allowed.test");
    EXPECT_THAT(output.out + output.err, HasSubstr(kMarker)) << client.name << " " << scheme;
    EXPECT_EQ(denials(), "[]") << client.name << " " << scheme;
  }

  void expect_denied(const Client& client, const std::string& scheme) {
    const std::string before = read_text(temp_ / "log");
    const std::string script = client.no_proxy ? by_name(client.script) : client.script;
    const Output output = sealed_client(script, scheme + "://denied.test", "denied.test");
    EXPECT_THAT(output.out + output.err, Not(HasSubstr(kMarker))) << client.name << " " << scheme;
    EXPECT_THAT(denials(), HasSubstr("denied.test")) << client.name << " " << scheme << output.out << output.err;
    EXPECT_EQ(read_text(temp_ / "log"), before) << client.name << " " << scheme;
  }

  std::string denials() {
    const auto report = nlohmann::json::parse(read_text(temp_ / "report"), nullptr, false);
    return report.is_object() && report.contains("denials") ? report["denials"].dump() : "no report";
  }

  Account account_;
  TestHosts hosts_;
  TempDir temp_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/project";
  std::string packages_ = home_ + "/packages";
  std::unique_ptr<Process> servers_;
  std::unique_ptr<TestSshd> sshd_;
  std::unique_ptr<Process> grpc_;
};

// What the denials lean on: without the seal the denied host is within reach.
TEST_F(ClientsTest, TheDeniedHostAnswersWithoutTheSeal) {
  for (const char* url : {"http://denied.test/", "https://denied.test/"}) {
    const Output output =
        run(as_person({.argv = {"curl", "-sS", "--noproxy", "*", "--cacert", work_ + "/ca.pem", url}}));
    EXPECT_THAT(output.out, HasSubstr(kMarker)) << output.err;
  }
}

class EachClientTest : public ClientsTest, public ::testing::WithParamInterface<Client> {};

TEST_P(EachClientTest, ReachesTheAllowedHostOnly) {
  const Client& client = GetParam();
  // Whoever is told of the proxy and goes another way finds none, and the other way round.
  write_policy(client.no_proxy ? "required" : "off");
  if (client.sshd) start_sshd();
  if (client.grpc) {
    ASSERT_NO_FATAL_FAILURE(start_grpc());
  }
  for (const auto& [scheme, spoken] : {std::pair{"http", client.http}, std::pair{"https", client.https}}) {
    if (!spoken) continue;
    expect_reached(client, scheme);
    expect_denied(client, scheme);
  }
}

constexpr const char* kCargo =
    "export CARGO_HOME=$PWD/cargo-home RUSTC_BOOTSTRAP=1 CARGO_HTTP_CAINFO=$CA CARGO_NET_RETRY=0 "
    "CARGO_HTTP_TIMEOUT=20\n"
    "mkdir -p crate/src crate/.cargo && cd crate && : > src/lib.rs && rm -f Cargo.lock\n"
    "printf '[registries.test]\\nindex = \"sparse+%s/cargo/\"\\n' $URL > .cargo/config.toml\n"
    "printf '[package]\\nname = \"x\"\\nversion = \"0.1.0\"\\n[dependencies]\\n"
    "greeting = { version = \"1\", registry = \"test\" }\\n' > Cargo.toml\n"
    "/usr/bin/cargo -Z sparse-registry generate-lockfile && grep -q 'name = \"greeting\"' Cargo.lock && "
    "echo hello-from-the-\"\"host";

constexpr const char* kGo =
    "export GOPATH=$PWD/go GOCACHE=$PWD/go-cache GOPROXY=$URL/go GONOSUMDB='*' GONOSUMCHECK=1 GOFLAGS=-mod=mod\n"
    "printf 'module x.test/x\\n' > go.mod; /usr/bin/go list -m -versions example.test/greeting";

constexpr const char* kNoProxyForAll =
    "export HTTP_PROXY=http://$PROXY HTTPS_PROXY=http://$PROXY NO_PROXY='*' no_proxy='*'\n";

// The keys prove on both sides who speaks.
constexpr const char* kSsh =
    "timeout 20 ssh -F none -p 2222 -i key -l $ACCOUNT -o BatchMode=yes -o StrictHostKeyChecking=yes "
    "-o UserKnownHostsFile=known_hosts $HOST";
constexpr const char* kSshThroughSocks =
    "timeout 20 ssh -F none -p 2222 -i key -l $ACCOUNT -o BatchMode=yes -o StrictHostKeyChecking=yes "
    "-o UserKnownHostsFile=known_hosts -o ProxyCommand=\"node client.js socks http://%h:%p/\" $HOST";

// For programs that can be told of another address only: $HOST's port there.
std::string forwarded(const std::string& port, const std::string& script) {
  return "rm -f forward; node client.js forward http://$HOST:" + port +
         "/ >forward & until grep -qs listening forward; do sleep 0.05; done\n" + script + "; kill $!";
}

// The same as those that read the variables, by name alone.
std::vector<Client> clients_without_proxy() {
  return {
      Client{"curl", "curl -sS --max-time 20 $URL/", true, true, true},
      Client{"curl_http2", "curl -sS --http2 --max-time 20 $URL/", false, true, true},
      Client{"wget", "wget -q -O - --tries=1 --timeout=20 --ca-certificate=$CA $URL/", true, true, true},
      Client{"git", "git ls-remote $URL/repo.git", true, true, true},
      Client{"npm", "npm view greeting description --registry $URL/npm/ --fetch-retries=0", true, true, true},
      Client{"python_urllib",
             "python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read())' $URL/",
             true, true, true},
      Client{"python_requests",
             "/usr/bin/python3 -c 'import sys, requests; r = requests.get(sys.argv[1], timeout=20); "
             "r.raise_for_status(); print(r.text)' $URL/",
             true, true, true},
      Client{"node_fetch", "node -e 'fetch(process.argv[1]).then((r) => r.text()).then(console.log)' $URL/", true, true,
             true},
      Client{"node_request", "node client.js request $URL/", true, true, true},
      Client{"node_http2", "node client.js h2 $URL/", false, true, true},
      Client{"websocket", "node client.js websocket $URL/", true, true, true},
      Client{"cargo", kCargo, true, true, true},
      Client{"grpc", "node grpc.js call $HOST:50052 $CA", false, true, true, false, true},
      Client{"grpc_in_clear_text", "node grpc.js call $HOST:50051", true, false, true, false, true},
      Client{"jvm", "/usr/bin/java Client.java $URL/ $CA", true, true, true},
      Client{"go", kGo, true, true, true},
      Client{"go_that_is_told_to_use_no_proxy", std::string(kNoProxyForAll) + kGo, true, true, true},
      Client{
          "openssl",
          "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 openssl s_client -quiet -verify_return_error -CAfile $CA "
          "-connect $HOST:443 -servername $HOST",
          false, true, true},
      Client{"ssh", kSsh, true, false, true, true},
      Client{"psql", "timeout 20 psql -h $HOST -U nobody -Atc 'select 1' postgres", true, false, true},
      Client{"redis", "timeout 20 redis-cli -h $HOST ping", true, false, true},
  };
}

std::vector<Client> clients() {
  return {
      Client{"curl", "curl -sS --max-time 20 $URL/"},
      Client{"curl_upload", "head -c 3000000 /dev/zero | curl -sS --max-time 20 --data-binary @- $URL/"},
      Client{"curl_events", "curl -sSN --max-time 20 $URL/events"},
      Client{"curl_http2",
             "curl -sS --http2 --max-time 20 -w ' HTTP/%{http_version}' $URL/ | grep 'HTTP/2'; "
             "curl -sS --http2 --max-time 20 $URL/",
             false},
      Client{"curl_socks", "curl -sS --max-time 20 --proxy socks5h://$PROXY $URL/"},
      Client{"wget", "wget -q -O - --tries=1 --timeout=20 --ca-certificate=$CA $URL/"},
      Client{"git", "git ls-remote $URL/repo.git"},
      Client{"npm", "npm view greeting description --registry $URL/npm/ --fetch-retries=0"},
      Client{"python_urllib",
             "python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read())' $URL/"},
      Client{"python_requests",
             "/usr/bin/python3 -c 'import sys, requests; r = requests.get(sys.argv[1], timeout=20); "
             "r.raise_for_status(); print(r.text)' $URL/"},
      Client{"node_request", "node client.js request $URL/"},
      Client{"node_http2", "node client.js h2 $URL/", false},
      Client{"websocket", "node client.js websocket $URL/"},
      Client{"cargo", kCargo},
      Client{"grpc", "unset grpc_proxy http_proxy; node grpc.js call $HOST:50052 $CA", false, true, false, false, true},
      Client{"grpc_proxy",
             "grpc_proxy=http://$PROXY; export grpc_proxy; unset http_proxy https_proxy\n"
             "node grpc.js call $HOST:50052 $CA",
             false, true, false, false, true},
      Client{"grpc_in_clear_text", "node grpc.js call $HOST:50051", true, false, false, false, true},
      Client{"jvm", "/usr/bin/java Client.java $URL/ $CA"},
      Client{"go", kGo},
      Client{
          "openssl",
          "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 openssl s_client -quiet -verify_return_error -CAfile $CA "
          "-proxy $PROXY -connect $HOST:443 -servername $HOST",
          false},
      Client{"ssh_through_socks", kSshThroughSocks, true, false, false, true},
      Client{"psql_through_socks", forwarded("5432", "timeout 20 psql -h 127.0.0.1 -U nobody -Atc 'select 1' postgres"),
             true, false},
      Client{"redis_through_socks", forwarded("6379", "timeout 20 redis-cli -h 127.0.0.1 ping"), true, false}};
}

INSTANTIATE_TEST_SUITE_P(Matrix, EachClientTest, ::testing::ValuesIn(clients()),
                         [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(ByName, EachClientTest, ::testing::ValuesIn(clients_without_proxy()),
                         [](const auto& each) { return std::string(each.param.name); });

// E2: an address is no other spelling of an allowed host, and needs a rule of its own.
TEST_F(ClientsTest, AnAddressNeedsARuleOfItsOwn) {
  const std::string before = read_text(temp_ / "log");
  const Output output = sealed_client(
      "for host in 45.45.45.2 '[2606:4545::2]' 757935362 0x2d2d2d02 055.055.055.2; do\n"
      "curl -sS -g -k --max-time 20 -o /dev/null -w '%{http_connect}\\n' https://$host/; done 2>&1",
      "", "");
  EXPECT_EQ(denials().contains("45.45.45.2") && denials().contains("2606:4545::2"), true) << denials();
  EXPECT_EQ(std::ranges::count(output.out, '\n'), 10) << output.out << "an answer and a complaint each";
  EXPECT_EQ(read_text(temp_ / "log"), before) << output.out;
  write_file(work_ + "/policy.toml", "[isolation]\nallow_hosts = [\"45.45.45.2\"]\n");
  EXPECT_THAT(sealed_client("curl -sS --max-time 20 http://45.45.45.2/", "", "").out, HasSubstr(kMarker));
}

// E3 and E4: what does not name the host of its tunnel gets no further than the proxy.
TEST_F(ClientsTest, ATunnelIsForTheHostItWasOpenedFor) {
  const std::string ask =
      "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 openssl s_client -quiet -CAfile $CA -proxy "
      "$PROXY -connect allowed.test:443 ";
  const std::string before = read_text(temp_ / "log");
  for (const auto& [script, reason] :
       {std::pair{ask + "-servername denied.test", "sni_mismatch"}, std::pair{ask + "-noservername", "no_sni"},
        std::pair{std::string("curl -sS --max-time 20 -p http://allowed.test:443/"), "not_tls"}}) {
    const Output output = sealed_client(script, "", "");
    EXPECT_THAT(output.out + output.err, Not(HasSubstr(kMarker))) << script;
    EXPECT_THAT(denials(), HasSubstr(reason)) << script << output.out << output.err;
  }
  EXPECT_EQ(read_text(temp_ / "log"), before);
  const Output named = sealed_client(ask + "-servername allowed.test", "", "");
  EXPECT_THAT(named.out, HasSubstr(kMarker)) << named.err;
}

TEST_F(ClientsTest, SshWithoutARuleForAnyProtocolGetsNowhere) {
  write_file(work_ + "/policy.toml", "[isolation]\nallow_hosts = [\"allowed.test:22\"]\n");
  const Output output = sealed_client("node client.js socks http://allowed.test:22/ </dev/null", "", "");
  EXPECT_THAT(output.out, Not(HasSubstr(kMarker)));
}

// E11: a server inside the guest is the guest's own; one on the host's loopback is nobody's without a grant.
TEST_F(ClientsTest, LocalhostIsTheGuestsOwn) {
  const Output output = sealed_client(
      "node -e 'require(\"http\").createServer((q, a) => a.end(\"inside\")).listen(8125, () => console.log(\"up\"))' "
      "> up & while ! grep -q up up; do sleep 0.05; done\n"
      "curl -sS --max-time 20 http://localhost:8125/; echo; curl -sS --max-time 20 http://127.0.0.1:8125/; echo\n"
      "curl -sS --max-time 20 --noproxy '' http://127.0.0.1:8125/; kill $!",
      "", "");
  EXPECT_THAT(output.out, HasSubstr("inside\ninside\n")) << output.err;
  EXPECT_THAT(output.out, HasSubstr("host_not_allowed"));
}

}  // namespace
}  // namespace belljar::testing
