// What the agents' login files hold.
#include <nlohmann/json.hpp>
#include <string>

#include "tiers/docker/task/credential.h"

namespace belljar::tiers::docker::task {

std::string vendor_of_login(std::string_view content) {
  const nlohmann::json json = nlohmann::json::parse(content, nullptr, false);
  if (!json.is_object()) return {};
  // ~/.claude/.credentials.json and ~/.codex/auth.json; one that speaks of both is nobody's.
  const bool claude = json.contains("claudeAiOauth");
  const bool codex = json.contains("OPENAI_API_KEY") || json.contains("tokens");
  if (claude == codex) return {};
  return claude ? "claude" : "codex";
}

}  // namespace belljar::tiers::docker::task
