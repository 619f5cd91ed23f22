// The process that asks the person about hosts that no rule decides about.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::session {

struct AskerOptions {
  std::chrono::seconds time{60};        // for one answer; then it is a no
  std::chrono::milliseconds deaf{500};  // what is typed so soon was meant for another
  std::string folder;                   // of the project, for people
  std::string kept_in;                  // the folder whose projects get what is always allowed, for people
  // Keeps `rule` (as policy::parse_host_rule() reads it) there, for good.
  std::function<base::Status(const std::string& rule)> keep;
};

// A fork of the launcher from before it seals itself. It has the terminal of the session and the store, which the
// launcher has not: so what a person answers, and `always` above all, comes from the person's keys, even if the
// launcher was taken over by what it parses. It is told a host and a port, and nothing else of what it is told is
// shown.
//
// The terminal is the launcher's while nobody is asked. To ask, this process has the launcher lay down reading and
// showing (kTake, kTaken), asks, and gives it back (kGive).
class Asker {
 public:
  enum class Word : uint32_t { kTake, kTaken, kGive };

  // Nobody to ask: no terminal of the session's own can be opened.
  Asker() = default;
  // Forks; an Asker that does not ask() when there is no terminal.
  [[nodiscard]] static base::Result<Asker> start(AskerOptions options);
  Asker(Asker&& other) noexcept
      : questions_(std::move(other.questions_)),
        terminal_(std::move(other.terminal_)),
        pid_(std::exchange(other.pid_, -1)) {}
  Asker& operator=(Asker&& other) noexcept {
    end();
    questions_ = std::move(other.questions_);
    terminal_ = std::move(other.terminal_);
    pid_ = std::exchange(other.pid_, -1);
    return *this;
  }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  ~Asker() { end(); }

  [[nodiscard]] bool asks() const { return pid_ > 0; }
  // For egress::Options::questions.
  [[nodiscard]] base::Fd take_questions() { return std::move(questions_); }
  // For poll(2): readable when it wants the terminal or gives it back.
  [[nodiscard]] int fd() const { return terminal_.get(); }
  // What it wants. kGive as well when it is gone, which fd() then is.
  [[nodiscard]] Word hear();
  // The launcher does not touch the terminal any more.
  void tell_taken() const;
  // Hangs up and waits until the terminal is as it was.
  void end();

 private:
  base::Fd questions_;
  base::Fd terminal_;  // the talk about it
  pid_t pid_ = -1;
};

// What a key means at the question; a key that means nothing leaves it open. `bytes` is what one read gave: more than
// one key is a paste, or a key that is no letter, and means nothing.
enum class Key : uint8_t { kNone, kOnce, kSession, kAlways, kDeny };
[[nodiscard]] Key key_of(std::string_view bytes);

// What the person sees, ending without a newline. `host` is canonical.
[[nodiscard]] std::string question_text(const std::string& host, uint16_t port, const std::string& folder,
                                        std::chrono::seconds time);

}  // namespace belljar::session
