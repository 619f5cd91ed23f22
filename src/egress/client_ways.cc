// How a client that does not speak HTTP to a proxy says where it wants to go: SOCKS, or a redirected connection.
#include <utility>

#include "base/text.h"
#include "egress/client.h"
#include "egress/first_bytes.h"
#include "policy/host_rule.h"

namespace belljar::egress {

void Client::welcome_redirected(Context& context, base::Fd socket, Destination destination) {
  auto client = make(context, std::move(socket));
  if (!client) return;
  Client& joined = *client;
  context.company.join(std::move(client));
  joined.fresh_ = false;
  joined.way_ = Way::kRedirected;
  joined.words_ = Words::kNone;
  joined.take_destination(std::move(destination));
  joined.judge({joined.host_, joined.port_}, Then::kDialOrSniff);
}

void Client::take_destination(Destination destination) {
  host_ = destination.host;
  port_ = destination.port;
  fixed_ = std::move(destination);
}

bool Client::names_this_proxy(std::string_view host, uint16_t port) const {
  if (host != "127.0.0.1" && host != "::1" && host != "localhost") return false;
  const auto own = net::local_endpoint(client_->fd());
  return own && own->port == port;
}

bool Client::read_socks() {
  if (!send_all(*client_, out_)) return false;
  if (!greeted_) {
    const auto methods = net::read_socks_methods(in_);
    if (!methods) return refuse_socks(Reason::kBadRequest, methods.error());
    if (methods->length > 0) {
      greeted_ = true;
      in_.erase(0, methods->length);
      if (methods->none) {
        out_ = net::socks_method_reply(true);
      } else {
        context_.log.add(denial(Reason::kBadRequest, "the SOCKS client wants to authenticate"));
        finish(std::string(net::socks_method_reply(false)));
      }
      return true;
    }
  } else {
    const auto request = net::read_socks_request(in_);
    if (!request) return refuse_socks(Reason::kBadRequest, request.error());
    if (request->length > 0) return take_socks_request(*request);
  }
  const auto outcome = read_more();
  if (outcome == net::Stream::Outcome::kDone) return true;
  if (outcome != net::Stream::Outcome::kAgain) leave();
  return false;
}

bool Client::refuse_socks(Reason reason, const net::SocksProblem& problem) {
  context_.log.add(denial(reason, std::string(problem.text)));
  finish(greeted_ ? net::socks_reply(problem.reply) : std::string(net::socks_method_reply(false)));
  return true;
}

bool Client::take_socks_request(const net::SocksRequest& request) {
  in_.erase(0, request.length);
  timer_.disarm();
  way_ = Way::kSocks;
  auto host = policy::canonical_host(request.host);
  if (!host) {
    refuse(denial(Reason::kBadRequest, host.error().message()));
    return true;
  }
  take_destination({std::move(*host), request.port});
  judge({host_, port_}, Then::kDial);
  return true;
}

// Where host and port are fixed, HTTP is judged as well as TLS is: by the host that each request names.
bool Client::sniff() {
  switch (first_speech(in_)) {
    case Speech::kTls:
      phase_ = Phase::kHello;
      return true;
    case Speech::kHttp:
      words_ = Words::kHttp;
      phase_ = Phase::kHead;
      return true;
    case Speech::kOther:
      timer_.disarm();
      refuse_hello(Reason::kNotTls, "the client speaks neither TLS nor HTTP/1");
      return true;
    case Speech::kUnknown:
      break;
  }
  const auto outcome = read_more();
  if (outcome == net::Stream::Outcome::kDone) return true;
  if (outcome != net::Stream::Outcome::kAgain) leave();
  return false;
}

}  // namespace belljar::egress
