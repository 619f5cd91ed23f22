// A launch that is started again keeps what it was launched with.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() : state_(dir_ / "state"), work_(dir_ / "work") {
    ::mkdir(work_.c_str(), 0755);
    ::mkdir(state_.c_str(), 0700);
  }

  Output belljar(std::vector<std::string> words, const std::string& folder = {}) const {
    words.insert(words.begin(), belljar_program());
    Command command{.argv = std::move(words), .cwd = folder.empty() ? work_ : folder};
    command.env["XDG_STATE_HOME"] = state_;
    command.env["XDG_CONFIG_HOME"] = dir_ / "config";
    return run(command);
  }

  // The id in the line that a kept launch prints.
  static std::string session_of(const Output& output) {
    const size_t at = output.err.find("belljar: session ");
    return at == std::string::npos ? "" : output.err.substr(at + 17, 16);
  }

  TempDir dir_;
  std::string state_;
  std::string work_;
};

TEST_F(ResumeTest, NoLaterWordOfAnybodyCounts) {
  ASSERT_EQ(belljar({"project", "set", "--env", "COLOUR=green", "--hide", "./secret"}).code, 0);
  ::mkdir((work_ + "/secret").c_str(), 0755);
  write_file(work_ + "/secret/key", "the key\n");
  const std::string script = "echo \"[$COLOUR]\"; pwd; cat secret/key 2>&1";
  const Output first = belljar({"run", "--keep", "--", "sh", "-c", script});
  const std::string id = session_of(first);
  ASSERT_EQ(id.size(), 16U) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("[green]\n" + work_), Not(HasSubstr("the key"))));

  ASSERT_EQ(belljar({"project", "set", "--env", "COLOUR=red", "--net", "allow"}).code, 0);
  write_file(dir_ / "config/belljar/policy.toml", "[files]\napprove = [\"x\"]\n");
  const Output again = belljar({"run", "--resume", id, "--report", dir_ / "end.json"}, dir_.path());
  EXPECT_EQ(again.out, first.out) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("weaker")));
  const auto report = nlohmann::json::parse(read_text(dir_ / "end.json"));
  EXPECT_EQ(report["network"], "deny");
  EXPECT_EQ(report["session"], session_of(again));
  EXPECT_NE(session_of(again), id);
  // One that was resumed can be as well, and with a command of its own.
  EXPECT_EQ(belljar({"run", "--resume", session_of(again), "--", "sh", "-c", "echo $COLOUR"}).out, "green\n");
}

// H20 of shared/cases/host.md: an id says what to launch, not which session it is.
TEST_F(ResumeTest, OneIdStartsAnyNumberOfIndependentSessionsAtOnce) {
  const std::string id = session_of(belljar({"run", "--keep", "--", "sh", "-c", "echo started; cat; echo $$ >>pids"}));
  ASSERT_EQ(id.size(), 16U);
  std::vector<std::unique_ptr<Process>> all;
  std::vector<base::Fd> inputs;
  for (int i = 0; i < 4; ++i) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const base::Fd input(ends[0]);
    inputs.emplace_back(ends[1]);
    Command command{
        .argv = {belljar_program(), "run", "--resume", id, "--report", dir_ / ("end-" + std::to_string(i) + ".json")},
        .env = {{"XDG_STATE_HOME", state_}, {"XDG_CONFIG_HOME", dir_ / "config"}},
        .cwd = work_,
        .in = Stream::from(input.get())};
    all.push_back(std::make_unique<Process>(command));
  }
  for (const auto& process : all) ASSERT_EQ(process->read_line(), "started");
  // One of them ends, in whatever way, and the others do not notice.
  all[0]->signal(SIGKILL);
  EXPECT_EQ(all[0]->wait().code, 128 + SIGKILL);
  inputs.clear();
  std::set<std::string> sessions{id};
  for (size_t i = 1; i < all.size(); ++i) {
    const Output output = all[i]->wait();
    EXPECT_EQ(output.code, 0) << output.err;
    const auto report = nlohmann::json::parse(read_text(dir_ / ("end-" + std::to_string(i) + ".json")));
    EXPECT_TRUE(sessions.insert(report["session"]).second) << "a session of its own";
    EXPECT_EQ(report["unreleased"].size(), 0U);
  }
}

TEST_F(ResumeTest, ValuesAreNotKeptAndAskedForByName) {
  const std::vector<std::string> launch = {"run", "--keep", "--env", "API_TOKEN=hunter2hunter2",
                                           "--",  "sh",     "-c",    "echo \"[$API_TOKEN]\""};
  const Output first = belljar(launch);
  EXPECT_EQ(first.out, "[hunter2hunter2]\n");
  const std::string id = session_of(first);
  EXPECT_THAT(read_text(state_ + "/belljar/launches"), AllOf(HasSubstr("API_TOKEN"), Not(HasSubstr("hunter2"))));
  const Output without = belljar({"run", "--resume", id});
  EXPECT_EQ(without.code, 125);
  EXPECT_THAT(without.err, HasSubstr("values are not kept: give them again (--env API_TOKEN=VALUE)"));
  EXPECT_EQ(belljar({"run", "--resume", id, "--env", "API_TOKEN=other"}).out, "[other]\n");
  EXPECT_THAT(belljar({"run", "--resume", id, "--env", "API_TOKEN=x", "--env", "MORE=1"}).err,
              HasSubstr("it was not launched with --env MORE=VALUE, refusing"));
}

TEST_F(ResumeTest, NothingIsWidenedOnTheWay) {
  const std::string id = session_of(belljar({"run", "--keep", "--", "true"}));
  ASSERT_EQ(id.size(), 16U);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{"--net", "allow"},
                                                                                    {"--allow-host", "a.test"},
                                                                                    {"--write", "/srv"},
                                                                                    {"--policy", "p.toml"},
                                                                                    {"--mode", "none"},
                                                                                    {"--env", "PATH"},
                                                                                    {"--chdir", "/"}}) {
    std::vector<std::string> words = {"run", "--resume", id};
    words.insert(words.end(), more.begin(), more.end());
    const Output output = belljar(words);
    EXPECT_EQ(output.code, 125) << more[0];
    EXPECT_THAT(output.err, HasSubstr("refusing")) << more[0];
  }
  EXPECT_THAT(belljar({"run", "--resume", "0123"}).err, HasSubstr("no such launch is kept"));
}

TEST_F(ResumeTest, AnotherFolderInItsPlaceIsNotIt) {
  const std::string id = session_of(belljar({"run", "--keep", "--", "true"}));
  ASSERT_EQ(::rename(work_.c_str(), (work_ + ".old").c_str()), 0);
  EXPECT_THAT(belljar({"run", "--resume", id}, dir_.path()).err, HasSubstr("No such file or directory"));
  ::mkdir(work_.c_str(), 0755);
  EXPECT_THAT(belljar({"run", "--resume", id}, dir_.path()).err, HasSubstr("another folder stands there"));
}

TEST_F(ResumeTest, IsSaidOfEveryLaunchOfAnAgentAndOfNoOther) {
  EXPECT_EQ(belljar({"run", "--", "true"}).err, "");
  write_file(dir_ / "p.toml", "agent = \"mine\"\n");
  const Output output = belljar({"run", "--policy", dir_ / "p.toml", "--", "true"});
  EXPECT_EQ(session_of(output).size(), 16U) << output.err;
  EXPECT_THAT(belljar({"plan", "--resume", session_of(output)}).out, HasSubstr("mine"));
}

}  // namespace
}  // namespace belljar::testing
