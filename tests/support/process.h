// Other programs, started and watched by a test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace belljar::testing {

// What a standard descriptor of the program is.
struct Stream {
  enum class Kind { kNull, kPipe, kClosed, kFd };
  Kind kind = Kind::kPipe;
  int fd = -1;       // kFd: borrowed
  std::string text;  // kPipe as input: written, then the end is closed

  static Stream null() { return {Kind::kNull, -1, {}}; }
  static Stream closed() { return {Kind::kClosed, -1, {}}; }
  static Stream from(int fd) { return {Kind::kFd, fd, {}}; }
  static Stream pipe(std::string text = {}) { return {Kind::kPipe, -1, std::move(text)}; }
};

struct Command {
  std::vector<std::string> argv;                            // argv[0] is looked up in PATH
  std::map<std::string, std::optional<std::string>> env{};  // changes to the test's own environment; nullopt unsets
  std::string cwd{};
  Stream in = Stream::null();
  Stream out = Stream::pipe();
  Stream err = Stream::pipe();
  std::function<bool()> before_exec{};  // in the child, single-threaded; false ends it with 127
  bool new_terminal_session = false;    // setsid, and descriptor 0 becomes the controlling terminal
};

struct Output {
  int code = -1;  // exit status, or 128 + the signal, as a shell says it
  std::string out;
  std::string err;
  bool timed_out = false;  // the test's patience ended and the program was killed
};

// A running program, killed and reaped when the object goes. It dies with the test: its parent-death signal is SIGKILL.
class Process {
 public:
  explicit Process(const Command& command);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  Process(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;

  // Reads the next line of its output (kPipe), without the newline. Nullopt at the end or when patience ends.
  std::optional<std::string> read_line(std::chrono::seconds patience = std::chrono::seconds(30));

  // Feeds the input and gathers the output until the program has ended and nobody holds its output any more.
  Output wait(std::chrono::seconds patience = std::chrono::seconds(60));

 private:
  pid_t pid_ = -1;
  std::string input_;
  base::Fd in_, out_, err_;
  Output output_;
};

Output run(const Command& command, std::chrono::seconds patience = std::chrono::seconds(60));

// The output of a command of the set-up; aborts with its messages when it fails.
std::string must_run(const Command& command);

}  // namespace belljar::testing
