// Programs that know no proxy, judged from inside the guest: what they reach, and what they do not. Of
// shared/cases/egress.md: E3, E12 and E18.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// From now on this process and what it starts find a kernel without nfnetlink.
bool hide_nf_tables() {
  constexpr auto kArgument = [](unsigned n) { return static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * n); };
  std::array<sock_filter, 8> program{
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 5, SYS_socket},
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, kArgument(0)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, AF_NETLINK},
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, kArgument(2)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, NETLINK_NETFILTER},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPROTONOSUPPORT},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

class TransparentTest : public ::testing::Test {
 protected:
  TransparentTest() : hosts_({"allowed.test", "denied.test", "a.wild.test", "speaks.test"}) {}

  void SetUp() override {
    std::filesystem::create_directories(home_ + "/bin");
    // As in the tests of the agents: root's files are nobody's in the user namespace that plays the host.
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name, home_ + "/bin/" + name);
    }
    std::filesystem::create_directories(work_);
    make_certificates(temp_.path(), {"allowed.test", "denied.test", "a.wild.test"});
    std::filesystem::copy(temp_ / "ca.pem", work_ + "/ca.pem");
    for (const char* name : {"client.js", "resolve.py"}) {
      std::filesystem::copy(std::string(BELLJAR_TESTS_DIR) + "/transparent/" + name, work_ + "/" + name);
    }
    write_file(home_ + "/policy.toml",
               "[isolation]\nallow_hosts = [\"allowed.test\", \"*.wild.test\", { host = \"speaks.test:22\", tls = "
               "\"any\" }]\n");
    internet_ = std::make_unique<Process>(
        hosts_.start({.argv = {"node", std::string(BELLJAR_TESTS_DIR) + "/transparent/internet.js", temp_ / "cert.pem",
                               temp_ / "key.pem"}}));
    ASSERT_TRUE(internet_->read_line());
  }

  // A script in the guest, without the variables that name the proxy.
  Output script(const std::string& text, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"--policy", home_ + "/policy.toml", "--report", temp_ / "report"});
    Command command = sealed_script(
        work_,
        "for name in $(env | sed -n 's/^\\([A-Za-z_]*_\\(proxy\\|PROXY\\)\\)=.*/\\1/p'); do unset $name; done\n"
        "unset NODE_USE_ENV_PROXY; export NODE_EXTRA_CA_CERTS=$PWD/ca.pem CURL_CA_BUNDLE=$PWD/ca.pem\n" +
            text,
        options);
    command.argv[0] = home_ + "/bin/belljar";
    command.env["HOME"] = home_;
    command = hosts_.as_caller(std::move(command));
    if (without_nf_tables_) {
      command.before_exec = [caller = command.before_exec] { return (!caller || caller()) && hide_nf_tables(); };
    }
    return run(command, std::chrono::seconds(120));
  }

  // What client.js says, by name.
  std::map<std::string, std::string> ask(const std::string& addresses, const std::vector<std::string>& options = {}) {
    const Output output = script("node client.js " + addresses, options);
    std::map<std::string, std::string> out;
    std::istringstream lines(output.out);
    for (std::string line; std::getline(lines, line);) out[line.substr(0, line.find(' '))] = line;
    EXPECT_EQ(output.code, 0) << output.out << output.err;
    return out;
  }

  // The denials of the last launch, one line each.
  std::string denials() {
    std::string out;
    const json report = json::parse(read_text(temp_ / "report"), nullptr, false);
    for (const json& denial : report["denials"]) {
      out += denial["host"].get<std::string>() + ":" + std::to_string(denial["port"].get<int>()) + " " +
             denial["reason"].get<std::string>() + " " + denial["remedy"].get<std::string>() + "\n";
    }
    return out;
  }

  TestHosts hosts_;
  TempDir temp_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/project";
  std::unique_ptr<Process> internet_;
  bool without_nf_tables_ = false;
};

TEST_F(TransparentTest, NodeReachesAllowedHostsByNameAndNoOthers) {
  auto found =
      ask("https=https://allowed.test/ http=http://allowed.test/ wild=https://a.wild.test/ denied=https://denied.test/ "
          "port=https://allowed.test:8443/ first=tcp://speaks.test:22 first6=tcp6://speaks.test:22 "
          "literal=http://45.45.45.2/");
  EXPECT_EQ(found["https"], "https from allowed.test");
  EXPECT_EQ(found["http"], "http from allowed.test");
  EXPECT_EQ(found["wild"], "wild from a.wild.test");
  EXPECT_EQ(found["first"], "first SSH-2.0-test");
  EXPECT_EQ(found["first6"], "first6 SSH-2.0-test");
  EXPECT_EQ(found["denied"], "denied EAI_AGAIN");
  EXPECT_EQ(found["port"], "port ECONNRESET");
  EXPECT_EQ(found["literal"], "literal ENETUNREACH");
  EXPECT_THAT(denials(), HasSubstr("denied.test:0 host_not_allowed --allow-host denied.test\n"));
  EXPECT_THAT(denials(), HasSubstr("allowed.test:8443 port_not_allowed --allow-host allowed.test:8443\n"));
}

// E18: a client of QUIC hears at once that there is none, and takes TCP.
TEST_F(TransparentTest, DatagramsFindNobodyAndSayIt) {
  auto found =
      ask("named=udp://allowed.test:443 fallback=https://allowed.test/ quic=udp://198.18.0.1:443 "
          "quic6=udp://[fd53::1]:443 out=udp://45.45.45.2:443 out6=udp://[2606:4545::2]:443 "
          "multicast=udp://224.0.0.251:5353");
  EXPECT_EQ(found["named"], "named ECONNREFUSED");
  EXPECT_EQ(found["fallback"], "fallback from allowed.test");
  EXPECT_EQ(found["quic"], "quic ECONNREFUSED");
  EXPECT_EQ(found["quic6"], "quic6 ECONNREFUSED");
  EXPECT_EQ(found["out"], "out ENETUNREACH");
  EXPECT_EQ(found["out6"], "out6 ENETUNREACH");
  EXPECT_EQ(found["multicast"], "multicast ENETUNREACH");
}

TEST_F(TransparentTest, CurlGoesBothWays) {
  const Output output = script(
      "for family in -4 -6; do for url in https://allowed.test/ http://allowed.test/; do "
      "curl -sS $family --max-time 20 $url; done; done; curl -sS --max-time 20 https://denied.test/; echo $?");
  EXPECT_EQ(output.out, "from allowed.test\nfrom allowed.test\nfrom allowed.test\nfrom allowed.test\n6\n")
      << output.err;
}

TEST_F(TransparentTest, GetentKnowsTheAllowedHostsOnly) {
  const Output output = script(
      "getent ahostsv4 allowed.test | head -1; getent ahostsv6 allowed.test | head -1; "
      "getent hosts denied.test; echo $?; getent hosts localhost; getent hosts 198.18.0.1");
  EXPECT_THAT(output.out, HasSubstr("198.18.0.1"));
  EXPECT_THAT(output.out, HasSubstr("fd53::1"));
  EXPECT_THAT(output.out, HasSubstr("\n2\n"));
  EXPECT_THAT(output.out, ::testing::ContainsRegex("198.18.0.1 +allowed.test"));
}

TEST_F(TransparentTest, TheResolverAnswersByUdpAndTcpOnBothLoopbacks) {
  const Output output = script(
      "for way in udp tcp; do for server in 127.0.0.1 ::1; do python3 resolve.py $way $server allowed.test 1; "
      "python3 resolve.py $way $server denied.test 1; done; done\n"
      "python3 resolve.py udp 127.0.0.1 allowed.test 65; python3 resolve.py tcp ::1 allowed.test 28");
  std::string expected;
  for (int i = 0; i < 4; ++i) expected += "0 c6120001\n5 nothing\n";  // 198.18.0.1, and REFUSED
  // No HTTPS record, so no key of an encrypted hello.
  EXPECT_EQ(output.out, expected + "0 nothing\n0 00000001\n") << output.err;
  EXPECT_THAT(denials(), HasSubstr("denied.test:0 host_not_allowed --allow-host denied.test\n"));
}

TEST_F(TransparentTest, NoNameLeadsToAnotherHost) {
  const Output output = script(
      "echo | openssl s_client -connect allowed.test:443 -servername denied.test 2>&1 | grep -c 'access denied'; "
      "curl -sS --max-time 20 -H 'Host: denied.test' -o /dev/null -w '%{http_code}\\n' http://allowed.test/");
  EXPECT_EQ(output.out, "1\n400\n") << output.err;
  EXPECT_THAT(denials(), HasSubstr("allowed.test:443 sni_mismatch"));
}

TEST_F(TransparentTest, TheGuestsOwnServersAreItsOwn) {
  const Output output = script(
      "node -e \"require('http').createServer((q, r) => r.end('own')).listen(8080, () => console.log('up'))\" > up & "
      "until grep -q up up; do sleep 0.05; done; curl -sS http://localhost:8080/; curl -sS http://127.0.0.1:8080/; "
      "kill $!");
  EXPECT_EQ(output.out, "ownown") << output.err;
}

// Where the kernel cannot redirect: no launch when that is required, else one in which names lead nowhere.
TEST_F(TransparentTest, RequiredIsNoLaunchWhereTheKernelCannot) {
  without_nf_tables_ = true;
  const std::string policy = "[isolation]\nallow_hosts = [\"allowed.test\"]\ntransparent = ";
  write_file(home_ + "/policy.toml", policy + "\"required\"\n");
  const Output refused = script("echo ran");
  EXPECT_EQ(refused.code, 125);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("isolation.transparent 'required': nf_tables does not redirect here: Protocol not "
                                     "supported, refusing (see 'belljar doctor'"));
  write_file(home_ + "/policy.toml", policy + "\"auto\"\n");
  auto found = ask("name=https://allowed.test/");
  EXPECT_EQ(found["name"], "name EAI_AGAIN");
  without_nf_tables_ = false;
  write_file(home_ + "/policy.toml", policy + "\"required\"\n");
  EXPECT_EQ(ask("name=https://allowed.test/")["name"], "name from allowed.test");
}

TEST_F(TransparentTest, OffMeansOff) {
  write_file(home_ + "/policy.toml", "[isolation]\nallow_hosts = [\"allowed.test\"]\ntransparent = \"off\"\n");
  auto found = ask("name=https://allowed.test/ synthetic=http://198.18.0.1/ quic=udp://45.45.45.2:443");
  EXPECT_EQ(found["name"], "name EAI_AGAIN");
  EXPECT_EQ(found["synthetic"], "synthetic ENETUNREACH");
  EXPECT_EQ(found["quic"], "quic ENETUNREACH");
}

}  // namespace
}  // namespace belljar::testing
