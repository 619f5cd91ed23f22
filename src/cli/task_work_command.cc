#include "cli/task_work_command.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/text.h"
#include "cli/options.h"
#include "cli/policy_options.h"
#include "cli/tasks.h"
#include "workspace/work_commit.h"

namespace belljar::cli {
namespace {

constexpr auto kTime = std::chrono::minutes(10);
constexpr size_t kMostDiff = size_t{256} << 10U;

std::string list_of(const workspace::Manifest& manifest) {
  std::string out;
  for (const workspace::WorkChange& one : manifest.changes) {
    char mode[16];
    std::snprintf(mode, sizeof mode, "%06o", static_cast<unsigned>(one.mode));
    out += std::string(1, "AMD"[static_cast<size_t>(one.kind)]) + "  " + mode + "  " + std::to_string(one.size) + "  " +
           base::escape(one.path) + "\n";
  }
  for (const workspace::Objection& one : manifest.objections) {
    out += "!  " + base::escape(one.path) + ": " + one.reason + "\n";
  }
  return out;
}

// Each line by itself, tabs kept: what the agent wrote must not move the cursor otherwise.
std::string printable(const std::string& text) {
  std::string out;
  for (const std::string_view line : base::split(text, '\n')) {
    bool first = true;
    for (const std::string_view part : base::split(line, '\t')) {
      if (!first) out += '\t';
      first = false;
      out += base::escape(part);
    }
    out += '\n';
  }
  if (out.ends_with("\n\n")) out.pop_back();
  return out;
}

workspace::CommitWords words_of(const store::Task& task) {
  return {.branch = "belljar/" + task.id,
          .name = "Belljar task " + task.id,
          .mail = "task@belljar.invalid",
          .message = "Work of task " + task.id + "\n",
          .time = ::time(nullptr)};
}

base::Result<std::string> inspect(const std::string& id, const base::Deadline& deadline) {
  BELLJAR_ASSIGN(const Tasks tasks, Tasks::open());
  BELLJAR_ASSIGN(const LockedTask task, tasks.find(id));
  BELLJAR_ASSIGN(const TaskWork work, Tasks::read(task, deadline));
  std::string out = "task " + task.task.id + "\nbase " + work.manifest.base + "\n";
  out += list_of(work.manifest);
  if (work.manifest.objections.empty() && !work.manifest.changes.empty()) {
    BELLJAR_ASSIGN(
        const workspace::WorkCommit commit,
        workspace::WorkCommit::make(work.clone, work.manifest, words_of(task.task), task.folder + "/commit", deadline));
    BELLJAR_ASSIGN(const workspace::GitSaid diff, commit.diff(kMostDiff, deadline));
    out += "\n" + printable(diff.out);
    if (diff.was_cut) out += "… (the diff is longer than 256KiB)\n";
    out += "\n";
  }
  return out + "manifest " + work.manifest.digest() + "\n";
}

base::Result<std::string> export_manifest(const std::string& id, const base::Deadline& deadline) {
  BELLJAR_ASSIGN(const Tasks tasks, Tasks::open());
  BELLJAR_ASSIGN(const LockedTask task, tasks.find(id));
  BELLJAR_ASSIGN(const TaskWork work, Tasks::read(task, deadline));
  return manifest_json(task.task.id, work.manifest);
}

struct CommitWish {
  std::string manifest, message, author, to;
};

base::Status read_author(const std::string& author, workspace::CommitWords& words) {
  if (author.empty()) return {};
  const size_t open = author.find(" <");
  if (open == std::string::npos || !author.ends_with('>')) {
    return base::refuse("read the arguments", "--author", "it is not of the form 'Name <mail>'");
  }
  words.name = author.substr(0, open);
  words.mail = author.substr(open + 2, author.size() - open - 3);
  return {};
}

base::Result<std::string> commit(const std::string& id, const CommitWish& wish, const base::Deadline& deadline) {
  BELLJAR_ASSIGN(const Tasks tasks, Tasks::open());
  BELLJAR_ASSIGN(const LockedTask task, tasks.find(id));
  workspace::CommitWords words = words_of(task.task);
  BELLJAR_TRY(read_author(wish.author, words));
  words.message = wish.message + (wish.message.ends_with('\n') ? "" : "\n");
  BELLJAR_ASSIGN(const TaskWork work, Tasks::read(task, deadline));
  if (const std::string digest = work.manifest.digest(); digest != wish.manifest) {
    return base::refuse("make the commit", task.task.id,
                        "its work is not what was inspected: its manifest is " + digest + " now, refusing",
                        "look at it again: belljar task inspect " + task.task.id);
  }
  BELLJAR_ASSIGN(const workspace::WorkCommit made,
                 workspace::WorkCommit::make(work.clone, work.manifest, words, task.folder + "/commit", deadline));
  BELLJAR_TRY(made.bundle(wish.to, deadline));
  return made.id() + "\n";
}

// Of a command that takes one TASK and no options but --help.
int one_task(const Context& context, std::span<const std::string> arguments, const char* help,
             base::Result<std::string> (*run)(const std::string&, const base::Deadline&)) {
  if (arguments.size() != 1 || arguments.front().starts_with('-')) {
    if (!arguments.empty() && arguments.front() == "--help") return print(context, help);
    std::fputs(help, context.err);
    return kFailed;
  }
  const auto text = run(arguments.front(), base::Deadline::after(kTime));
  return text ? print(context, *text) : report(context, text.error());
}

}  // namespace

int task_inspect_command(const Context& context, std::span<const std::string> arguments) {
  return one_task(
      context, arguments,
      "Usage: belljar task inspect TASK\n"
      "What has changed in the task's checkout since its base: A added, M modified, D deleted, with mode and\n"
      "size; what no commit may hold is marked with !; then the diff, as far as 256KiB of it, and the digest\n"
      "of all of it, which 'belljar task commit' takes.\n",
      inspect);
}

int task_export_command(const Context& context, std::span<const std::string> arguments) {
  return one_task(context, arguments,
                  "Usage: belljar task export TASK\nThe same list, with each content's SHA-256, as JSON.\n",
                  export_manifest);
}

int task_commit_command(const Context& context, std::span<const std::string> arguments) {
  CommitWish wish;
  bool help = false;
  const std::vector<Option> options{
      {"--manifest", "DIGEST", "what 'belljar task inspect' printed last: nothing else is committed",
       keep(wish.manifest)},
      {"--message", "TEXT", "of the commit", keep(wish.message)},
      {"--author", "'NAME <MAIL>'", "of the commit (the task)", keep(wish.author)},
      {"--to", "FILE", "the bundle, a new file", keep(wish.to)},
      {"--help", "", "this page", turn_on(help)}};
  const auto words = parse_options(arguments, options);
  if (!words) return report(context, words.error());
  if (help) {
    return print(
        context,
        "Usage: belljar task commit --manifest DIGEST --message TEXT --to FILE TASK\n"
        "Makes a commit of the task's work on its base and writes it as a git bundle. Prints the commit's id.\n"
        "To take it: git fetch FILE belljar/TASK\n\nOptions:\n" +
            options_help(options));
  }
  for (const auto& [name, value] :
       {std::pair{"--manifest", &wish.manifest}, {"--message", &wish.message}, {"--to", &wish.to}}) {
    if (value->empty())
      return report(context, base::refuse("read the arguments", name, "it is missing", "see --help").error());
  }
  if (words->size() != 1)
    return report(context, base::refuse("read the arguments", "commit", "one TASK is expected").error());
  const auto id = commit(words->front(), wish, base::Deadline::after(kTime));
  return id ? print(context, *id) : report(context, id.error());
}

}  // namespace belljar::cli
