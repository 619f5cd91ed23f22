#include "net/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace belljar::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

struct Call final : Watcher, Alarm {
  explicit Call(std::function<void(uint32_t)> call) : then(std::move(call)) {}
  void on_events(uint32_t events) override { then(events); }
  void on_alarm() override { then(0); }
  std::function<void(uint32_t)> then;
};

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    a = base::Fd(ends[0]);
    b = base::Fd(ends[1]);
  }
  base::Fd a;
  base::Fd b;
};

class EventLoopTest : public testing::Test {
 protected:
  std::unique_ptr<EventLoop> loop = *EventLoop::create();
};

TEST_F(EventLoopTest, StopBeforeRunEndsRun) {
  loop->stop();
  EXPECT_TRUE(loop->run());
}

TEST_F(EventLoopTest, StopFromAnotherThreadWakesALoopThatWaitsForNothing) {
  std::thread other([&] { loop->stop(); });
  EXPECT_TRUE(loop->run());
  other.join();
}

TEST_F(EventLoopTest, FiresTimersInTheOrderTheyAreDue) {
  std::vector<int> order;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::unique_ptr<Timer>> timers;
  const std::array<int, 7> due = {5, 1, 4, 0, 3, 6, 2};
  for (const int at : due) {
    calls.push_back(std::make_unique<Call>([&order, at, this](uint32_t) {
      order.push_back(at);
      if (at == 6) loop->stop();
    }));
    timers.push_back(std::make_unique<Timer>(*loop, *calls.back()));
    timers.back()->arm(milliseconds(at));
  }
  timers[4]->disarm();                  // 3
  timers[0]->arm(milliseconds(1) / 2);  // 5 moves before 1
  EXPECT_TRUE(loop->run());
  EXPECT_EQ(order, (std::vector<int>{0, 5, 1, 2, 4, 6}));
  EXPECT_FALSE(timers[1]->armed());
}

TEST_F(EventLoopTest, ATimerMayDestroyItselfAndOthers) {
  std::unique_ptr<Timer> first;
  std::unique_ptr<Timer> second;
  Call never([](uint32_t) { ADD_FAILURE() << "a destroyed timer fired"; });
  Call once([&](uint32_t) {
    second.reset();
    first.reset();
    loop->stop();
  });
  first = std::make_unique<Timer>(*loop, once);
  second = std::make_unique<Timer>(*loop, never);
  first->arm(nanoseconds(0));
  second->arm(nanoseconds(1));
  EXPECT_TRUE(loop->run());
}

TEST_F(EventLoopTest, WhatIsForgottenGetsNothingMoreOfTheSameBatch) {
  Pair one;
  Pair two;
  int calls = 0;
  std::unique_ptr<Call> first;
  std::unique_ptr<Call> second;
  const auto drop_other = [&](base::Fd& fd, std::unique_ptr<Call>& other) {
    ++calls;
    if (other) loop->forget(fd.get(), *other);
    other.reset();  // a later delivery would be a use after free
    loop->stop();
  };
  first = std::make_unique<Call>([&](uint32_t) { drop_other(two.a, second); });
  second = std::make_unique<Call>([&](uint32_t) { drop_other(one.a, first); });
  ASSERT_EQ(::write(one.b.get(), "x", 1), 1);
  ASSERT_EQ(::write(two.b.get(), "x", 1), 1);
  ASSERT_TRUE(loop->watch(one.a.get(), EPOLLIN, *first));
  ASSERT_TRUE(loop->watch(two.a.get(), EPOLLIN, *second));
  EXPECT_TRUE(loop->run());
  EXPECT_EQ(calls, 1);
}

// The kernel keeps a registration for as long as anybody has the descriptor's other copies.
TEST_F(EventLoopTest, WhatIsClosedElsewhereTooReachesNobodyWhoHasItsPlace) {
  Pair one;
  Pair two;
  auto gone = std::make_unique<Call>([](uint32_t) { ADD_FAILURE(); });
  ASSERT_TRUE(loop->watch(one.a.get(), EPOLLIN | EPOLLET, *gone));
  const base::Fd copy(::fcntl(one.a.get(), F_DUPFD_CLOEXEC, 0));
  loop->forget_closing(*gone);
  gone.reset();
  one.a.reset();
  int calls = 0;
  Call next([&](uint32_t) {
    ++calls;
    loop->stop();
  });
  ASSERT_TRUE(loop->watch(two.a.get(), EPOLLIN | EPOLLET, next));
  ASSERT_EQ(::write(one.b.get(), "x", 1), 1);  // an event of the old registration comes first
  ASSERT_EQ(::write(two.b.get(), "x", 1), 1);
  EXPECT_TRUE(loop->run());
  EXPECT_EQ(calls, 1);
  loop->forget(two.a.get(), next);
}

TEST_F(EventLoopTest, AgainCallsOnceInTheNextRoundAndNotAfterForget) {
  Pair pair;
  int rounds = 0;
  std::unique_ptr<Call> gone = std::make_unique<Call>([](uint32_t) { ADD_FAILURE(); });
  Call counter([&](uint32_t events) {
    EXPECT_EQ(events, 0U);
    if (++rounds < 3) {
      loop->again(counter);
      loop->again(counter);  // counts once
    } else {
      loop->stop();
    }
  });
  loop->again(*gone);
  loop->forget(pair.a.get(), *gone);
  gone.reset();
  loop->again(counter);
  EXPECT_TRUE(loop->run());
  EXPECT_EQ(rounds, 3);
}

TEST_F(EventLoopTest, DisposesAfterTheCallbackHasReturned) {
  struct Noted final : Disposable {
    explicit Noted(bool& flag) : gone(flag) {}
    ~Noted() override { gone = true; }
    bool& gone;
  };
  bool gone = false;
  Call dispose([&](uint32_t) {
    loop->dispose(std::make_unique<Noted>(gone));
    EXPECT_FALSE(gone);
    loop->stop();
  });
  loop->again(dispose);
  EXPECT_TRUE(loop->run());
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace belljar::net
