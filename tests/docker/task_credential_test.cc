// A task's credential and schema: what becomes of them, with the built programs and a real engine. The agents are
// scripts that do what their prompt says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "docker/task_launch.h"
#include "docker/test_task.h"
#include "docker/world.h"
#include "support/belljar.h"
#include "tiers/docker/remove.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kCodexLogin = R"({"OPENAI_API_KEY":"hush-hush"})";
constexpr const char* kClaudeLogin = R"({"claudeAiOauth":{"accessToken":"hush-hush"}})";
constexpr const char* kAuth = "/run/belljar-state/codex/auth.json";

class TaskCredentialTest : public ::testing::Test {
 protected:
  TaskCredentialTest() {
    write_file(state_ / "codex.json", kCodexLogin);
    write_file(state_ / "claude.json", kClaudeLogin);
  }
  ~TaskCredentialTest() override { remove_session_containers(); }

  static base::Deadline soon() { return base::Deadline::after(std::chrono::seconds(60)); }
  static const tiers::docker::Engine& engine() { return DockerWorld::get().engine(); }

  Command task_run(const std::string& agent, const std::vector<std::string>& options, const std::string& prompt) {
    std::vector<std::string> argv{"task", "run",      task_.id(), "--phase",  "execute",          "--agent",
                                  agent,  "--prompt", prompt,     "--report", state_ / "end.json"};
    argv.insert(argv.end(), options.begin(), options.end());
    return with_secrets(task_.belljar(std::move(argv)));
  }
  static Command with_secrets(Command command) {
    command.env["OPENAI_API_KEY"] = "hush-of-the-environment";
    command.env["ANTHROPIC_API_KEY"] = "hush-of-another-vendor";
    return command;
  }
  Output recover() { return run(task_.belljar({"recover"})); }

  std::vector<std::string> staged() {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(state_ / "state/belljar/credentials", none)) {
      out.push_back(entry.path());
    }
    return out;
  }
  // Files of Belljar's state that hold the text.
  std::vector<std::string> files_with(const std::string& text) {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(state_ / "state")) {
      if (entry.is_regular_file() && read_text(entry.path()).contains(text)) out.push_back(entry.path());
    }
    return out;
  }
  static std::string inspect() {
    const auto found = session_containers();
    if (found.size() != 1) return "";
    const auto shown = require(engine().ask("GET", "/containers/" + found.front().id + "/json", soon()), "", "");
    return shown ? shown->body : "";
  }

  const TempDir state_;
  const TestTask task_{state_.path(), agents_image(), DockerWorld::get().socket()};
};

TEST_F(TaskCredentialTest, ALoginIsReadOnceAndGoneAtTheEnd) {
  Process process(task_run("codex", {"--credential-file", state_ / "codex.json"},
                           std::string("cat ") + kAuth + "; echo; echo $CODEX_HOME; echo new >" + kAuth + "; mv " +
                               kAuth + " /tmp/x; rm -f " + kAuth + "; ls -l " + kAuth + " | cut -c1-10; sleep 1000"));
  EXPECT_EQ(process.read_line(), kCodexLogin);
  EXPECT_EQ(process.read_line(), "/run/belljar-state/codex");
  EXPECT_EQ(process.read_line(), "-r--r--r--");
  const auto kept = staged();
  ASSERT_THAT(kept, SizeIs(1));
  struct stat folder{}, file{};
  ASSERT_EQ(::stat(kept.front().c_str(), &folder), 0);
  ASSERT_EQ(::stat((kept.front() + "/login").c_str(), &file), 0);
  EXPECT_EQ(folder.st_mode & 07777U, 0700U);
  EXPECT_EQ(folder.st_uid, ::geteuid());
  EXPECT_EQ(file.st_mode & 07777U, 0444U);
  EXPECT_THAT(inspect(), AllOf(HasSubstr("auth.json"), Not(HasSubstr("hush-"))));
  // What becomes of the person's file does not count any more.
  write_file(state_ / "codex.json", "{}");
  EXPECT_EQ(read_text(kept.front() + "/login"), kCodexLogin);
  process.signal(SIGTERM);
  (void)process.wait();
  EXPECT_THAT(staged(), IsEmpty());
  EXPECT_THAT(session_containers(), IsEmpty());
  EXPECT_THAT(files_with("hush-"), IsEmpty());
}

TEST_F(TaskCredentialTest, ATokenGoesToTheAgentAndIsNowhereElse) {
  Command command =
      task_run("codex", {"--token-env", "OPENAI_API_KEY"},
               "echo $OPENAI_API_KEY; env | grep -cE '^(OPENAI|ANTHROPIC|CLAUDE)'; ls -A $CODEX_HOME; sleep 1000");
  command.err = Stream::pipe();
  Process process(command);
  EXPECT_EQ(process.read_line(), "hush-of-the-environment");
  EXPECT_EQ(process.read_line(), "1") << "and no other vendor's";
  EXPECT_THAT(inspect(), AllOf(HasSubstr("CODEX_HOME"), Not(HasSubstr("hush-"))));
  EXPECT_THAT(files_with("hush-"), IsEmpty()) << "while it runs";
  process.signal(SIGTERM);
  const Output output = process.wait();
  EXPECT_EQ(output.code, 143) << output.err;
  EXPECT_EQ(output.err, "");
  EXPECT_THAT(output.err, Not(HasSubstr("hush-")));
  EXPECT_THAT(read_text(state_ / "end.json"), AllOf(HasSubstr("codex"), Not(HasSubstr("hush-"))));
  EXPECT_THAT(files_with("hush-"), IsEmpty());
}

TEST_F(TaskCredentialTest, OneVendorsNeverGoesWithAnothers) {
  const auto refused = [&](const std::string& agent, const std::vector<std::string>& options) {
    const Output output = run(task_run(agent, options, "echo ran"));
    EXPECT_EQ(output.code, 125) << output.out;
    EXPECT_THAT(output.out, Not(HasSubstr("ran")));
    EXPECT_THAT(output.err, Not(HasSubstr("hush-")));
    return output.err;
  };
  EXPECT_THAT(refused("codex", {"--credential-file", state_ / "claude.json"}),
              HasSubstr("it is a login of claude, not of codex, refusing"));
  EXPECT_THAT(refused("claude", {"--credential-file", state_ / "codex.json"}),
              HasSubstr("it is a login of codex, not of claude, refusing"));
  EXPECT_THAT(refused("codex", {"--token-env", "ANTHROPIC_API_KEY"}), HasSubstr("it is another vendor's, refusing"));
  EXPECT_THAT(refused("claude", {"--token-env", "OPENAI_API_KEY"}), HasSubstr("it is another vendor's, refusing"));
  EXPECT_THAT(refused("claude", {"--token-env", "HOME"}), HasSubstr("it is no credential, refusing"));
  EXPECT_THAT(refused("codex", {"--token-env", "CODEX_API_KEY"}), HasSubstr("its value is empty"));
  EXPECT_THAT(refused("codex", {"--token-env", "OPENAI_API_KEY", "--credential-file", state_ / "codex.json"}),
              HasSubstr("one credential is enough"));
  write_file(state_ / "both.json", R"({"OPENAI_API_KEY":"hush-1","claudeAiOauth":{}})");
  EXPECT_THAT(refused("codex", {"--credential-file", state_ / "both.json"}), HasSubstr("it is no login"));
  EXPECT_THAT(staged(), IsEmpty());
  EXPECT_THAT(session_containers(), IsEmpty());
}

TEST_F(TaskCredentialTest, OnlyARegularFileWithoutALinkIsRead) {
  const auto refused = [&](const std::string& option, const std::string& path) {
    const Output output = run(task_run("codex", {option, path}, "echo ran"));
    EXPECT_EQ(output.code, 125) << output.out;
    EXPECT_THAT(output.err, Not(HasSubstr("hush-")));
    return output.err;
  };
  std::filesystem::create_symlink("codex.json", state_ / "link");
  std::filesystem::create_directory(state_ / "folder");
  std::filesystem::create_symlink("folder", state_ / "way");
  write_file(state_ / "folder/codex.json", kCodexLogin);
  ASSERT_EQ(::mkfifo((state_ / "fifo").c_str(), 0600), 0);
  write_file(state_ / "large", std::string((1 << 20) + 1, 'x'));
  for (const char* option : {"--credential-file", "--schema"}) {
    EXPECT_THAT(refused(option, state_ / "link"), HasSubstr("a link is in the way")) << option;
    EXPECT_THAT(refused(option, state_ / "way/codex.json"), HasSubstr("a link is in the way")) << option;
    EXPECT_THAT(refused(option, state_ / "fifo"), HasSubstr("not a regular file")) << option;
    EXPECT_THAT(refused(option, state_ / "folder"), HasSubstr("not a regular file")) << option;
    EXPECT_THAT(refused(option, state_ / "large"), HasSubstr("bytes, refusing")) << option;
    EXPECT_THAT(refused(option, state_ / "none"), HasSubstr("No such file")) << option;
  }
}

TEST_F(TaskCredentialTest, ASchemaIsThereToRead) {
  write_file(state_ / "schema.json", R"({"title":"only here"})");
  const Output output =
      run(task_run("codex", {"--schema", state_ / "schema.json"},
                   "cat /run/belljar-input/schema.json; echo; echo x >/run/belljar-input/schema.json"));
  EXPECT_EQ(output.out, "{\"title\":\"only here\"}\n") << output.err;
  EXPECT_THAT(output.err, HasSubstr("Read-only file system"));
}

// What launcher and settler leave when both are killed.
TEST_F(TaskCredentialTest, GoesWithARecovery) {
  Process process(task_run("codex", {"--credential-file", state_ / "codex.json"}, "echo ready; sleep 1000"));
  ASSERT_EQ(process.read_line(), "ready");
  ASSERT_THAT(staged(), SizeIs(1));
  const std::string children =
      read_text("/proc/" + std::to_string(process.pid()) + "/task/" + std::to_string(process.pid()) + "/children");
  ASSERT_FALSE(children.empty());
  const pid_t settler = std::stoi(children);
  ASSERT_EQ(::kill(settler, SIGSTOP), 0);
  process.signal(SIGKILL);
  ASSERT_EQ(::kill(settler, SIGKILL), 0);
  EXPECT_THAT(staged(), SizeIs(1));
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(recover().code, 0);
    return session_containers().empty();
  }));
  EXPECT_THAT(staged(), IsEmpty());
  EXPECT_THAT(files_with("hush-"), IsEmpty());
}

// The container may be there as long as nobody has seen that it is not: the engine that would know does not answer.
TEST_F(TaskCredentialTest, StaysUntilTheContainerIsProvenGone) {
  TaskLaunch launch(BELLJAR_GUEST, {.agent = "codex", .login = kCodexLogin});
  ASSERT_TRUE(launch.prepare().has_value());
  ASSERT_TRUE(std::filesystem::exists(launch.staged()));
  const tiers::docker::Remains lost{state_ / "nobody.sock", TaskLaunch::kSession, launch.meeting(), launch.staged()};
  const auto decoded = tiers::docker::decode_remains(tiers::docker::encode(lost));
  ASSERT_TRUE(decoded.has_value());
  const auto kept = remove(*decoded, false, base::Deadline::after(std::chrono::milliseconds(300)));
  EXPECT_THAT(kept.unreleased, SizeIs(1));
  EXPECT_THAT(kept.unreleased.front(), HasSubstr("label belljar.session=" + std::string(TaskLaunch::kSession)));
  EXPECT_TRUE(std::filesystem::exists(launch.staged()));
  EXPECT_TRUE(std::filesystem::exists(launch.meeting()));
  const tiers::docker::Remains found{DockerWorld::get().socket(), TaskLaunch::kSession, launch.meeting(),
                                     launch.staged()};
  EXPECT_THAT(remove(found, false, soon()).unreleased, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(launch.staged()));
  EXPECT_FALSE(std::filesystem::exists(launch.meeting()));
}

// Neither a request that was edited after its capture nor an input that was changed after it was read gets a container.
TEST_F(TaskCredentialTest, WhatWasTouchedGetsNoContainer) {
  const auto launched = [](const std::function<void(TaskLaunch&)>& touch) {
    TaskLaunch launch(BELLJAR_GUEST, {.phase = tiers::docker::task::Phase::kReview, .schema = R"({"a":1})"});
    const auto record = launch.prove([&](tiers::docker::Prepared&, json&) { touch(launch); });
    if (record) return std::string("proved");
    EXPECT_THAT(session_containers(), IsEmpty());
    return record.error().message();
  };
  EXPECT_EQ(launched([](TaskLaunch&) {}), "proved");
  EXPECT_THAT(launched([](TaskLaunch& launch) {
                const_cast<tiers::docker::task::Request&>(launch.invocation().request()).phase =
                    tiers::docker::task::Phase::kExecute;
              }),
              HasSubstr("it is not what was captured, refusing"));
  EXPECT_THAT(launched([](TaskLaunch& launch) {
                const std::string path = launch.meeting() + "/schema.json";
                write_file(path + ".new", R"({"a":1})");
                std::filesystem::permissions(path + ".new", std::filesystem::perms(0444));
                std::filesystem::rename(path + ".new", path);
              }),
              HasSubstr("its file is another one, or was changed, refusing"));
  EXPECT_THAT(launched([](TaskLaunch& launch) {
                const std::string path = launch.meeting() + "/schema.json";
                std::filesystem::permissions(path, std::filesystem::perms(0644));
                write_file(path, R"({"a":2})");
                std::filesystem::permissions(path, std::filesystem::perms(0444));
              }),
              HasSubstr("its file is another one, or was changed, refusing"));
}

TEST_F(TaskCredentialTest, GoesWithAKilledLauncher) {
  Process process(task_run("codex", {"--credential-file", state_ / "codex.json"}, "echo ready; sleep 1000"));
  ASSERT_EQ(process.read_line(), "ready");
  process.signal(SIGKILL);
  EXPECT_TRUE(eventually([] { return session_containers().empty(); }, std::chrono::seconds(30)));
  EXPECT_TRUE(eventually([&] { return staged().empty(); }));
}

}  // namespace
}  // namespace belljar::testing
