// Any bytes as a policy file, in both formats. What is accepted must show as text that reads back as the same policy.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "policy/merge.h"
#include "policy/parse.h"
#include "policy/show.h"

namespace {

using belljar::policy::Policy;

belljar::base::Result<Policy> policy_of(std::string_view text, std::string_view name) {
  auto layer = belljar::policy::parse_policy(text, name);
  if (!layer) return std::unexpected(layer.error());
  const std::vector<belljar::policy::PolicyLayer> layers = {belljar::policy::built_in_layer(), std::move(*layer)};
  return belljar::policy::merge(layers);
}

void check(std::string_view text, std::string_view name) {
  const auto policy = policy_of(text, name);
  if (!policy) {
    if (policy.error().message().empty()) std::abort();
    return;
  }
  const auto toml = policy_of(belljar::policy::show(*policy), "p.toml");
  const auto json = policy_of(belljar::policy::show_json(*policy), "p.json");
  if (!toml || !json || *toml != *policy || *json != *policy) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(text, "p.toml");
  check(text, "p.json");
  return 0;
}
