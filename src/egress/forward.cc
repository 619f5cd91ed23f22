#include "egress/forward.h"

#include <utility>

#include "base/text.h"

namespace belljar::egress {

using net::ChunkedCopier;
using Outcome = net::Stream::Outcome;

Forward::Forward(ForwardOwner& owner, net::Stream& client, std::string& client_in,
                 std::unique_ptr<net::Stream> upstream, ForwardRequest request, std::string head, Grant& grant)
    : owner_(owner),
      client_(client),
      client_in_(client_in),
      upstream_(std::move(upstream)),
      request_(std::move(request)),
      grant_(grant),
      // An extension in a request is refused: nobody needs one, and filters have disagreed about them.
      request_body_(request_.framing, ChunkedCopier::Extensions::kRefuse, ChunkedCopier::Output::kChunked),
      to_upstream_(std::move(head)),
      response_body_({}, ChunkedCopier::Extensions::kDrop, ChunkedCopier::Output::kChunked) {
  upstream_->set_owner(*this);
}

void Forward::on_stream(net::Stream& /*stream*/) {
  pump();
}

void Forward::pump() {
  if (client_.broken()) {
    cut();
    return;
  }
  for (int steps = 0; steps < kTurn; ++steps) {
    const Step up = push_request();
    if (up == Step::kOver) return;
    const Step down = pull_response();
    if (down == Step::kOver) return;
    if (up == Step::kWaits && down == Step::kWaits) return;
  }
  // Two ends that are quick enough would keep the loop to themselves.
  client_.again();
}

Forward::Step Forward::read_into(net::Stream& from, std::string& buffer, bool& ended) {
  if (ended || !from.readable()) return Step::kWaits;
  const size_t had = buffer.size();
  buffer.resize(had + kBuffer);
  const auto got = from.read(buffer.data() + had, kBuffer);
  buffer.resize(had + got.bytes);
  if (got.outcome == Outcome::kAgain) return Step::kWaits;
  ended = got.outcome != Outcome::kDone;
  return Step::kMoved;
}

Forward::Step Forward::push_request() {
  if (request_stopped_) return Step::kWaits;
  if (!to_upstream_.empty()) {
    if (!upstream_->writable()) return Step::kWaits;
    const auto sent = upstream_->write(to_upstream_);
    if (sent.outcome == Outcome::kAgain) return Step::kWaits;
    // A server that answers early may close for writing; its answer can still be read.
    if (sent.outcome == Outcome::kBroken) request_stopped_ = true;
    to_upstream_.erase(0, sent.bytes);
    if (!grant_.carried_up(sent.bytes)) return cut();
    return Step::kMoved;
  }
  if (request_body_.done()) return Step::kWaits;
  if (client_in_.empty()) {
    bool ended = false;
    const Step step = read_into(client_, client_in_, ended);
    if (ended) return cut();  // it gave up inside its body
    if (step != Step::kMoved) return step;
  }
  const auto taken = request_body_.copy(client_in_, to_upstream_, kBuffer);
  if (!taken) return fail(Reason::kBadRequest, std::string(taken.error().text), taken.error().status);
  client_in_.erase(0, *taken);
  return Step::kMoved;
}

Forward::Step Forward::pull_response() {
  if (!to_client_.empty()) {
    if (!client_.writable()) return Step::kWaits;
    const auto sent = client_.write(to_client_);
    if (sent.outcome == Outcome::kAgain) return Step::kWaits;
    if (sent.outcome == Outcome::kBroken) return cut();
    to_client_.erase(0, sent.bytes);
    if (!grant_.carried_down(sent.bytes)) return cut();
    return Step::kMoved;
  }
  if (!have_head_) return read_response_head();
  if (!response_body_.done()) return read_response_body();
  return finish_request();
}

// An answer may be whole before its request is, and the upstream still take the rest: a close now would reset the
// connection and take the end of the answer from a client that is still sending (RFC 9112 section 9.6).
Forward::Step Forward::finish_request() {
  const bool whole = request_body_.done() && to_upstream_.empty();
  if (whole || request_stopped_) {
    owner_.on_forward_done(keep_alive_ && whole);
    return Step::kOver;
  }
  // It takes no more once it has closed, or speaks out of turn.
  const Step step = read_into(*upstream_, from_upstream_, upstream_ended_);
  request_stopped_ = upstream_ended_ || step == Step::kMoved;
  return request_stopped_ ? Step::kMoved : step;
}

Forward::Step Forward::read_response_head() {
  const auto length = scanner_.scan(from_upstream_);
  if (!length) return fail(Reason::kUpstreamFailed, "a malformed response: " + std::string(length.error().text));
  if (*length > 0) {
    const std::string head = from_upstream_.substr(0, *length);
    from_upstream_.erase(0, *length);
    scanner_.restart();
    return take_response_head(head);
  }
  if (upstream_ended_) return fail(Reason::kUpstreamFailed, "the connection ended before a whole response head");
  return read_into(*upstream_, from_upstream_, upstream_ended_);
}

Forward::Step Forward::take_response_head(std::string_view text) {
  const auto head = net::parse_response_head(text);
  if (!head) return fail(Reason::kUpstreamFailed, "a malformed response: " + std::string(head.error().text));
  if (head->status < 200) return take_interim(*head);
  // Its own business with us: nobody inside has credentials for it.
  if (request_.absolute && head->status == 407) {
    return fail(Reason::kUpstreamFailed, "the upstream proxy: it answered 407 " + base::escape(head->reason));
  }
  const auto framing = net::response_framing(*head, request_.method);
  if (!framing) return fail(Reason::kUpstreamFailed, "a malformed response: " + std::string(framing.error().text));
  if (request_.max_answer) {
    // Its Location could name what nobody has allowed; and the token must not follow it.
    if (head->status >= 300 && head->status < 400)
      return fail(Reason::kUpstreamFailed, "the hook answers by a redirect");
    if (framing->length > *request_.max_answer) return fail(Reason::kUpstreamFailed, "the hook's answer is too long");
  }
  const bool plain = request_.http10 && framing->kind == net::Framing::Kind::kChunked;
  keep_alive_ = request_.keep_alive && framing->kind != net::Framing::Kind::kUntilClose;
  response_body_ = net::BodyCopier(*framing, ChunkedCopier::Extensions::kDrop,
                                   plain ? ChunkedCopier::Output::kPlain : ChunkedCopier::Output::kChunked);
  to_client_ = client_head(request_, *head, *framing, keep_alive_);
  have_head_ = true;
  return Step::kMoved;
}

Forward::Step Forward::take_interim(const net::ResponseHead& head) {
  if (++interim_ > kMaxInterim) return fail(Reason::kUpstreamFailed, "interim responses without end");
  if (head.status == 101) {
    std::string_view protocol;
    const bool asked = request_.websocket && request_body_.done() && to_upstream_.empty() &&
                       net::count_fields(head.fields, "upgrade", &protocol) == 1 &&
                       net::same_name(protocol, "websocket");
    if (!asked) return fail(Reason::kUpstreamFailed, "an upgrade that nobody asked for");
    owner_.on_forward_upgraded(std::move(upstream_), interim_head(head) + from_upstream_);
    return Step::kOver;
  }
  if (!request_.http10 && !request_.max_answer) to_client_ = interim_head(head);
  return Step::kMoved;
}

Forward::Step Forward::read_response_body() {
  if (from_upstream_.empty()) {
    const Step step = read_into(*upstream_, from_upstream_, upstream_ended_);
    if (step == Step::kWaits && !upstream_ended_) return step;
    if (from_upstream_.empty()) {
      // An end by reset is not the end of a body that lasts until the close.
      if (upstream_->broken() || !response_body_.end()) return fail(Reason::kUpstreamFailed, {});
      return Step::kMoved;
    }
  }
  const auto taken = response_body_.copy(from_upstream_, to_client_, kBuffer);
  if (!taken) return fail(Reason::kUpstreamFailed, std::string(taken.error().text));
  from_upstream_.erase(0, *taken);
  answered_ += *taken;
  if (request_.max_answer && answered_ > *request_.max_answer + kBuffer) return cut();
  return Step::kMoved;
}

// Once part of a response is on its way the client can only be told by the break.
Forward::Step Forward::fail(Reason reason, std::string detail, int status) {
  if (have_head_ || !to_client_.empty()) return cut();
  owner_.on_forward_refused(reason, std::move(detail), status);
  return Step::kOver;
}

Forward::Step Forward::cut() {
  upstream_->reset_on_close();
  owner_.on_forward_broken();
  return Step::kOver;
}

}  // namespace belljar::egress
