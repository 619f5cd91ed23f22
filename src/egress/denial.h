// What was refused and why, in words that let a person or an agent act on it once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::egress {

enum class Reason : uint8_t {
  kHostNotAllowed,      // no rule names the host
  kPortNotAllowed,      // a rule names the host, but not this port
  kAddressNotPublic,    // the host has only addresses that may not be dialled
  kSniMismatch,         // the TLS hello names another host than CONNECT
  kNoSni,               // the TLS hello names no host
  kNotTls,              // something other than TLS inside CONNECT
  kMalformedHello,      // TLS, but no well-formed ClientHello
  kHelloTimeout,        // no whole ClientHello in time
  kHeadTimeout,         // no whole request head in time
  kBadRequest,          // HTTP that has no single meaning
  kResolveFailed,       // no address could be learnt
  kDialFailed,          // no address could be connected to
  kDialTimeout,         // not in time
  kUpstreamFailed,      // the upstream reset, closed early or answered nonsense
  kTooManyConnections,  // the guest's cap
  kOutOfResources,      // descriptors or memory of the proxy
  kHostDenied,          // a rule denies the host, or a name that it is an alias of
  kAddressDenied,       // a rule denies every address of the host
  kPlainHttpOnly,       // the rule allows plain requests, and no tunnel
  kTlsRequired,         // the rule allows tunnels with TLS, and no plain request
  kMethodNotAllowed,    // the rule does not have this method
  kPathNotAllowed,      // nor a prefix of this path
  kRuleConnections,     // the rule's connections are all in use
  kRuleBytes,           // the rule's bytes are used up
  kRuleRate,            // the rule's requests of this minute are used up
  kPersonDenied,        // a person was asked and said no
  kNobodyAnswered,      // a person was asked and did not answer in time
  kAuditFailed,         // the policy requires an audit file, and it takes nothing any more
};

// The stable code that programs compare: "host_not_allowed".
[[nodiscard]] std::string_view code_of(Reason reason);
// The HTTP status a refusal with this reason has: 400, 403, 408, 429, 502, 503 or 504.
[[nodiscard]] int status_of(Reason reason);

// One refusal as the settlement lists it. Equal ones are counted.
struct Denial {
  std::string host;   // canonical; empty when the request named none that has a meaning
  uint16_t port = 0;  // 0 likewise
  Reason reason = Reason::kHostNotAllowed;
  std::string rule;    // the rule that came nearest, with its source; empty when none did
  std::string remedy;  // the flag that would allow it; empty when no flag would
  std::string detail;  // of the first one: "the hello names 'other.example'"; untrusted parts escaped
  uint64_t count = 1;
  std::string rule_id{};  // of `rule`
  std::string method{};   // CONNECT, SOCKS5, DIRECT, or that of a plain request
  // True when no connection was asked for: a question for the host's addresses.
  [[nodiscard]] bool looked_up() const { return port == 0 && !host.empty(); }
};

// Bounded: a guest can invent hosts without end. Most of the room is for what it asked connections for, as looking a
// name up costs it next to nothing.
class DenialLog {
 public:
  static constexpr size_t kLimit = 1024;
  static constexpr size_t kLookups = 256;  // of those
  // Counts `denial` with an equal one (host, port, reason), else keeps it while there is room.
  void add(Denial denial);
  [[nodiscard]] const std::vector<Denial>& denials() const { return denials_; }
  // How many found no room.
  [[nodiscard]] uint64_t unlisted() const { return unlisted_; }

 private:
  std::vector<Denial> denials_;
  size_t lookups_ = 0;  // of denials_
  uint64_t unlisted_ = 0;
};

// A whole HTTP/1.1 response that closes the connection, saying what `denial` says: as text, or as one JSON object.
// The status line carries code and remedy too, since many clients of CONNECT show nothing else. `status` 0 means
// that of the reason.
[[nodiscard]] std::string refusal_response(const Denial& denial, bool json, bool without_body, int status = 0);

}  // namespace belljar::egress
