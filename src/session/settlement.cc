#include "session/settlement.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/explain.h"

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
          {"seccomp_filters", record.seccomp_filters}};
}

Json denials_json(const std::vector<egress::Denial>& denials) {
  Json out = Json::array();
  for (const egress::Denial& denial : denials) {
    out.push_back({{"host", base::escape(denial.host)},
                   {"port", denial.port},
                   {"reason", std::string(egress::code_of(denial.reason))},
                   {"rule", base::escape(denial.rule)},
                   {"remedy", base::escape(denial.remedy)},
                   {"detail", base::escape(denial.detail)},
                   {"count", denial.count}});
  }
  return out;
}

}  // namespace

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
      {"probe", evidence_json(settlement.evidence)},
      {"denials", denials_json(settlement.denials)},
      {"unlisted_denials", settlement.unlisted_denials},
      {"unreleased", list(settlement.unreleased)},
  };
  return out.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace belljar::session
