#include "session/relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>

#include "session/terminal.h"

namespace belljar::session {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  void put(std::string_view text) const {
    ASSERT_EQ(::write(write.get(), text.data(), text.size()), ssize_t(text.size()));
  }
  [[nodiscard]] std::string take() const {
    std::array<char, 4096> buffer{};
    const ssize_t n = ::read(read.get(), buffer.data(), buffer.size());
    return n > 0 ? std::string(buffer.data(), static_cast<size_t>(n)) : "";
  }
  base::Fd read;
  base::Fd write;
};

void step(Relay& relay) {
  std::array<pollfd, 2> wait{};
  relay.want(wait[0], wait[1]);
  ASSERT_GE(::poll(wait.data(), wait.size(), 0), 0);
  relay.step(wait[0], wait[1]);
}

TEST(Relay, FiltersWhatItCarriesAndEndsWhatWasLeftOn) {
  Pipe guest;
  const Pipe caller;
  Relay relay(Relay::Role::kToCaller, caller.write.get(), std::move(guest.read));
  relay.set_filter(std::make_unique<TerminalFilter>(TerminalFilter::Options{}));
  guest.put("text\x1b]52;c;");
  step(relay);
  EXPECT_EQ(caller.take(), "text");
  guest.put("?\a\x1b[?1000h");
  step(relay);
  EXPECT_EQ(caller.take(), "\x1b[?1000h");
  guest.put("\x1b]52;c;?\a");
  step(relay);
  EXPECT_EQ(caller.take(), "");
  EXPECT_FALSE(relay.done());
  guest.write.reset();
  for (int i = 0; i < 3 && !relay.done(); ++i) step(relay);
  EXPECT_TRUE(relay.done());
  EXPECT_EQ(caller.take(), "\x1b[?1000l");
}

TEST(Relay, WithoutAFilterEveryBytePasses) {
  Pipe guest;
  const Pipe caller;
  Relay relay(Relay::Role::kToCaller, caller.write.get(), std::move(guest.read));
  guest.put("\x1b]52;c;?\a\xFF");
  step(relay);
  EXPECT_EQ(caller.take(), "\x1b]52;c;?\a\xFF");
}

// A locale without an encoding has that of the system, most often an old one.
TEST(SpeaksUtf8, UnlessAnotherEncodingIsNamed) {
  EXPECT_TRUE(speaks_utf8(nullptr, nullptr, nullptr));
  EXPECT_TRUE(speaks_utf8("", "", "C"));
  EXPECT_TRUE(speaks_utf8("C.UTF-8", nullptr, "de_DE.ISO-8859-1"));
  EXPECT_TRUE(speaks_utf8(nullptr, "de_DE.utf8@x", nullptr));
  EXPECT_TRUE(speaks_utf8(nullptr, nullptr, "POSIX"));
  EXPECT_FALSE(speaks_utf8(nullptr, nullptr, "de_DE"));
  EXPECT_FALSE(speaks_utf8(nullptr, nullptr, "german"));
  EXPECT_FALSE(speaks_utf8(nullptr, nullptr, "de_DE.ISO-8859-1"));
  EXPECT_FALSE(speaks_utf8(nullptr, "ja_JP.eucJP", "C.UTF-8"));
  EXPECT_FALSE(speaks_utf8("de_DE@euro", nullptr, nullptr));
}

}  // namespace
}  // namespace belljar::session
