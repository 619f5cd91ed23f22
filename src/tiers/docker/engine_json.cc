#include "tiers/docker/engine_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tiers/docker/json_depth.h"

namespace belljar::tiers::docker {
namespace {

using Json = nlohmann::json;

Json parse(std::string_view body) {
  return is_shallow(body) ? Json::parse(body, nullptr, false) : Json();
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::vector<std::string> list_of(const Json& object, const char* key) {
  std::vector<std::string> out;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return out;
  for (const Json& one : *found) {
    if (one.is_string()) out.push_back(one.get<std::string>());
  }
  return out;
}

std::vector<std::string> keys_of(const Json& object, const char* key) {
  std::vector<std::string> out;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return out;
  for (const auto& [name, value] : found->items()) out.push_back(name);
  std::ranges::sort(out);
  return out;
}

Labels labels_of(const Json& object) {
  Labels out;
  const auto found = object.find("Labels");
  if (found == object.end() || !found->is_object()) return out;
  for (const auto& [name, value] : found->items()) {
    if (value.is_string()) out[name] = value.get<std::string>();
  }
  return out;
}

}  // namespace

bool read_version(std::string_view body, EngineInfo& out) {
  const Json json = parse(body);
  if (!json.is_object()) return false;
  out.version = text_of(json, "Version");
  out.api = text_of(json, "ApiVersion");
  out.oldest_api = text_of(json, "MinAPIVersion");
  out.os_type = text_of(json, "Os");
  return !out.version.empty() && !out.api.empty();
}

bool read_info(std::string_view body, EngineInfo& out) {
  const Json json = parse(body);
  if (!json.is_object()) return false;
  out.version = text_of(json, "ServerVersion");
  out.os_type = text_of(json, "OSType");
  out.security_options = list_of(json, "SecurityOptions");
  out.runtimes = keys_of(json, "Runtimes");
  out.cgroup_version = text_of(json, "CgroupVersion");
  out.memory_limit = flag_of(json, "MemoryLimit");
  out.swap_limit = flag_of(json, "SwapLimit");
  out.pids_limit = flag_of(json, "PidsLimit");
  out.cpu_limit = flag_of(json, "CpuCfsQuota");
  return !out.version.empty();
}

std::optional<Image> read_image(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_object()) return std::nullopt;
  Image out;
  out.id = text_of(json, "Id");
  const auto config = json.find("Config");
  if (!out.id.starts_with("sha256:") || config == json.end() || !config->is_object()) return std::nullopt;
  out.env = list_of(*config, "Env");
  out.labels = labels_of(*config);
  out.volumes = keys_of(*config, "Volumes");
  return out;
}

std::optional<std::vector<Owned>> read_containers(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_array()) return std::nullopt;
  std::vector<Owned> out;
  for (const Json& one : json) {
    if (!one.is_object()) return std::nullopt;
    Owned owned{text_of(one, "Id"), {}, labels_of(one), text_of(one, "State")};
    const std::vector<std::string> names = list_of(one, "Names");
    if (!names.empty()) owned.name = names.front().starts_with('/') ? names.front().substr(1) : names.front();
    if (owned.id.empty()) return std::nullopt;
    out.push_back(std::move(owned));
  }
  return out;
}

std::optional<std::vector<Owned>> read_volumes(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_object()) return std::nullopt;
  std::vector<Owned> out;
  const auto list = json.find("Volumes");
  if (list == json.end() || list->is_null()) return out;
  if (!list->is_array()) return std::nullopt;
  for (const Json& one : *list) {
    if (!one.is_object()) return std::nullopt;
    const std::string name = text_of(one, "Name");
    if (name.empty()) return std::nullopt;
    out.push_back({name, name, labels_of(one), {}});
  }
  return out;
}

std::optional<std::string> read_id(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_object()) return std::nullopt;
  std::string id = text_of(json, "Id");
  if (id.empty()) return std::nullopt;
  return id;
}

std::optional<int> read_exit_code(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_object()) return std::nullopt;
  const auto code = json.find("StatusCode");
  const auto error = json.find("Error");
  if (code == json.end() || !code->is_number_integer() || (error != json.end() && !error->is_null())) {
    return std::nullopt;
  }
  return code->get<int>();
}

std::optional<std::vector<std::string>> read_image_ids(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_array()) return std::nullopt;
  std::vector<std::string> out;
  for (const Json& one : json) {
    if (!one.is_object()) return std::nullopt;
    out.push_back(text_of(one, "Id"));
    if (!out.back().starts_with("sha256:")) return std::nullopt;
  }
  return out;
}

bool was_out_of_memory(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_object()) return false;
  const auto state = json.find("State");
  return state != json.end() && state->is_object() && flag_of(*state, "OOMKilled");
}

base::Result<std::string> read_import(std::string_view body) {
  std::string id;
  for (const std::string_view line : base::split(body, '\n')) {
    const Json json = parse(line);
    if (!json.is_object()) continue;
    if (const std::string error = text_of(json, "error"); !error.empty()) {
      return base::refuse("import the image", "", "the container engine refused: " + error);
    }
    if (std::string status = text_of(json, "status"); status.starts_with("sha256:")) id = std::move(status);
  }
  if (id.empty()) return base::refuse("import the image", "", "the container engine named no image");
  return id;
}

std::string label_filter(std::string_view label) {
  return Json{{"label", Json::array({std::string(label)})}}.dump();
}

}  // namespace belljar::tiers::docker
