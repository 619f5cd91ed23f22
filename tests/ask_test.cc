// A person is asked about hosts that no rule decides about: by a program with a terminal, and by one without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "support/belljar.h"
#include "support/process.h"
#include "support/seat.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AskTest : public ::testing::Test {
 protected:
  AskTest() : hosts_({"ask.test", "other.test"}) {}

  void SetUp() override {
    std::filesystem::create_directories(home_ + "/bin");
    // As in the tests of the agents: root's files are nobody's in the user namespace that plays the host.
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name, home_ + "/bin/" + name);
    }
    std::filesystem::create_directories(work_);
    internet_ = std::make_unique<Process>(
        hosts_.start({.argv = {"node", "-e",
                               "require('http').createServer((q, a) => a.end('from ' + q.headers.host + '\\n'))"
                               ".listen(80, '::', () => console.log('up'))"}}));
    ASSERT_EQ(internet_->read_line(), "up");
  }

  Command session(const std::string& script, std::vector<std::string> options = {"--ask"}) {
    options.insert(options.end(), {"--report", temp_ / "end.json"});
    Command command = sealed_script(work_, script, options);
    command.argv[0] = home_ + "/bin/belljar";
    command.env["HOME"] = home_;
    command.env["XDG_STATE_HOME"] = home_ + "/state";
    return hosts_.as_caller(std::move(command));
  }
  // Keys until one is heard: those of the first half second, or sooner after another, are not.
  void answer(const std::string& key, const std::string& until) {
    bool there = false;
    for (int i = 0; i < 100 && !there; ++i) {
      seat_.type(key);
      there = seat_.has_within(until, std::chrono::milliseconds(700));
    }
    EXPECT_TRUE(there) << seat_.screen();
  }
  std::string reasons() {
    std::string out;
    const auto report = nlohmann::json::parse(read_text(temp_ / "end.json"));
    for (const auto& denial : report["denials"]) {
      out += denial["host"].get<std::string>() + " " + denial["reason"].get<std::string>() + "\n";
    }
    return out;
  }
  static constexpr const char* kCurl = "curl -sS --max-time 60 http://ask.test/; ";

  TestHosts hosts_;
  TempDir temp_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/project";
  std::unique_ptr<Process> internet_;
  Seat seat_;
};

TEST_F(AskTest, ASessionsYesIsForTheSession) {
  const termios before = seat_.modes();
  seat_.start(session(std::string("trap 'echo drawn anew' WINCH; ") + kCurl + kCurl +
                      "curl -sS --max-time 60 http://other.test/; echo end"));
  ASSERT_TRUE(seat_.shows("    ask.test   port 80"));
  answer("s", "from ask.test");
  ASSERT_TRUE(seat_.shows("from ask.test"));
  ASSERT_TRUE(seat_.shows("from ask.test"));
  ASSERT_TRUE(seat_.shows("    other.test   port 80"));
  answer("d", "person_denied");
  ASSERT_TRUE(seat_.shows("end"));
  EXPECT_THAT(seat_.screen(), HasSubstr("drawn anew"));
  seat_.process().wait();
  EXPECT_EQ(reasons(), "other.test person_denied\n");
  EXPECT_EQ(seat_.modes().c_lflag, before.c_lflag);
}

TEST_F(AskTest, AlwaysIsKeptWhereNoGuestCanWrite) {
  seat_.start(session(std::string(kCurl) + "ls -R ~/../state " + home_ + "/state 2>&1; echo end"));
  ASSERT_TRUE(seat_.shows("    ask.test   port 80"));
  answer("a", "type the host again: ");
  seat_.type("ask.test\r");
  ASSERT_TRUE(seat_.shows("from ask.test"));
  ASSERT_TRUE(seat_.shows("end"));
  EXPECT_THAT(seat_.screen(), Not(HasSubstr("belljar.db")));
  seat_.process().wait();
  const Output next = run(session(kCurl, {}));
  EXPECT_EQ(next.out, "from ask.test\n") << next.err;
  EXPECT_FALSE(std::filesystem::exists(work_ + "/.belljar.toml"));
}

TEST_F(AskTest, AProgramThatKnowsNoProxyIsAskedAboutWhenItConnects) {
  seat_.start(session("unset http_proxy HTTP_PROXY all_proxy ALL_PROXY; getent hosts plain; " + std::string(kCurl) +
                      "echo end"));
  ASSERT_TRUE(seat_.shows("    ask.test   port 80"));
  answer("o", "from ask.test");
  ASSERT_TRUE(seat_.shows("end"));
  seat_.process().wait();
  EXPECT_EQ(reasons(), "plain host_not_allowed\n");
}

TEST_F(AskTest, NobodyToAskIsANo) {
  const Output output = run(session(kCurl));
  EXPECT_THAT(output.out, HasSubstr("host_not_allowed"));
  EXPECT_EQ(reasons(), "ask.test host_not_allowed\n");
}

TEST_F(AskTest, NoAnswerInTimeIsANo) {
  write_file(home_ + "/p.toml", "[isolation]\nask = true\nask_timeout = \"1s\"\n");
  seat_.start(session(std::string(kCurl) + "echo end", {"--policy", home_ + "/p.toml"}));
  ASSERT_TRUE(seat_.shows("no answer in 1 s is a no"));
  ASSERT_TRUE(seat_.shows("nobody_answered"));
  ASSERT_TRUE(seat_.shows("end"));
}

// The guest's end comes while a person is being asked: nothing hangs, and the terminal is as it was.
TEST_F(AskTest, TheEndOfTheGuestEndsTheQuestion) {
  const termios before = seat_.modes();
  seat_.start(session(std::string("(") + kCurl + ") & sleep 0.5; echo ending; exit 3"));
  ASSERT_TRUE(seat_.shows("is a no: "));
  EXPECT_EQ(seat_.process().wait().code, 3);
  EXPECT_EQ(seat_.modes().c_lflag, before.c_lflag);
}

// A command that stops itself gives the terminal to the shell, but not while a person is asked there.
TEST_F(AskTest, AStopWaitsForTheAnswer) {
  seat_.start(session(std::string("(") + kCurl + ") & sleep 0.5; kill -STOP $$; wait; echo end"));
  ASSERT_TRUE(seat_.shows("is a no: "));
  int status = 0;
  EXPECT_FALSE(seat_.has_within("from ask.test", std::chrono::milliseconds(1500)));
  EXPECT_EQ(::waitpid(seat_.process().pid(), &status, WUNTRACED | WNOHANG), 0) << "it stopped";
  answer("o", "once");
  ASSERT_EQ(::waitpid(seat_.process().pid(), &status, WUNTRACED), seat_.process().pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_NE(seat_.modes().c_lflag & (ICANON | ECHO | ISIG), 0U) << "as the shell left it";
  seat_.process().signal(SIGCONT);
  ASSERT_TRUE(seat_.shows("end"));
  seat_.process().wait();
}

// What is half shown when the question comes is shown to its end before it: by itself the rest of a letter is the
// beginning of a command to some terminals.
TEST_F(AskTest, CutsNoLetterInTwo) {
  write_file(std::filesystem::path(work_) / "flood.py",
             "import os\n"
             "text = b'\\xe1\\x80\\x9b' * 200000\n"
             "while text: text = text[os.write(1, text):]\n");
  seat_.start(session(std::string("(sleep 0.5; ") + kCurl + ") & python3 flood.py; echo; echo end"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // nobody reads the terminal
  ASSERT_TRUE(seat_.shows("is a no: "));
  answer("d", "\xe1\x80\x9b");
  ASSERT_TRUE(seat_.shows("end"));
  const std::string& screen = seat_.screen();
  for (size_t at = screen.find('\x9b'); at != std::string::npos; at = screen.find('\x9b', at + 1)) {
    ASSERT_TRUE(at >= 2 && screen.substr(at - 2, 2) == "\xe1\x80") << at << " of " << screen.size();
  }
}

// A terminal that nobody reads holds up the question, and not the end.
TEST_F(AskTest, ATerminalThatNobodyReadsDoesNotKeepTheSession) {
  seat_.start(session(std::string("(") + kCurl + ") & while :; do echo flood; done", {"--timeout", "2s"}));
  std::this_thread::sleep_for(std::chrono::seconds(3));
  seat_.process().signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return read_text(temp_ / "end.json").contains("\"reason\""); }));
  seat_.process().signal(SIGTERM);
  seat_.process().signal(SIGKILL);
  (void)seat_.process().wait();
}

// What the agent shows cannot look like the question, nor hide it: while a person is asked nothing of the agent's is
// shown.
TEST_F(AskTest, NothingOfTheAgentsIsShownMeanwhile) {
  seat_.start(session(std::string("(") + kCurl + ") & while :; do echo flood; sleep 0.01; done"));
  ASSERT_TRUE(seat_.shows("is a no: "));
  const size_t from = seat_.screen().size();
  EXPECT_FALSE(seat_.has_within("flood", std::chrono::milliseconds(300))) << seat_.screen().substr(from);
  answer("d", "flood");
  seat_.process().signal(SIGTERM);
  seat_.process().wait();
}

}  // namespace
}  // namespace belljar::testing
