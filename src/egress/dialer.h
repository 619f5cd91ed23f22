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
class Dialer final : private net::Alarm, private net::StreamOwner {
 public:
  // All references must outlive it.
  Dialer(net::EventLoop& loop, net::Resolver& resolver, const Rules& rules, const AddressPolicy& addresses,
         const DialTimes& times, DialOwner& owner);
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer();

  // `host` is canonical and already allowed by the rules. An address literal is not resolved.
  void start(const std::string& host, uint16_t port);

 private:
  static constexpr size_t kMaxAddresses = 16;  // of those that passed the check

  struct Attempt {
    std::unique_ptr<net::Stream> stream;
    net::Endpoint to;
  };

  void on_alarm() override;
  void on_stream(net::Stream& stream) override;
  void on_resolved(const net::Resolution& resolution);
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
  std::optional<net::Resolver::Id> query_;
  std::vector<net::Endpoint> queue_;  // checked, next last
  std::vector<Attempt> attempts_;
  DialFailure failure_;  // of the latest attempt that failed
};

}  // namespace belljar::egress
