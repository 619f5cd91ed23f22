#include "cli/task_storage_command.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include "base/text.h"
#include "cli/image_builds.h"
#include "cli/options.h"
#include "cli/policy_options.h"
#include "cli/tasks.h"
#include "policy/values.h"

namespace belljar::cli {
namespace {

constexpr uint64_t kCreateSeconds = 600;
constexpr auto kShort = std::chrono::seconds(60);
constexpr auto kSilence = std::chrono::seconds(5);  // of an engine that is given up

using Take = std::function<base::Status(std::string_view)>;

Take keep_number(std::string name, uint64_t& field, policy::Verdict<uint64_t> (*parse)(std::string_view)) {
  return [name = std::move(name), &field, parse](std::string_view text) -> base::Status {
    const auto value = parse(text);
    if (!value)
      return base::refuse("read the arguments", name, "'" + base::escape(text) + "': " + value.error().reason);
    if (*value == 0 || *value > uint64_t{1} << 50U)
      return base::refuse("read the arguments", name, "it is out of range");
    field = *value;
    return {};
  };
}

policy::Verdict<uint64_t> parse_count(std::string_view text) {
  uint64_t out = 0;
  if (!base::parse_uint(text, out)) return policy::no("it is no number");
  return out;
}

std::string line_of(const store::Task& task) {
  constexpr std::array kStates = {"unfinished", "ready", "unfinished"};
  tm parts{};
  const auto made = static_cast<time_t>(task.made);
  ::localtime_r(&made, &parts);
  std::array<char, 32> when{};
  std::strftime(when.data(), when.size(), "%Y-%m-%d %H:%M", &parts);
  std::string state = kStates.at(static_cast<size_t>(task.state));
  state.resize(10, ' ');
  return task.id + "  " + when.data() + "  " + state + "  " + policy::size_text(task.bytes) + "  " +
         base::escape(task.project) + "\n";
}

}  // namespace

int task_create_command(const Context& context, std::span<const std::string> arguments) {
  TaskWish wish;
  uint64_t seconds = kCreateSeconds;
  bool help = false;
  const std::vector<Option> options{
      {"--image", "IMAGE", "an image that 'belljar image build' has made: its id or tag", keep(wish.image)},
      {"--work-size", "SIZE", "most bytes of the checkout, 2GiB (twice the project and 256MiB)",
       keep_number("--work-size", wish.work_bytes, policy::parse_size)},
      {"--work-files", "COUNT", "most files and folders of it (twice the project's and 50,000)",
       keep_number("--work-files", wish.work_files, parse_count)},
      {"--git-size", "SIZE", "most bytes of the metadata (what it takes and 1MiB)",
       keep_number("--git-size", wish.git_bytes, policy::parse_size)},
      {"--git-files", "COUNT", "most files and folders of it", keep_number("--git-files", wish.git_files, parse_count)},
      {"--timeout", "TIME", "for all of it (10m)", keep_number("--timeout", seconds, policy::parse_duration)},
      {"--help", "", "this page", turn_on(help)}};
  const auto words = parse_options(arguments, options);
  if (!words) return report(context, words.error());
  if (help) {
    return print(
        context,
        "Usage: belljar task create --image IMAGE [OPTION]... [FOLDER]\n"
        "Clones the last commit of the project in FOLDER (the current one) into two volumes of memory, one for\n"
        "the checkout and one for its metadata, which agents of the task can only read. What is not committed\n"
        "is not taken. Prints the task's id. The engine is the one that DOCKER_HOST names.\n\nOptions:\n" +
            options_help(options));
  }
  if (words->size() > 1)
    return report(context, base::refuse("read the arguments", words->at(1), "one folder is expected").error());
  if (wish.image.empty()) {
    return report(context,
                  base::refuse("read the arguments", "--image", "it is missing", "see 'belljar image ls'").error());
  }
  wish.project = words->empty() ? "." : words->front();
  const char* const engine = std::getenv("DOCKER_HOST");
  wish.engine = engine != nullptr ? engine : "";
  const auto deadline = base::Deadline::after(std::chrono::seconds(seconds));
  const auto tasks = Tasks::open();
  if (!tasks) return report(context, tasks.error());
  const auto task = tasks->create(wish, deadline);
  return task ? print(context, task->id + "\n") : report(context, task.error());
}

int task_list_command(const Context& context, std::span<const std::string> arguments) {
  if (!arguments.empty())
    return print(context, "Usage: belljar task ls\nThe tasks, the oldest first, with what each may take of memory.\n");
  const auto tasks = Tasks::open();
  if (!tasks) return report(context, tasks.error());
  const auto all = tasks->list();
  if (!all) return report(context, all.error());
  std::string out;
  for (const store::Task& one : *all) out += line_of(one);
  return print(context, out);
}

int task_remove_command(const Context& context, std::span<const std::string> arguments) {
  bool forget = false;
  bool help = false;
  const std::vector<Option> options{
      {"--forget", "", "give up tasks whose engine does not answer: what it has of them stays in it", turn_on(forget)},
      {"--help", "", "this page", turn_on(help)}};
  const auto words = parse_options(arguments, options);
  if (!words) return report(context, words.error());
  if (help || words->empty()) {
    const std::string text =
        "Usage: belljar task rm [--forget] TASK...\n"
        "Removes tasks with all that is in their volumes. One whose container still runs is left.\n\nOptions:\n" +
        options_help(options);
    if (help) return print(context, text);
    std::fputs(text.c_str(), context.err);
    return kFailed;
  }
  const auto tasks = Tasks::open();
  if (!tasks) return report(context, tasks.error());
  int code = 0;
  for (const std::string& id : *words) {
    if (!forget) {
      const auto status = tasks->remove(id, base::Deadline::after(kShort));
      if (!status) code = report(context, status.error());
      continue;
    }
    const auto left = tasks->forget(id, base::Deadline::after(kSilence));
    if (!left) {
      code = report(context, left.error());
    } else {
      std::fprintf(context.err, "belljar: weaker than it could be: the task is forgotten, and %s\n",
                   base::escape(*left).c_str());
    }
  }
  return code;
}

int task_pool_command(const Context& context, std::span<const std::string> arguments) {
  if (arguments.size() > 1 || (!arguments.empty() && arguments.front().starts_with('-'))) {
    return print(
        context,
        "Usage: belljar task pool [SIZE]\nWhat all tasks together may take of memory (half of the machine's), and "
        "what they have. SIZE sets it.\n");
  }
  const auto tasks = Tasks::open();
  if (!tasks) return report(context, tasks.error());
  if (!arguments.empty()) {
    uint64_t bytes = 0;
    if (auto status = keep_number("SIZE", bytes, policy::parse_size)(arguments.front()); !status) {
      return report(context, status.error());
    }
    if (auto status = tasks->set_pool(bytes); !status) return report(context, status.error());
  }
  const auto pool = tasks->pool();
  if (!pool) return report(context, pool.error());
  const auto all = tasks->list();
  if (!all) return report(context, all.error());
  uint64_t taken = 0;
  for (const store::Task& one : *all) taken += one.bytes;
  return print(context, policy::size_text(taken) + " of " + policy::size_text(*pool) + " taken by " +
                            std::to_string(all->size()) + (all->size() == 1 ? " task\n" : " tasks\n"));
}

bool recover_tasks(const Context& context, tiers::docker::Reach& reach, size_t& count) {
  // To look for what is not there is no reason to make a store.
  const auto state = own_state_folder();
  if (state && ::access((*state + "/tasks").c_str(), F_OK) != 0 && errno == ENOENT) return true;
  const auto tasks = Tasks::open();
  if (!tasks) {
    report(context, tasks.error());
    return false;
  }
  std::vector<base::Error> errors;
  const auto done = tasks->recover(reach, errors);
  if (!done) {
    report(context, done.error());
    return false;
  }
  for (const RecoveredTask& one : *done) {
    std::fprintf(context.err, "belljar: recovered task %s: %s\n", base::escape(one.id).c_str(), one.what.c_str());
  }
  count += done->size();
  for (const base::Error& error : errors) report(context, error);
  return errors.empty();
}

}  // namespace belljar::cli
