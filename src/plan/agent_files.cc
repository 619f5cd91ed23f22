#include "plan/agent_files.h"

#include <algorithm>
#include <utility>

#include "base/path.h"
#include "plan/user_mounts.h"

namespace belljar::plan {
namespace {

constexpr size_t kLongestProjectName = 200;

bool is_plain(unsigned char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
}

// True when every placeholder of `text` had a value.
bool fill_in(std::string& text, std::string_view name, const std::string& value) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
    if (value.empty()) return false;
    text.replace(at, name.size(), value);
  }
  return true;
}

class Files {
 public:
  explicit Files(Draft& draft) : draft_(draft), who_("agent " + draft.policy.agent.name) {}

  // `obeyed`: what of the agent's a later run obeys.
  base::Status add_history(const AgentPath& asked, const std::vector<AgentPath>& obeyed);
  base::Status add_marker(const AgentPath& asked);
  base::Status add_obeyed(const AgentPath& asked);
  base::Status add_copy(const AgentPath& asked, KeptKind kind, const std::vector<std::string>& keys);

 private:
  // Where the guest has it: at the same name in its own home, whatever links the host has on the way.
  [[nodiscard]] std::string inside(const AgentPath& asked) const {
    return draft_.real_home + asked.path.substr(draft_.facts.home.size());
  }
  void note(std::string text) { draft_.notes.push_back(std::move(text)); }
  // True when the fact lies in something that the guest can write anyway, or a link to it does.
  base::Status refuse_exposed(const AgentPath& asked, const PathFact& fact) const;
  void keep(const AgentPath& asked, KeptKind kind, const PathFact& fact, const std::vector<std::string>& keys = {}) {
    draft_.kept.push_back({kind, fact.real, inside(asked), keys});
  }
  [[nodiscard]] bool in_bound_history(const std::string& target) const;
  [[nodiscard]] bool in_new_history(const std::string& target) const;
  // True when the way to `fact` leads over a link that a guest may have left in the history.
  [[nodiscard]] bool led_by_history(const PathFact& fact) const;

  struct Bound {
    std::string target;
    std::string source;
  };
  Draft& draft_;
  std::string who_;
  std::vector<Bound> history_;  // the host's own, writable
};

base::Status Files::refuse_exposed(const AgentPath& asked, const PathFact& fact) const {
  const bool history = in_bound_history(inside(asked));
  const LinkFact* link = draft_.table.made_by_guest(fact.links);
  if (link == nullptr && (!draft_.table.writes(fact.real) || history)) return {};
  return base::refuse(who_, asked.text, "it leads to '" + fact.real + "', by way of what the agent can write, refusing",
                      "keep it outside of the folders that the agent may write, or set files.home = \"empty\"");
}

bool Files::in_bound_history(const std::string& target) const {
  return std::ranges::any_of(history_, [&](const Bound& bound) { return base::is_within(target, bound.target); });
}

bool Files::in_new_history(const std::string& target) const {
  return std::ranges::any_of(draft_.kept, [&](const Kept& kept) {
    return kept.kind == KeptKind::kHistory && base::is_within(target, kept.inside);
  });
}

bool Files::led_by_history(const PathFact& fact) const {
  return std::ranges::any_of(fact.links, [&](const LinkFact& link) {
    return std::ranges::any_of(history_, [&](const Bound& bound) { return base::is_within(link.path, bound.source); });
  });
}

base::Status Files::add_history(const AgentPath& asked, const std::vector<AgentPath>& obeyed) {
  const auto lies_in_it = [&](const AgentPath& each) { return base::is_within(each.path, asked.path); };
  if (draft_.policy.isolation.nested && std::ranges::any_of(obeyed, lies_in_it)) {
    note(asked.text + " was left out: with nested = true nothing keeps what is obeyed in it in its place");
    return {};
  }
  const PathFact fact = draft_.fact(asked.path);
  if (const std::string why = never_writable(draft_, fact.real); !why.empty()) {
    return base::refuse(who_, asked.text, "it leads to '" + fact.real + "': " + why + ", refusing",
                        "make it a folder of its own");
  }
  BELLJAR_TRY(refuse_exposed(asked, fact));
  if (fact.kind == FileKind::kAbsent) {
    keep(asked, KeptKind::kHistory, fact);
    return {};
  }
  const std::string why = is_special(fact.kind) ? "it is a socket, FIFO or device" : unmappable(draft_, fact);
  if (!why.empty()) {
    note(asked.text + " was left out: " + why);
    return {};
  }
  history_.push_back({inside(asked), fact.real});
  if (fact.kind == FileKind::kFolder) draft_.histories.push_back(fact.real);
  draft_.table.add({.target = inside(asked),
                    .source = fact.real,
                    .writable = true,
                    .idmap = draft_.identity.idmap,
                    .reason = "history of " + draft_.policy.agent.name});
  return {};
}

base::Status Files::add_obeyed(const AgentPath& asked) {
  const PathFact fact = draft_.fact(asked.path);
  const std::string target = inside(asked);
  // Else a guest of an earlier session would be shown what its link leads to.
  if (led_by_history(fact)) {
    note(asked.text + " is a link in the agent's history and was left out");
    return {};
  }
  BELLJAR_TRY(refuse_exposed(asked, fact));
  if (fact.kind == FileKind::kAbsent) {
    if (in_bound_history(target) || in_new_history(target)) keep(asked, KeptKind::kForbidden, fact);
    return {};
  }
  if (is_special(fact.kind)) return {};
  draft_.held.push_back(target);
  draft_.table.add({.target = target,
                    .source = fact.real,
                    .idmap = draft_.maps(fact),
                    .reason = "settings of " + draft_.policy.agent.name + ", as any later run obeys them"});
  return {};
}

// Where it is missing the guest has it for this session, and the host from then on.
base::Status Files::add_marker(const AgentPath& asked) {
  const PathFact fact = draft_.fact(asked.path);
  if (!asked.text.ends_with(kFolderMarker) || fact.kind != FileKind::kAbsent) return {};
  BELLJAR_ASSIGN(std::string start, start_folder(draft_.facts, draft_.request));
  draft_.table.add(
      {.kind = MountKind::kFile, .target = inside(asked), .source = start, .reason = "whose history it is"});
  draft_.folder_marker = FolderMarker{fact.real, std::move(start)};
  return {};
}

base::Status Files::add_copy(const AgentPath& asked, KeptKind kind, const std::vector<std::string>& keys) {
  const PathFact fact = draft_.fact(asked.path);
  BELLJAR_TRY(refuse_exposed(asked, fact));
  if (fact.kind == FileKind::kFolder || is_special(fact.kind)) {
    note(asked.text + " is not a file and was left out");
    return {};
  }
  // Root can read anybody's: the guest gets what belongs to the one it works for.
  if (fact.kind == FileKind::kFile && draft_.facts.root && fact.uid != draft_.identity.disk_uid) {
    note(asked.text + " was left out, so " + draft_.policy.agent.name +
         " has no login or settings from there: " + unmappable(draft_, fact) + " (start belljar as the owner of both)");
    return {};
  }
  keep(asked, kind, fact, keys);
  if (fact.kind == FileKind::kAbsent) return {};
  draft_.table.add({.kind = MountKind::kCopy,
                    .target = inside(asked),
                    .source = fact.real,
                    .writable = true,
                    .reason = kind == KeptKind::kState ? "a copy; the host takes back what the preset names"
                                                       : "a copy of a login; the host takes it back"});
  return {};
}

}  // namespace

std::string project_name(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size();) {
    const auto byte = static_cast<unsigned char>(path[i]);
    const size_t length = byte < 0xC2 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 1;
    const bool whole =
        i + length <= path.size() &&
        std::all_of(path.begin() + static_cast<long>(i) + 1, path.begin() + static_cast<long>(i + length),
                    [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; });
    if (is_plain(byte)) {
      out += path[i];
    } else {
      out.append(whole && length == 4 ? 2 : 1, '-');
    }
    i += whole ? length : 1;
  }
  return out.size() > kLongestProjectName ? std::string() : out;
}

std::string folder_name(std::string_view path) {
  std::string out;
  for (const char c : base::name_of(path)) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte)) {
      out += static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
    } else if (!out.ends_with('-')) {
      out += '-';
    }
  }
  if (out.starts_with('-')) out.erase(0, 1);
  if (out.ends_with('-')) out.pop_back();
  return out.empty() ? "project" : out;
}

base::Result<std::string> start_folder(const Facts& facts, const Request& request) {
  if (request.chdir.empty()) return facts.work_folder;
  return expand_path(request.chdir, facts.home, facts.work_folder);
}

base::Result<std::vector<AgentPath>> agent_paths(const std::vector<std::string>& texts, const Facts& facts,
                                                 const Request& request) {
  BELLJAR_ASSIGN(const std::string start, start_folder(facts, request));
  const std::string folder = facts.agent_folder.value_or(folder_name(start));
  std::vector<AgentPath> out;
  if (facts.home.empty()) return out;
  for (const std::string& text : texts) {
    std::string filled = text;
    if (!fill_in(filled, "{project}", project_name(start)) || !fill_in(filled, "{folder}", folder)) continue;
    BELLJAR_ASSIGN(std::string path, expand_path(filled, facts.home, facts.work_folder));
    if (base::is_within(path, facts.home) && path != facts.home) out.push_back({text, std::move(path)});
  }
  return out;
}

base::Status add_agent_files(Draft& draft) {
  const policy::Agent& agent = draft.policy.agent;
  const bool nothing = agent.config_dirs.empty() && agent.config_files.empty() && agent.obeyed.empty() &&
                       agent.history.empty() && agent.state_file.empty();
  if (nothing) return {};
  // What it keeps there is the home's own.
  if (draft.shared_home) return {};
  if (!draft.own_home) {
    draft.notes.push_back("without a home of the person's, " + agent.name + " has no login and no settings");
    return {};
  }
  for (const std::string& text : agent.config_dirs) BELLJAR_TRY(add_config_folder(draft, text));
  const auto paths = [&](const std::vector<std::string>& texts) {
    return agent_paths(texts, draft.facts, draft.request);
  };
  Files files(draft);
  BELLJAR_ASSIGN(const auto history, paths(agent.history));
  BELLJAR_ASSIGN(const auto obeyed, paths(agent.obeyed));
  for (const AgentPath& asked : history) BELLJAR_TRY(files.add_history(asked, obeyed));
  for (const AgentPath& asked : obeyed) BELLJAR_TRY(files.add_obeyed(asked));
  for (const AgentPath& asked : obeyed) BELLJAR_TRY(files.add_marker(asked));
  BELLJAR_ASSIGN(const auto logins, paths(agent.config_files));
  for (const AgentPath& asked : logins) BELLJAR_TRY(files.add_copy(asked, KeptKind::kLogin, {}));
  if (agent.state_file.empty()) return {};
  BELLJAR_ASSIGN(const auto state, paths({agent.state_file}));
  for (const AgentPath& asked : state) BELLJAR_TRY(files.add_copy(asked, KeptKind::kState, agent.state_keys));
  return {};
}

}  // namespace belljar::plan
