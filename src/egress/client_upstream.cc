// What a client does at its host: dialling, and one plain HTTP exchange.
#include <utility>

#include "egress/client.h"
#include "net/socks.h"

namespace belljar::egress {
namespace {

constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

}  // namespace

void Client::dial() {
  phase_ = Phase::kDial;
  const auto& callbacks = context_.options.hook;  // is there: see admit()
  const Hook* hook = rule_->hook && callbacks ? &*callbacks : nullptr;
  dialer_.emplace(context_.loop, context_.resolver, context_.rules,
                  hook != nullptr ? hook_addresses() : context_.options.addresses, context_.options.dial,
                  static_cast<DialOwner&>(*this));
  generation_ = context_.rules.generation();
  const auto& upstream = context_.options.upstream;
  if (hook != nullptr) {
    dialer_->start(hook->host, hook->port);
  } else if (upstream && upstream->leads_to(host_)) {
    dialer_->start_by(*upstream, host_, port_, request_.absolute && !upstream_head_.empty());
  } else {
    dialer_->start(host_, port_);
  }
}

void Client::start_forward(std::unique_ptr<net::Stream> upstream) {
  if (!share_.resize(in_.size() + Forward::kBuffers)) {
    return refuse(denial(Reason::kOutOfResources, "the buffers of all connections are in use"));
  }
  grant_->begin(*upstream);
  forward_ = std::make_unique<Forward>(static_cast<ForwardOwner&>(*this), *client_, in_, std::move(upstream), request_,
                                       std::move(upstream_head_), *grant_);
  phase_ = Phase::kForward;
}

// The connection to a control host that is spoken to in TLS; false when it was refused.
bool Client::secure(std::unique_ptr<net::Stream>& stream) {
  const auto& hook = context_.options.hook;
  if (!rule_->hook || !hook || !hook->secure) return true;
  auto clear = hook->secure(stream->fd());
  auto opened = clear ? net::Stream::open(context_.loop, std::move(*clear), *this)
                      : base::Result<std::unique_ptr<net::Stream>>(std::unexpected(clear.error()));
  if (!opened) {
    refuse(denial(Reason::kOutOfResources, opened.error().message()));
    return false;
  }
  stream = std::move(*opened);
  return true;
}

void Client::on_dialed(std::unique_ptr<net::Stream> stream) {
  if (left()) return;
  if (dialer_) grant_->set_way(dialer_->aliases(), dialer_->chained());
  dialer_.reset();
  // Rules that came meanwhile judge the address as well.
  if (generation_ != context_.rules.generation() &&
      !grant_->survives({context_.rules, context_.options.addresses}, stream.get())) {
    return revoke();
  }
  if (!upstream_head_.empty()) {
    if (!secure(stream)) return step();
    start_forward(std::move(stream));
  } else {
    upstream_ = std::move(stream);
    upstream_->set_owner(*this);
    if (way_ == Way::kProxy) out_ = kEstablished;
    if (way_ == Way::kSocks) out_ = net::socks_reply(net::SocksReply::kSucceeded);
    if (way_ == Way::kRedirected) {
      begin_tunnel();
    } else {
      phase_ = Phase::kGreet;
    }
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
  grant_.reset();
  if (!keep_alive) {
    finish({});
  } else {
    phase_ = Phase::kHead;
    (void)share_.resize(in_.size());  // less than before
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

}  // namespace belljar::egress
