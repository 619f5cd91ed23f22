#include "cli/quarantine_command.h"

#include <sys/stat.h>

#include <array>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/policy_options.h"
#include "session/state_folder.h"
#include "workspace/quarantine_store.h"

namespace belljar::cli {
namespace {

constexpr const char* kQuarantineHelp =
    "Usage: belljar quarantine ls\n"
    "       belljar quarantine restore [--to PATH] ID\n"
    "       belljar quarantine drop ID...\n"
    "       belljar quarantine drop --all\n"
    "What agents made that programs of this host would obey, and that was put away when their sessions ended. Look at "
    "a\n"
    "thing before you restore it: git, editors and shells do what it says.\n\n"
    "Examples:\n"
    "  belljar quarantine ls\n"
    "  belljar quarantine restore 3f0c5b1e9a2d4c78/0001\n"
    "  belljar quarantine restore --to ~/look-at-it 3f0c5b1e9a2d4c78/0001\n\n"
    "Options:\n";

struct QuarantineOptions {
  std::optional<std::string> to;
  bool all = false;
  bool help = false;
  std::vector<std::string> words;
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "folder";
  if (S_ISREG(mode)) return "file";
  return S_ISLNK(mode) ? "link" : "other";
}

std::string line_of(const workspace::QuarantineItem& item) {
  tm parts{};
  const auto since = static_cast<time_t>(item.since);
  ::localtime_r(&since, &parts);
  std::array<char, 32> when{};
  std::strftime(when.data(), when.size(), "%Y-%m-%d %H:%M", &parts);
  std::string kind = kind_of(item.mode);
  kind.resize(6, ' ');
  return item.id + "  " + when.data() + "  " + kind + "  " + base::escape(item.origin) + "\n";
}

base::Result<workspace::QuarantineStore> open_store() {
  const std::string sessions = session::state_path();
  if (sessions.empty()) {
    return base::refuse("open the quarantine", "", "neither XDG_STATE_HOME nor HOME says where it is", "set HOME");
  }
  return workspace::QuarantineStore::open(session::quarantine_path(sessions));
}

base::Result<std::string> list(const workspace::QuarantineStore& store) {
  BELLJAR_ASSIGN(const auto items, store.list());
  std::string out;
  for (const workspace::QuarantineItem& item : items) out += line_of(item);
  return out;
}

base::Result<std::string> restore(const workspace::QuarantineStore& store, const QuarantineOptions& asked) {
  if (asked.words.size() != 2) return base::refuse("read the arguments", "restore", "it takes one ID", "see ls");
  BELLJAR_ASSIGN(const workspace::QuarantineItem item, store.find(asked.words[1]));
  std::string to;
  if (asked.to) {
    // Links on the way are the person's own; what it is called there is new.
    const size_t slash = asked.to->rfind('/');
    const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : asked.to->substr(0, slash);
    const std::string leaf = asked.to->substr(slash == std::string::npos ? 0 : slash + 1);
    if (leaf.empty() || leaf == "." || leaf == "..") {
      return base::refuse("restore", *asked.to, "it is no name for something new", "say what it should be called");
    }
    BELLJAR_ASSIGN(std::string folder, base::real_path(parent));
    if (!folder.ends_with('/')) folder += '/';
    to = folder + leaf;
  }
  BELLJAR_ASSIGN(const std::string at, store.restore(item, to));
  return "restored '" + base::escape(at) + "'\n";
}

base::Result<std::string> drop(const workspace::QuarantineStore& store, const QuarantineOptions& asked) {
  std::vector<workspace::QuarantineItem> items;
  if (!asked.all && asked.words.size() < 2) {
    return base::refuse("read the arguments", "drop", "no ID is given", "name them, or say --all");
  }
  for (size_t i = 1; i < asked.words.size(); ++i) {
    BELLJAR_ASSIGN(workspace::QuarantineItem item, store.find(asked.words[i]));
    items.push_back(std::move(item));
  }
  std::string out;
  do {
    // As many as the store tells at a time.
    if (asked.all) {
      BELLJAR_ASSIGN(items, store.list());
    }
    for (const workspace::QuarantineItem& item : items) {
      BELLJAR_TRY(store.drop(item));
      out += "dropped " + item.id + "\n";
    }
  } while (asked.all && !items.empty());
  return out;
}

base::Result<std::string> carry_out(const QuarantineOptions& asked) {
  const std::string word = asked.words.empty() ? "ls" : asked.words.front();
  if (asked.to && word != "restore") return base::refuse("read the arguments", "--to", "only restore takes it");
  if (asked.all && word != "drop") return base::refuse("read the arguments", "--all", "only drop takes it");
  BELLJAR_ASSIGN(const workspace::QuarantineStore store, open_store());
  if (word == "ls" && asked.words.size() <= 1) return list(store);
  if (word == "restore") return restore(store, asked);
  if (word == "drop") return drop(store, asked);
  return base::refuse("read the arguments", word == "ls" ? asked.words[1] : word, "ls, restore or drop is expected",
                      "belljar quarantine --help");
}

}  // namespace

int quarantine_command(const Context& context, std::span<const std::string> arguments) {
  QuarantineOptions asked;
  const std::vector<Option> options{{"--to", "PATH", "put it there, not where it was", keep(asked.to)},
                                    {"--all", "", "drop everything", turn_on(asked.all)},
                                    {"--help", "", "this page", turn_on(asked.help)}};
  auto words = parse_word_and_options(arguments, options);
  if (!words) return report(context, words.error());
  asked.words = std::move(*words);
  if (asked.help) return print(context, kQuarantineHelp + options_help(options));
  const auto text = carry_out(asked);
  return text ? print(context, *text) : report(context, text.error());
}

}  // namespace belljar::cli
