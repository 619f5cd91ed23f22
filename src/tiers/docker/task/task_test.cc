// The parts of a task's launch that need no engine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "base/temp_tree.h"
#include "tiers/docker/task/adapter.h"
#include "tiers/docker/task/codex_hook.h"
#include "tiers/docker/task/credential.h"
#include "tiers/docker/task/invocation.h"
#include "tiers/docker/task/sealed_input.h"

namespace belljar::tiers::docker::task {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class InvocationTest : public ::testing::Test {
 protected:
  static Request request() {
    return {.attempt = "one",
            .task = "0123456789abcdef",
            .phase = Phase::kPlan,
            .agent = {},
            .command = {"true"},
            .image_id = "sha256:0",
            .token = {},
            .login = false,
            .schema = {},
            .certificates = {},
            .seconds = 60};
  }
  Ledger ledger() {
    return {[this](const std::string& attempt, const std::string& text) -> base::Status {
              if (kept_.emplace(attempt, text).second) return {};
              return base::refuse("capture the request", attempt, "this attempt was captured before, refusing");
            },
            [this](const std::string& attempt) -> base::Result<std::string> { return kept_[attempt]; }};
  }
  std::string refused(const Request& request) {
    const auto captured = Invocation::capture(request, ledger());
    return captured ? "captured" : captured.error().message();
  }
  std::map<std::string, std::string> kept_;
};

static_assert(!std::is_copy_constructible_v<Invocation> && !std::is_copy_assignable_v<Invocation> &&
              !std::is_default_constructible_v<Invocation> && !std::is_constructible_v<Invocation, Request, Ledger>);

TEST_F(InvocationTest, IsWhatWasCaptured) {
  const auto captured = Invocation::capture(request(), ledger());
  ASSERT_TRUE(captured.has_value()) << captured.error().message();
  EXPECT_TRUE(captured->authenticate().has_value());
}

// Whatever is changed of it, in memory or in the ledger, it is worth nothing any more.
TEST_F(InvocationTest, AnEditedOneIsRefused) {
  auto captured = Invocation::capture(request(), ledger());
  ASSERT_TRUE(captured.has_value());
  auto& inside = const_cast<Request&>(captured->request());
  const auto edited = [&](const auto& edit) {
    const Request before = inside;
    edit(inside);
    const auto status = captured->authenticate();
    inside = before;
    EXPECT_TRUE(captured->authenticate().has_value());
    return status ? "authentic" : status.error().message();
  };
  const auto refusal = HasSubstr("'one': it is not what was captured, refusing");
  EXPECT_THAT(edited([](Request& one) { one.phase = Phase::kExecute; }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.seconds = 61; }), refusal);
  for (const Bound& bound : bounds()) {
    EXPECT_THAT(edited([&](Request& one) { one.ceilings.*bound.field += 1; }), refusal) << bound.name;
  }
  EXPECT_THAT(edited([](Request& one) { one.command.emplace_back("more"); }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.command = {"tr", "ue"}; }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.image_id = "sha256:1"; }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.task = "another"; }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.agent = "codex"; }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.login = true; }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.token = "OPENAI_API_KEY"; }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.schema = "{}"; }), refusal);
  EXPECT_THAT(edited([](Request& one) { one.certificates = "x"; }), refusal);
  kept_["one"] += "x";
  EXPECT_FALSE(captured->authenticate().has_value());
  kept_.clear();
  EXPECT_FALSE(captured->authenticate().has_value());
}

TEST_F(InvocationTest, AnAttemptIsNeverCapturedAgain) {
  EXPECT_EQ(refused(request()), "captured");
  Request again = request();
  again.phase = Phase::kExecute;
  again.seconds = 3600;
  EXPECT_THAT(refused(again), HasSubstr("this attempt was captured before, refusing"));
  EXPECT_THAT(refused(request()), HasSubstr("this attempt was captured before, refusing"));
}

TEST_F(InvocationTest, ItsTimeIsUpSomeday) {
  Request soon = request();
  soon.seconds = 1;
  const auto captured = Invocation::capture(soon, ledger());
  ASSERT_TRUE(captured.has_value());
  ::usleep(1'100'000);
  EXPECT_THAT(captured->authenticate().error().message(), HasSubstr("its deadline has passed, refusing"));
}

TEST_F(InvocationTest, WhatMakesNoSenseIsNotCaptured) {
  const auto with = [&](const auto& edit) {
    Request one = request();
    edit(one);
    return refused(one);
  };
  EXPECT_THAT(with([](Request& one) { one.attempt = "a/b"; }), HasSubstr("an attempt is named by"));
  EXPECT_THAT(with([](Request& one) { one.attempt = ""; }), HasSubstr("an attempt is named by"));
  EXPECT_THAT(with([](Request& one) { one.seconds = 0; }), HasSubstr("a deadline of"));
  for (const Bound& bound : bounds()) {
    const std::string name = std::string("capture the request '") + bound.name + "': ";
    EXPECT_THAT(with([&](Request& one) { one.ceilings.*bound.field = bound.most + 1; }), HasSubstr(name));
    if (bound.least == 0) continue;
    EXPECT_THAT(with([&](Request& one) { one.ceilings.*bound.field = bound.least - 1; }), HasSubstr(name));
  }
  EXPECT_THAT(with([](Request& one) { one.ceilings.memory_bytes = 1; }),
              HasSubstr("is out of bounds, refusing (32MiB to"));
  EXPECT_THAT(with([](Request& one) { one.image_id = "debian"; }), HasSubstr("content's id"));
  EXPECT_THAT(with([](Request& one) { one.command = {}; }), HasSubstr("no command"));
  EXPECT_THAT(with([](Request& one) { one.command = {std::string("a\0b", 3)}; }), HasSubstr("NUL"));
  EXPECT_THAT(with([](Request& one) { one.agent = "gemini"; }), HasSubstr("no adapter"));
  EXPECT_THAT(with([](Request& one) { one.token = "OPENAI_API_KEY"; }), HasSubstr("no credential of the agent's"));
  EXPECT_THAT(with([](Request& one) {
                one.agent = "claude";
                one.token = "OPENAI_API_KEY";
              }),
              HasSubstr("no credential of the agent's"));
  EXPECT_TRUE(kept_.empty());
}

TEST(ReadOnce, TakesNoMoreThanItMay) {
  const base::TempTree folder;
  EXPECT_EQ(read_once("read", folder.file("a", "12345"), 5).value(), "12345");
  EXPECT_THAT(read_once("read", folder.file("b", "123456"), 5).error().message(), HasSubstr("more than 5 bytes"));
  const std::string maps = "/proc/" + std::to_string(::getpid()) + "/maps";
  // Files whose size says nothing of what there is to read, as one that grows meanwhile.
  EXPECT_EQ(read_once("read", maps, 16).error().code, EFBIG);
  EXPECT_THAT(read_once("read", maps, size_t{1} << 20U).error().message(),
              HasSubstr("it changed while it was read, refusing"));
}

TEST(Sealed, CannotBeChanged) {
  const auto sealed = SealedInput::seal("schema", "{}");
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(::pwrite(sealed->fd(), "x", 1, 0), -1);
  EXPECT_EQ(::ftruncate(sealed->fd(), 1), -1);
  EXPECT_EQ(::ftruncate(sealed->fd(), 9), -1);
  EXPECT_EQ(::fcntl(sealed->fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1) << "nor its seals";
  EXPECT_EQ(sealed->text().value(), "{}");
  EXPECT_FALSE(SealedInput::seal("schema", std::string(SealedInput::kMost + 1, 'x')).has_value());
}

TEST(Login, IsOfOneVendor) {
  EXPECT_EQ(vendor_of_login(R"({"claudeAiOauth":{}})"), "claude");
  EXPECT_EQ(vendor_of_login(R"({"tokens":{}})"), "codex");
  EXPECT_EQ(vendor_of_login(R"({"OPENAI_API_KEY":null})"), "codex");
  for (const char* none : {"", "{", "[]", "{}", R"({"claudeAiOauth":{},"tokens":{}})"}) {
    EXPECT_EQ(vendor_of_login(none), "") << none;
  }
}

TEST(Login, IsStagedForTheGuestAlone) {
  const base::TempTree folder;
  const Adapter& codex = *find_adapter("codex");
  const auto credential = Credential::from_file(codex, folder.file("login", R"({"tokens":{}})"));
  ASSERT_TRUE(credential.has_value());
  const std::string path = credential->stage(folder.path() + "/staged").value();
  struct stat found{};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0444U);
  ASSERT_EQ(::stat((folder.path() + "/staged").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0700U);
  EXPECT_FALSE(credential->stage(folder.path() + "/staged").has_value()) << "a folder that is there is not used";
  EXPECT_EQ(Credential().stage(folder.path() + "/none").value(), "");
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/none"));
}

TEST(AdapterTest, GivesAPhaseItsToolsAndCommands) {
  const Adapter& claude = *find_adapter("claude");
  const auto words = [&](Phase phase) { return command_of(claude, {.phase = phase, .prompt = "--do it"}); };
  for (const Phase phase : kPhases) {
    const auto command = words(phase);
    const auto tools = std::ranges::find(command, "--tools");
    ASSERT_NE(tools, command.end());
    EXPECT_EQ(std::next(tools)->contains("Bash"), may_write(phase)) << to_text(phase);
    EXPECT_EQ(std::next(tools)->contains("Write"), may_write(phase)) << to_text(phase);
    const auto allowed = std::ranges::find(command, "--allowedTools");
    ASSERT_NE(allowed, command.end());
    EXPECT_EQ(std::next(allowed)->contains("Bash(make:*)"), may_write(phase));
    EXPECT_THAT(*std::next(allowed), Not(HasSubstr("Bash,")));
    EXPECT_THAT(command, Contains("dontAsk"));
    EXPECT_EQ(command.back(), "--do it");
    EXPECT_EQ(command[command.size() - 2], "--") << "a prompt is no option";
  }
  EXPECT_EQ(find_adapter("gemini"), nullptr);
}

// What the hook of a phase says of a call, as Codex asks it.
int hook_says(Phase phase, const std::string& command, const std::string& tool = "Bash") {
  const std::string call = nlohmann::json{{"tool_name", tool}, {"tool_input", {{"command", command}}}}.dump();
  const base::TempTree folder;
  const std::string script = "(" + codex_hook_command(phase) + ") 2>/dev/null <" + folder.file("call", call);
  return WEXITSTATUS(std::system(script.c_str()));
}

TEST(CodexHook, LetsTheCommandsOfThePhasePass) {
  for (const char* command : {"ls", "ls -l /x; cat \"a b\" | grep x && git diff HEAD || wc", "ls\ncat x",
                              "grep 'a;ln' f", "ls 2>/dev/null", "cat <x >y 2>&1", "ls \\; x", "cat \"$HOME/x\""}) {
    EXPECT_EQ(hook_says(Phase::kPlan, command), 0) << command;
  }
  EXPECT_EQ(hook_says(Phase::kPlan, "touch x"), 2);
  EXPECT_EQ(hook_says(Phase::kFix, "touch x && make -j2"), 0);
  const std::string patch = "apply_patch <<'PATCH'\n*** Begin Patch\n+x\nPATCH\n";
  EXPECT_EQ(hook_says(Phase::kExecute, patch), 0);
  EXPECT_EQ(hook_says(Phase::kReview, patch), 2);
  EXPECT_EQ(hook_says(Phase::kExecute, "*** Begin Patch", "apply_patch"), 0);
  EXPECT_EQ(hook_says(Phase::kReview, "*** Begin Patch", "apply_patch"), 2);
}

TEST(CodexHook, LetsNothingElsePass) {
  for (const char* command : {"ln a b",
                              "ls; ln a b",
                              "ls && (ln a b)",
                              "ls $(ln a b)",
                              "ls `ln a b`",
                              "ls \"$(ln a b)\"",
                              "X=1 ls",
                              "$X",
                              "git push",
                              "git",
                              "./ls",
                              "/bin/ls",
                              "ls & ln a b",
                              "ls | sh",
                              "if true; then ls; fi",
                              "cat <(ln a b)",
                              "cat <<E\nx\nE",
                              "ls \"a",
                              ">x ln a b",
                              "ls >x && ln a b",
                              "! ln a b",
                              "{ ln a b; }",
                              "ls # ' \nln a b #'",
                              "ls $'\\'' ; ln a b ; echo '",
                              "ls $\"x\"",
                              "ls >\nln a b",
                              "ls\rln",
                              "\"\" ls",
                              "apply_patch <<'PATCH'\nx\nPATCH\nln a b\nPATCH\n"}) {
    EXPECT_EQ(hook_says(Phase::kFix, command), 2) << command;
  }
  EXPECT_EQ(hook_says(Phase::kFix, "x.png", "view_image"), 2);
  const base::TempTree folder;
  for (const char* call : {"", "{", "[]", "{}", R"({"tool_name":"Bash","tool_input":{"command":["ls"]}})"}) {
    const std::string script = "(" + codex_hook_command(Phase::kFix) + ") 2>/dev/null <" + folder.file("call", call);
    EXPECT_EQ(WEXITSTATUS(std::system(script.c_str())), 2) << call;
  }
  // Where there is no node either.
  EXPECT_EQ(WEXITSTATUS(std::system(("PATH=/nowhere; " + codex_hook_command(Phase::kFix) + " 2>/dev/null").c_str())),
            2);
}

TEST(CodexHook, GoesAlongWithEachPhase) {
  for (const Phase phase : kPhases) {
    const auto command = command_of(*find_adapter("codex"), {.phase = phase, .prompt = "do it"});
    EXPECT_THAT(command, Contains("hooks.PreToolUse=" + codex_hook(phase)));
    EXPECT_THAT(command, Contains("--dangerously-bypass-hook-trust"));
  }
}

}  // namespace
}  // namespace belljar::tiers::docker::task
