#include "egress/transparent_way.h"

#include <sys/socket.h>

#include <utility>

#include "egress/acceptor.h"
#include "egress/client.h"
#include "egress/guest_resolver.h"
#include "egress/synthetic_hosts.h"
#include "net/address.h"
#include "net/original_destination.h"
#include "policy/hook_url.h"

namespace belljar::egress {
namespace {

// The client sees a reset, as from a port where nobody listens, and not a connection that ends well.
void reset(base::Fd socket) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

class TransparentWay::Impl {
 public:
  Impl(Context& context, TransparentSockets sockets)
      : context_(context),
        answers_(context.rules, hosts_, context.log, sockets.v6, &context.questions),
        resolver_(context.loop, context.company, answers_, std::move(sockets.datagrams), std::move(sockets.streams)),
        redirected_(context.loop, std::move(sockets.redirected), [this](base::Fd socket) { take(std::move(socket)); }) {
  }

  base::Status watch() {
    BELLJAR_TRY(resolver_.watch());
    return redirected_.watch();
  }

 private:
  void take(base::Fd socket) {
    const auto to = net::original_destination(socket.get());
    // Somebody who connects to the listener's own port; no program that looks for a host does.
    const auto& hook = context_.options.hook;
    if (to && hook && leads_to(*hook, *to)) return welcome(std::move(socket), {hook->host, to->port});
    if (!to || !SyntheticHosts::in_range(to->address)) return reset(std::move(socket));
    const std::string* host = hosts_.at(to->address);
    if (host == nullptr) {
      // No host's place at all is only what the probe tries.
      if (SyntheticHosts::may_stand(to->address)) {
        context_.log.add({to->address.text(),
                          to->port,
                          Reason::kHostNotAllowed,
                          {},
                          {},
                          "an address that was given to no host in this session",
                          1});
      }
      return reset(std::move(socket));
    }
    welcome(std::move(socket), {*host, to->port});
  }

  // A hook on the host's loopback, called by the URL that it has there.
  static bool leads_to(const Hook& hook, const net::Endpoint& to) {
    return to.port == hook.port && policy::is_loopback(hook.host) &&
           net::classify(to.address) == net::AddressClass::kLoopback;
  }

  void welcome(base::Fd socket, Destination destination) {
    if (context_.company.size() >= context_.options.max_connections) {
      Client::turn_away(context_, std::move(socket), Reason::kTooManyConnections, destination);
    } else {
      Client::welcome_redirected(context_, std::move(socket), std::move(destination));
    }
  }

  Context& context_;
  SyntheticHosts hosts_;
  GuestAnswers answers_;
  GuestResolver resolver_;
  Acceptor redirected_;
};

TransparentWay::TransparentWay(Context& context, TransparentSockets sockets)
    : impl_(std::make_unique<Impl>(context, std::move(sockets))) {}
TransparentWay::~TransparentWay() = default;

base::Status TransparentWay::watch() {
  return impl_->watch();
}

}  // namespace belljar::egress
