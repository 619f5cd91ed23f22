// The main job: the real Claude Code and the real Codex, sealed, against a model API that asks them, through their own
// tools, to edit a file and then to try whatever must be out of reach.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
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
using ::testing::StartsWith;

constexpr const char* kSecret = "a-secret-of-the-home-5309";
constexpr const char* kAnswer = "The answer is forty-two.";

class AgentsTest : public ::testing::Test {
 protected:
  AgentsTest() : hosts_({"model.test", "denied.test"}) {}

  void SetUp() override {
    const char* agents = std::getenv("BELLJAR_TEST_AGENTS");
    ASSERT_NE(agents, nullptr) << "the agent CLIs are installed by './dev test', which names their folder";
    // As `npm install -g` with a prefix of one's own leaves them.
    hosts_.show(std::string(agents) + "/node_modules", home_ + "/.local/lib/node_modules");
    std::filesystem::create_directories(home_ + "/.local/bin");
    std::filesystem::create_symlink("../lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe",
                                    home_ + "/.local/bin/claude");
    std::filesystem::create_symlink("../lib/node_modules/@openai/codex/bin/codex.js", home_ + "/.local/bin/codex");
    // The programs themselves too: in the user namespace that an ordinary user's test plays the host in, root's files
    // belong to nobody that is known, and belljar trusts none of those.
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name,
                                 home_ + "/.local/bin/" + name);
    }
    write_file(home_ + "/.ssh/id_ed25519", std::string(kSecret) + "\n");
    std::filesystem::create_directories(home_ + "/.claude");
    write_file(home_ + "/.claude.json", "{}\n");
    write_file(home_ + "/.codex/config.toml", R"(model = "test-model"
model_provider = "test"
[model_providers.test]
name = "test"
base_url = "https://model.test/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[analytics]
enabled = false
)");
    std::filesystem::create_directories(work_);
    must_run({.argv = {"git", "init", "-q", "."}, .cwd = work_});
    make_certificates(temp_.path(), {"model.test", "denied.test"});
    std::filesystem::copy(temp_ / "ca.pem", home_ + "/test-ca.pem");
    std::filesystem::copy(std::string(BELLJAR_TESTS_DIR) + "/agents/reach.js", work_ + "/reach.js");
    listen_on_the_host();
    write_file(work_ + "/reach.json",
               json{{"read", {{"secret", home_ + "/.ssh/id_ed25519"}, {"work", work_ + "/reach.json"}}},
                    {"write", {{"git-hook", work_ + "/.git/hooks/pre-commit"}, {"profile", home_ + "/.profile"}}},
                    {"connect",
                     {{"host-loopback", {"127.0.0.1", port_}},
                      {"host-address", {TestHosts::kHost, port_}},
                      {"direct", {TestHosts::kInternet, 443}},
                      {"direct-name", {"model.test", 443}}}},
                    {"abstract", {{"host-abstract", abstract_}}},
                    {"through_proxy",
                     {{"model", "model.test:443"},
                      {"denied", "denied.test:443"},
                      {"denied-address", std::string(TestHosts::kInternet) + ":443"},
                      {"proxy-to-host", "127.0.0.1:" + std::to_string(port_)}}}}
                   .dump());
    start_model();
  }

  // A program of the host that listens on its loopback, and one on an abstract socket.
  void listen_on_the_host() {
    tcp_ = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::listen(tcp_.get(), 8), 0);  // binds to a free port of every address
    sockaddr_in name{};
    socklen_t size = sizeof name;
    ASSERT_EQ(::getsockname(tcp_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
    abstract_ = "belljar-test-" + std::to_string(::getpid());
    unix_ = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un path{};
    path.sun_family = AF_UNIX;
    std::memcpy(path.sun_path + 1, abstract_.data(), abstract_.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + abstract_.size());
    ASSERT_EQ(::bind(unix_.get(), reinterpret_cast<sockaddr*>(&path), length), 0);
    ASSERT_EQ(::listen(unix_.get(), 8), 0);
  }

  void start_model() {
    const json plan = {{"address", TestHosts::kInternet},
                       {"port", 443},
                       {"cert", temp_ / "cert.pem"},
                       {"key", temp_ / "key.pem"},
                       {"log", temp_ / "log"},
                       {"steps",
                        {{{"write", work_ + "/made.txt"}, {"content", "made by the agent\n"}},
                         {{"shell", "node " + work_ + "/reach.js " + work_ + "/reach.json"}}}},
                       {"answer", kAnswer}};
    write_file(temp_ / "model.json", plan.dump());
    model_ = std::make_unique<Process>(
        hosts_.start({.argv = {"node", std::string(BELLJAR_TESTS_DIR) + "/support/mock_model.js", temp_ / "model.json"},
                      .err = Stream::from(STDERR_FILENO)}));
    ASSERT_EQ(model_->read_line(), "ready");
  }

  Command as_person(Command command) {
    if (command.argv[0] == belljar_program()) command.argv[0] = home_ + "/.local/bin/belljar";
    command.env = {{"HOME", home_},
                   {"PATH", home_ + "/.local/bin:/usr/local/bin:/usr/bin:/bin"},
                   {"ANTHROPIC_BASE_URL", "https://model.test"},
                   {"ANTHROPIC_API_KEY", "sk-test"},
                   {"OPENAI_API_KEY", "sk-test"}};
    return hosts_.as_caller(std::move(command));
  }

  Output run_agent(const std::string& agent, const std::vector<std::string>& words) {
    const std::vector<std::string> options = {"--agent", agent, "--allow-host", "model.test",
                                              // What a person with a model API of their own has to say.
                                              "--read", home_ + "/test-ca.pem", "--env", "ANTHROPIC_BASE_URL", "--env",
                                              "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "--env",
                                              "NODE_EXTRA_CA_CERTS=" + home_ + "/test-ca.pem", "--env",
                                              "SSL_CERT_FILE=" + home_ + "/test-ca.pem", "--report", temp_ / "report"};
    return run(as_person(sealed(work_, words, options)), std::chrono::seconds(120));
  }

  // The lines of reach.js as the agent sent them to the model: NAME -> the rest.
  std::map<std::string, std::string> reached() {
    std::map<std::string, std::string> found;
    std::istringstream log(read_text(temp_ / "log"));
    for (std::string line; std::getline(log, line);) {
      const json entry = json::parse(line);
      if (entry.value("result", 0) == 2) add_lines(entry["text"], found);
    }
    return found;
  }

  static void add_lines(const std::string& text, std::map<std::string, std::string>& into) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const size_t space = line.find(' ');
      if (space != std::string::npos) into[line.substr(0, space)] = line.substr(space + 1);
    }
  }

  void expect_done_and_sealed(const Output& output) {
    EXPECT_EQ(output.code, 0) << output.err << read_text(temp_ / "log");
    EXPECT_THAT(output.out, HasSubstr(kAnswer));
    EXPECT_EQ(read_text(work_ + "/made.txt"), "made by the agent\n");
    struct stat work{}, made{};
    ASSERT_EQ(::stat(work_.c_str(), &work), 0);
    ASSERT_EQ(::stat((work_ + "/made.txt").c_str(), &made), 0) << output.err;
    EXPECT_EQ(made.st_uid, work.st_uid);
    EXPECT_EQ(made.st_gid, work.st_gid);

    auto found = reached();
    EXPECT_THAT(found["work"], StartsWith("reached"));
    EXPECT_THAT(found["model"], StartsWith("reached"));
    EXPECT_THAT(read_text(temp_ / "log"), ::testing::Not(HasSubstr(kSecret)));
    for (const char* name : {"secret", "git-hook", "host-loopback", "host-address", "direct", "direct-name",
                             "host-abstract", "denied", "denied-address", "proxy-to-host"}) {
      EXPECT_THAT(found[name], StartsWith("refused")) << name;
    }
    EXPECT_THAT(found["denied"], HasSubstr("403"));
    EXPECT_THAT(found["denied"], HasSubstr("--allow-host denied.test"));
    EXPECT_FALSE(std::filesystem::exists(work_ + "/.git/hooks/pre-commit"));
    EXPECT_FALSE(std::filesystem::exists(home_ + "/.profile"));  // the guest's own home may have taken it
    EXPECT_EQ(run({.argv = {"git", "status", "--porcelain", "--untracked-files=no"}, .cwd = work_}).out, "");

    const json report = json::parse(read_text(temp_ / "report"), nullptr, false);
    ASSERT_TRUE(report.contains("denials")) << report;
    EXPECT_THAT(report["denials"].dump(), HasSubstr("denied.test"));
  }

  TestHosts hosts_;
  TempDir temp_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/project";
  base::Fd tcp_, unix_;
  int port_ = 0;
  std::string abstract_;
  std::unique_ptr<Process> model_;
};

// What every other case leans on: without the seal, all of it is within reach.
TEST_F(AgentsTest, EverythingIsWithinReachWithoutTheSeal) {
  const Output output = run(as_person({.argv = {"node", work_ + "/reach.js", work_ + "/reach.json"}}));
  std::map<std::string, std::string> found;
  add_lines(output.out, found);
  for (const char* name : {"work", "secret", "git-hook", "profile", "host-loopback", "host-address", "direct",
                           "direct-name", "host-abstract"}) {
    EXPECT_THAT(found[name], StartsWith("reached")) << name << "\n" << output.out << output.err;
  }
}

TEST_F(AgentsTest, ClaudeEditsAFileAndReachesNothingElse) {
  expect_done_and_sealed(run_agent("claude", {"claude", "-p", "--dangerously-skip-permissions", "Make the file"}));
}

TEST_F(AgentsTest, CodexEditsAFileAndReachesNothingElse) {
  expect_done_and_sealed(run_agent("codex", {"codex", "exec", "--skip-git-repo-check", "Make the file"}));
}

TEST_F(AgentsTest, TheModelsCertificateIsChecked) {
  // Without the test's CA the agent must not accept the mock: no interception sits in between.
  const Output output =
      run(as_person(sealed(work_, {"claude", "-p", "hi"},
                           {"--agent", "claude", "--allow-host", "model.test", "--env", "ANTHROPIC_BASE_URL", "--env",
                            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "--env", "CLAUDE_CODE_MAX_RETRIES=0"})),
          std::chrono::seconds(120));
  EXPECT_NE(output.code, 0);
  EXPECT_THAT(output.out + output.err, ::testing::ContainsRegex("[Cc]ertificate|SSL|self.signed"));
  EXPECT_THAT(read_text(temp_ / "log"), ::testing::Not(HasSubstr("/v1/messages")));
}

}  // namespace
}  // namespace belljar::testing
