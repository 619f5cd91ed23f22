#include "session/asker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/io.h"
#include "base/pair.h"
#include "base/reap.h"
#include "base/text.h"
#include "egress/question.h"
#include "egress/questions.h"
#include "policy/host_rule.h"
#include "session/launcher_seal.h"

namespace belljar::session {
namespace {

using egress::Answer;
using egress::AnswerMessage;
using egress::QuestionMessage;

// Ends a sequence the guest may have left half (CAN), remembers where its cursor stands and how it writes (DECSC), and
// which modes it has set (XTSAVE), and then sees to it that what is shown is read as it stands: usual letters, no
// colours of the guest's making, the whole screen, a visible cursor, keys as themselves and no mouse. The question goes
// to the last lines, so nothing of the guest's comes behind it.
constexpr std::string_view kBegin =
    "\x18\x1b[?2026l\x1b\x37\x1b[?1;6;7;25;1000;1002;1003;1004;1006;2004s"
    "\x1b[?1;6;1000;1002;1003;1004;1006;2004l\x1b[?69l\x1b[?7;25h\x1b[4l\x1b]8;;\x1b\\\x1b>\x1b[>0u\x1b(B\x0f\x1b[0m"
    "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b[r\x1b[999;1H\r\n\x1b[J";
constexpr std::string_view kEnd = "\x1b[<u\x1b[?1;6;7;25;1000;1002;1003;1004;1006;2004r\x1b\x38";

constexpr std::chrono::seconds kPatience{1};

bool is_in_front(int terminal) {
  return ::tcgetpgrp(terminal) == ::getpgrp();
}

// The person's terminal while somebody is asked there.
class Prompt {
 public:
  // `first` is how the terminal was before the launcher had it: what it is to be again should the launcher be gone.
  Prompt(int terminal, const termios& first, const AskerOptions& options, std::array<int, 2> sockets)
      : terminal_(terminal), first_(first), options_(options), sockets_(sockets) {
    ::tcgetattr(terminal_, &before_);
    set_keys();
    ::tcflush(terminal_, TCIFLUSH);
  }
  // What was typed and not read was meant for the question.
  ~Prompt() {
    // A shell is back, and has modes of its own.
    if (!hung_up_ && !is_in_front(terminal_)) return;
    if (begun_) show("\r\n" + std::string(kEnd), base::Deadline::after(kPatience));
    ::tcsetattr(terminal_, TCSANOW, hung_up_ ? &first_ : &before_);
    ::tcflush(terminal_, TCIFLUSH);
  }
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;

  Answer ask(const std::string& host, uint16_t port) {
    deadline_ = base::Deadline::after(options_.time);
    begun_ = true;
    say(std::string(kBegin) + question_text(host, port, options_.folder, options_.time));
    hear_nothing();
    while (!gone_) {
      const auto bytes = read(deadline_);
      if (!bytes) return Answer::kTimeout;
      const Key key = key_of(*bytes);
      // The first letter of a word, or one from the middle of a line.
      if (key == Key::kNone || more_follows()) {
        hear_nothing();
        continue;
      }
      switch (key) {
        case Key::kNone:
          continue;
        case Key::kOnce:
          say("once");
          return Answer::kOnce;
        case Key::kSession:
          say("this session");
          return Answer::kSession;
        case Key::kDeny:
          say("deny");
          return Answer::kDeny;
        case Key::kAlways:
          break;
      }
      if (const auto answer = confirm(host, port)) return *answer;
    }
    return Answer::kNobody;
  }

 private:
  // Bytes as they come, without echo; ^C and ^Z are keys.
  void set_keys() const {
    termios keys = before_;
    ::cfmakeraw(&keys);
    keys.c_oflag |= OPOST | ONLCR;
    ::tcsetattr(terminal_, TCSANOW, &keys);
  }
  // A line with echo and the usual editing.
  void set_line() const {
    termios line = before_;
    line.c_iflag |= ICRNL;
    line.c_oflag |= OPOST | ONLCR;
    line.c_lflag |= ICANON | ECHO | ECHOE | ECHOK;
    line.c_lflag &= ~static_cast<tcflag_t>(ISIG | IEXTEN);
    ::tcsetattr(terminal_, TCSANOW, &line);
  }
  // By the deadline of the question: the terminal may not be read by anybody.
  void say(std::string_view text) { show(text, deadline_); }
  void show(std::string_view text, const base::Deadline& deadline) {
    while (!text.empty()) {
      const ssize_t n = ::write(terminal_, text.data(), text.size());
      if (n > 0) {
        text.remove_prefix(static_cast<size_t>(n));
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR) || !wait(POLLOUT, deadline)) {
        return;
      }
    }
  }

  // False at the deadline, and when one of the launcher's ends was hung up.
  bool wait(short what, const base::Deadline& deadline) {
    std::array<pollfd, 3> fds = {{{terminal_, what, 0}, {sockets_[0], 0, 0}, {sockets_[1], 0, 0}}};
    for (;;) {
      const int ready = ::poll(fds.data(), fds.size(), deadline.poll_timeout());
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return false;
      hung_up_ = hung_up_ || fds[1].revents != 0 || fds[2].revents != 0;
      gone_ = gone_ || hung_up_ || (fds[0].revents & what) == 0;
      return !gone_;
    }
  }
  // Nothing at the deadline; empty when nobody is there any more.
  std::optional<std::string> read(const base::Deadline& deadline) {
    if (!wait(POLLIN, deadline)) return gone_ ? std::optional<std::string>(std::string()) : std::nullopt;
    std::string bytes(256, '\0');
    const ssize_t n = ::read(terminal_, bytes.data(), bytes.size());
    gone_ = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return bytes;
  }
  // Until nothing was typed for a while: who is in the middle of a line has not read the question.
  void hear_nothing() {
    base::Deadline quiet = base::Deadline::after(options_.deaf);
    while (!gone_ && !quiet.passed() && !deadline_.passed()) {
      if (read(quiet)) quiet = base::Deadline::after(options_.deaf);
    }
  }
  bool more_follows() {
    const base::Deadline soon = base::Deadline::after(options_.deaf / 2);
    return !soon.passed() && read(soon) && !gone_;
  }

  // `always` is for good, so it takes more than a key. Nothing: it was not confirmed.
  std::optional<Answer> confirm(const std::string& host, uint16_t port) {
    set_line();
    say("always\r\n  To keep it for '" + base::escape(options_.kept_in) + "' and what is below, type the host again: ");
    const auto line = read(deadline_);
    set_keys();
    if (!line) return Answer::kTimeout;
    if (gone_) return Answer::kNobody;
    std::string_view typed = *line;
    while (typed.ends_with('\n') || typed.ends_with('\r') || typed.ends_with(' ')) typed.remove_suffix(1);
    if (typed != host) {
      say("  That is another one. [o]nce, this [s]ession, [a]lways, [d]eny: ");
      return {};
    }
    const std::string rule = policy::to_text(egress::answered_rule(host, port));
    const base::Status kept =
        options_.keep ? options_.keep(rule) : base::Status(base::refuse("keep the answer", rule, "there is no store"));
    if (kept) return Answer::kAlways;
    say("  " + kept.error().message() + "\r\n  So it is for this session.");
    return Answer::kSession;
  }

  int terminal_;
  const termios& first_;
  const AskerOptions& options_;
  const std::array<int, 2> sockets_;
  base::Deadline deadline_;
  termios before_{};
  bool begun_ = false;
  bool gone_ = false;
  bool hung_up_ = false;
};

class Process {
 public:
  Process(AskerOptions options, base::Fd terminal, base::Fd questions, base::Fd talk)
      : options_(std::move(options)),
        terminal_(std::move(terminal)),
        questions_(std::move(questions)),
        talk_(std::move(talk)) {}

  int run() {
    close_all_but({terminal_.get(), questions_.get(), talk_.get()});
    for (int number = 0; number <= STDERR_FILENO; ++number) {
      (void)::open("/dev/null", O_RDWR);  // NOLINT(android-cloexec-open): it stands for 0, 1 or 2
    }
    ::prctl(PR_SET_NAME, "belljar-asker");
    // The terminal's signals are for the launcher, and its end is this one's. TTOU blocked: the question may be shown
    // (tcsetattr(3)) although a shell has moved on.
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::tcgetattr(terminal_.get(), &first_);
    QuestionMessage question;
    for (;;) {
      // The launcher says nothing on the other one unless it is asked: it is its end.
      std::array<pollfd, 2> fds = {{{questions_.get(), POLLIN, 0}, {talk_.get(), POLLIN, 0}}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) continue;
      if (fds[1].revents != 0) return 0;
      const ssize_t n = ::recv(questions_.get(), &question, sizeof question, 0);
      if (n != static_cast<ssize_t>(sizeof question) || question.magic != QuestionMessage::kMagic) return 0;
      const AnswerMessage answer{.answer = answer_to(question), .number = question.number};
      if (::send(questions_.get(), &answer, sizeof answer, MSG_NOSIGNAL) < 0) return 0;
    }
  }

 private:
  Answer answer_to(QuestionMessage& question) {
    question.host.back() = '\0';
    const std::string host(question.host.data());
    const auto canonical = policy::canonical_host(host);
    if (!canonical || *canonical != host || question.port == 0) return Answer::kNobody;
    // Whoever has the terminal in front is not asking for the keys of this session.
    if (!is_in_front(terminal_.get())) return Answer::kNobody;
    if (!say(Asker::Word::kTake)) return Answer::kNobody;
    Asker::Word word{};
    if (::recv(talk_.get(), &word, sizeof word, 0) != static_cast<ssize_t>(sizeof word) ||
        word != Asker::Word::kTaken) {
      return Answer::kNobody;
    }
    Answer answer{};
    {
      Prompt prompt(terminal_.get(), first_, options_, {questions_.get(), talk_.get()});
      answer = prompt.ask(host, question.port);
    }
    (void)say(Asker::Word::kGive);
    return answer;
  }
  [[nodiscard]] bool say(Asker::Word word) const {
    return ::send(talk_.get(), &word, sizeof word, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof word);
  }

  AskerOptions options_;
  base::Fd terminal_;
  base::Fd questions_;
  base::Fd talk_;
  termios first_{};
};

}  // namespace

base::Result<Asker> Asker::start(AskerOptions options) {
  Asker out;
  // Non-blocking, for nobody may read what is shown; the shell's own description is another.
  base::Fd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!terminal || ::isatty(STDERR_FILENO) == 0) return out;
  base::Fd questions;
  base::Fd talk;
  BELLJAR_TRY(base::make_pair(SOCK_SEQPACKET, out.questions_, questions));
  BELLJAR_TRY(base::make_pair(SOCK_SEQPACKET, out.terminal_, talk));
  const pid_t pid = ::fork();
  if (pid < 0) return base::system_error("start the asker", "", errno);
  // The launcher's objects are left as they are: their ends are not this process's to make.
  if (pid == 0) {
    ::_exit(Process(std::move(options), std::move(terminal), std::move(questions), std::move(talk)).run());
  }
  ::fcntl(out.questions_.get(), F_SETFL, O_NONBLOCK);
  out.pid_ = pid;
  return out;
}

Asker::Word Asker::hear() {
  Word word = Word::kGive;
  const ssize_t n = ::recv(terminal_.get(), &word, sizeof word, MSG_DONTWAIT);
  if (n == static_cast<ssize_t>(sizeof word)) return word;
  if (n >= 0 || (errno != EAGAIN && errno != EINTR)) terminal_.reset();
  return Word::kGive;
}

void Asker::tell_taken() const {
  const Word word = Word::kTaken;
  (void)::send(terminal_.get(), &word, sizeof word, MSG_NOSIGNAL);
}

void Asker::end() {
  questions_.reset();
  terminal_.reset();
  const pid_t pid = std::exchange(pid_, -1);
  (void)base::reap(pid);
}

Key key_of(std::string_view bytes) {
  if (bytes.size() != 1) return Key::kNone;
  switch (bytes.front()) {
    case 'o':
    case 'O':
      return Key::kOnce;
    case 's':
    case 'S':
      return Key::kSession;
    case 'a':
    case 'A':
      return Key::kAlways;
    case 'd':
    case 'D':
    case 'n':
    case 'N':
    case '\x03':  // ^C
      return Key::kDeny;
    default:
      return Key::kNone;
  }
}

std::string question_text(const std::string& host, uint16_t port, const std::string& folder,
                          std::chrono::seconds time) {
  const bool usual = port == 80 || port == 443;
  std::string out = "belljar: the session in '" + base::escape(folder) +
                    "' wants to reach a host that no rule decides about:\n\n    " + base::escape(host) + "   port " +
                    std::to_string(port) + "\n\n";
  out += "  [o] once   [s] this session   [a] always in this project   [d] deny";
  out += usual ? "   (s and a: ports 80 and 443)\n" : "\n";
  out += "  no answer in " + std::to_string(time.count()) + " s is a no: ";
  return out;
}

}  // namespace belljar::session
