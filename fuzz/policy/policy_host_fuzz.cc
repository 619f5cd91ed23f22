// Any bytes as a host rule and as a host that a client names. What is accepted has one spelling.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/host_rule.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto rule = belljar::policy::parse_host_rule(text, "")) {
    const auto again = belljar::policy::parse_host_rule(belljar::policy::to_text(*rule), "");
    if (!again || *again != *rule) std::abort();
  }
  if (const auto rule = belljar::policy::parse_deny_rule(text, "")) {
    const auto again = belljar::policy::parse_deny_rule(belljar::policy::to_text(*rule), "");
    if (!again || *again != *rule) std::abort();
  }
  if (const auto host = belljar::policy::canonical_host(text)) {
    const auto again = belljar::policy::canonical_host(*host);
    if (!again || *again != *host) std::abort();
    const auto rule = belljar::policy::parse_host_rule(text, "");
    const bool own = *host == "belljar" || host->ends_with(".belljar");  // a host, and none that a rule may name
    if (own != !rule.has_value() || (rule && !belljar::policy::matches(*rule, *host, 443))) std::abort();
  }
  return 0;
}
