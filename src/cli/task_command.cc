#include "cli/task_command.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/task_run.h"
#include "cli/task_storage_command.h"
#include "cli/task_work_command.h"

namespace belljar::cli {
namespace {

struct Word {
  std::string_view name;
  int (*run)(const Context&, std::span<const std::string>);
};

constexpr std::array<Word, 8> kWords{{
    {"create", task_create_command},
    {"run", task_run_command},
    {"ls", task_list_command},
    {"rm", task_remove_command},
    {"pool", task_pool_command},
    {"inspect", task_inspect_command},
    {"export", task_export_command},
    {"commit", task_commit_command},
}};

constexpr const char* kUsage =
    "Usage: belljar task create --image IMAGE [OPTION]... [FOLDER]\n"
    "       belljar task run TASK [OPTION]... [-- COMMAND [ARGUMENT]...]\n"
    "       belljar task ls\n"
    "       belljar task inspect TASK\n"
    "       belljar task export TASK\n"
    "       belljar task commit --manifest DIGEST --message TEXT --to FILE TASK\n"
    "       belljar task rm TASK...\n"
    "       belljar task pool [SIZE]\n"
    "A project's last commit in memory of a container engine's, for agents that work unattended; and their work back\n"
    "from there, looked at first. TASK is its id or the first digits of it.\n\n"
    "Examples:\n"
    "  belljar task create --image belljar-agents ~/src/api\n"
    "  belljar task inspect 3f0c\n"
    "  belljar task commit --manifest DIGEST --message 'Fix it' --to fix.bundle 3f0c\n"
    "  git fetch fix.bundle belljar/3f0c5b1e9a2d4c78\n\n"
    "'belljar task WORD --help' has more.\n";

}  // namespace

int task_command(const Context& context, std::span<const std::string> arguments) {
  if (arguments.empty()) {
    std::fputs(kUsage, context.err);
    return kFailed;
  }
  if (arguments.front() == "--help") return print(context, kUsage);
  const auto word = std::ranges::find(kWords, arguments.front(), &Word::name);
  if (word != kWords.end()) return word->run(context, arguments.subspan(1));
  std::vector<std::string_view> names;
  for (const Word& one : kWords) names.push_back(one.name);
  const std::string_view near = base::nearest(arguments.front(), names);
  return report(context,
                base::refuse("read the arguments", arguments.front(), "no such word of task",
                             near.empty() ? "see 'belljar task --help'" : "did you mean " + std::string(near) + "?")
                    .error());
}

}  // namespace belljar::cli
