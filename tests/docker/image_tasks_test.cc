// Both real agents in the task profile: on a task's storage, in the image that was built, with the way to their
// vendor's model API alone and a schema that nothing else holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
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

constexpr const char* kToken = "sk-a-token-of-the-test-8891";
constexpr const char* kSchema = "/run/belljar-input/schema.json";

class ImageTasksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::random_device random;
    value_ = "value-" + std::to_string(random()) + "-of-the-schema";
    write_file(temp_ / "schema.json", json{{"type", "object"},
                                           {"properties", {{"title", {{"type", "string"}, {"description", value_}}}}},
                                           {"required", {"title"}},
                                           {"additionalProperties", false}}
                                          .dump());
    const std::string project = temp_ / "project";
    std::filesystem::create_directories(project);
    std::filesystem::copy(std::string(BELLJAR_TESTS_DIR) + "/agents/reach.js", project + "/reach.js");
    write_file(
        project + "/reach.json",
        json{{"read", {{"work", "/work/reach.json"}, {"socket", DockerWorld::get().socket()}}},
             {"write", {{"file", "/work/planted"}, {"metadata", "/work/.git/planted"}, {"image", "/usr/x"}}},
             {"connect", {{"direct", {TestHosts::kInternet, 443}}, {"name", {"api.anthropic.com", 443}}}},
             {"through_proxy",
              {{"claude", "api.anthropic.com:443"}, {"codex", "api.openai.com:443"}, {"other", "denied.test:443"}}}}
            .dump());
    must_run({.argv = {"git", "init", "-q", "-b", "main", project}});
    must_run({.argv = {"git", "-C", project, "add", "."}});
    must_run(
        {.argv = {"git", "-C", project, "-c", "user.name=a", "-c", "user.email=a@a.test", "commit", "-qm", "One"}});
    const Output created = belljar({"task", "create", "--image", image_.id(), project});
    ASSERT_EQ(created.code, 0) << created.err;
    task_ = created.out.substr(0, created.out.find('\n'));
  }
  void TearDown() override {
    if (!task_.empty()) {
      const Output removed = belljar({"task", "rm", task_});
      EXPECT_EQ(removed.code, 0) << removed.err;
    }
  }

  Output belljar(std::vector<std::string> words) {
    words.insert(words.begin(), belljar_program());
    Command command = image_.with_engine({.argv = std::move(words), .cwd = temp_.path()});
    command.env["HOME"] = temp_.path();
    command.env["ANTHROPIC_API_KEY"] = kToken;
    command.env["OPENAI_API_KEY"] = kToken;
    return run(command, std::chrono::seconds(180));
  }
  Output run_agent(const std::string& agent, const std::string& phase, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"task",
                                      "run",
                                      task_,
                                      "--phase",
                                      phase,
                                      "--agent",
                                      agent,
                                      "--token-env",
                                      agent == "claude" ? "ANTHROPIC_API_KEY" : "OPENAI_API_KEY",
                                      "--prompt",
                                      "What does it say?",
                                      "--image",
                                      image_.id(),
                                      "--report",
                                      temp_ / "report"};
    words.insert(words.end(), more.begin(), more.end());
    return belljar(std::move(words));
  }
  void start_model(const json& steps) { model_ = image_.start_model(temp_.path(), steps.dump(), "It says {result}"); }

  void expect_told(const Output& output) {
    EXPECT_EQ(output.code, 0) << output.err << output.out << read_text(temp_ / "log");
    EXPECT_THAT(output.out, HasSubstr(value_)) << output.err << read_text(temp_ / "log");
    EXPECT_THAT(output.out + output.err + read_text(temp_ / "report"), Not(HasSubstr(kToken)));
    const json report = json::parse(read_text(temp_ / "report"), nullptr, false);
    EXPECT_EQ(report["exit"]["reason"], "exited") << report;
    EXPECT_THAT(report["unreleased"], IsEmpty());
  }

  AgentImage& image_ = AgentImage::get();
  TempDir temp_;
  std::string value_;
  std::string task_;
  std::unique_ptr<Process> model_;
};

TEST_F(ImageTasksTest, ClaudePlansWithTheSchemaAndItsVendorAlone) {
  start_model({{{"read", kSchema}}});
  expect_told(run_agent("claude", "plan", {"--schema", temp_ / "schema.json"}));
}

TEST_F(ImageTasksTest, CodexPlansWithTheSchemaAndItsVendorAlone) {
  start_model({{{"read", kSchema}}});
  expect_told(run_agent("codex", "plan", {"--schema", temp_ / "schema.json"}));
}

// What the cases above lean on: the value comes from nowhere else.
TEST_F(ImageTasksTest, WithoutTheSchemaTheValueIsNotKnown) {
  start_model({{{"read", kSchema}}});
  const Output output = run_agent("claude", "plan");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("It says"), Not(HasSubstr(value_))));
}

// Each at its own vendor's, and nowhere else; and what it made is in the task.
TEST_F(ImageTasksTest, TheyExecuteAndReachTheirOwnVendorAlone) {
  for (const char* agent : {"claude", "codex"}) {
    const std::string other = agent == std::string("claude") ? "codex" : "claude";
    const std::string made = std::string("/work/made-by-") + agent;
    start_model({{{"shell", "node /work/reach.js /work/reach.json"}},
                 {{"write", made}, {"content", "made\n"}},
                 {{"shell", "cat /work/made-by-*"}}});
    const Output output = run_agent(agent, "execute");
    EXPECT_EQ(output.code, 0) << agent << output.err;
    const std::string log = read_text(temp_ / "log");
    for (const char* name : {"work", "file", agent})
      EXPECT_THAT(log, HasSubstr(std::string(name) + " reached")) << agent;
    for (const std::string& name : {std::string("socket"), std::string("metadata"), std::string("image"),
                                    std::string("direct"), std::string("name"), std::string("other"), other}) {
      EXPECT_THAT(log, HasSubstr(name + " refused")) << agent;
    }
    EXPECT_THAT(belljar({"task", "inspect", task_}).out, HasSubstr(made.substr(6))) << agent;
    model_.reset();
    std::filesystem::remove(temp_ / "log");
  }
}

}  // namespace
}  // namespace belljar::testing
