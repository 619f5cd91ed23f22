#include "session/settlement.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/explain.h"
#include "plan/limit_fields.h"

namespace belljar::session {
namespace {

using Json = nlohmann::ordered_json;

Json list(const std::vector<std::string>& items) {
  Json out = Json::array();
  for (const std::string& item : items) out.push_back(base::escape(item));
  return out;
}

Json evidence_json(const guest::ProbeRecord& record) {
  Json checks = Json::array();
  for (uint32_t i = 1; i < static_cast<uint32_t>(guest::Check::kCount); ++i) {
    if ((record.passed & (uint64_t{1} << i)) != 0) checks.push_back(guest::check_name(static_cast<guest::Check>(i)));
  }
  return {{"passed", checks},
          {"uid", record.uid},
          {"gid", record.gid},
          {"supplementary_groups", record.groups},
          {"mounts", record.mounts},
          {"landlock_abi", record.landlock_abi},
          {"seccomp_filters", record.seccomp_filters},
          {"nested", record.nested != 0}};
}

Json denials_json(const std::vector<egress::Denial>& denials) {
  Json out = Json::array();
  for (const egress::Denial& denial : denials) {
    out.push_back({{"host", base::escape(denial.host)},
                   {"port", denial.port},
                   {"reason", std::string(egress::code_of(denial.reason))},
                   {"rule_id", base::escape(denial.rule_id)},
                   {"rule", base::escape(denial.rule)},
                   {"method", base::escape(denial.method)},
                   {"remedy", base::escape(denial.remedy)},
                   {"detail", base::escape(denial.detail)},
                   {"count", denial.count}});
  }
  return out;
}

Json after_json(const workspace::Settled& settled) {
  Json changes = Json::array();
  for (const workspace::Change& change : settled.changes()) {
    changes.push_back({{"path", base::escape(change.path)}, {"change", workspace::to_text(change.kind)}});
  }
  Json quarantined = Json::array();
  for (const workspace::Quarantined& one : settled.quarantined()) {
    quarantined.push_back({{"path", base::escape(one.path)},
                           {"moved_to", base::escape(one.moved_to)},
                           {"reason", base::escape(one.reason)}});
  }
  Json configs = Json::array();
  for (const workspace::ConfigFile& config : settled.configs()) {
    configs.push_back({{"path", base::escape(config.path)},
                       {"outcome", workspace::to_text(config.outcome)},
                       {"reason", base::escape(config.reason)}});
  }
  return {{"changes", changes},
          {"quarantined", quarantined},
          {"configs", configs},
          {"notes", list(settled.notes())},
          {"unlisted", settled.unlisted()}};
}

Json unreleased_json(const Settlement& settlement) {
  Json out = list(settlement.unreleased);
  for (const std::string& text : settlement.after.unreleased()) out.push_back(base::escape(text));
  return out;
}

Json audit_json(const std::optional<egress::AuditEnd>& audit) {
  if (!audit) return nullptr;
  return {{"lines", audit->lines}, {"lost", audit->lost}, {"unlisted", audit->unlisted}, {"chain", audit->chain}};
}

Json allowed_json(const std::vector<egress::Use>& uses) {
  Json out = Json::array();
  for (const egress::Use& use : uses) {
    out.push_back({{"host", base::escape(use.host)},
                   {"port", use.port},
                   {"rule_id", base::escape(use.rule_id)},
                   {"rule", base::escape(use.rule)},
                   {"count", use.count},
                   {"bytes_up", use.up},
                   {"bytes_down", use.down}});
  }
  return out;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json limits_json(const plan::ResourceLimits& limits) {
  Json out = Json::object();
  plan::each_limit(limits, [&](const char* name, const std::optional<uint64_t>& value) { out[name] = or_null(value); });
  return out;
}

Json limits_hit_json(const std::vector<LimitHit>& hits) {
  Json out = Json::array();
  for (const LimitHit& hit : hits) {
    out.push_back({{"reason", to_text(hit.kind)}, {"limit", hit.limit}, {"count", hit.count}});
  }
  return out;
}

Json usage_json(const Usage& usage) {
  return {{"cpu_ms", usage.cpu_us / 1000},
          {"peak_memory_bytes", or_null(usage.peak_memory_bytes)},
          {"largest_process_bytes", usage.largest_process_bytes},
          {"scratch_bytes", usage.scratch_bytes},
          {"scratch_files", usage.scratch_files}};
}

}  // namespace

const char* to_text(LimitHit::Kind kind) {
  switch (kind) {
    case LimitHit::Kind::kOutOfMemory:
      return "out_of_memory";
    case LimitHit::Kind::kTooManyPids:
      return "too_many_pids";
    case LimitHit::Kind::kNoSpace:
      return "no_space";
    case LimitHit::Kind::kNoInodes:
      return "no_inodes";
    case LimitHit::Kind::kDeadline:
      break;
  }
  return "deadline";
}

std::string to_text(const LimitHit& hit) {
  const std::string limit = std::to_string(hit.limit);
  const std::string count = std::to_string(hit.count);
  switch (hit.kind) {
    case LimitHit::Kind::kOutOfMemory:
      return "out of memory: " + count + (hit.count == 1 ? " process was" : " processes were") +
             " killed at the limit of " + plan::size_text(hit.limit) + " (--memory)";
    case LimitHit::Kind::kTooManyPids:
      return "too many processes: " + count + " more than " + limit + " were refused (--pids)";
    case LimitHit::Kind::kNoSpace:
      return "no space: the scratch of " + plan::size_text(hit.limit) + " was full (limits.scratch_bytes)";
    case LimitHit::Kind::kNoInodes:
      return "no inodes: the scratch had its " + limit + " files (limits.scratch_files)";
    case LimitHit::Kind::kDeadline:
      break;
  }
  return "deadline: ended after " + limit + " s (--timeout)";
}

const char* to_text(EndReason reason) {
  switch (reason) {
    case EndReason::kExited:
      return "exited";
    case EndReason::kSignaled:
      return "signaled";
    case EndReason::kDeadline:
      return "deadline";
    case EndReason::kNotFound:
      return "not_found";
    case EndReason::kNotExecutable:
      return "not_executable";
    case EndReason::kStopped:
      return "stopped";
    case EndReason::kLost:
      return "lost";
    case EndReason::kFailed:
      break;
  }
  return "failed";
}

std::string settlement_json(const Settlement& settlement, const plan::Plan& plan) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(settlement.duration).count();
  const Json out = {
      {"session", settlement.session},
      {"tier", plan::to_text(plan.mode)},
      {"network", plan::to_text(plan.network)},
      {"agent", base::escape(plan.agent)},
      {"command", list(plan.command)},
      {"work_folder", base::escape(plan.work_folder)},
      {"weakenings", list(plan.weakenings)},
      {"started", settlement.started},
      {"duration_ms", milliseconds},
      {"exit",
       {{"reason", to_text(settlement.reason)},
        {"code", settlement.exit_code},
        {"signal", settlement.signal},
        {"error", base::escape(settlement.error)}}},
      {"limits", limits_json(plan.limits)},
      {"limits_hit", limits_hit_json(settlement.limits_hit)},
      {"usage", usage_json(settlement.usage)},
      {"probe", plan.mode == policy::Mode::kNone ? Json(nullptr) : evidence_json(settlement.evidence)},
      {"denials", denials_json(settlement.denials)},
      {"unlisted_denials", settlement.unlisted_denials},
      {"audit", audit_json(settlement.audit)},
      {"allowed", allowed_json(settlement.allowed)},
      {"unlisted_allowed", settlement.unlisted_allowed},
      {"after", after_json(settlement.after)},
      {"unreleased", unreleased_json(settlement)},
  };
  return out.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace belljar::session
