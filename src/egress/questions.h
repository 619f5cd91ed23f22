// Hosts that no rule decides about, put to a person.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "egress/question.h"
#include "egress/rules.h"
#include "net/event_loop.h"

namespace belljar::egress {

class AskOwner {
 public:
  // Never called from inside ask(). kSession and kAlways are in the rules already.
  virtual void on_answer(Answer answer) = 0;

 protected:
  ~AskOwner() = default;
};

// One question for one host and port, whoever waits for it. What a person denied is not asked again in the session,
// and what nobody answered not within kPause, so an agent that tries again and again asks once. Bounded: what is
// beyond is denied. After kMostRefused noes in a row nobody is asked any more: who is asked without end says yes at
// last. When the other end of the socket is gone everything is answered kNobody.
class Questions final : private net::Watcher {
 public:
  static constexpr size_t kOpen = 16;      // questions that wait for their answer
  static constexpr size_t kWaiting = 256;  // clients that wait for one of them
  static constexpr size_t kDenied = 1024;  // answers that are remembered
  static constexpr int kMostRefused = 30;
  static constexpr std::chrono::seconds kPause{60};

  // An invalid socket: nobody is ever asked. `rules` outlives this.
  Questions(net::EventLoop& loop, base::Fd socket, Rules& rules)
      : loop_(loop), socket_(std::move(socket)), rules_(rules) {}
  ~Questions() override { hang_up(); }

  [[nodiscard]] base::Status watch();
  [[nodiscard]] bool asks() const { return socket_.valid(); }

  // True when what `verdict` says of `host` (canonical) is a matter for a person: no rule decides it. Never for what a
  // rule denies or limits, for names of this host, and for addresses that are not public.
  [[nodiscard]] bool may_ask(const Verdict& verdict, const std::string& host) const;

  // An answer that is there already, or nothing: then `owner` is told, unless it cancels.
  [[nodiscard]] std::optional<Answer> ask(const std::string& host, uint16_t port, AskOwner& owner);
  void cancel(AskOwner& owner);

 private:
  using Target = std::pair<std::string, uint16_t>;
  struct Open {
    uint64_t number = 0;
    std::vector<AskOwner*> waiting;
  };

  void on_events(uint32_t events) override;
  void take(const AnswerMessage& message);
  void hang_up();
  void remember(const Target& target, std::optional<std::chrono::nanoseconds> until);
  [[nodiscard]] bool send(uint64_t number, const std::string& host, uint16_t port) const;

  net::EventLoop& loop_;
  base::Fd socket_;
  Rules& rules_;
  uint64_t last_ = 0;
  size_t waiting_ = 0;
  int refused_ = 0;  // in a row
  std::map<Target, Open> open_;
  // Until when, on the boot clock; without a time: as long as the session lives.
  std::map<Target, std::optional<std::chrono::nanoseconds>> denied_;
};

// The rule that a person's yes to `port` of `host` means: the two usual ports go together.
[[nodiscard]] policy::HostRule answered_rule(const std::string& host, uint16_t port);

}  // namespace belljar::egress
