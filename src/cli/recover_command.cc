#include "cli/recover_command.h"

#include <chrono>

#include "base/text.h"
#include "cli/image_builds.h"
#include "cli/options.h"
#include "cli/task_storage_command.h"
#include "session/after.h"
#include "session/recover.h"
#include "session/state_folder.h"
#include "tiers/docker/reach.h"

namespace belljar::cli {
namespace {

// With each engine, for all that is to be done there. A launch does not wait for one that it may not need.
constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kShortPatience = std::chrono::seconds(5);

std::string text_of(const session::Recovered& recovered) {
  std::string out = "belljar: recovered session " + base::escape(recovered.session) + " in '" +
                    base::escape(recovered.work_folder) + "'\n";
  for (const workspace::Quarantined& one : recovered.settled.quarantined()) {
    out += one.moved_to.empty() ? "  still there: " + base::escape(one.path) + " (" + base::escape(one.reason) + ")\n"
                                : "  moved: " + base::escape(one.path) + " to " + base::escape(one.moved_to) + "\n";
  }
  for (const std::string& text : recovered.settled.unreleased()) out += "  not done: " + base::escape(text) + "\n";
  if (!recovered.settlement.empty()) out += "  all of it: " + base::escape(recovered.settlement) + "\n";
  return out;
}

// False when something could not be finished. Before a launch in `folder`; empty otherwise.
bool recover(const Context& context, const std::string& state_folder, const std::string& folder,
             tiers::docker::Reach& reach, size_t& count) {
  const auto tell = [&](const std::string& work_folder) {
    std::fprintf(context.err, "belljar: looking for what an earlier session left in '%s'\n",
                 base::escape(work_folder).c_str());
  };
  const auto recovery = session::recover(state_folder, session::known_works(reach, folder), tell);
  if (!recovery) {
    report(context, recovery.error());
    return false;
  }
  bool whole = recovery->errors.empty();
  count = recovery->sessions.size();
  for (const session::Recovered& one : recovery->sessions) {
    std::fputs(text_of(one).c_str(), context.err);
    whole = whole && one.settled.unreleased().empty();
  }
  for (const base::Error& error : recovery->errors) report(context, error);
  return whole;
}

// The same of builds of images.
bool recover_images(const Context& context, tiers::docker::Reach& reach, size_t& count) {
  const auto state = own_state_folder();
  std::vector<std::string> done;
  const auto left = state ? recover_builds(*state, reach, done) : std::unexpected(state.error());
  for (const std::string& build : done) {
    std::fputs(("belljar: recovered build " + base::escape(build) + "\n").c_str(), context.err);
  }
  count += done.size();
  if (!left) {
    report(context, left.error());
    return false;
  }
  for (const std::string& text : *left) {
    std::fputs(("belljar: not removed: " + base::escape(text) + "\n").c_str(), context.err);
  }
  return left->empty();
}

}  // namespace

int recover_command(const Context& context, std::span<const std::string> arguments) {
  bool help = false;
  const std::vector<Option> options{{"--help", "", "this page", [&](std::string_view) -> base::Status {
                                       help = true;
                                       return {};
                                     }}};
  const auto words = parse_options(arguments, options);
  if (!words) return report(context, words.error());
  if (help) {
    return print(
        context,
        "Usage: belljar recover\n"
        "Finishes the settlement of sessions whose processes were all killed, or that left more than could be\n"
        "looked through in time: what their guests left where no guest may leave anything is moved to\n"
        "quarantine. The next launch does the same by itself, in that folder.\n"
        "What killed builds of images left in an engine is removed.\n"
        "What killed creations and removals of tasks left is removed; tasks that are whole stay so.\n"
        "0: nothing is left to do; 125: something could not be done, and was named.\n\n"
        "Example:\n  belljar recover\n\nOptions:\n" +
            options_help(options));
  }
  if (!words->empty()) {
    return report(context,
                  base::refuse("read the arguments", words->front(), "belljar recover takes none", "").error());
  }
  const std::string state_folder = session::state_path();
  if (state_folder.empty()) {
    return report(
        context,
        base::refuse("recover", "", "neither XDG_STATE_HOME nor HOME says where the sessions are", "set HOME").error());
  }
  size_t count = 0;
  tiers::docker::Reach reach(kPatience);
  const bool sessions = recover(context, state_folder, {}, reach, count);
  const bool images = recover_images(context, reach, count);
  const bool tasks = recover_tasks(context, reach, count);
  session::remove_remains(state_folder);
  if (!sessions || !images || !tasks) return kFailed;
  return count > 0 ? 0 : print(context, "nothing to recover\n");
}

void recover_before_launch(const Context& context, const std::string& folder) {
  const std::string state_folder = session::state_path();
  size_t count = 0;
  tiers::docker::Reach reach(kShortPatience);
  if (!state_folder.empty()) (void)recover(context, state_folder, folder, reach, count);
}

}  // namespace belljar::cli
