// Host rules and host names in one canonical spelling, so that two spellings of one host can never get two verdicts.
//
//   example.com         that host, ports 80 and 443       *.example.com     its subdomains, not itself
//   example.com:5432    that port only                    example.com:*     any port
//   192.0.2.7, 2001:db8::1, [2001:db8::1]:8443            address literals, only in their usual notation
//   10.0.0.0/8, 10.0.0.0/8:5432, [2001:db8::/32]:443      ranges of addresses
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "policy/policy.h"

namespace belljar::policy {

// The rule `text` means, with `source` kept in it. Case and one trailing dot do not count; whatever has no single
// meaning is refused: percent-encoding, user names, schemes, paths, control bytes and spaces, empty or over-long
// labels (RFC 1035, section 2.3.4), a `*` that is not the whole first label, IPv4 in any notation but four decimal
// numbers, IPv4 mapped into IPv6, zone ids, names outside ASCII (write the A-label, RFC 5890).
// The error's operation is "host rule", its subject `text`; a caller may put its own place in the operation.
[[nodiscard]] base::Result<HostRule> parse_host_rule(std::string_view text, std::string_view source);

// The same for a rule that denies: without a port it means all of them.
[[nodiscard]] base::Result<HostRule> parse_deny_rule(std::string_view text, std::string_view source);

// A port of the host's own loopback: a decimal number from 1 to 65535.
[[nodiscard]] base::Result<HostRule> parse_host_port(std::string_view text, std::string_view source);

// The host and ports of a rule as its own parser reads them back: IPv6 literals are bracketed when a port follows.
// Several ports are joined by commas, which no parser reads: such a rule is written as a table.
[[nodiscard]] std::string to_text(const HostRule& rule);

// What else the rule says, for a person: "GET only, paths /v1, at most 5 connections"; empty when nothing.
[[nodiscard]] std::string options_text(const HostRule& rule);

// Gives each rule its id, in order: `allow:HOST`, `deny:HOST`, `host_port:PORT`, `hook:HOST`; a second one for the same
// target gets
// `#2`.
void give_ids(std::vector<HostRule>& rules);

// The canonical spelling of a host that a client names, without port: `EXAMPLE.com.` gives `example.com`,
// `[2001:DB8:0::1]` and `2001:db8::1` give `2001:db8::1`. Refuses what parse_host_rule() refuses, and wildcards.
// The error's operation is "host".
[[nodiscard]] base::Result<std::string> canonical_host(std::string_view text);

// True when `rule` is for `port` of `host`, which must come from canonical_host().
[[nodiscard]] bool matches(const HostRule& rule, std::string_view host, uint16_t port);
// The two halves of it.
[[nodiscard]] bool matches_host(const HostRule& rule, std::string_view host);
[[nodiscard]] bool matches_port(const HostRule& rule, uint16_t port);

}  // namespace belljar::policy
