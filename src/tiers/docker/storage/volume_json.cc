#include "tiers/docker/storage/volume_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/path.h"
#include "base/text.h"

namespace belljar::tiers::docker::storage {
namespace {

using Json = nlohmann::json;

std::string mount_options(const Volume& volume) {
  return "nosuid,nodev,size=" + std::to_string(volume.bytes) + ",nr_inodes=" + std::to_string(volume.files) +
         ",mode=0755,uid=" + std::to_string(kTaskUser) + ",gid=" + std::to_string(kTaskGroup);
}

Json labels_of(const TaskStorage& storage, Part part) {
  return {{kTaskLabel, storage.task}, {kAllocationLabel, storage.allocation}, {kPartLabel, part_name(part)}};
}

Json options_of(const Volume& volume) {
  return {{"type", "tmpfs"}, {"device", "tmpfs"}, {"o", mount_options(volume)}};
}

Json sorted_words(const std::string& text) {
  Json out = Json::array();
  for (const std::string_view word : base::split(text, ',')) out.push_back(word);
  std::sort(out.begin(), out.end());
  return out;
}

Json at(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

std::string shown(const Json& value) {
  constexpr size_t kMost = 300;
  std::string out =
      value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (out.size() > kMost) out = out.substr(0, kMost) + "…";
  return base::escape(out);
}

// What is there beside the known keys and says anything.
Json others(const Json& object, std::initializer_list<const char*> known) {
  if (!object.is_object()) return object;
  Json out = Json::object();
  for (const auto& [key, value] : object.items()) {
    const bool is_known = std::ranges::any_of(known, [&](const char* one) { return key == one; });
    if (!is_known && !value.is_null()) out[key] = value;
  }
  return out.empty() ? Json() : out;
}

struct Compared {
  Json expected;
  Json found;
};

using Look = Compared (*)(const TaskStorage& storage, Part part, const Json& inspected);

struct Rule {
  VolumeField field;
  const char* name;
  Look look;
};

Compared mountpoint(const TaskStorage&, Part, const Json& inspected) {
  // Where it is, is the engine's to choose; it must be one place.
  const Json found = at(inspected, "Mountpoint");
  const bool good = found.is_string() && found.get_ref<const std::string&>().size() > 1 &&
                    base::normal_path(found.get_ref<const std::string&>()) == found.get_ref<const std::string&>();
  return {good ? found : Json("an absolute path"), found};
}

// The order is that of VolumeField.
constexpr std::array<Rule, static_cast<size_t>(VolumeField::kCount)> kRules = {{
    {VolumeField::kName, "Name",
     [](const TaskStorage& storage, Part part, const Json& found) {
       return Compared{volume_of(storage, part).name, at(found, "Name")};
     }},
    {VolumeField::kDriver, "Driver",
     [](const TaskStorage&, Part, const Json& found) { return Compared{"local", at(found, "Driver")}; }},
    {VolumeField::kScope, "Scope",
     [](const TaskStorage&, Part, const Json& found) { return Compared{"local", at(found, "Scope")}; }},
    {VolumeField::kType, "Options.type",
     [](const TaskStorage&, Part, const Json& found) { return Compared{"tmpfs", at(at(found, "Options"), "type")}; }},
    {VolumeField::kDevice, "Options.device",
     [](const TaskStorage&, Part, const Json& found) { return Compared{"tmpfs", at(at(found, "Options"), "device")}; }},
    {VolumeField::kOptions, "Options.o",
     [](const TaskStorage& storage, Part part, const Json& found) {
       const Json options = at(at(found, "Options"), "o");
       return Compared{sorted_words(mount_options(volume_of(storage, part))),
                       options.is_string() ? sorted_words(options.get<std::string>()) : options};
     }},
    {VolumeField::kOtherOptions, "Options",
     [](const TaskStorage&, Part, const Json& found) {
       return Compared{{}, others(at(found, "Options"), {"type", "device", "o"})};
     }},
    {VolumeField::kLabels, "Labels",
     [](const TaskStorage& storage, Part part, const Json& found) {
       return Compared{labels_of(storage, part), at(found, "Labels")};
     }},
    {VolumeField::kMountpoint, "Mountpoint", &mountpoint},
    {VolumeField::kStatus, "Status",
     [](const TaskStorage&, Part, const Json& found) {
       const Json status = at(found, "Status");
       return Compared{{}, status.is_object() && status.empty() ? Json() : status};
     }},
    {VolumeField::kOther, "(more)",
     [](const TaskStorage&, Part, const Json& found) {
       return Compared{{},
                       others(found, {"Name", "Driver", "Scope", "Options", "Labels", "Mountpoint", "Status",
                                      "CreatedAt", "UsageData"})};
     }},
}};

consteval bool is_in_order() {
  for (size_t i = 0; i < kRules.size(); ++i) {
    if (kRules[i].field != static_cast<VolumeField>(i)) return false;
  }
  return true;
}
static_assert(is_in_order(), "every field of a volume is compared");

}  // namespace

const char* part_name(Part part) {
  return part == Part::kWork ? "work" : "git";
}

const Volume& volume_of(const TaskStorage& storage, Part part) {
  return part == Part::kWork ? storage.work : storage.git;
}

const char* field_name(VolumeField field) {
  return kRules[static_cast<size_t>(field)].name;
}

std::string create_request(const TaskStorage& storage, Part part) {
  const Volume& volume = volume_of(storage, part);
  return Json{{"Name", volume.name},
              {"Driver", "local"},
              {"DriverOpts", options_of(volume)},
              {"Labels", labels_of(storage, part)}}
      .dump();
}

base::Result<std::string> check_volume(const TaskStorage& storage, Part part, std::string_view inspected) {
  constexpr std::string_view kOperation = "check the volume";
  const Json json = Json::parse(inspected, nullptr, false);
  const std::string& name = volume_of(storage, part).name;
  if (!json.is_object()) return base::refuse(kOperation, name, "the engine's answer is no JSON, refusing");
  std::string reason;
  for (const Rule& rule : kRules) {
    const Compared one = rule.look(storage, part, json);
    if (one.expected == one.found) continue;
    if (!reason.empty()) reason += "; ";
    reason += std::string(rule.name) + ": expected " + shown(one.expected) + ", found " + shown(one.found);
  }
  if (!reason.empty()) {
    return base::refuse(kOperation, name, reason + ", refusing",
                        "it is not the volume that was asked for, and is left alone");
  }
  return json.at("Mountpoint").get<std::string>();
}

std::string volume_filter(std::string_view name) {
  return Json{{"volume", Json::array({name})}}.dump();
}

bool is_running(std::string_view inspected) {
  const Json json = Json::parse(inspected, nullptr, false);
  return at(at(json, "State"), "Running") == true && at(at(json, "State"), "Paused") != true;
}

base::Result<int64_t> read_exit_code(std::string_view waited) {
  const Json code = at(Json::parse(waited, nullptr, false), "StatusCode");
  if (!code.is_number_integer()) {
    return base::refuse("wait for the container", "", "the engine's answer is not of the API's form, refusing");
  }
  return code.get<int64_t>();
}

}  // namespace belljar::tiers::docker::storage
