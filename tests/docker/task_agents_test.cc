// Both real agents as tasks, in an image that belljar built: without any host but their vendor's, held to their phase,
// and they tell the value of a field that only the mounted schema holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "docker/agent_image.h"
#include "docker/world.h"
#include "support/belljar.h"
#include "support/git_repository.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TaskAgentsTest : public ::testing::Test {
 protected:
  // One task for all: it takes time.
  static void SetUpTestSuite() {
    state_ = std::make_unique<TempDir>();
    repository(state_->path() + "/project");
    const Output made = belljar({"task", "create", "--image", AgentImage::get().id(), state_->path() + "/project"});
    ASSERT_EQ(made.code, 0) << made.err;
    task_ = made.out.substr(0, made.out.find('\n'));
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(belljar({"task", "rm", task_}).code, 0);
    state_.reset();
  }
  static Output belljar(std::vector<std::string> words) {
    words.insert(words.begin(), belljar_program());
    Command command = AgentImage::get().with_engine({.argv = std::move(words), .cwd = state_->path()});
    command.env["HOME"] = state_->path();
    command.env["ANTHROPIC_API_KEY"] = "sk-test";
    return run(command, std::chrono::seconds(150));
  }

  void SetUp() override {
    ASSERT_FALSE(task_.empty());
    std::random_device random;
    value_ = std::to_string(random()) + "-of-the-schema";
    write_file(temp_ / "schema.json",
               json{{"type", "object"}, {"title", value_}, {"properties", json::object()}}.dump());
    write_file(temp_ / "login.json", R"({"OPENAI_API_KEY":"sk-test"})");
  }

  void start_model(const json& steps) {
    model_.reset();
    model_ = AgentImage::get().start_model(temp_.path(), steps.dump(), "It says {result}");
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
                                   AgentImage::get().certificates() + "/ca.pem",
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
  static std::string task_;
  TempDir temp_;
  std::string value_;
  std::unique_ptr<Process> model_;
};

std::unique_ptr<TempDir> TaskAgentsTest::state_;
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

TEST_F(TaskAgentsTest, CodexRunsNoCommandThatIsNotOnTheList) {
  start_model({{{"shell", "cp /work/code.cc /work/copy-of-codex"}},
               {{"shell", "ln /work/code.cc /work/link-1"}},
               {{"shell", "ls && ln /work/code.cc /work/link-2"}},
               {{"shell", "ls $(ln /work/code.cc /work/link-3)"}}});
  const Output output = run_agent("fix", "codex");
  EXPECT_EQ(output.code, 0) << output.err << read_text(temp_ / "log");
  EXPECT_THAT(read_text(temp_ / "log"), AllOf(HasSubstr("refused by the phase: ln is not on its list"),
                                              HasSubstr("refused by the phase: a command that is put together")));
  EXPECT_EQ(in_task("ls /work/copy-of-codex /work/link-* 2>/dev/null"), "/work/copy-of-codex\n");
}

TEST_F(TaskAgentsTest, CodexCannotWriteInAPhaseThatMayNot) {
  start_model({{{"write", "/work/review.txt"}, {"content", "made\n"}},
               {{"shell", "touch /work/review.txt"}},
               {{"shell", "cat /work/code.cc >/work/review.txt"}}});
  const Output output = run_agent("review", "codex");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(read_text(temp_ / "log"),
              AllOf(HasSubstr("touch is not on its list"), HasSubstr("Read-only file system")));
  EXPECT_EQ(in_task("ls /work/review.txt 2>/dev/null"), "");
}

}  // namespace
}  // namespace belljar::testing
