#include "egress/upstream_tunnel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "net/http_head.h"

namespace belljar::egress {

bool UpstreamProxy::leads_to(std::string_view to) const {
  if (to.ends_with(".belljar")) return false;
  return std::ranges::none_of(direct, [&](const std::string& name) {
    return name == "*" || to == name || (to.ends_with(name) && to[to.size() - name.size() - 1] == '.');
  });
}

std::string authority_of(std::string_view host, uint16_t port) {
  const bool v6 = host.contains(':');
  return (v6 ? "[" : "") + std::string(host) + (v6 ? "]:" : ":") + std::to_string(port);
}

UpstreamTunnel::UpstreamTunnel(std::unique_ptr<net::Stream> stream, const UpstreamProxy& proxy, std::string_view host,
                               uint16_t port, UpstreamTunnelOwner& owner)
    : stream_(std::move(stream)), owner_(owner) {
  stream_->set_owner(*this);
  const std::string authority = authority_of(host, port);
  out_ = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n";
  if (!proxy.authorization.empty()) out_ += "Proxy-Authorization: " + proxy.authorization + "\r\n";
  out_ += "\r\n";
}

void UpstreamTunnel::on_stream(net::Stream& /*stream*/) {
  pump();
}

void UpstreamTunnel::pump() {
  if (stream_ != nullptr && send()) receive();
}

bool UpstreamTunnel::send() {
  while (!out_.empty()) {
    if (!stream_->writable()) return false;
    const auto sent = stream_->write(out_);
    if (sent.outcome == net::Stream::Outcome::kAgain) return false;
    if (sent.outcome != net::Stream::Outcome::kDone) {
      refused("it broke off");
      return false;
    }
    out_.erase(0, sent.bytes);
  }
  return true;
}

// Looks before it takes: what follows the head belongs to the tunnel.
void UpstreamTunnel::receive() {
  if (!stream_->readable()) return;
  std::string seen(kMostHead, '\0');
  const ssize_t n = ::recv(stream_->fd(), seen.data(), seen.size(), MSG_PEEK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    stream_->drained();
    return;
  }
  if (n <= 0) return refused("it broke off");
  seen.resize(static_cast<size_t>(n));
  const size_t end = seen.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (seen.size() == kMostHead || stream_->peer_ended()) return refused("its answer has no end");
    stream_->drained();  // the next byte is told of anew
    return;
  }
  seen.resize(end + 4);
  if (::recv(stream_->fd(), seen.data(), seen.size(), 0) != static_cast<ssize_t>(seen.size())) {
    return refused("it broke off");
  }
  const auto head = net::parse_response_head(seen);
  if (!head) return refused("a malformed answer: " + std::string(head.error().text));
  if (head->status >= 100 && head->status < 200) {
    if (++interim_ > kMostInterim) return refused("interim answers without end");
    return receive();
  }
  if (head->status < 200 || head->status > 299) {
    return refused("it answered " + std::to_string(head->status) + " " + base::escape(head->reason));
  }
  owner_.on_tunnel(std::move(stream_));
}

void UpstreamTunnel::refused(std::string detail) {
  owner_.on_tunnel_refused("the upstream proxy: " + detail);
}

}  // namespace belljar::egress
