#include "plan/toolchains.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/path.h"
#include "plan/program.h"
#include "plan/user_mounts.h"

namespace belljar::plan {
namespace {

constexpr size_t kLongestName = 200;  // a component has at most 255 bytes

// Where programs keep what they download and compile, and the name of it in the project's cache.
constexpr std::array<std::array<std::string_view, 2>, 7> kCaches = {{{"/.cache", "cache"},
                                                                     {"/.cargo/registry", "cargo-registry"},
                                                                     {"/.cargo/git", "cargo-git"},
                                                                     {"/.npm", "npm"},
                                                                     {"/go/pkg", "go-pkg"},
                                                                     {"/.gradle", "gradle"},
                                                                     {"/.m2/repository", "maven"}}};

void add_tree(Draft& draft, const PathFact& fact, const std::string& path, const std::string& reason) {
  if (is_private(path, draft.real_home)) {
    draft.notes.push_back("'" + path + "' was left out: credentials lie in or beside it");
    return;
  }
  draft.table.add({.target = path, .source = path, .idmap = draft.maps(fact), .reason = reason});
}

bool off(const Draft& draft) {
  const policy::Files& files = draft.policy.files;
  return files.toolchains == policy::Toolchains::kNone || files.home == policy::Home::kEmpty || !draft.own_home ||
         draft.shared_home;
}

// A guest that could write where a tool lies could have put anything in its place.
bool led_by_guest(Draft& draft, const PathFact& fact) {
  return draft.table.made_by_guest(fact.links) != nullptr || draft.table.writes(fact.real);
}

void add_linked(Draft& draft, const PathFact& fact) {
  if (fact.kind == FileKind::kAbsent || draft.table.shows(fact.real) || led_by_guest(draft, fact)) return;
  // Only what lies in the home: what a link shows elsewhere is in view, or is not a program of the person's.
  if (!base::is_within(fact.real, draft.real_home)) return;
  const ProgramRoot root = program_root({.path = fact.real, .file = fact});
  add_tree(draft, fact, root.path, "a program in " + std::string(kLinkFolder) + " leads here");
  draft.table.add_links(fact.links, "leads to a program");
}

}  // namespace

const std::vector<std::string_view>& toolchain_folders() {
  // Never a folder above these: .cargo holds credentials.toml, .sdkman and .gradle settings, and so on.
  static const std::vector<std::string_view> all = {
      "~/.cargo/bin",
      "~/.rustup",
      "~/.nvm/versions",
      "~/.nvm/alias",
      "~/.fnm",
      "~/.local/share/fnm",
      "~/.volta/bin",
      "~/.volta/tools",
      "~/.asdf/bin",
      "~/.asdf/lib",
      "~/.asdf/shims",
      "~/.asdf/installs",
      "~/.asdf/plugins",
      "~/.local/share/mise/installs",
      "~/.local/share/mise/shims",
      "~/.pyenv",
      "~/.rbenv",
      "~/.local/share/uv/python",
      "~/.local/share/uv/tools",
      "~/.local/share/pipx/venvs",
      "~/.local/pipx/venvs",
      "~/go/bin",
      "~/sdk",
      "~/.sdkman/candidates",
      "~/.bun/bin",
      "~/.deno/bin",
      "~/.dotnet",
      "~/.juliaup/bin",
      "~/.local/share/pnpm",
      "~/.npm-global/bin",
      "~/.npm-global/lib",
      "~/.local/lib/node_modules",
      "~/.linuxbrew",
      "~/.local/bin",
  };
  return all;
}

bool is_tool_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 13> kNames = {
      ".npmrc",  "npmrc",       ".netrc",           "_netrc",       ".pypirc",           "pip.conf",    "pip.ini",
      ".yarnrc", ".yarnrc.yml", ".git-credentials", "nuget.config", "gradle.properties", "settings.xml"};
  if (std::ranges::find(kNames, name) != kNames.end()) return true;
  if (!name.starts_with("credentials") && !name.starts_with("auth")) return false;
  // Programs and libraries have such names too, and hold none.
  static constexpr std::array<std::string_view, 8> kData = {"", "json", "toml", "yaml", "yml", "xml", "ini", "conf"};
  const size_t dot = name.find('.');
  const std::string_view ending = dot == std::string_view::npos ? "" : name.substr(name.rfind('.') + 1);
  return std::ranges::find(kData, ending) != kData.end();
}

void add_toolchains(Draft& draft) {
  if (off(draft)) return;
  for (const std::string_view text : toolchain_folders()) {
    const std::string path = draft.facts.home + std::string(text.substr(1));
    const PathFact fact = draft.fact(path);
    if (fact.kind != FileKind::kFolder || draft.table.shows(fact.real) || draft.table.at(fact.real) != nullptr)
      continue;
    if (std::ranges::find(draft.facts.tools_unseen, fact.real) != draft.facts.tools_unseen.end()) {
      draft.notes.push_back(std::string(text) +
                            " was left out: it has too many files to look for logins in (name what is needed of it "
                            "under files.read)");
      continue;
    }
    if (led_by_guest(draft, fact)) {
      draft.notes.push_back(std::string(text) + " was left out: the agent could have led there, or can write it");
      continue;
    }
    add_tree(draft, fact, fact.real, "what is built with");
    draft.table.add_links(fact.links, "leads to " + std::string(text));
  }
  for (const PathFact& fact : draft.facts.tool_links) add_linked(draft, fact);
  for (const std::string& path : draft.facts.tool_secrets) {
    if (!draft.table.shows(path) || draft.table.at(path) != nullptr) continue;
    draft.table.add({.kind = MountKind::kMask, .target = path, .optional = true, .reason = "may hold a login"});
  }
}

void add_caches(Draft& draft) {
  if (off(draft) || draft.facts.cache_folder.empty()) {
    return;
  }
  const PathFact home = draft.fact(draft.facts.home);
  const bool inside = base::is_within(draft.facts.cache_folder, draft.facts.home);
  // Its file system is that of the home, or one nobody has asked about.
  if (draft.identity.idmap && !(inside && home.idmap_possible)) {
    draft.notes.emplace_back(
        "package caches are the session's own: belljar's cache folder cannot be mapped to the agent's id");
    return;
  }
  // A folder that lies deep has a name that is longer than itself.
  constexpr size_t kMostPath = 3000;
  const std::string project = draft.facts.cache_folder + "/projects/" + cache_name(draft.facts.work_folder);
  if (project.size() > kMostPath) {
    draft.notes.emplace_back(
        "package caches are the session's own: the path of the work folder is too long to name them");
    return;
  }
  for (const auto& [target, name] : kCaches) {
    const std::string path = draft.real_home + std::string(target);
    const Mount* cover = draft.table.covering(path);
    // The policy gives another one, or the work folder lies there.
    if (cover == nullptr || cover->kind != MountKind::kScratch || draft.table.below(path) != nullptr) continue;
    const std::string source = project + "/" + std::string(name);
    draft.caches.push_back(source);
    draft.table.add({.target = path,
                     .source = source,
                     .writable = true,
                     .idmap = draft.identity.idmap,
                     .optional = true,
                     .reason = "caches of this project's guests"});
  }
}

std::string cache_name(std::string_view work_folder) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  size_t length = 0;
  for (const char c : work_folder.substr(1)) {
    std::string part(1, c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (c == '/') {
      part = "-";
    } else if (!plain) {
      const auto byte = static_cast<unsigned char>(c);
      part = std::string("_") + kDigits[byte >> 4U] + kDigits[byte & 15U];
    }
    if (length + part.size() > kLongestName) {
      out += '/';
      length = 0;
    }
    out += part;
    length += part.size();
  }
  // No path gives a '=', so nothing that belongs to another project can have this name.
  return out + "/=";
}

}  // namespace belljar::plan
