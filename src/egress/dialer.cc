#include "egress/dialer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace belljar::egress {
namespace {

std::string errno_text(int code) {
  const char* text = strerrordesc_np(code);
  return text != nullptr ? text : "unknown error";
}

bool is_shortage(int code) {
  return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

}  // namespace

Dialer::Dialer(net::EventLoop& loop, net::Resolver& resolver, const Rules& rules, const AddressPolicy& addresses,
               const DialTimes& times, DialOwner& owner)
    : loop_(loop),
      resolver_(resolver),
      rules_(rules),
      addresses_(addresses),
      times_(times),
      owner_(owner),
      timer_(loop, *this) {}

Dialer::~Dialer() {
  if (query_) resolver_.cancel(*query_);
}

void Dialer::start(const std::string& host, uint16_t port) {
  port_ = port;
  deadline_ = base::boot_now() + times_.deadline;
  if (host == policy::kHostName) {
    own_host_ = true;
    queue_ = {{net::IpAddress::v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), port},
              {net::IpAddress::v4(INADDR_LOOPBACK), port}};
    timer_.arm(std::chrono::nanoseconds(0));
    return;
  }
  look_up(host);
}

void Dialer::start_by(const UpstreamProxy& proxy, const std::string& host, uint16_t port, bool plain) {
  deadline_ = base::boot_now() + times_.deadline;
  if (const auto literal = net::IpAddress::parse(host)) {
    port_ = port;
    if (!may_dial(*literal, failure_)) {
      timer_.arm(std::chrono::nanoseconds(0));
      return;
    }
  }
  proxy_ = &proxy;
  target_ = host;
  target_port_ = port;
  plain_ = plain;
  port_ = proxy.port;
  look_up(proxy.host);
}

void Dialer::look_up(const std::string& host) {
  if (const auto literal = net::IpAddress::parse(host)) {
    choose({*literal});
    return;
  }
  if (const net::Resolution* known = resolver_.at_hand(host)) {
    take(*known);
    return;
  }
  timer_.arm(times_.deadline);
  query_ = resolver_.resolve(host, [this](const net::Resolution& resolution) { on_resolved(resolution); });
}

void Dialer::on_resolved(const net::Resolution& resolution) {
  query_.reset();
  if (resolution.status != net::ResolveStatus::kOk) {
    fail({Reason::kResolveFailed, resolution.detail, {}});
    return;
  }
  take(resolution);
}

// An answer, fresh or remembered: what denies may have come since. May be called from inside start().
void Dialer::take(const net::Resolution& resolution) {
  if (proxy_ == nullptr) aliases_ = resolution.aliases;
  for (const std::string& alias : aliases_) {
    const RulePtr denier = rules_.denies(alias, port_);
    if (denier == nullptr) continue;
    failure_ = {Reason::kHostDenied,
                "it is an alias of '" + base::escape(alias) + "', which is denied: " + text_of(denier),
                {}};
    timer_.arm(std::chrono::nanoseconds(0));
    return;
  }
  choose(resolution.addresses);
}

// `refusal` becomes why not, unless it says something already.
bool Dialer::may_dial(const net::IpAddress& address, DialFailure& refusal) const {
  if (const RulePtr denier = rules_.denies(address, port_)) {
    if (refusal.detail.empty()) {
      refusal = {Reason::kAddressDenied, address.text() + " is denied: " + text_of(denier), {}};
    }
    return false;
  }
  if (addresses_.dialable(address) || rules_.names_address(address, port_)) return true;
  if (refusal.detail.empty()) {
    refusal.reason = Reason::kAddressNotPublic;
    refusal.detail = address.text() + " is " + std::string(net::describe(net::classify(address)));
    if (Rules::may_be_named(address)) refusal.refused = address;
  }
  return false;
}

// Keeps what may be dialled, IPv6 and IPv4 in turn, and starts with it. May be called from inside start(), so a failure
// is told by on_alarm().
void Dialer::choose(const std::vector<net::IpAddress>& addresses) {
  std::vector<net::Endpoint> v6;
  std::vector<net::Endpoint> v4;
  DialFailure refusal{Reason::kAddressNotPublic, {}, {}};
  for (const net::IpAddress& address : addresses) {
    if (proxy_ != nullptr || may_dial(address, refusal)) (address.is_v6() ? v6 : v4).push_back({address, port_});
  }
  for (size_t i = 0; i < std::max(v6.size(), v4.size()); ++i) {
    if (i < v6.size()) queue_.push_back(v6[i]);
    if (i < v4.size()) queue_.push_back(v4[i]);
  }
  if (queue_.size() > kMaxAddresses) queue_.resize(kMaxAddresses);
  std::reverse(queue_.begin(), queue_.end());
  if (queue_.empty()) failure_ = std::move(refusal);
  try_next();
}

void Dialer::on_alarm() {
  if (query_) {
    fail({Reason::kResolveFailed, "no answer in time", {}});
  } else if (base::boot_now() >= deadline_) {
    fail({Reason::kDialTimeout, {}, {}});
  } else if (attempts_.empty() && queue_.empty()) {
    fail(std::move(failure_));
  } else {
    try_next();
  }
}

// What is left to do when no attempt could be started is for on_alarm().
void Dialer::try_next() {
  while (!queue_.empty()) {
    const net::Endpoint to = queue_.back();
    queue_.pop_back();
    auto fd = net::start_connect(to);
    if (!fd) {
      failure_ = {is_shortage(fd.error().code) ? Reason::kOutOfResources : Reason::kDialFailed,
                  to.text() + ": " + errno_text(fd.error().code),
                  {}};
      continue;
    }
    auto stream = net::Stream::open(loop_, std::move(*fd), *this);
    if (!stream) {
      failure_ = {Reason::kOutOfResources, stream.error().message(), {}};
      continue;
    }
    attempts_.push_back({std::move(*stream), to});
    break;
  }
  if (attempts_.empty()) {
    timer_.arm(std::chrono::nanoseconds(0));
    return;
  }
  const auto left = deadline_ - base::boot_now();
  timer_.arm(queue_.empty() ? left : std::min<std::chrono::nanoseconds>(left, times_.stagger));
}

void Dialer::on_stream(net::Stream& stream) {
  if (!stream.writable()) return;
  const auto found = std::find_if(attempts_.begin(), attempts_.end(),
                                  [&](const Attempt& attempt) { return attempt.stream.get() == &stream; });
  if (found == attempts_.end()) return;
  Attempt attempt = std::move(*found);
  attempts_.erase(found);
  if (const int error = attempt.stream->broken() ? attempt.stream->connect_error() : 0; error != 0) {
    attempt_failed({error == ETIMEDOUT ? Reason::kDialTimeout : Reason::kDialFailed,
                    attempt.to.text() + ": " + errno_text(error),
                    {}});
    return;
  }
  // Linux takes the destination as source address when it is the host's own, so equal ends mean this very host.
  const auto local = net::local_endpoint(attempt.stream->fd());
  const bool own_allowed = own_host_ || proxy_ != nullptr || addresses_.own_addresses;
  if (!local || (local->address == attempt.to.address && !own_allowed)) {
    attempt_failed({Reason::kAddressNotPublic, attempt.to.address.text() + " is this host's own address", {}});
    return;
  }
  attempts_.clear();
  queue_.clear();
  if (proxy_ != nullptr && !plain_) {
    timer_.arm(deadline_ - base::boot_now());
    tunnel_.emplace(std::move(attempt.stream), *proxy_, target_, target_port_,
                    static_cast<UpstreamTunnelOwner&>(*this));
    tunnel_->pump();
    return;
  }
  timer_.disarm();
  owner_.on_dialed(std::move(attempt.stream));
}

void Dialer::on_tunnel(std::unique_ptr<net::Stream> stream) {
  timer_.disarm();
  owner_.on_dialed(std::move(stream));
}

void Dialer::on_tunnel_refused(std::string detail) {
  fail({Reason::kUpstreamFailed, std::move(detail), {}});
}

void Dialer::attempt_failed(DialFailure failure) {
  failure_ = std::move(failure);
  if (!queue_.empty() || attempts_.empty()) try_next();
}

void Dialer::fail(DialFailure failure) {
  timer_.disarm();
  attempts_.clear();
  queue_.clear();
  if (query_) resolver_.cancel(*query_);
  query_.reset();
  owner_.on_dial_failed(failure);  // may destroy this
}

}  // namespace belljar::egress
