#include "tiers/docker/refusal_json.h"

#include <nlohmann/json.hpp>

namespace belljar::tiers::docker {

std::string refusal_of(std::string_view body, int status) {
  constexpr size_t kMost = 1024;
  const auto parsed = nlohmann::json::parse(body, nullptr, false);
  if (parsed.is_object()) {
    const auto found = parsed.find("message");
    if (found != parsed.end() && found->is_string()) return found->get<std::string>().substr(0, kMost);
  }
  return "status " + std::to_string(status);
}

}  // namespace belljar::tiers::docker
