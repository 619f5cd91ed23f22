#include "egress/client.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "policy/host_rule.h"

namespace belljar::egress {
namespace {

constexpr size_t kMaxLinger = size_t{256} << 10U;
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

// What frameworks take for the method or path in place of those that were judged.
bool names_other_request(const net::RequestHead& head) {
  constexpr std::array<std::string_view, 5> kNames = {"x-http-method-override", "x-http-method", "x-method-override",
                                                      "x-original-url", "x-rewrite-url"};
  std::string_view value;
  return std::ranges::any_of(kNames, [&](auto name) { return net::count_fields(head.fields, name, &value) > 0; });
}

net::SocksReply socks_reply_of(Reason reason) {
  switch (reason) {
    case Reason::kHostNotAllowed:
    case Reason::kPortNotAllowed:
    case Reason::kAddressNotPublic:
      return net::SocksReply::kNotAllowed;
    case Reason::kResolveFailed:
    case Reason::kDialTimeout:
      return net::SocksReply::kHostUnreachable;
    case Reason::kDialFailed:
      return net::SocksReply::kConnectionRefused;
    default:
      return net::SocksReply::kGeneralFailure;
  }
}

}  // namespace

std::unique_ptr<Client> Client::make(Context& context, base::Fd socket) {
  std::unique_ptr<Client> client(new Client(context));
  auto stream = net::Stream::open(context.loop, std::move(socket), *client);
  if (!stream) return nullptr;  // epoll has no room: the socket closes
  client->client_ = std::move(*stream);
  client->scanner_ = net::HeadScanner(context.options.head_limits);
  client->timer_.arm(context.options.head_deadline);
  return client;
}

void Client::welcome(Context& context, base::Fd socket) {
  if (auto client = make(context, std::move(socket))) context.company.join(std::move(client));
}

void Client::turn_away(Context& context, base::Fd socket, Reason reason,
                       const std::optional<Destination>& destination) {
  Denial denial{{}, 0, reason, {}, {}, {}, 1};
  if (destination) {
    denial.host = destination->host;
    denial.port = destination->port;
    context.log.add(std::move(denial));
    return;
  }
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
      case Phase::kSocks:
        go_on = read_socks();
        break;
      case Phase::kAsk:
      case Phase::kDial:
        // What the client sends meanwhile stays in the kernel; only its death is of interest.
        if (client_->broken()) leave();
        return;
      case Phase::kGreet:
        go_on = send_greeting();
        break;
      case Phase::kSniff:
        go_on = sniff();
        break;
      case Phase::kHello:
        go_on = read_hello();
        break;
      case Phase::kDeliver:
        go_on = deliver();
        break;
      case Phase::kAnswer:
        go_on = await_answer();
        break;
      case Phase::kRetry:
        go_on = read_second_hello();
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
  if (phase_ == Phase::kSocks) {
    refuse_socks(Reason::kHeadTimeout, {net::SocksReply::kGeneralFailure, {}});
    step();
  } else if (phase_ == Phase::kHead && !in_.empty()) {
    refuse(denial(Reason::kHeadTimeout, {}));
    step();
  } else if (phase_ == Phase::kRetry) {
    (void)cut(Reason::kSniMismatch, "no whole second hello in time");
  } else if (phase_ == Phase::kHello || phase_ == Phase::kSniff) {
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
  if (!share_.resize(had + kReadAtOnce)) {
    context_.log.add(denial(Reason::kOutOfResources, "the buffers of all connections are in use"));
    return net::Stream::Outcome::kBroken;
  }
  return client_->read_onto(in_, kReadAtOnce).outcome;
}

bool Client::send_all(net::Stream& stream, std::string& text, bool more) {
  while (!text.empty()) {
    if (!stream.writable()) return false;
    const auto sent = stream.write(text, more);
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
  if (fresh_ && !in_.empty()) {
    fresh_ = false;
    if (static_cast<uint8_t>(in_.front()) == net::kSocksVersion) {
      phase_ = Phase::kSocks;
      words_ = Words::kSocks;
      return true;
    }
  }
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
  host_ = fixed_ ? fixed_->host : std::string();
  port_ = fixed_ ? fixed_->port : 0;
  rule_.reset();
  if (!fixed_) once_.reset();
  if (!upstream_) grant_.reset();  // that of SOCKS, which has connected, is for the first request
  upstream_head_.clear();
  if (head->method == "CONNECT") {
    if (fixed_) return refuse_malformed({400, "CONNECT to a host that is no proxy"});
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
    // What Node's http.request() sends with CONNECT. Nothing of that head is passed on, so there is one meaning.
    const auto port = authority->port;
    if (head.method == "CONNECT" && host && port && names_this_proxy(*host, *port)) return {};
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
  judge({host_, port_, Doing::kTunnel}, Then::kDialOrForward);
}

void Client::take_plain(const net::RequestHead& head) {
  // RFC 9110, sections 7.6.2 and 9.3.8: an upstream proxy may have to answer, and show what it got: our credentials.
  std::string_view value;
  if (head.method == "TRACE" || net::count_fields(head.fields, "max-forwards", &value) != 0) {
    return refuse_malformed({400, "TRACE and Max-Forwards are not passed on"});
  }
  std::string origin_form;
  if (fixed_ && (head.target.starts_with('/') || head.target == "*")) {
    auto target = net::parse_origin_target(head.target, head.method);
    if (!target) return refuse_malformed(target.error());
    if (const auto same = check_host_field(head, port_); !same) return refuse_malformed(same.error());
    origin_form = std::move(*target);
  } else {
    auto target = net::parse_absolute_target(head.target, head.method);
    if (!target) return refuse_malformed(target.error());
    if (!take_authority(target->authority, 80, head)) return;
    if (fixed_ && (host_ != fixed_->host || port_ != fixed_->port)) {
      return refuse_malformed({400, "the request target names another host than the connection is to"});
    }
    origin_form = std::move(target->origin_form);
  }
  auto request = read_request(head);
  if (!request) return refuse_malformed(request.error());
  request_ = std::move(*request);
  request_.origin_form = std::move(origin_form);
  request_.host = host_;
  request_.port = port_;
  const auto& upstream = context_.options.upstream;
  // A proxy carries an upgrade through a tunnel only.
  request_.absolute = upstream && !upstream_ && !request_.websocket && upstream->leads_to(host_);
  upstream_head_ = upstream_head(request_, head, request_.absolute ? upstream->authorization : std::string());
  const auto why = admit({host_, port_, Doing::kPlain, request_.method, request_.origin_form});
  // Of the hook's own nothing is passed on.
  if (!why && rule_->only_plain_http() && !rule_->hook && names_other_request(head)) {
    return refuse_malformed({400, "a field may stand for another method or path than the request line has"});
  }
  const auto& callbacks = context_.options.hook;
  if (!why && rule_->hook && callbacks) {
    auto hook = hook_head(*callbacks, request_, head);
    if (!hook) return refuse_malformed(hook.error());
    upstream_head_ = std::move(*hook);
  }
  decided(why, Doing::kPlain, Then::kDialOrForward);
}

bool Client::send_greeting() {
  if (!send_all(*client_, out_)) return false;
  words_ = Words::kNone;
  if (rule_->any_protocol()) {
    begin_tunnel();
    return true;
  }
  phase_ = way_ == Way::kProxy ? Phase::kHello : Phase::kSniff;
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
  hello_judged_ = true;
  held_ = in_.substr(hello_.taken());
  in_.resize(hello_.taken());
  // Until now it could have become a plain request.
  if (fixed_) {
    if (const auto why = admit({host_, port_, Doing::kTunnel})) {
      refuse_hello(*why, {});
      return true;
    }
  }
  if (upstream_) {
    begin_tunnel();
  } else {
    dial();
  }
  return true;
}

void Client::begin_tunnel() {
  grant_->begin(*upstream_);
  if (!hello_judged_) grant_->set_unread();
  phase_ = Phase::kDeliver;
}

bool Client::deliver() {
  const size_t down = out_.size();
  const size_t up = in_.size();
  // Once the server's end is known to be behind its first words, the tunnel passes that on next.
  const bool ends = upstream_->peer_ended() && !upstream_->broken();
  const bool done = send_all(*client_, out_, ends) && send_all(*upstream_, in_);
  if (left()) return false;
  if (!grant_->carried_down(down - out_.size()) || !grant_->carried_up(up - in_.size())) {
    client_->reset_on_close();
    leave();
    return false;
  }
  if (!done) return false;
  if (hello_judged_ && !answered_) {
    phase_ = Phase::kAnswer;
    // It may last, and there may be many of them.
    for (std::string* text : {&in_, &out_}) std::string().swap(*text);
    hello_ = {};
    (void)share_.resize(0);
    return true;
  }
  become_tunnel();
  return false;
}

void Client::become_tunnel() {
  auto tunnel = std::make_unique<Tunnel>(context_.company, context_.pipes, std::move(client_), std::move(upstream_),
                                         std::move(grant_));
  Tunnel& joined = *tunnel;
  context_.company.join(std::move(tunnel));
  leave();
  joined.start();
}

std::string Client::method() const {
  if (!upstream_head_.empty()) return request_.method;
  switch (way_) {
    case Way::kSocks:
      return "SOCKS5";
    case Way::kRedirected:
      return "DIRECT";
    case Way::kProxy:
      break;
  }
  return "CONNECT";
}

Denial Client::denial(Reason reason, std::string detail) const {
  Denial out{host_, port_, reason, text_of(rule_), {}, std::move(detail), 1, rule_ ? rule_->id : "", method()};
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
  if (words_ == Words::kNone) {
    context_.log.add(std::move(denial));
    client_->reset_on_close();
    leave();
    return;
  }
  std::string last;
  if (words_ == Words::kHttp) last = refusal_response(denial, json_, false, status);
  if (words_ == Words::kSocks) last = net::socks_reply(socks_reply_of(denial.reason));
  context_.log.add(std::move(denial));
  finish(std::move(last));
}

void Client::refuse_hello(Reason reason, std::string detail) {
  context_.log.add(denial(reason, std::move(detail)));
  if (upstream_) upstream_->reset_on_close();
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
  std::string sink(kReadAtOnce, '\0');
  while (client_->readable() && lingered_ < kMaxLinger) {
    const auto got = client_->read(sink.data(), sink.size());
    if (got.outcome == net::Stream::Outcome::kAgain) return;
    if (got.outcome != net::Stream::Outcome::kDone) break;
    lingered_ += got.bytes;
  }
  if (client_->readable()) leave();
}

}  // namespace belljar::egress
