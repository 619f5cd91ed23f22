#include "egress/guest_resolver.h"

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "base/text.h"
#include "egress/acceptor.h"
#include "net/dns.h"
#include "net/stream.h"
#include "policy/host_rule.h"

namespace belljar::egress {
namespace {

constexpr int kBurst = 32;             // datagrams answered in a row
constexpr size_t kMaxPerStream = 256;  // queries; who has more may come again
constexpr std::chrono::seconds kStreamIdle{10};
constexpr uint16_t kInternet = 1;

bool is_localhost(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost");
}

// `_http._tcp.deb.example` without what is no part of a host's name.
std::string_view without_service(std::string_view name) {
  while (name.starts_with('_')) {
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) return {};
    name.remove_prefix(dot + 1);
  }
  return name;
}

// Transfers, ANY and their like: questions for no record (RFC 6895, section 3.1).
bool is_meta_type(uint16_t type) {
  return type >= 128 && type <= 255;
}

}  // namespace

struct GuestAnswers::Asked {
  const net::DnsQuery& query;
  std::string host{};  // canonical
  bool service = false;
  [[nodiscard]] bool type(net::DnsType wanted) const { return query.type == static_cast<uint16_t>(wanted); }
  [[nodiscard]] std::string code(net::DnsCode code) const { return net::dns_answer(query, code); }
  [[nodiscard]] std::string nothing() const { return code(net::DnsCode::kNoError); }
};

void GuestAnswers::deny(std::string_view host, Reason reason, std::string detail) {
  Denial denial{std::string(host), 0, reason, {}, {}, std::move(detail), 1};
  if (reason == Reason::kHostNotAllowed) denial.remedy = allow_flag(host, 443);
  log_.add(std::move(denial));
}

std::string GuestAnswers::to(std::string_view message) {
  using enum net::DnsCode;
  const std::optional<net::DnsQuery> query = net::parse_dns_query(message);
  if (!query) return {};
  Asked asked{*query};
  if (query->problem != kNoError) return asked.code(query->problem);
  if (query->net_class != kInternet || is_meta_type(query->type)) return asked.code(kNotImp);
  if (asked.type(net::DnsType::kOpt)) return asked.code(kFormErr);
  if (!query->name || query->name->empty()) return asked.code(kRefused);
  const std::string_view name = without_service(*query->name);
  asked.service = name.size() != query->name->size();
  auto host = policy::canonical_host(name);
  if (!host) return asked.code(kRefused);
  asked.host = std::move(*host);
  if (asked.host.ends_with(".arpa")) return to_reverse(asked);
  if (net::IpAddress::parse(asked.host)) return asked.code(kNxDomain);
  return to_host(asked);
}

// A name without a dot is one of somebody's own network.
bool GuestAnswers::may_be_asked(const std::string& host) const {
  return questions_ != nullptr && host.contains('.') && questions_->may_ask({}, host) &&
         rules_.denies(host, 443) == nullptr;
}

std::string GuestAnswers::to_host(const Asked& asked) {
  const bool v4 = asked.type(net::DnsType::kA);
  const bool v6 = asked.type(net::DnsType::kAaaa);
  if (is_localhost(asked.host)) {  // RFC 6761, section 6.3
    if (asked.service) return asked.code(net::DnsCode::kNxDomain);
    if (v4) return net::dns_answer(asked.query, net::IpAddress::v4(0x7f000001), kTtl);
    if (v6) {
      constexpr std::array<uint8_t, 16> kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
      return net::dns_answer(asked.query, net::IpAddress::v6(kLoopback), kTtl);
    }
    return asked.nothing();
  }
  if (!rules_.names_host(asked.host) && !may_be_asked(asked.host)) {
    deny(asked.host, Reason::kHostNotAllowed, "looked up");
    return asked.code(net::DnsCode::kRefused);
  }
  if (asked.service) return asked.code(net::DnsCode::kNxDomain);
  if (!v4 && !(v6 && v6_)) return asked.nothing();
  const auto addresses = hosts_.of(asked.host);
  if (!addresses) {
    deny(asked.host, Reason::kOutOfResources, "too many hosts were looked up in this session");
    return asked.code(net::DnsCode::kServFail);
  }
  return net::dns_answer(asked.query, v4 ? addresses->v4 : addresses->v6, kTtl);
}

std::string GuestAnswers::to_reverse(const Asked& asked) {
  const auto address = net::address_of_reverse_name(asked.host);
  if (!address) return asked.code(net::DnsCode::kNxDomain);
  const std::string* host = hosts_.at(*address);
  static const std::string kLocalhost = "localhost";
  if (net::classify(*address) == net::AddressClass::kLoopback) host = &kLocalhost;
  if (host == nullptr || asked.service) return asked.code(net::DnsCode::kNxDomain);
  if (!asked.type(net::DnsType::kPtr)) return asked.nothing();
  return net::dns_pointer_answer(asked.query, *host, kTtl);
}

namespace {

// One TCP client: messages with their length in two bytes before them (RFC 1035, section 4.2.2; RFC 7766), answered in
// turn. Reads no further while an answer waits to be taken.
class DnsStream final : public Member, private net::StreamOwner, private net::Alarm {
 public:
  DnsStream(net::EventLoop& loop, Company& company, GuestAnswers& answers, std::shared_ptr<size_t> alive)
      : Member(company), answers_(answers), alive_(std::move(alive)), timer_(loop, *this) {
    ++*alive_;
  }
  ~DnsStream() override { --*alive_; }

  static void welcome(net::EventLoop& loop, Company& company, GuestAnswers& answers,
                      const std::shared_ptr<size_t>& alive, base::Fd socket) {
    auto made = std::make_unique<DnsStream>(loop, company, answers, alive);
    auto stream = net::Stream::open(loop, std::move(socket), *made);
    if (!stream) return;  // epoll has no room: the socket closes
    made->stream_ = std::move(*stream);
    made->timer_.arm(kStreamIdle);
    company.join(std::move(made));
  }

 private:
  void on_alarm() override { leave(); }
  void on_stream(net::Stream& /*stream*/) override {
    while (!left() && step()) {
    }
  }

  bool step() {
    if (!out_.empty()) return send();
    if (in_.size() >= 2) {
      const size_t length = static_cast<size_t>(static_cast<uint8_t>(in_[0])) << 8U | static_cast<uint8_t>(in_[1]);
      if (length > net::kMaxDnsQuery) return end();
      if (in_.size() >= length + 2) return answer(length);
    }
    return receive();
  }

  bool answer(size_t length) {
    const std::string response = answers_.to(std::string_view(in_).substr(2, length));
    in_.erase(0, length + 2);
    if (response.empty() || ++answered_ > kMaxPerStream) return end();
    out_ += static_cast<char>(response.size() >> 8U);
    out_ += static_cast<char>(response.size() & 0xffU);
    out_ += response;
    timer_.arm(kStreamIdle);
    return true;
  }

  bool send() {
    if (!stream_->writable()) return false;
    const auto sent = stream_->write(out_);
    if (sent.outcome == net::Stream::Outcome::kAgain) return false;
    if (sent.outcome != net::Stream::Outcome::kDone) return end();
    out_.erase(0, sent.bytes);
    return true;
  }

  bool receive() {
    if (!stream_->readable()) return false;
    std::array<char, 512> chunk;
    const auto got = stream_->read(chunk.data(), chunk.size());
    if (got.outcome == net::Stream::Outcome::kAgain) return false;
    if (got.outcome != net::Stream::Outcome::kDone) return end();
    in_.append(chunk.data(), got.bytes);
    return true;
  }

  bool end() {
    leave();
    return false;
  }

  GuestAnswers& answers_;
  std::shared_ptr<size_t> alive_;  // how many there are
  net::Timer timer_;
  std::unique_ptr<net::Stream> stream_;
  std::string in_;
  std::string out_;
  size_t answered_ = 0;
};

}  // namespace

class GuestResolver::Streams {
 public:
  Streams(net::EventLoop& loop, Company& company, GuestAnswers& answers, base::Fd listener)
      : acceptor_(loop, std::move(listener), [this, &loop, &company, &answers](base::Fd socket) {
          // One more than that is closed at once.
          if (*alive_ < kMaxStreams) DnsStream::welcome(loop, company, answers, alive_, std::move(socket));
        }) {}
  [[nodiscard]] base::Status watch() { return acceptor_.watch(); }

 private:
  std::shared_ptr<size_t> alive_ = std::make_shared<size_t>(0);  // may outlive this by a round of the loop
  Acceptor acceptor_;
};

GuestResolver::GuestResolver(net::EventLoop& loop, Company& company, GuestAnswers& answers, base::Fd datagrams,
                             base::Fd streams)
    : loop_(loop),
      answers_(answers),
      datagrams_(std::move(datagrams)),
      streams_(std::make_unique<Streams>(loop, company, answers, std::move(streams))) {}

GuestResolver::~GuestResolver() {
  loop_.forget(datagrams_.get(), *this);
}

base::Status GuestResolver::watch() {
  BELLJAR_TRY(loop_.watch(datagrams_.get(), EPOLLIN, *this));
  return streams_->watch();
}

void GuestResolver::on_events(uint32_t /*events*/) {
  for (int i = 0; i < kBurst; ++i) {
    // One byte more than is read: what is longer shows.
    std::array<char, net::kMaxDnsQuery + 1> message;
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const ssize_t n = ::recvfrom(datagrams_.get(), message.data(), message.size(), MSG_DONTWAIT,
                                 reinterpret_cast<sockaddr*>(&from), &length);
    if (n < 0) return;  // nothing more, or the news that an answer found nobody (udp(7))
    const std::string response = answers_.to(std::string_view(message.data(), static_cast<size_t>(n)));
    if (response.empty()) continue;
    // A client that does not take its answers loses them, as on any network.
    [[maybe_unused]] const ssize_t sent =
        ::sendto(datagrams_.get(), response.data(), response.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&from), length);
  }
}

}  // namespace belljar::egress
