#include "tiers/docker/image/commit_json.h"

#include <nlohmann/json.hpp>

#include "tiers/docker/engine_json.h"

namespace belljar::tiers::docker::image {

std::string commit_request(const std::vector<std::string>& env, const Labels& labels) {
  return nlohmann::json{{"Env", env},
                        {"Labels", labels},
                        {"Entrypoint", nlohmann::json::array()},
                        {"Cmd", nlohmann::json::array({"/bin/sh"})},
                        {"WorkingDir", "/"}}
      .dump();
}

std::optional<std::string> committed_id(std::string_view body) {
  auto id = read_id(body);
  if (id && !id->starts_with("sha256:")) id = "sha256:" + *id;
  return id;
}

}  // namespace belljar::tiers::docker::image
