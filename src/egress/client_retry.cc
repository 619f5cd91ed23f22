// What follows a TLS hello that was judged: a server may ask for a second one (RFC 8446, section 4.1.4), which is
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

// True when no second hello can be what begins with `next`, the client's next byte if there is one: the content types
// of TLS are 20 to 24 (RFC 8446, section 5.1; RFC 6520), and a server ends a handshake in which another comes.
bool is_no_tls(std::string_view next) {
  return !next.empty() && (next.front() < 20 || next.front() > 24);
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
    const auto answer = net::judge_tls_answer(out_);
    if (answer == net::TlsAnswer::kRetry) {
      second_hello_ = std::make_unique<net::SecondHelloReader>();
      in_ = std::move(held_);
      hello_fed_ = 0;
      phase_ = Phase::kRetry;
      timer_.arm(context_.options.hello_deadline);
      return true;
    }
    const bool all = got.outcome == net::Stream::Outcome::kEnd || out_.size() >= net::kMostTlsAnswer;
    if (answer == net::TlsAnswer::kOther || all) return release();
    if (got.outcome == net::Stream::Outcome::kDone) return true;
  }
  if (!held_.empty()) return is_no_tls(held_) && release();
  if (!client_->readable()) return false;
  char next = 0;
  const ssize_t n = ::recv(client_->fd(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0) client_->drained();
  return n == 0 || (n > 0 && is_no_tls({&next, 1})) ? release() : false;
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
      refuse_second_hello("the second hello names '" + base::escape(second_hello_->hello().host()) + "'");
      return false;
    }
    case net::HelloVerdict::kNoSni:
      if (net::IpAddress::parse(host_)) break;
      refuse_second_hello("the second hello names no host");
      return false;
    case net::HelloVerdict::kNotTls:
    case net::HelloVerdict::kMalformed:
      refuse_second_hello("the second hello: " + std::string(second_hello_->problem()));
      return false;
  }
  timer_.disarm();
  answered_ = true;
  phase_ = Phase::kDeliver;
  return true;
}

void Client::refuse_second_hello(std::string detail) {
  context_.log.add(denial(Reason::kSniMismatch, std::move(detail)));
  revoke();
}

}  // namespace belljar::egress
