// What follows a TLS hello that was judged. A server that speaks no TLS would take what comes next for whatever it
// speaks, so its answer has to be TLS; and a server may ask for a second hello (RFC 8446, section 4.1.4), which is
// judged as the first was. Until it is known what the server says nothing more of the client's is passed on.
#include <sys/socket.h>

#include <utility>

#include "base/text.h"
#include "egress/client.h"
#include "policy/host_rule.h"

namespace belljar::egress {
namespace {

// Pieces of an answer that are relayed before the other connections have their turn.
constexpr int kTurns = 64;

// True when what begins with `next` is TLS: its content types are 20 to 24 (RFC 8446, section 5.1; RFC 6520).
bool is_tls(char next) {
  return next >= 20 && next <= 24;
}

}  // namespace

bool Client::await_answer() {
  if (client_->broken()) {
    upstream_->reset_on_close();
    leave();
    return false;
  }
  if (upstream_->readable()) {
    const auto got = upstream_->read_onto(out_, kReadAtOnce);
    if (got.outcome == net::Stream::Outcome::kBroken) {
      revoke();
      return false;
    }
    switch (net::judge_tls_answer(out_)) {
      case net::TlsAnswer::kRetry:
        second_hello_ = std::make_unique<net::SecondHelloReader>();
        in_ = std::move(held_);
        hello_fed_ = 0;
        phase_ = Phase::kRetry;
        timer_.arm(context_.options.hello_deadline);
        return true;
      case net::TlsAnswer::kFinal:
        return release();
      case net::TlsAnswer::kNotTls:
        return cut(Reason::kNotTls, "the host's answer to the hello is no TLS");
      case net::TlsAnswer::kNeedMore:
        break;
    }
    if (got.outcome == net::Stream::Outcome::kEnd) return end_unanswered();
    if (out_.size() >= net::kMostTlsAnswer) return cut(Reason::kNotTls, "the host's answer to the hello has no end");
    if (got.outcome == net::Stream::Outcome::kDone) return true;
  }
  char next = held_.empty() ? '\0' : held_.front();
  if (held_.empty()) {
    if (!client_->readable()) return false;
    const ssize_t n = ::recv(client_->fd(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0) return release();  // it has said all it will
    if (n < 0) {
      client_->drained();
      return false;
    }
  }
  return is_tls(next) ? false : cut(Reason::kNotTls, "what follows the hello is no TLS");
}

// The server has ended before its answer was whole. Nothing of the client's goes to it any more.
bool Client::end_unanswered() {
  if (!grant_->carried_down(out_.size())) {
    revoke();
    return false;
  }
  upstream_.reset();
  finish(std::move(out_));
  return true;
}

// What was held back, and whatever comes, is on its way.
bool Client::release() {
  answered_ = true;
  in_ = std::move(held_);
  phase_ = Phase::kDeliver;
  return true;
}

// The server's words on their way, while the client's are read.
bool Client::relay_answer() {
  for (int turn = 0; turn < kTurns; ++turn) {
    const size_t had = out_.size();
    if (!send_all(*client_, out_)) return false;
    if (!grant_->carried_down(had)) {
      revoke();
      return false;
    }
    if (!upstream_->readable()) return true;
    out_.resize(net::kMostTlsAnswer);
    const auto got = upstream_->read(out_.data(), out_.size());
    out_.resize(got.bytes);
    if (got.outcome == net::Stream::Outcome::kAgain) return true;
    if (got.outcome == net::Stream::Outcome::kDone) continue;
    client_->reset_on_close();  // it asked and went
    leave();
    return false;
  }
  upstream_->again();
  return true;
}

bool Client::read_second_hello() {
  if (!relay_answer() && left()) return false;
  const auto verdict = second_hello_->feed(std::string_view(in_).substr(hello_fed_));
  hello_fed_ = in_.size();
  switch (verdict) {
    case net::HelloVerdict::kNeedMore: {
      const auto outcome = read_more();
      if (outcome == net::Stream::Outcome::kDone) return true;
      if (outcome != net::Stream::Outcome::kAgain) leave();
      return false;
    }
    case net::HelloVerdict::kHost: {
      const auto named = policy::canonical_host(second_hello_->hello().host());
      if (named && *named == host_) break;
      return cut(Reason::kSniMismatch, "the second hello names '" + base::escape(second_hello_->hello().host()) + "'");
    }
    case net::HelloVerdict::kNoSni:
      if (net::IpAddress::parse(host_)) break;
      return cut(Reason::kSniMismatch, "the second hello names no host");
    case net::HelloVerdict::kNotTls:
    case net::HelloVerdict::kMalformed:
      return cut(Reason::kSniMismatch, "the second hello: " + std::string(second_hello_->problem()));
  }
  timer_.disarm();
  answered_ = true;
  phase_ = Phase::kDeliver;
  return true;
}

// Refuses what is under way between the two. Says false: no step follows.
bool Client::cut(Reason reason, std::string detail) {
  context_.log.add(denial(reason, std::move(detail)));
  revoke();
  return false;
}

}  // namespace belljar::egress
