#include "egress/journal.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace belljar::egress {

Use* Journal::find_use(const std::string& host, uint16_t port, const Rule& rule) {
  const auto same = std::ranges::find_if(
      uses_, [&](const Use& use) { return use.port == port && use.host == host && use.rule_id == rule.id; });
  if (same != uses_.end()) return &*same;
  if (uses_.size() >= kUses) {
    ++unlisted_uses_;
    return nullptr;
  }
  if (uses_.capacity() < kUses) uses_.reserve(kUses);
  uses_.push_back({host, port, rule.id, text_of(&rule), 0, 0, 0});
  return &uses_.back();
}

namespace {

// What no rule decided: the way there was at fault, or the proxy.
bool is_error(Reason reason) {
  switch (reason) {
    case Reason::kResolveFailed:
    case Reason::kDialFailed:
    case Reason::kDialTimeout:
    case Reason::kUpstreamFailed:
    case Reason::kOutOfResources:
    case Reason::kAuditFailed:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Journal::add(Denial denial) {
  if (audit_ != nullptr) {
    audit_->add({.verdict = is_error(denial.reason) ? "error" : "deny",
                 .reason = code_of(denial.reason),
                 .rule = denial.rule_id,
                 .source = denial.rule,
                 .method = denial.method,
                 .host = denial.host,
                 .port = denial.port,
                 .detail = denial.detail,
                 .remedy = denial.remedy});
  }
  denials_.add(std::move(denial));
}

Grant::Grant(Journal& journal, RulePtr rule, std::string host, uint16_t port, std::string method)
    : journal_(journal), rule_(std::move(rule)), host_(std::move(host)), method_(std::move(method)), port_(port) {
  ++rule_->connections;
}

Grant::~Grant() {
  --rule_->connections;
  if (connection_ != 0) {
    const auto lasted = std::chrono::duration_cast<std::chrono::milliseconds>(base::boot_now() - began_);
    journal_.audit_->add({.event = "end",
                          .connection = connection_,
                          .rule = rule_->id,
                          .host = host_,
                          .port = port_,
                          .up = up_,
                          .down = down_,
                          .milliseconds = lasted.count()});
  }
  if (use_ == nullptr) return;
  use_->up += up_;
  use_->down += down_;
}

void Grant::begin(const net::Stream& upstream) {
  use_ = journal_.find_use(host_, port_, *rule_);
  if (use_ != nullptr) ++use_->count;
  if (journal_.audit_ == nullptr) return;
  connection_ = ++journal_.connections_;
  began_ = base::boot_now();
  const auto peer = net::remote_endpoint(upstream.fd());
  const std::string source = text_of(rule_);
  const std::string address = peer ? peer->address.text() : std::string();
  journal_.audit_->add({.connection = connection_,
                        .verdict = "allow",
                        .rule = rule_->id,
                        .source = source,
                        .method = method_,
                        .host = host_,
                        .port = port_,
                        .address = address});
}

void Grant::set_doing(Doing doing, std::string_view target) {
  doing_ = doing;
  target_ = target;
}

void Grant::set_way(std::vector<std::string> aliases, bool chained) {
  aliases_ = std::move(aliases);
  chained_ = chained;
}

bool Grant::survives(const Review& review, const net::Stream* upstream) {
  const auto why = judge_anew(review, upstream);
  if (!why) return true;
  const bool unnamed = *why == Reason::kHostNotAllowed || *why == Reason::kPortNotAllowed;
  journal_.add({host_, port_, *why, text_of(rule_), unnamed ? allow_flag(host_, port_) : std::string(),
                "the rules have changed", 1, rule_->id, method_});
  return false;
}

std::optional<Reason> Grant::judge_anew(const Review& review, const net::Stream* upstream) {
  const Doing doing = upstream != nullptr && doing_ == Doing::kUnknown ? Doing::kTunnel : doing_;
  Verdict verdict = review.rules.decide({host_, port_, doing, method_, target_});
  if (!verdict.allowed && !(rule_->once && undecided(verdict))) {
    return verdict.reason;
  }
  const RulePtr now = verdict.allowed ? verdict.rule : rule_;
  if (unread_ && !now->any_protocol()) return Reason::kNotTls;
  for (const std::string& alias : aliases_) {
    if (review.rules.denies(alias, port_) != nullptr) return Reason::kHostDenied;
  }
  // The host's own loopback and an upstream proxy are no addresses of the host's that a rule could speak of.
  if (upstream != nullptr && !chained_ && host_ != policy::kHostName && !rule_->hook) {
    const auto peer = net::remote_endpoint(upstream->fd());
    if (!peer) return Reason::kUpstreamFailed;
    const net::IpAddress& address = peer->address;
    if (review.rules.denies(address, port_) != nullptr) return Reason::kAddressDenied;
    if (!review.addresses.dialable(address) && !review.rules.names_address(address, port_)) {
      return Reason::kAddressNotPublic;
    }
  }
  if (now == rule_) return {};
  const auto& most = now->max_connections;
  if (most && now->connections >= *most) return Reason::kRuleConnections;
  --rule_->connections;
  rule_ = now;
  ++rule_->connections;
  return {};
}

bool Grant::carried_up(size_t bytes) {
  up_ += bytes;
  return spend(bytes);
}

bool Grant::carried_down(size_t bytes) {
  down_ += bytes;
  return spend(bytes);
}

bool Grant::spend(size_t bytes) {
  rule_->bytes += bytes;
  const auto& most = rule_->max_bytes;
  if (!most || rule_->bytes <= *most) return true;
  if (!std::exchange(spent_, true)) {
    journal_.add({host_, port_, Reason::kRuleBytes, text_of(rule_), {}, {}, 1, rule_->id, method_});
  }
  return false;
}

}  // namespace belljar::egress
