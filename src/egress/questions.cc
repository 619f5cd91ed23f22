#include "egress/questions.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "net/address.h"
#include "policy/host_rule.h"

namespace belljar::egress {

policy::HostRule answered_rule(const std::string& host, uint16_t port) {
  policy::HostRule rule;
  rule.pattern = host;
  if (port != 80 && port != 443) rule.port = port;
  rule.source = "a person's answer";
  rule.id = "answer:" + policy::to_text(rule);
  return rule;
}

base::Status Questions::watch() {
  if (!socket_) return {};
  return loop_.watch(socket_.get(), EPOLLIN, *this);
}

bool Questions::may_ask(const Verdict& verdict, const std::string& host) const {
  if (!socket_ || !undecided(verdict)) return false;
  if (host.ends_with(".belljar") || host == "localhost" || host.ends_with(".localhost")) return false;
  // A rule for an address lifts the check for public ones.
  const auto literal = net::IpAddress::parse(host);
  return !literal || net::is_global(*literal);
}

std::optional<Answer> Questions::ask(const std::string& host, uint16_t port, AskOwner& owner) {
  if (!socket_) return Answer::kNobody;
  const Target target{host, port};
  if (const auto known = denied_.find(target); known != denied_.end()) {
    const auto until = known->second;
    if (!until) return Answer::kDeny;
    if (base::boot_now() < *until) return Answer::kTimeout;
    denied_.erase(known);
  }
  if (waiting_ >= kWaiting) return Answer::kNobody;
  const auto same = open_.find(target);
  if (same != open_.end()) {
    same->second.waiting.push_back(&owner);
    ++waiting_;
    return {};
  }
  if (open_.size() >= kOpen || !send(last_ + 1, host, port)) return Answer::kNobody;
  open_.emplace(target, Open{++last_, {&owner}});
  ++waiting_;
  return {};
}

bool Questions::send(uint64_t number, const std::string& host, uint16_t port) const {
  QuestionMessage message;
  if (host.size() >= message.host.size()) return false;
  message.number = number;
  message.port = port;
  std::memcpy(message.host.data(), host.data(), host.size());
  return ::send(socket_.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof message);
}

// The question stays open: its answer may be of use to the next who asks.
void Questions::cancel(AskOwner& owner) {
  for (auto& [target, question] : open_) waiting_ -= std::erase(question.waiting, &owner);
}

void Questions::on_events(uint32_t /*events*/) {
  for (;;) {
    AnswerMessage message;
    const ssize_t n = ::recv(socket_.get(), &message, sizeof message, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n != static_cast<ssize_t>(sizeof message) || message.magic != QuestionMessage::kMagic) return hang_up();
    take(message);
    if (!socket_) return;
  }
}

void Questions::take(const AnswerMessage& message) {
  const auto found = std::ranges::find_if(open_, [&](const auto& one) { return one.second.number == message.number; });
  if (found == open_.end()) return;
  const Target target = found->first;
  const std::vector<AskOwner*> waiting = std::move(found->second.waiting);
  open_.erase(found);
  waiting_ -= waiting.size();
  const bool refused = message.answer == Answer::kDeny || message.answer == Answer::kTimeout;
  refused_ = refused ? refused_ + 1 : 0;
  switch (message.answer) {
    case Answer::kSession:
    case Answer::kAlways:
      rules_.add_answer(answered_rule(target.first, target.second));
      break;
    case Answer::kDeny:
      remember(target, std::nullopt);
      break;
    case Answer::kTimeout:
      remember(target, base::boot_now() + kPause);
      break;
    case Answer::kOnce:
    case Answer::kNobody:
      break;
  }
  // None of them can end another: each ends at most itself, when the loop's round is over.
  for (AskOwner* owner : waiting) owner->on_answer(message.answer);
  if (refused_ >= kMostRefused) hang_up();
}

// A yes to one of the usual ports is one to both, and so is a no.
void Questions::remember(const Target& target, std::optional<std::chrono::nanoseconds> until) {
  if (denied_.size() >= kDenied) return;
  denied_[target] = until;
  if (target.second == 80) denied_[{target.first, 443}] = until;
  if (target.second == 443) denied_[{target.first, 80}] = until;
}

void Questions::hang_up() {
  if (!socket_) return;
  loop_.forget(socket_.get(), *this);
  socket_.reset();
  waiting_ = 0;
  for (const auto& [target, question] : std::exchange(open_, {})) {
    for (AskOwner* owner : question.waiting) owner->on_answer(Answer::kNobody);
  }
}

}  // namespace belljar::egress
