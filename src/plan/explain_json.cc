#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/explain.h"
#include "policy/host_rule.h"

namespace belljar::plan {
namespace {

using nlohmann::ordered_json;

// nlohmann throws on text that is not UTF-8 (type_error 316); this is the one place that meets it.
std::string utf8(const std::string& text) {
  try {
    static_cast<void>(ordered_json(text).dump());
    return text;
  } catch (const ordered_json::exception&) {
    return base::escape(text);
  }
}

ordered_json list(const std::vector<std::string>& texts) {
  ordered_json out = ordered_json::array();
  for (const std::string& text : texts) out.push_back(utf8(text));
  return out;
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json mount_json(const Mount& mount) {
  ordered_json out{{"kind", to_text(mount.kind)}, {"target", utf8(mount.target)}};
  if (!mount.source.empty()) out["source"] = utf8(mount.source);
  out["writable"] = mount.writable;
  out["idmap"] = mount.idmap;
  out["optional"] = mount.optional;
  out["reason"] = utf8(mount.reason);
  return out;
}

}  // namespace

std::string explain_json(const Plan& plan) {
  const Identity& id = plan.identity;
  const ResourceLimits& limits = plan.limits;
  ordered_json out{
      {"mode", to_text(plan.mode)},
      {"network", to_text(plan.network)},
      {"agent", utf8(plan.agent)},
      {"command", list(plan.command)},
      {"program", utf8(plan.program)},
      {"work_folder", utf8(plan.work_folder)},
      {"chdir", utf8(plan.chdir)},
      {"home", utf8(plan.home)},
      {"hostname", plan.hostname},
      {"identity",
       {{"guest_uid", id.guest_uid},
        {"guest_gid", id.guest_gid},
        {"host_uid", id.host_uid},
        {"host_gid", id.host_gid},
        {"idmap", id.idmap},
        {"disk_uid", id.disk_uid},
        {"disk_gid", id.disk_gid}}},
      {"limits",
       {{"processes", limits.processes},
        {"open_files", limits.open_files},
        {"file_bytes", or_null(limits.file_bytes)},
        {"scratch_bytes", limits.scratch_bytes},
        {"scratch_files", limits.scratch_files},
        {"wall_seconds", or_null(limits.wall_seconds)}}},
      {"proxy_port", plan.proxy_port},
      {"hosts", ordered_json::array()},
      {"mounts", ordered_json::array()},
      {"writable", list(plan.writable)},
      {"env", ordered_json::array()},
      {"weakenings", list(plan.weakenings)},
      {"notes", list(plan.notes)},
  };
  for (const policy::HostRule& rule : plan.hosts) {
    out["hosts"].push_back({{"rule", policy::to_text(rule)}, {"source", utf8(rule.source)}});
  }
  for (const Mount& mount : plan.mounts) out["mounts"].push_back(mount_json(mount));
  for (const EnvVar& variable : plan.env) {
    out["env"].push_back({{"name", utf8(variable.name)},
                          {"value", variable.secret ? "***" : utf8(variable.value)},
                          {"secret", variable.secret}});
  }
  return out.dump(2, ' ', true) + "\n";
}

}  // namespace belljar::plan
