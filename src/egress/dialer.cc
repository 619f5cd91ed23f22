#include "egress/dialer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"

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
  if (const auto literal = net::IpAddress::parse(host)) {
    choose({*literal});
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
  choose(resolution.addresses);
}

// Keeps what may be dialled, IPv6 and IPv4 in turn, and has on_alarm() start with it.
void Dialer::choose(const std::vector<net::IpAddress>& addresses) {
  std::vector<net::Endpoint> v6;
  std::vector<net::Endpoint> v4;
  DialFailure refusal{Reason::kAddressNotPublic, {}, {}};
  for (const net::IpAddress& address : addresses) {
    if (addresses_.dialable(address) || rules_.names_address(address, port_)) {
      (address.is_v6() ? v6 : v4).push_back({address, port_});
    } else if (refusal.detail.empty()) {
      refusal.detail = address.text() + " is " + std::string(net::describe(net::classify(address)));
      if (Rules::may_be_named(address)) refusal.refused = address;
    }
  }
  for (size_t i = 0; i < std::max(v6.size(), v4.size()); ++i) {
    if (i < v6.size()) queue_.push_back(v6[i]);
    if (i < v4.size()) queue_.push_back(v4[i]);
  }
  if (queue_.size() > kMaxAddresses) queue_.resize(kMaxAddresses);
  std::reverse(queue_.begin(), queue_.end());
  if (queue_.empty()) failure_ = std::move(refusal);
  timer_.arm(std::chrono::nanoseconds(0));
}

void Dialer::on_alarm() {
  if (query_) {
    fail({Reason::kResolveFailed, "no answer in time", {}});
  } else if (base::boot_now() >= deadline_) {
    fail({Reason::kDialTimeout, {}, {}});
  } else {
    try_next();
  }
}

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
    fail(std::move(failure_));
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
  if (const int error = attempt.stream->connect_error(); error != 0) {
    attempt_failed({error == ETIMEDOUT ? Reason::kDialTimeout : Reason::kDialFailed,
                    attempt.to.text() + ": " + errno_text(error),
                    {}});
    return;
  }
  // Linux takes the destination as source address when it is the host's own, so equal ends mean this very host.
  const auto local = net::local_endpoint(attempt.stream->fd());
  if (!local || (local->address == attempt.to.address && !addresses_.own_addresses)) {
    attempt_failed({Reason::kAddressNotPublic, attempt.to.address.text() + " is this host's own address", {}});
    return;
  }
  timer_.disarm();
  attempts_.clear();
  queue_.clear();
  owner_.on_dialed(std::move(attempt.stream));
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
