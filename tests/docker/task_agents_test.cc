// Both real agents as tasks, in an image that belljar built: without any host but their vendor's, held to their phase,
// and they tell the value of a field that only the mounted schema holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "docker/world.h"
#include "support/belljar.h"
#include "support/git_repository.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The vendors' names, on the test's own internet, before the engine sees the same files.
TestHosts& hosts() {
  static TestHosts all({"api.anthropic.com", "api.openai.com", "chatgpt.com", "auth.openai.com"});
  return all;
}

class TaskAgentsTest : public ::testing::Test {
 protected:
  // The image and the task are what takes time: one of each.
  static void SetUpTestSuite() {
    const char* parts = std::getenv("BELLJAR_TEST_IMAGE");
    ASSERT_NE(parts, nullptr) << "'./dev test' makes what the image is built of, and names the folder";
    (void)hosts();
    state_ = std::make_unique<TempDir>();
    repository(state_->path() + "/project");
    const Output built = belljar({"image", "build", "--base-tar", std::string(parts) + "/base.tar", "--packages",
                                  std::string(parts) + "/packages", "--timeout", "10m"},
                                 std::chrono::minutes(11));
    ASSERT_EQ(built.code, 0) << built.err;
    image_ = built.out.substr(0, built.out.find('\n'));
    const Output made = belljar({"task", "create", "--image", image_, state_->path() + "/project"});
    ASSERT_EQ(made.code, 0) << made.err;
    task_ = made.out.substr(0, made.out.find('\n'));
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(belljar({"task", "rm", task_}).code, 0);
    EXPECT_EQ(belljar({"image", "rm", image_}).code, 0);
    state_.reset();
  }
  static Output belljar(std::vector<std::string> words, std::chrono::seconds patience = std::chrono::seconds(150)) {
    words.insert(words.begin(), belljar_program());
    return run({.argv = std::move(words),
                .env = {{"DOCKER_HOST", "unix://" + DockerWorld::get().socket()},
                        {"XDG_STATE_HOME", state_->path() + "/state"},
                        {"HOME", state_->path()},
                        {"ANTHROPIC_API_KEY", "sk-test"}},
                .cwd = state_->path()},
               patience);
  }

  void SetUp() override {
    ASSERT_FALSE(task_.empty());
    make_certificates(temp_.path(), {"api.anthropic.com", "api.openai.com", "chatgpt.com", "auth.openai.com"});
    std::random_device random;
    value_ = std::to_string(random()) + "-of-the-schema";
    write_file(temp_ / "schema.json",
               json{{"type", "object"}, {"title", value_}, {"properties", json::object()}}.dump());
    write_file(temp_ / "login.json", R"({"OPENAI_API_KEY":"sk-test"})");
  }

  void start_model(const json& steps) {
    model_.reset();
    write_file(temp_ / "model.json", json{{"address", TestHosts::kInternet},
                                          {"port", 443},
                                          {"cert", temp_ / "cert.pem"},
                                          {"key", temp_ / "key.pem"},
                                          {"log", temp_ / "log"},
                                          {"steps", steps},
                                          {"answer", "It says {result}"}}
                                         .dump());
    model_ = std::make_unique<Process>(hosts().start(
        {.argv = {"node", std::string(BELLJAR_TESTS_DIR) + "/support/mock_model.js", temp_ / "model.json"},
         .err = Stream::from(STDERR_FILENO)}));
    ASSERT_EQ(model_->read_line(), "ready");
  }

  Output run_agent(const std::string& phase, const std::string& agent) {
    std::vector<std::string> words{"task",
                                   "run",
                                   task_,
                                   "--phase",
                                   phase,
                                   "--agent",
                                   agent,
                                   "--model",
                                   "test-model",
                                   "--prompt",
                                   "What does it say?",
                                   "--schema",
                                   temp_ / "schema.json",
                                   "--certificates",
                                   temp_ / "ca.pem",
                                   "--report",
                                   temp_ / "report",
                                   "--deadline",
                                   "2m"};
    if (agent == "claude") {
      words.insert(words.end(), {"--token-env", "ANTHROPIC_API_KEY"});
    } else {
      words.insert(words.end(), {"--credential-file", temp_ / "login.json"});
    }
    Output output = belljar(words);
    EXPECT_THAT(session_containers(), ::testing::IsEmpty());
    EXPECT_THAT(output.err, Not(HasSubstr("sk-test")));
    return output;
  }
  // What a shell of the task's own prints in a plain phase of review.
  static std::string in_task(const std::string& script) {
    return belljar({"task", "run", task_, "--phase", "review", "--", "sh", "-c", script}).out;
  }

  static std::unique_ptr<TempDir> state_;
  static std::string image_;
  static std::string task_;
  TempDir temp_;
  std::string value_;
  std::unique_ptr<Process> model_;
};

std::unique_ptr<TempDir> TaskAgentsTest::state_;
std::string TaskAgentsTest::image_;
std::string TaskAgentsTest::task_;

const json kRead = {{"shell", "cat /run/belljar-input/schema.json"}};

TEST_F(TaskAgentsTest, ClaudeDoesItsPhaseAndTellsTheSchema) {
  start_model({{{"write", "/work/claude.txt"}, {"content", "made\n"}}, kRead});
  const Output output = run_agent("execute", "claude");
  EXPECT_EQ(output.code, 0) << output.err << read_text(temp_ / "log");
  EXPECT_THAT(output.out, HasSubstr(value_)) << output.err << read_text(temp_ / "log");
  EXPECT_EQ(in_task("cat /work/claude.txt"), "made\n");
}

TEST_F(TaskAgentsTest, ClaudeHasNoToolsToWriteInAPhaseThatMayNot) {
  start_model({{{"write", "/work/plan.txt"}, {"content", "made\n"}}, {{"shell", "touch /work/plan.txt"}}});
  const Output output = run_agent("plan", "claude");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(read_text(temp_ / "log"), AllOf(HasSubstr(R"("missing":"Write")"), HasSubstr(R"("missing":"Bash")"),
                                              HasSubstr("No such tool available: Bash")));
  EXPECT_EQ(in_task("ls /work"), "claude.txt\ncode.cc\n");
}

TEST_F(TaskAgentsTest, ClaudeRunsNoCommandThatIsNotOnTheList) {
  start_model({{{"shell", "cp /work/code.cc /work/copy"}}, {{"shell", "ln /work/code.cc /work/link"}}});
  const Output output = run_agent("fix", "claude");
  EXPECT_EQ(output.code, 0) << output.err << read_text(temp_ / "log");
  EXPECT_THAT(read_text(temp_ / "log"), HasSubstr("Permission to use Bash"));
  EXPECT_EQ(in_task("ls /work/copy /work/link 2>/dev/null"), "/work/copy\n");
}

TEST_F(TaskAgentsTest, CodexDoesItsPhaseAndTellsTheSchema) {
  start_model({{{"write", "/work/codex.txt"}, {"content", "made\n"}}, kRead});
  const Output output = run_agent("execute", "codex");
  EXPECT_EQ(output.code, 0) << output.err << read_text(temp_ / "log");
  EXPECT_THAT(output.out, HasSubstr(value_)) << output.err << read_text(temp_ / "log");
  EXPECT_EQ(in_task("cat /work/codex.txt"), "made\n");
}

TEST_F(TaskAgentsTest, CodexCannotWriteInAPhaseThatMayNot) {
  start_model({{{"write", "/work/review.txt"}, {"content", "made\n"}}, {{"shell", "touch /work/review.txt"}}});
  const Output output = run_agent("review", "codex");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(read_text(temp_ / "log"), HasSubstr("Read-only file system"));
  EXPECT_EQ(in_task("ls /work/review.txt 2>/dev/null"), "");
}

}  // namespace
}  // namespace belljar::testing
