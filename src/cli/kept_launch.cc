#include "cli/kept_launch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "policy/load.h"
#include "policy/parse.h"
#include "policy/show.h"
#include "store/launch_log.h"

namespace belljar::cli {
namespace {

constexpr std::string_view kResume = "resume the launch";

base::Status check_flags(const std::string& id, policy::FlagOverrides flags) {
  flags.env.clear();
  if (flags == policy::FlagOverrides{}) return {};
  return base::refuse(kResume, id, "it keeps what it was launched with, refusing",
                      "leave out every option but --report and the values of --env; or start a new launch");
}

// The values that have to be given again, and no others.
base::Status check_values(const std::string& id, const std::vector<std::string>& asked,
                          const std::vector<std::string>& given) {
  std::vector<std::string> missing = asked;
  for (const std::string& text : given) {
    const std::string name = text.substr(0, text.find('='));
    const auto wanted = std::ranges::find(missing, name);
    if (wanted == missing.end() || name.size() == text.size()) {
      return base::refuse(kResume, id, "it was not launched with --env " + name + "=VALUE, refusing", "leave it out");
    }
    missing.erase(wanted);
  }
  if (missing.empty()) return {};
  std::vector<std::string> hints;
  for (const std::string& name : missing) hints.push_back("--env " + name + "=VALUE");
  return base::refuse(kResume, id, "values are not kept: give them again", base::join(hints, " "));
}

// The folder by descriptor: what was compared is what is entered.
base::Status enter(const store::FolderId& folder) {
  const base::Fd open(::open(folder.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat found{};
  if (!open || ::fstat(open.get(), &found) != 0) return base::system_error(kResume, folder.path, errno);
  if (found.st_dev != folder.device || found.st_ino != folder.inode) {
    return base::refuse(kResume, folder.path, "another folder stands there than the one it was launched in, refusing",
                        "start a new launch");
  }
  if (::fchdir(open.get()) != 0) return base::system_error(kResume, folder.path, errno);
  return {};
}

base::Result<store::Launch> find(const store::Places& places, const std::string& id) {
  std::optional<store::Launch> out;
  if (!places.state.empty()) {
    BELLJAR_ASSIGN(out, store::kept_launch(places.state, id));
  }
  if (out) return std::move(*out);
  return base::refuse(kResume, id, "no such launch is kept",
                      "launches of an agent and those with --keep are, under the session's id");
}

}  // namespace

base::Status keep_launch(const store::Places& places, const std::string& session, const KeptLaunch& launch) {
  if (places.state.empty()) {
    return base::refuse("keep the launch", "", "neither HOME nor XDG_STATE_HOME is set", "set one of them");
  }
  store::Launch out{session, {}, {}, launch.request.command, launch.request.chdir, {}, launch.target_folder};
  policy::Policy policy = launch.policy;
  std::erase_if(policy.env.set, [&](const auto& variable) {
    const auto source = policy.sources.find("env.set." + variable.first);
    const bool asked = source != policy.sources.end() && source->second == "--env";
    if (asked) out.asked_env.push_back(variable.first);
    return asked;
  });
  out.policy = policy::show_json(policy);
  BELLJAR_ASSIGN(out.folder, store::identify(launch.folder));
  return store::keep_launch(places.state, out);
}

base::Result<KeptLaunch> resume_launch(const store::Places& places, const std::string& id,
                                       const policy::FlagOverrides& flags) {
  BELLJAR_TRY(check_flags(id, flags));
  BELLJAR_ASSIGN(store::Launch kept, find(places, id));
  BELLJAR_TRY(check_values(id, kept.asked_env, flags.env));
  BELLJAR_ASSIGN(policy::PolicyLayer layer, policy::parse_policy(kept.policy, "launch " + id));
  KeptLaunch out;
  BELLJAR_ASSIGN(out.policy, policy::load({std::move(layer)}, std::nullopt, flags));
  BELLJAR_TRY(enter(kept.folder));
  out.request.command = std::move(kept.command);
  out.request.chdir = std::move(kept.chdir);
  out.folder = std::move(kept.folder.path);
  out.target_folder = std::move(kept.target_folder);
  return out;
}

}  // namespace belljar::cli
