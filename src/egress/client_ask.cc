// Judging what a client asks for: by the rules, by a person where no rule decides, and anew when the rules have
// changed.
#include <utility>

#include "base/clock.h"
#include "egress/client.h"

namespace belljar::egress {
namespace {

bool is_for(const Rule& rule, const std::string& host, uint16_t port) {
  return rule.pattern == host && rule.port == port;
}

}  // namespace

Client::~Client() {
  if (phase_ == Phase::kAsk) context_.questions.cancel(*this);
}

// Every request comes through here, whatever its connection was allowed before.
std::optional<Reason> Client::admit(const Request& request) {
  Verdict verdict = context_.rules.decide(request);
  if (undecided(verdict) && once_ != nullptr && is_for(*once_, host_, port_)) verdict = {true, {}, once_};
  rule_ = std::move(verdict.rule);
  if (!verdict.allowed) return verdict.reason;
  if (rule_->hook) {
    const auto& hook = context_.options.hook;
    if (!hook) return Reason::kHostNotAllowed;
    if (RulePtr denier = context_.rules.denies(hook->host, hook->port)) {
      rule_ = std::move(denier);
      return Reason::kHostDenied;
    }
  }
  if (!context_.log.may_allow()) return Reason::kAuditFailed;
  // The same rule still, now that more is known of what is to be done: counted already.
  if (!grant_ || &grant_->rule() != rule_.get()) {
    if (const auto full = egress::take_request(*rule_, base::boot_now())) return full;
    grant_ = std::make_unique<Grant>(context_.log, rule_, host_, port_, method());
  }
  grant_->set_doing(request.doing, request.target);
  return {};
}

void Client::judge(const Request& request, Then then) {
  decided(admit(request), request.doing, then);
}

void Client::decided(std::optional<Reason> why, Doing doing, Then then) {
  if (!why) return go_on(then);
  then_ = then;
  doing_ = doing;
  if (!context_.questions.may_ask({false, *why, rule_}, host_)) return refuse(denial(*why, {}));
  if (const auto known = context_.questions.ask(host_, port_, *this)) return answer_known(*known);
  timer_.disarm();
  phase_ = Phase::kAsk;
}

void Client::go_on(Then then) {
  switch (then) {
    case Then::kDialOrForward:
      // Of SOCKS, which is answered by a connection; the first request uses it.
      if (upstream_) return start_forward(std::move(upstream_));
      return dial();
    case Then::kDial:
      return dial();
    case Then::kDialOrSniff:
      if (rule_->any_protocol()) {
        timer_.disarm();
        return dial();  // the server may be the one that speaks first
      }
      timer_.arm(context_.options.hello_deadline);
      phase_ = Phase::kSniff;
      return;
  }
}

void Client::on_answer(Answer answer) {
  if (left() || phase_ != Phase::kAsk) return;
  phase_ = Phase::kHead;  // whatever comes now sets the next one
  answer_known(answer);
  step();
}

void Client::answer_known(Answer answer) {
  switch (answer) {
    case Answer::kOnce: {
      policy::HostRule rule = answered_rule(host_, port_);
      rule.port = port_;
      rule.source += ", once";
      once_ = std::make_shared<Rule>(std::move(rule));
      once_->once = true;
      break;
    }
    case Answer::kSession:
    case Answer::kAlways:
      break;  // the rules have it
    case Answer::kDeny:
      return refuse(denial(Reason::kPersonDenied, {}));
    case Answer::kTimeout:
      return refuse(denial(Reason::kNobodyAnswered, {}));
    case Answer::kNobody:
      return refuse(denial(Reason::kHostNotAllowed, {}));
  }
  const Request request = doing_ == Doing::kPlain ? Request{host_, port_, doing_, request_.method, request_.origin_form}
                                                  : Request{host_, port_, doing_};
  if (const auto why = admit(request)) return refuse(denial(*why, {}));
  go_on(then_);
}

bool Client::rules_changed(const Review& review) {
  if (left()) return false;
  if (phase_ == Phase::kAsk) {
    // A rule may have come that answers the question.
    const Request request = doing_ == Doing::kPlain
                                ? Request{host_, port_, doing_, request_.method, request_.origin_form}
                                : Request{host_, port_, doing_};
    if (undecided(review.rules.decide(request))) return false;
    context_.questions.cancel(*this);
    phase_ = Phase::kHead;
    if (const auto why = admit(request)) {
      refuse(denial(*why, {}));
    } else {
      go_on(then_);
    }
    client_->again();
    return false;
  }
  if (!grant_ || phase_ == Phase::kHead || phase_ == Phase::kLast || phase_ == Phase::kLinger) return false;
  const net::Stream* upstream = forward_ ? forward_->upstream() : upstream_.get();
  if (grant_->survives(review, upstream)) return false;
  revoke();
  return true;
}

// What was allowed is not any more, and the journal knows.
void Client::revoke() {
  if (upstream_) upstream_->reset_on_close();
  if (forward_) forward_->reset_on_close();
  client_->reset_on_close();
  leave();
}

}  // namespace belljar::egress
