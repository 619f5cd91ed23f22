// What was refused and what was allowed, as the settlement lists both.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "egress/audit.h"
#include "egress/denial.h"
#include "egress/dialer.h"
#include "egress/rules.h"
#include "net/stream.h"

namespace belljar::egress {

// One host that was reached under one rule. Equal ones (host, port, rule) are counted.
struct Use {
  std::string host;  // canonical
  uint16_t port = 0;
  std::string rule_id;
  std::string rule;  // with its source
  uint64_t count = 0;
  uint64_t up = 0;    // bytes from the guest, of what has ended
  uint64_t down = 0;  // bytes to it, likewise
};

class Journal {
 public:
  static constexpr size_t kUses = 1024;

  // `audit` may be null; it outlives the journal.
  explicit Journal(Audit* audit = nullptr) : audit_(audit) {}

  void add(Denial denial);
  // False when the policy requires an audit file and it takes nothing any more: then nothing may be allowed.
  [[nodiscard]] bool may_allow() const { return audit_ == nullptr || !audit_->failed(); }
  [[nodiscard]] const std::vector<Denial>& denials() const { return denials_.denials(); }
  [[nodiscard]] uint64_t unlisted() const { return denials_.unlisted(); }
  [[nodiscard]] const std::vector<Use>& uses() const { return uses_; }
  // How many found no room.
  [[nodiscard]] uint64_t unlisted_uses() const { return unlisted_uses_; }

 private:
  friend class Grant;
  // The entry to count in, or null when there is no room.
  Use* find_use(const std::string& host, uint16_t port, const Rule& rule);

  Audit* audit_;
  uint64_t connections_ = 0;
  DenialLog denials_;
  std::vector<Use> uses_;  // never more than kUses: the place of an entry stays
  uint64_t unlisted_uses_ = 0;
};

// By what things that were allowed are judged anew when the rules have changed.
struct Review {
  const Rules& rules;
  const AddressPolicy& addresses;
};

// Something allowed, for as long as it is used: a tunnel or one exchange. Counts against its rule's limits.
class Grant {
 public:
  // `host` is canonical. The journal outlives it.
  Grant(Journal& journal, RulePtr rule, std::string host, uint16_t port, std::string method);
  ~Grant();
  Grant(const Grant&) = delete;
  Grant& operator=(const Grant&) = delete;

  // `upstream` is connected and nothing stands against it any more: from now on this is a use. Once.
  void begin(const net::Stream& upstream);

  // Counts bytes that were passed on. False when the rule's bytes are used up: then this was told to the journal and
  // the connection is to be cut.
  [[nodiscard]] bool carried_up(size_t bytes);
  [[nodiscard]] bool carried_down(size_t bytes);

  // What it is for, as far as that is known: what other rules are asked about it. `target` is of kPlain.
  void set_doing(Doing doing, std::string_view target);
  // Nobody has read what passes: a rule for any protocol allowed it.
  void set_unread() { unread_ = true; }
  // The names that led to the host's address, and whether an upstream proxy went there: then nobody knows the address.
  void set_way(std::vector<std::string> aliases, bool chained);
  // True when the rules allow it still, and one of them has room for it. Else this was told to the journal, and the
  // connection is to be cut. `upstream` is null before it is connected.
  [[nodiscard]] bool survives(const Review& review, const net::Stream* upstream);

  [[nodiscard]] const Rule& rule() const { return *rule_; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] uint16_t port() const { return port_; }

 private:
  bool spend(size_t bytes);
  [[nodiscard]] std::optional<Reason> judge_anew(const Review& review, const net::Stream* upstream);

  Journal& journal_;
  RulePtr rule_;
  std::string host_;
  uint64_t up_ = 0;
  uint64_t down_ = 0;
  std::string method_;
  Use* use_ = nullptr;
  uint64_t connection_ = 0;  // in the audit file; 0 before begin()
  std::chrono::nanoseconds began_{};
  std::string target_;
  std::vector<std::string> aliases_;
  uint16_t port_;
  Doing doing_ = Doing::kUnknown;
  bool spent_ = false;
  bool unread_ = false;
  bool chained_ = false;
};

}  // namespace belljar::egress
