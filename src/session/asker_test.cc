// The question to a person, judged from the other side of a terminal.
#include "session/asker.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/io.h"
#include "egress/question.h"

namespace belljar::session {
namespace {

using egress::Answer;
using egress::AnswerMessage;
using egress::QuestionMessage;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AskerKey, OneKeyIsAnAnswerAndAPasteIsNone) {
  EXPECT_EQ(key_of("o"), Key::kOnce);
  EXPECT_EQ(key_of("S"), Key::kSession);
  EXPECT_EQ(key_of("a"), Key::kAlways);
  EXPECT_EQ(key_of("d"), Key::kDeny);
  EXPECT_EQ(key_of("\x03"), Key::kDeny);
  for (const char* none : {"", "\r", "\n", " ", "y", "x", "so", "oo", "\x1b", "\x1b[A", "\x1bOs", "always"}) {
    EXPECT_EQ(key_of(none), Key::kNone) << none;
  }
}

TEST(AskerText, ShowsTheHostAsItIsAndNothingElseThatMoves) {
  const std::string text = question_text("xn--bcher-kva.example", 8443, "/tmp/a\x1b[2Jb", std::chrono::seconds(60));
  EXPECT_THAT(text, HasSubstr("    xn--bcher-kva.example   port 8443\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

// A launcher with an asker, in a session of its own whose terminal is this test's.
class AskerTest : public ::testing::Test {
 protected:
  // What the child tells: one line for each answer.
  void start(std::chrono::seconds time, std::chrono::milliseconds deaf, const std::string& host, int questions = 1) {
    std::array<int, 2> told{};
    ASSERT_EQ(::pipe2(told.data(), O_CLOEXEC), 0);
    int master = -1;
    (void)kept_file();  // named before the fork, so that both know it
    const pid_t pid = ::forkpty(&master, nullptr, nullptr, nullptr);
    ASSERT_GE(pid, 0);
    if (pid == 0) ::_exit(launcher(time, deaf, host, questions, told[1]));
    pid_ = pid;
    terminal_.reset(master);
    told_.reset(told[0]);
    ::close(told[1]);
  }
  ~AskerTest() override {
    terminal_.reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

  // The asker has none of the test's descriptors.
  static std::string kept_file() {
    static const std::string kPath =
        std::filesystem::temp_directory_path() / ("belljar-kept." + std::to_string(::getpid()));
    return kPath;
  }

  static int launcher(std::chrono::seconds time, std::chrono::milliseconds deaf, const std::string& host, int questions,
                      int told) {
    const auto say = [&](const std::string& line) { (void)base::write_all(told, line + "\n"); };
    auto asker = Asker::start(
        {.time = time, .deaf = deaf, .folder = "/project", .kept_in = "/", .keep = [](const std::string& rule) {
           std::ofstream(kept_file()) << rule;
           return base::Status();
         }});
    if (!asker || !asker->asks()) {
      say("no asker");
      return 1;
    }
    const base::Fd socket = asker->take_questions();
    ::fcntl(socket.get(), F_SETFL, 0);
    for (int i = 1; i <= questions; ++i) {
      QuestionMessage question;
      question.number = static_cast<uint64_t>(i);
      question.port = 443;
      std::memcpy(question.host.data(), host.data(), host.size());
      (void)::send(socket.get(), &question, sizeof question, 0);
      AnswerMessage answer;
      for (bool answered = false; !answered;) {
        std::array<pollfd, 2> wait = {{{asker->fd(), POLLIN, 0}, {socket.get(), POLLIN, 0}}};
        ::poll(wait.data(), wait.size(), -1);
        if (wait[0].revents != 0 && asker->hear() == Asker::Word::kTake) asker->tell_taken();
        if (wait[1].revents == 0) continue;
        answered = true;
        if (::recv(socket.get(), &answer, sizeof answer, 0) != sizeof answer) say("gone");
      }
      say("answer " + std::to_string(static_cast<int>(answer.answer)));
    }
    termios after{};
    ::tcgetattr(0, &after);
    asker->end();
    say((after.c_lflag & ECHO) != 0 ? "echo" : "no echo");
    return 0;
  }

  // What is shown, up to and with `mark`.
  std::string shown_until(const std::string& mark) {
    std::string out;
    std::array<char, 256> chunk;
    while (!out.contains(mark)) {
      const ssize_t n = ::read(terminal_.get(), chunk.data(), chunk.size());
      if (n <= 0) break;
      out.append(chunk.data(), static_cast<size_t>(n));
    }
    return out;
  }
  void type(const std::string& keys) { EXPECT_TRUE(base::write_all(terminal_.get(), keys)); }
  std::string told() {
    std::string line;
    char c = 0;
    while (::read(told_.get(), &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  static std::string answer(Answer answer) { return "answer " + std::to_string(static_cast<int>(answer)); }

  static constexpr const char* kMark = "is a no: ";
  static constexpr std::chrono::seconds kLong{3600};
  static constexpr std::chrono::milliseconds kNotDeaf{0};
  base::Fd terminal_;
  base::Fd told_;
  pid_t pid_ = -1;
};

TEST_F(AskerTest, TakesAKeyAndGivesTheTerminalBack) {
  start(kLong, kNotDeaf, "ask.example");
  EXPECT_THAT(shown_until(kMark), HasSubstr("    ask.example   port 443\r\n"));
  type("s");
  EXPECT_EQ(told(), answer(Answer::kSession));
  EXPECT_EQ(told(), "echo");
}

TEST_F(AskerTest, AlwaysWantsTheHostTyped) {
  start(kLong, kNotDeaf, "ask.example");
  shown_until(kMark);
  type("a");
  shown_until("type the host again: ");
  type("other.example\n");
  shown_until("[d]eny: ");
  type("a");
  shown_until("type the host again: ");
  type("ask.example\n");
  EXPECT_EQ(told(), answer(Answer::kAlways));
  std::string kept;
  std::getline(std::ifstream(kept_file()), kept);
  EXPECT_EQ(kept, "ask.example");
  std::filesystem::remove(kept_file());
}

TEST_F(AskerTest, WhatWasTypedBeforeIsNoAnswer) {
  start(kLong, std::chrono::seconds(1), "ask.example");
  type("s");  // in the queue, or read in the deaf time
  shown_until(kMark);
  type("s");
  pollfd answered{told_.get(), POLLIN, 0};
  while (::poll(&answered, 1, 1500) == 0) type("d");
  EXPECT_EQ(told(), answer(Answer::kDeny));
}

TEST_F(AskerTest, NorIsWhatIsTypedInTheMiddleOfALine) {
  constexpr std::chrono::seconds kDeaf(2);
  start(kLong, kDeaf, "ask.example");
  shown_until(kMark);
  pollfd answered{told_.get(), POLLIN, 0};
  for (const auto begun = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begun < 2 * kDeaf;) {
    type("s");
    ASSERT_EQ(::poll(&answered, 1, 50), 0) << "it took a letter for an answer";
  }
  while (::poll(&answered, 1, 2500) == 0) type("d");
  EXPECT_EQ(told(), answer(Answer::kDeny));
}

TEST_F(AskerTest, NoAnswerIsANo) {
  start(std::chrono::seconds(1), kNotDeaf, "ask.example");
  shown_until(kMark);
  EXPECT_EQ(told(), answer(Answer::kTimeout));
}

// Who has taken the launcher over can have it ask, and cannot have it show what is no host.
TEST_F(AskerTest, ShowsNothingThatIsNoHost) {
  start(kLong, kNotDeaf, "good.example\x1b[2J\nEnter your password:");
  EXPECT_EQ(told(), answer(Answer::kNobody));
}

TEST_F(AskerTest, AsksAgainAndAgain) {
  start(kLong, kNotDeaf, "ask.example", 3);
  for (const auto& [key, meaning] : {std::pair{"o", Answer::kOnce}, {"d", Answer::kDeny}, {"s", Answer::kSession}}) {
    shown_until(kMark);
    type(key);
    EXPECT_EQ(told(), answer(meaning));
  }
}

TEST_F(AskerTest, ATerminalThatHangsUpIsNobody) {
  start(kLong, kNotDeaf, "ask.example");
  shown_until(kMark);
  ::signal(SIGHUP, SIG_IGN);
  terminal_.reset();
  const std::string line = told();
  EXPECT_TRUE(line == answer(Answer::kNobody) || line.empty()) << line;  // empty: SIGHUP has ended the launcher
}

}  // namespace
}  // namespace belljar::session
