// shared/cases/egress.md, E14, from inside a real guest: what it meets while the proxy's process is gone, and
// afterwards.
#include "egress/kept_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/io.h"
#include "egress/test_proxy.h"
#include "tiers/jail/jail_fixture.h"

namespace belljar::tiers::jail {
namespace {

// Does what each line of its input says, and answers with a line.
constexpr const char* kAgent = R"(
proxy=/dev/tcp/127.0.0.1/61080
while read -r what; do case $what in
  ask) (exec 3<>$proxy && printf 'GET http://no.test/ HTTP/1.0\r\n\r\n' >&3 && read -r line <&3 && echo "${line%% (*}") 2>&1 | head -n 1 ;;
  begin) exec 4<>$proxy; printf 'GET http' >&4; echo begun ;;
  go-on) read -r -t 20 line <&4; echo "ended with $?" ;;
  take) perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1);
        print bind(S, pack_sockaddr_in(61080, INADDR_LOOPBACK)) ? "taken" : $!, "\n"' ;;
  go-round) (exec 3<>/dev/tcp/192.0.2.1/80) 2>&1 | head -n 1 ;;
esac; done
)";

std::array<base::Fd, 2> new_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {base::Fd(ends[0]), base::Fd(ends[1])};
}

// A guest that runs kAgent, and its conversation.
class TalkingGuest {
 public:
  std::string start_in(const std::string& folder) {
    scene_ = empty_scene(folder);
    set_scene(scene_, {.command = {"bash", "-c", kAgent}});
    std::array<base::Fd, 2> in = new_pipe();
    std::array<base::Fd, 2> out = new_pipe();
    const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    auto guest = start(scene_.prepared, {{in[0].get(), out[1].get(), null.get()}});
    if (!guest) return guest.error().message();
    guest_ = std::move(*guest);
    to_ = std::move(in[1]);
    from_ = std::move(out[0]);
    if (auto record = prove(guest_); !record) return record.error().message();
    if (auto released = guest_.release(); !released) return released.error().message();
    return {};
  }
  base::Fd take_listener() { return guest_.take_listener(); }

  // The answer, with its newline.
  std::string say(std::string_view what) {
    EXPECT_TRUE(base::write_all(to_.get(), std::string(what) + "\n"));
    std::string out;
    for (char byte = 0; !out.ends_with('\n') && ::read(from_.get(), &byte, 1) == 1;) out += byte;
    return out;
  }

 private:
  Scene scene_;
  base::Fd to_;
  base::Fd from_;
  Guest guest_;
};

TEST(KeptListenerTest, TheGuestIsRefusedWhileThereIsNoProxyAndServedByTheNext) {
  const TestFolder folder;
  const std::string said = in_launcher([&]() -> std::string {
    TalkingGuest guest;
    if (std::string why = guest.start_in(folder.path()); !why.empty()) return why;
    const auto kept = egress::KeptListener::keep(guest.take_listener());
    if (!kept) return kept.error().message();
    const egress::testing::World world;
    std::string out;
    for (int life = 0; life < 3; ++life) {
      if (auto opened = kept->open(); !opened) return out + opened.error().message();
      egress::testing::ProxyProcess proxy(world, *kept->share());
      proxy.begin();
      out += guest.say("ask") + guest.say("begin");
      proxy.kill();
      if (auto shut = kept->shut(); !shut) return out + shut.error().message();
      out += guest.say("go-on") + guest.say("ask") + guest.say("take") + guest.say("go-round");
    }
    return out;
  });
  const std::string life =
      "HTTP/1.1 403 Forbidden\nbegun\nended with 1\nbash: connect: Connection refused\nAddress already in use\n"
      "bash: connect: Network is unreachable\n";
  EXPECT_EQ(said, life + life + life);
}

}  // namespace
}  // namespace belljar::tiers::jail
