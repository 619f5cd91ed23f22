// From an allowed name to a connected stream, over checked addresses only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "egress/denial.h"
#include "egress/rules.h"
#include "egress/upstream_tunnel.h"
#include "net/address.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "net/stream.h"

namespace belljar::egress {

// Which addresses may be dialled although no rule names them. The default is the only one for production: public
// addresses, and none that is this host's own (its public ones included: they lead to services that listen on all).
struct AddressPolicy {
  bool (*dialable)(const net::IpAddress&) = &net::is_global;
  bool own_addresses = false;
};

struct DialTimes {
  std::chrono::milliseconds deadline{30'000};  // resolving and connecting together
  std::chrono::milliseconds stagger{250};      // before the next address is tried beside the last (RFC 8305, section 5)
};

struct DialFailure {
  Reason reason = Reason::kDialFailed;
  std::string detail;
  std::optional<net::IpAddress> refused;  // an address that a rule of its own would let through
};

class DialOwner {
 public:
  // Never called from inside start().
  virtual void on_dialed(std::unique_ptr<net::Stream> stream) = 0;
  virtual void on_dial_failed(const DialFailure& failure) = 0;

 protected:
  ~DialOwner() = default;
};

// Resolves, checks every address, connects to the checked ones: IPv6 and IPv4 in turn, the next when one fails or
// hesitates; the first connection wins. The address that was checked is the one given to connect(2): nothing is
// resolved twice. One use each.
// With an upstream proxy only what the host is called is checked: it is the proxy that knows the addresses.
class Dialer final : private net::Alarm, private net::StreamOwner, private UpstreamTunnelOwner {
 public:
  // All references must outlive it.
  Dialer(net::EventLoop& loop, net::Resolver& resolver, const Rules& rules, const AddressPolicy& addresses,
         const DialTimes& times, DialOwner& owner);
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer();

  // `host` is canonical and already allowed by the rules. An address literal is not resolved; the host's own
  // name (policy::kHostName) is its loopback.
  void start(const std::string& host, uint16_t port);
  // The same by way of `proxy`, which outlives this: a tunnel, or with `plain` the proxy itself, for a request that
  // names the host. No address of the proxy's is refused.
  void start_by(const UpstreamProxy& proxy, const std::string& host, uint16_t port, bool plain);

  [[nodiscard]] const std::vector<std::string>& aliases() const { return aliases_; }
  [[nodiscard]] bool chained() const { return proxy_ != nullptr; }

 private:
  static constexpr size_t kMaxAddresses = 16;  // of those that passed the check

  struct Attempt {
    std::unique_ptr<net::Stream> stream;
    net::Endpoint to;
  };

  void on_alarm() override;
  void on_stream(net::Stream& stream) override;
  void on_tunnel(std::unique_ptr<net::Stream> stream) override;
  void on_tunnel_refused(std::string detail) override;
  void look_up(const std::string& host);
  void on_resolved(const net::Resolution& resolution);
  void take(const net::Resolution& resolution);
  [[nodiscard]] bool may_dial(const net::IpAddress& address, DialFailure& refusal) const;
  void choose(const std::vector<net::IpAddress>& addresses);
  void try_next();
  void attempt_failed(DialFailure failure);
  void fail(DialFailure failure);

  net::EventLoop& loop_;
  net::Resolver& resolver_;
  const Rules& rules_;
  const AddressPolicy& addresses_;
  const DialTimes& times_;
  DialOwner& owner_;
  net::Timer timer_;
  std::chrono::nanoseconds deadline_{};  // on the boot clock
  uint16_t port_ = 0;
  bool own_host_ = false;  // a granted port of the host's loopback
  std::optional<net::Resolver::Id> query_;
  std::vector<net::Endpoint> queue_;  // checked, next last
  std::vector<Attempt> attempts_;
  std::vector<std::string> aliases_;
  const UpstreamProxy* proxy_ = nullptr;
  std::string target_;  // by way of the proxy
  uint16_t target_port_ = 0;
  bool plain_ = false;
  std::optional<UpstreamTunnel> tunnel_;
  DialFailure failure_;  // of the latest attempt that failed
};

}  // namespace belljar::egress
