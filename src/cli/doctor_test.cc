#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace belljar::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// One fact of each kind: fine, missing for the jail, missing for something else with a hostile path in it.
std::vector<linux::HostFact> some_facts() {
  return {
      {"kernel", linux::Need::kJail, true, "Linux 5.12 or newer", "this is Linux 6.1", ""},
      {"proc", linux::Need::kJail, false, "a proc of the guest's own", "mount proc: no", "first line\n  second line"},
      {"docker", linux::Need::kDocker, false, "docker", "connect to \033[31m\xff", "remedy"}};
}

linux::HostEvidence some_host() {
  linux::HostEvidence out;
  out.kernel = "6.1.0";
  out.machine = "x86_64";
  out.uid = 1000;
  return out;
}

// What run_doctor writes and returns.
struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome run(const std::vector<std::string>& arguments) {
  Outcome outcome;
  std::array<char*, 2> text{};
  std::array<size_t, 2> size{};
  std::FILE* out = open_memstream(&text[0], &size[0]);
  std::FILE* err = open_memstream(&text[1], &size[1]);
  outcome.code = run_doctor(arguments, out, err);
  std::fclose(out);
  std::fclose(err);
  outcome.out.assign(text[0], size[0]);
  outcome.err.assign(text[1], size[1]);
  free(text[0]);
  free(text[1]);
  return outcome;
}

TEST(Doctor, TextShowsEachFactAndTheRemedyOfEachGap) {
  const std::string text = doctor_text(some_host(), some_facts(), false);
  EXPECT_THAT(text, StartsWith("Linux 6.1.0, x86_64, uid 1000\n"));
  EXPECT_THAT(text, HasSubstr("  ok    Linux 5.12 or newer        this is Linux 6.1\n"));
  EXPECT_THAT(text, HasSubstr("  NO    a proc of the guest's own  mount proc: no\n"));
  EXPECT_THAT(text, HasSubstr("  no    docker"));
  EXPECT_THAT(text, HasSubstr("a proc of the guest's own (the jail needs it):\n  first line\n    second line\n"));
  EXPECT_THAT(text, HasSubstr("docker (for the docker tier):\n  remedy\n"));
  EXPECT_THAT(text, HasSubstr("The jail cannot start here.\n"));
  EXPECT_THAT(text, Not(HasSubstr("\033"))) << "a terminal sequence from elsewhere came through";
}

TEST(Doctor, ColourOnlyWhenAsked) {
  const std::string text = doctor_text(some_host(), some_facts(), true);
  EXPECT_THAT(text, HasSubstr("\033[32m  ok    \033[0m"));
  EXPECT_THAT(text, HasSubstr("\033[31m  NO    \033[0m"));
  EXPECT_THAT(text, HasSubstr("connect to \\x1b[31m\\xff"));
}

TEST(Doctor, TheJailStartsWhenOnlyOtherThingsAreMissing) {
  std::vector<linux::HostFact> facts = some_facts();
  facts.erase(facts.begin() + 1);
  EXPECT_THAT(doctor_text(some_host(), facts, false), HasSubstr("The jail can start here.\n"));
}

TEST(Doctor, JsonHoldsTheSame) {
  const auto report = nlohmann::json::parse(doctor_json(some_host(), some_facts()));
  EXPECT_EQ(report["version"], 1);
  EXPECT_EQ(report["kernel"], "6.1.0");
  EXPECT_EQ(report["uid"], 1000);
  EXPECT_EQ(report["jail"], false);
  ASSERT_EQ(report["facts"].size(), 3U);
  EXPECT_EQ(report["facts"][0]["key"], "kernel");
  EXPECT_EQ(report["facts"][0]["ok"], true);
  EXPECT_EQ(report["facts"][1]["need"], "jail");
  EXPECT_EQ(report["facts"][1]["remedy"], "first line\n  second line");
  EXPECT_EQ(report["facts"][2]["need"], "docker");
}

TEST(Doctor, RunsOnThisHost) {
  const Outcome text = run({});
  const Outcome json = run({"--json"});
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(json.code, report["jail"] == true ? 0 : 1);
  EXPECT_EQ(text.code, json.code);
  EXPECT_GE(report["facts"].size(), 12U);
  EXPECT_THAT(text.out, HasSubstr(report["jail"] == true ? "The jail can start here." : "The jail cannot start here."));
  EXPECT_THAT(text.out, Not(HasSubstr("\033"))) << "a stream that is no terminal got colours";
  EXPECT_TRUE(text.err.empty());
}

TEST(Doctor, HelpShowsExamples) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("Examples:\n  belljar doctor"));
}

TEST(Doctor, AWrongArgumentIsRefused) {
  const Outcome wrong = run({"--jsn\n"});
  EXPECT_EQ(wrong.code, 125);
  EXPECT_TRUE(wrong.out.empty());
  EXPECT_EQ(wrong.err, "belljar: doctor: unknown argument '--jsn\\n' (it takes --json; see 'belljar doctor --help')\n");
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

TEST(Doctor, AFullDiskIsNotSuccess) {
  const File full(std::fopen("/dev/full", "we"));
  const File err(std::fopen("/dev/null", "we"));
  ASSERT_TRUE(full && err);
  EXPECT_EQ(run_doctor({}, full.get(), err.get()), 125);
}

class OnATerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(terminal_);
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
  }
  File terminal_{std::fopen("/dev/ptmx", "r+e")};
};

TEST_F(OnATerminal, ColourIsUsedUnlessDeclined) {
  EXPECT_TRUE(wants_colour(terminal_.get()));
  setenv("NO_COLOR", "", 1);  // empty counts as not set
  EXPECT_TRUE(wants_colour(terminal_.get()));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_colour(terminal_.get()));
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(wants_colour(terminal_.get()));
}

}  // namespace
}  // namespace belljar::cli
