#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/task_work_command.h"

namespace belljar::cli {

std::string manifest_json(const std::string& task, const workspace::Manifest& manifest) {
  using Json = nlohmann::ordered_json;
  constexpr std::array kKinds = {"added", "modified", "deleted"};
  Json changes = Json::array();
  for (const workspace::WorkChange& one : manifest.changes) {
    Json change{{"change", kKinds.at(static_cast<size_t>(one.kind))}, {"path", one.path}};
    if (one.kind != workspace::WorkChange::Kind::kDeleted) {
      constexpr uint32_t kLink = 0120000;
      change["kind"] = one.mode == kLink ? "link" : (one.mode & 0111U) != 0 ? "program" : "file";
      change["size"] = one.size;
      change["sha256"] = one.sha256;
    }
    changes.push_back(std::move(change));
  }
  Json objections = Json::array();
  for (const workspace::Objection& one : manifest.objections) {
    objections.push_back({{"path", base::escape(one.path)}, {"reason", one.reason}});
  }
  const Json out{{"task", task},
                 {"base", manifest.base},
                 {"digest", manifest.digest()},
                 {"changes", std::move(changes)},
                 {"objections", std::move(objections)}};
  return out.dump(1, ' ', true) + "\n";  // ASCII alone: a name may hold what turns text around
}

}  // namespace belljar::cli
