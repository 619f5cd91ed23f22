#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/explain.h"
#include "plan/limit_fields.h"
#include "plan/upstream.h"
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

ordered_json limits_json(const ResourceLimits& limits) {
  ordered_json out = ordered_json::object();
  each_limit(limits, [&](const char* name, const std::optional<uint64_t>& value) { out[name] = or_null(value); });
  out["by"] = {{"memory", utf8(limits.memory_by)},
               {"cpu", utf8(limits.cpu_by)},
               {"pids", utf8(limits.pids_by)},
               {"processes", "RLIMIT_NPROC"},
               {"open_files", "RLIMIT_NOFILE"},
               {"file_bytes", "RLIMIT_FSIZE"},
               {"scratch", "tmpfs"},
               {"wall", "CLOCK_BOOTTIME"}};
  return out;
}

ordered_json container_json(const Plan& plan) {
  if (plan.mode != policy::Mode::kDocker) return nullptr;
  return {{"engine", utf8(plan.container.engine)},
          {"image", utf8(plan.container.image)},
          {"image_id", utf8(plan.container.image_id)}};
}

}  // namespace

std::string explain_json(const Plan& plan) {
  const Identity& id = plan.identity;
  ordered_json out{
      {"mode", to_text(plan.mode)},
      {"network", to_text(plan.network)},
      {"nested", plan.nested},
      {"clipboard", plan.clipboard == policy::Clipboard::kAllow ? "allow" : "deny"},
      {"agent", utf8(plan.agent)},
      {"command", list(plan.command)},
      {"program", utf8(plan.program)},
      {"container", container_json(plan)},
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
      {"limits", limits_json(plan.limits)},
      {"proxy_port", plan.proxy_port},
      {"hook",
       {{"url", utf8(plan.hook.url)},
        {"token_env", utf8(plan.hook.token_env)},
        {"token_file", utf8(plan.hook.token_file)}}},
      {"ask", plan.ask},
      {"upstream_proxy", plan.upstream ? ordered_json(to_text(*plan.upstream)) : ordered_json()},
      {"expose", ordered_json::array()},
      {"hosts", ordered_json::array()},
      {"mounts", ordered_json::array()},
      {"writable", list(plan.writable)},
      {"kept", ordered_json::array()},
      {"env", ordered_json::array()},
      {"weakenings", list(plan.weakenings)},
      {"notes", list(plan.notes)},
  };
  for (const policy::HostRule& rule : plan.hosts) {
    ordered_json entry{{"rule", policy::to_text(rule)}, {"source", utf8(rule.source)}, {"id", rule.id}};
    if (rule.deny) entry["deny"] = true;
    if (const std::string options = policy::options_text(rule); !options.empty()) entry["options"] = options;
    out["hosts"].push_back(std::move(entry));
  }
  for (const policy::ExposedPort& port : plan.expose)
    out["expose"].push_back({{"host", port.host}, {"guest", port.guest}});
  for (const Mount& mount : plan.mounts) out["mounts"].push_back(mount_json(mount));
  for (const Kept& kept : plan.kept) {
    out["kept"].push_back({{"kind", to_text(kept.kind)},
                           {"path", utf8(kept.path)},
                           {"inside", utf8(kept.inside)},
                           {"keys", list(kept.keys)}});
  }
  for (const EnvVar& variable : plan.env) {
    out["env"].push_back({{"name", utf8(variable.name)},
                          {"value", variable.secret ? "***" : utf8(variable.value)},
                          {"secret", variable.secret}});
  }
  return out.dump(2, ' ', true) + "\n";
}

}  // namespace belljar::plan
