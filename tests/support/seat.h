// A person's terminal.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "support/belljar.h"
#include "support/process.h"

namespace belljar::testing {

// A pseudo-terminal with a program on it, seen from the person's side.
class Seat {
 public:
  Seat() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    std::array<char, 64> name{};
    if (!master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0 ||
        ::ptsname_r(master_.get(), name.data(), name.size()) != 0) {
      std::abort();
    }
    slave_ = base::Fd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    resize(33, 101);
  }

  void start(Command command) {
    command.in = command.out = command.err = Stream::from(slave_.get());
    command.new_terminal_session = true;
    process_.emplace(command);
  }
  Process& process() { return *process_; }

  void type(std::string_view keys) const {
    ASSERT_EQ(::write(master_.get(), keys.data(), keys.size()), ssize_t(keys.size()));
  }
  void resize(unsigned short rows, unsigned short columns) const {
    const winsize size{rows, columns, 0, 0};
    ASSERT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }
  [[nodiscard]] termios modes() const {
    termios out{};
    EXPECT_EQ(::tcgetattr(slave_.get(), &out), 0);
    return out;
  }

  // Waits until the screen has shown `text` since the last wait that found its text.
  ::testing::AssertionResult shows(const std::string& text) {
    const bool seen = eventually([&] {
      read_some();
      return screen_.find(text, from_) != std::string::npos;
    });
    if (!seen) return ::testing::AssertionFailure() << "'" << text << "' did not come; the screen has:\n" << screen_;
    from_ = screen_.find(text, from_) + text.size();
    return ::testing::AssertionSuccess();
  }
  // Whether `text` has come since the last wait that found its text, or comes now.
  [[nodiscard]] bool has(const std::string& text) { return has_within(text, std::chrono::milliseconds(100)); }
  [[nodiscard]] bool has_within(const std::string& text, std::chrono::milliseconds patience) {
    return eventually(
        [&] {
          read_some();
          return screen_.find(text, from_) != std::string::npos;
        },
        patience);
  }
  [[nodiscard]] const std::string& screen() const { return screen_; }

 private:
  void read_some() {
    pollfd wait{master_.get(), POLLIN, 0};
    while (::poll(&wait, 1, 10) > 0 && (wait.revents & POLLIN) != 0) {
      std::array<char, 4096> buffer{};
      const ssize_t n = ::read(master_.get(), buffer.data(), buffer.size());
      if (n <= 0) return;
      screen_.append(buffer.data(), static_cast<size_t>(n));
    }
  }

  base::Fd master_;
  base::Fd slave_;
  std::optional<Process> process_;
  std::string screen_;
  size_t from_ = 0;
};

}  // namespace belljar::testing
