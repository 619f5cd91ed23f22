// What an engine's answers say. Each refuses what is not of the form that the Engine API gives.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tiers/docker/engine.h"

namespace belljar::tiers::docker {

// GET /version: fills version, api, oldest_api and os_type.
[[nodiscard]] bool read_version(std::string_view body, EngineInfo& out);
// GET /info: all but the versions of the API.
[[nodiscard]] bool read_info(std::string_view body, EngineInfo& out);
// GET /images/{name}/json
[[nodiscard]] std::optional<Image> read_image(std::string_view body);
// GET /containers/json and GET /volumes
[[nodiscard]] std::optional<std::vector<Owned>> read_containers(std::string_view body);
[[nodiscard]] std::optional<std::vector<Owned>> read_volumes(std::string_view body);
// The `Id` of what was created.
[[nodiscard]] std::optional<std::string> read_id(std::string_view body);
// POST /containers/{id}/wait: the exit code.
[[nodiscard]] std::optional<int> read_exit_code(std::string_view body);
// GET /images/json: the ids.
[[nodiscard]] std::optional<std::vector<std::string>> read_image_ids(std::string_view body);
// GET /containers/{id}/json: the kernel has ended a process of it for want of memory.
[[nodiscard]] bool was_out_of_memory(std::string_view body);
// The last line of POST /images/create, whose `status` is the id; an error of the engine's comes in the same stream.
[[nodiscard]] base::Result<std::string> read_import(std::string_view body);
// The `filters` of a list, before percent-encoding.
[[nodiscard]] std::string label_filter(std::string_view label);

}  // namespace belljar::tiers::docker
