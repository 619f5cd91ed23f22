// The resolver inside the guest: it knows the rules and nothing else, and asks nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "egress/denial.h"
#include "egress/journal.h"
#include "egress/member.h"
#include "egress/questions.h"
#include "egress/rules.h"
#include "egress/synthetic_hosts.h"
#include "net/event_loop.h"

namespace belljar::egress {

// What a query is answered. An allowed host gets its synthetic address, whatever the internet knows of it: it is looked
// up when it is connected to. So does one that no rule speaks of, where a person can be asked: that is done when it is
// connected to. Any other host that no rule allows on any port is REFUSED and noted in the log. Records of other
// types do not exist here: HTTPS and SVCB (RFC 9460) above all, since they bring the keys of Encrypted Client Hello, by
// which a TLS client hides the name that the proxy must see.
class GuestAnswers {
 public:
  // Seconds. Short, though the addresses stay: a program that keeps names longer than the session is of no use to it.
  static constexpr uint32_t kTtl = 10;

  // All references must outlive it. `v6`: the guest reaches synthetic addresses of IPv6 as well.
  // `questions` may be null: then there is nobody to ask.
  GuestAnswers(const Rules& rules, SyntheticHosts& hosts, Journal& log, bool v6, const Questions* questions = nullptr)
      : rules_(rules), hosts_(hosts), log_(log), questions_(questions), v6_(v6) {}

  // The response to one message, at most net::kMaxDnsAnswer bytes; empty when there must be none.
  [[nodiscard]] std::string to(std::string_view message);

 private:
  struct Asked;
  std::string to_host(const Asked& asked);
  std::string to_reverse(const Asked& asked);
  [[nodiscard]] bool may_be_asked(const std::string& host) const;
  void deny(std::string_view host, Reason reason, std::string detail);

  const Rules& rules_;
  SyntheticHosts& hosts_;
  Journal& log_;
  const Questions* questions_;
  bool v6_;
};

// Serves the two sockets that were made in the guest's network namespace. A guest that floods it waits for itself: a
// bounded number of datagrams a round of the loop, a bounded number of connections, no answer much longer than its
// question, and no queue of its own.
class GuestResolver final : private net::Watcher {
 public:
  static constexpr size_t kMaxStreams = 64;

  // `datagrams` is a bound UDP socket, `streams` a listening TCP one, both non-blocking. References must outlive it.
  GuestResolver(net::EventLoop& loop, Company& company, GuestAnswers& answers, base::Fd datagrams, base::Fd streams);
  ~GuestResolver() override;

  [[nodiscard]] base::Status watch();

 private:
  class Streams;
  void on_events(uint32_t events) override;

  net::EventLoop& loop_;
  GuestAnswers& answers_;
  base::Fd datagrams_;
  std::unique_ptr<Streams> streams_;
};

}  // namespace belljar::egress
