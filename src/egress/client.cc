#include "egress/client.h"

#include <sys/socket.h>

#include <utility>

#include "base/text.h"
#include "policy/host_rule.h"

namespace belljar::egress {
namespace {

constexpr size_t kChunk = size_t{4} << 10U;
constexpr size_t kMaxLinger = size_t{256} << 10U;
constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";
// A fatal access_denied alert (RFC 8446, section 6) in a record of version 3.1, as any client's first flight allows.
// Without it the client would only see a broken connection.
constexpr std::string_view kAccessDenied("\x15\x03\x01\x00\x02\x02\x31", 7);

bool accepts_json(const net::RequestHead& head) {
  for (const net::Field& field : head.fields) {
    if (!net::same_name(field.name, "accept")) continue;
    for (const std::string_view range : base::split(field.value, ',')) {
      std::string_view type = base::split(range, ';').front();
      while (type.starts_with(' ')) type.remove_prefix(1);
      while (type.ends_with(' ')) type.remove_suffix(1);
      if (net::same_name(type, "application/json")) return true;
    }
  }
  return false;
}

}  // namespace

void Client::welcome(Context& context, base::Fd socket) {
  std::unique_ptr<Client> client(new Client(context));
  auto stream = net::Stream::open(context.loop, std::move(socket), *client);
  if (!stream) return;  // epoll has no room: the socket closes
  client->client_ = std::move(*stream);
  client->scanner_ = net::HeadScanner(context.options.head_limits);
  client->timer_.arm(context.options.head_deadline);
  context.company.join(std::move(client));
}

void Client::turn_away(Context& context, base::Fd socket, Reason reason) {
  const Denial denial{{}, 0, reason, {}, {}, {}, 1};
  const std::string response = refusal_response(denial, false, false);
  // A new socket's send buffer takes this whole. The close may reset it away when the client has sent already; the
  // client then knows as well.
  [[maybe_unused]] const ssize_t n = ::send(socket.get(), response.data(), response.size(), MSG_NOSIGNAL);
  ::shutdown(socket.get(), SHUT_WR);
  context.log.add(denial);
}

void Client::on_stream(net::Stream& /*stream*/) {
  if (!left()) step();
}

void Client::step() {
  bool go_on = true;
  while (go_on && !left()) {
    switch (phase_) {
      case Phase::kHead:
        go_on = read_head();
        break;
      case Phase::kDial:
        // What the client sends meanwhile stays in the kernel; only its death is of interest.
        if (client_->broken()) leave();
        return;
      case Phase::kGreet:
        go_on = send_greeting();
        break;
      case Phase::kHello:
        go_on = read_hello();
        break;
      case Phase::kDeliver:
        go_on = deliver();
        break;
      case Phase::kForward:
        forward_->pump();
        return;
      case Phase::kLast:
        go_on = send_last();
        break;
      case Phase::kLinger:
        drain();
        return;
    }
  }
}

void Client::on_alarm() {
  if (left()) return;
  if (phase_ == Phase::kHead && !in_.empty()) {
    refuse(denial(Reason::kHeadTimeout, {}));
    step();
  } else if (phase_ == Phase::kHello) {
    refuse_hello(Reason::kHelloTimeout,
                 in_.empty() ? "the client sent nothing; only TLS, where the client speaks first, may pass" : "");
    step();
  } else {
    leave();
  }
}

net::Stream::Outcome Client::read_more() {
  if (!client_->readable()) return net::Stream::Outcome::kAgain;
  const size_t had = in_.size();
  in_.resize(had + kChunk);
  const auto got = client_->read(in_.data() + had, kChunk);
  in_.resize(had + got.bytes);
  return got.outcome;
}

bool Client::send_all(net::Stream& stream, std::string& text) {
  while (!text.empty()) {
    if (!stream.writable()) return false;
    const auto sent = stream.write(text);
    if (sent.outcome == net::Stream::Outcome::kAgain) return false;
    if (sent.outcome != net::Stream::Outcome::kDone) {
      client_->reset_on_close();
      leave();
      return false;
    }
    text.erase(0, sent.bytes);
  }
  return true;
}

bool Client::read_head() {
  if (idle_ && !in_.empty()) {
    idle_ = false;
    timer_.arm(context_.options.head_deadline);
  }
  const auto length = scanner_.scan(in_);
  if (!length) {
    refuse_malformed(length.error());
    return true;
  }
  if (*length > 0) {
    std::string head = in_.substr(0, *length);
    in_.erase(0, *length);
    scanner_.restart();
    timer_.disarm();
    take_request(std::move(head));
    return true;
  }
  const auto outcome = read_more();
  if (outcome == net::Stream::Outcome::kDone) return true;
  if (outcome != net::Stream::Outcome::kAgain) leave();  // a head cut short asks for nothing
  return false;
}

void Client::take_request(std::string head_text) {
  const auto head = net::parse_request_head(head_text);
  if (!head) {
    refuse_malformed(head.error());
    return;
  }
  json_ = accepts_json(*head);
  host_.clear();
  port_ = 0;
  rule_ = nullptr;
  upstream_head_.clear();
  if (head->method == "CONNECT") {
    take_connect(*head);
  } else {
    take_plain(*head);
  }
}

net::HttpResult<void> Client::check_host_field(const net::RequestHead& head, uint16_t default_port) const {
  std::string_view value;
  const size_t count = net::count_fields(head.fields, "host", &value);
  if (count > 1) return std::unexpected(net::HttpProblem{400, "two Host fields"});
  if (count == 0) {
    if (head.minor == 0) return {};  // HTTP/1.0 knows no Host
    return std::unexpected(net::HttpProblem{400, "no Host field"});
  }
  const auto authority = net::parse_authority(value);
  if (!authority) return std::unexpected(authority.error());
  const auto host = policy::canonical_host(authority->host);
  if (!host || *host != host_ || authority->port.value_or(default_port) != port_) {
    return std::unexpected(net::HttpProblem{400, "the Host field names another host than the request target"});
  }
  return {};
}

// Sets host_ and port_; false when the request was refused.
bool Client::take_authority(const net::Authority& authority, uint16_t default_port, const net::RequestHead& head) {
  auto host = policy::canonical_host(authority.host);
  if (!host) {
    refuse(denial(Reason::kBadRequest, host.error().message()));
    return false;
  }
  host_ = std::move(*host);
  port_ = authority.port.value_or(default_port);
  if (const auto same = check_host_field(head, default_port); !same) {
    refuse_malformed(same.error());
    return false;
  }
  return true;
}

void Client::take_connect(const net::RequestHead& head) {
  const auto authority = net::parse_authority(head.target);
  if (!authority) return refuse_malformed(authority.error());
  const uint16_t port = authority->port.value_or(0);
  if (port == 0) return refuse_malformed({400, "CONNECT without a port"});
  // JVMs leave the port out of Host when it is 443, others whatever it is.
  if (!take_authority(*authority, port, head)) return;
  const auto framing = net::request_framing(head);
  if (!framing) return refuse_malformed(framing.error());
  if (framing->kind == net::Framing::Kind::kChunked || framing->length > 0) {
    return refuse_malformed({400, "CONNECT with a body"});
  }
  judge_and_dial();
}

void Client::take_plain(const net::RequestHead& head) {
  const auto target = net::parse_absolute_target(head.target, head.method);
  if (!target) return refuse_malformed(target.error());
  if (!take_authority(target->authority, 80, head)) return;
  auto request = read_request(head);
  if (!request) return refuse_malformed(request.error());
  request_ = std::move(*request);
  request_.origin_form = target->origin_form;
  request_.host = host_;
  request_.port = port_;
  upstream_head_ = upstream_head(request_, head);
  judge_and_dial();
}

// Every request comes through here, whatever its connection was allowed before.
void Client::judge_and_dial() {
  const Verdict verdict = context_.rules.decide(host_, port_);
  rule_ = verdict.rule;
  if (!verdict.allowed) return refuse(denial(verdict.reason, {}));
  phase_ = Phase::kDial;
  dialer_.emplace(context_.loop, context_.resolver, context_.rules, context_.options.addresses, context_.options.dial,
                  static_cast<DialOwner&>(*this));
  dialer_->start(host_, port_);
}

void Client::on_dialed(std::unique_ptr<net::Stream> stream) {
  if (left()) return;
  dialer_.reset();
  if (upstream_head_.empty()) {
    upstream_ = std::move(stream);
    upstream_->set_owner(*this);
    out_ = kEstablished;
    phase_ = Phase::kGreet;
  } else {
    forward_ = std::make_unique<Forward>(static_cast<ForwardOwner&>(*this), *client_, in_, std::move(stream), request_,
                                         std::move(upstream_head_));
    phase_ = Phase::kForward;
  }
  step();
}

void Client::on_dial_failed(const DialFailure& failure) {
  if (left()) return;
  Denial refusal = denial(failure.reason, failure.detail);
  if (failure.refused) refusal.remedy = allow_flag(failure.refused->text(), port_);
  refuse(std::move(refusal));
  dialer_.reset();
  step();
}

void Client::on_forward_done(bool keep_alive) {
  forward_.reset();
  if (!keep_alive) {
    finish({});
  } else {
    phase_ = Phase::kHead;
    idle_ = in_.empty();
    timer_.arm(idle_ ? context_.options.idle_deadline : context_.options.head_deadline);
  }
  // Not from inside step(), which may be what pumped: one round later, and so also pipelined requests take turns.
  client_->again();
}

void Client::on_forward_refused(Reason reason, std::string detail, int status) {
  forward_.reset();
  refuse_with_status(denial(reason, std::move(detail)), status);
  client_->again();
}

void Client::on_forward_broken() {
  forward_.reset();
  client_->reset_on_close();
  leave();
}

void Client::on_forward_upgraded(std::unique_ptr<net::Stream> upstream, std::string to_client) {
  forward_.reset();
  upstream_ = std::move(upstream);
  upstream_->set_owner(*this);
  out_ = std::move(to_client);
  phase_ = Phase::kDeliver;
  client_->again();
}

bool Client::send_greeting() {
  if (!send_all(*client_, out_)) return false;
  phase_ = Phase::kHello;
  timer_.arm(context_.options.hello_deadline);
  return true;
}

bool Client::read_hello() {
  const auto verdict = hello_.feed(std::string_view(in_).substr(hello_fed_));
  hello_fed_ = in_.size();
  if (verdict != net::HelloVerdict::kNeedMore) return judge_hello(verdict);
  const auto outcome = read_more();
  if (outcome == net::Stream::Outcome::kDone) return true;
  if (outcome != net::Stream::Outcome::kAgain) leave();  // gone before it said anything whole
  return false;
}

bool Client::judge_hello(net::HelloVerdict verdict) {
  timer_.disarm();
  switch (verdict) {
    case net::HelloVerdict::kHost: {
      const auto named = policy::canonical_host(hello_.host());
      if (!named || *named != host_) {
        refuse_hello(Reason::kSniMismatch, "the hello names '" + base::escape(hello_.host()) + "'");
        return true;
      }
      break;
    }
    case net::HelloVerdict::kNoSni:
      // A hello cannot name an address (RFC 6066, section 3); a rule that names it has been found instead.
      if (!net::IpAddress::parse(host_)) {
        refuse_hello(Reason::kNoSni, {});
        return true;
      }
      break;
    case net::HelloVerdict::kNotTls:
      refuse_hello(Reason::kNotTls, std::string(hello_.problem()));
      return true;
    case net::HelloVerdict::kMalformed:
    case net::HelloVerdict::kNeedMore:
      refuse_hello(Reason::kMalformedHello, std::string(hello_.problem()));
      return true;
  }
  phase_ = Phase::kDeliver;
  return true;
}

bool Client::deliver() {
  if (!send_all(*client_, out_) || !send_all(*upstream_, in_)) return false;
  become_tunnel();
  return false;
}

void Client::become_tunnel() {
  auto tunnel = std::make_unique<Tunnel>(context_.company, context_.pipes, std::move(client_), std::move(upstream_));
  Tunnel& joined = *tunnel;
  context_.company.join(std::move(tunnel));
  leave();
  joined.start();
}

Denial Client::denial(Reason reason, std::string detail) const {
  Denial out{host_, port_, reason, text_of(rule_), {}, std::move(detail), 1};
  if (reason == Reason::kHostNotAllowed || reason == Reason::kPortNotAllowed) out.remedy = allow_flag(host_, port_);
  return out;
}

void Client::refuse(Denial denial) {
  refuse_with_status(std::move(denial), 0);
}

void Client::refuse_malformed(const net::HttpProblem& problem) {
  refuse_with_status(denial(Reason::kBadRequest, std::string(problem.text)), problem.status);
}

void Client::refuse_with_status(Denial denial, int status) {
  std::string response = refusal_response(denial, json_, false, status);
  context_.log.add(std::move(denial));
  finish(std::move(response));
}

void Client::refuse_hello(Reason reason, std::string detail) {
  context_.log.add(denial(reason, std::move(detail)));
  upstream_->reset_on_close();
  upstream_.reset();
  finish(reason == Reason::kNotTls || reason == Reason::kHelloTimeout ? std::string() : std::string(kAccessDenied));
}

void Client::finish(std::string last_bytes) {
  out_ = std::move(last_bytes);
  in_.clear();
  in_.shrink_to_fit();
  phase_ = Phase::kLast;
  timer_.arm(context_.options.linger_deadline);
}

bool Client::send_last() {
  if (!send_all(*client_, out_)) return false;
  client_->shutdown_write();
  phase_ = Phase::kLinger;
  return true;
}

void Client::drain() {
  std::string sink(kChunk, '\0');
  while (client_->readable() && lingered_ < kMaxLinger) {
    const auto got = client_->read(sink.data(), sink.size());
    if (got.outcome == net::Stream::Outcome::kAgain) return;
    if (got.outcome != net::Stream::Outcome::kDone) break;
    lingered_ += got.bytes;
  }
  if (client_->readable()) leave();
}

}  // namespace belljar::egress
