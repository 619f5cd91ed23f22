#include "plan/program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/path.h"
#include "base/text.h"
#include "plan/system_mounts.h"

namespace belljar::plan {
namespace {

// Folders under which version managers keep one self-contained tree each. `*` is one component.
struct Layout {
  std::vector<std::string_view> parts;
  std::string_view name;
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {{".nvm", "versions", "node", "*"}, "nvm"},
      {{"nvm", "versions", "node", "*"}, "nvm"},
      {{".fnm", "node-versions", "*"}, "fnm"},
      {{"fnm", "node-versions", "*"}, "fnm"},
      {{".volta"}, "volta"},
      {{".asdf", "installs", "*", "*"}, "asdf"},
      {{"mise", "installs", "*", "*"}, "mise"},
      {{".pyenv", "versions", "*"}, "pyenv"},
      {{"uv", "python", "*"}, "uv"},
      {{"uv", "tools", "*"}, "uv"},
      {{"pipx", "venvs", "*"}, "pipx"},
      {{".rustup", "toolchains", "*"}, "rustup"},
      {{".sdkman", "candidates", "*", "*"}, "sdkman"},
      {{".local", "share", "pnpm"}, "pnpm"},
      {{".linuxbrew"}, "linuxbrew"},
  };
  return all;
}

// The prefix of `path` that ends with the first match of `layout`, or empty. Something must lie below it.
std::string match(const std::vector<std::string_view>& parts, const Layout& layout) {
  const size_t length = layout.parts.size();
  for (size_t start = 1; start + length < parts.size(); ++start) {
    const bool same =
        std::equal(layout.parts.begin(), layout.parts.end(), parts.begin() + static_cast<long>(start),
                   [](std::string_view want, std::string_view got) { return want == "*" || want == got; });
    if (!same) continue;
    std::string out;
    for (size_t i = 1; i < start + length; ++i) out += "/" + std::string(parts[i]);
    return out;
  }
  return {};
}

// Below the home. What is kept here is a person's identity elsewhere.
constexpr std::array kCredentials = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".password-store",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/op",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".terraform.d",
    ".vault-token",
};

// A program in the agent's own settings folder would be the agent's to rewrite, and the person's to run next time.
void keep_from_agent(Draft& draft, const ProgramFile& file, const std::string& name) {
  const Mount* cover = draft.table.covering(file.file.real);
  if (!draft.table.writes(file.file.real) || cover->target == draft.facts.work_folder ||
      cover->reason == kWriteReason) {
    return;
  }
  const ProgramRoot root = program_root(file);
  if (!base::is_within(root.path, cover->target) || root.path == cover->target) return;
  draft.table.add({.kind = MountKind::kReadOnly, .target = root.path, .reason = "program " + name});
}

// True when an agent of an earlier session may have led the launch to this file, so that it would show a later guest a
// file of the host's: by a link, or by the first line of a script, in a folder that it could write.
bool led_by_guest(const MountTable& table, const ProgramFile& file) {
  return table.writes(file.script) || table.made_by_guest(file.file.links) != nullptr;
}

base::Status add_tree(Draft& draft, const ProgramFile& file, const ProgramRoot& root, const PathFact& owner,
                      const std::string& name) {
  if (is_private(root.path, draft.real_home)) {
    return base::refuse("run", file.path, "its files in '" + root.path + "' lie beside credentials, refusing",
                        "install the program elsewhere");
  }
  if (!root.known && led_by_guest(draft.table, file)) {
    return base::refuse("run", file.path,
                        "a link or script in a folder the agent can write leads to '" + root.path + "', refusing",
                        "run it by its own path, or add --read for it");
  }
  const std::string reason = "program " + name + (root.reason.empty() ? "" : " (" + root.reason + ")");
  draft.table.add({.target = root.path, .source = root.path, .idmap = draft.maps(owner), .reason = reason});
  return {};
}

base::Status add_file(Draft& draft, const ProgramFile& file, const std::string& name) {
  if (draft.table.shows(file.file.real)) {
    keep_from_agent(draft, file, name);
  } else {
    BELLJAR_TRY(add_tree(draft, file, program_root(file), file.file, name));
  }
  // An environment whose python is a link out of it is found by its own file beside the link.
  if (file.venv.kind == FileKind::kFolder && !draft.table.shows(file.venv.real)) {
    BELLJAR_TRY(add_tree(draft, file, {file.venv.real, "Python environment"}, file.venv, name));
  }
  draft.table.add_links(file.file.links, "leads to " + name);
  return {};
}

}  // namespace

ProgramRoot program_root(const ProgramFile& file) {
  const std::string& real = file.file.real;
  const auto parts = base::split(real, '/');
  for (const Layout& layout : layouts()) {
    if (std::string found = match(parts, layout); !found.empty()) {
      return {std::move(found), std::string(layout.name) + " version", true};
    }
  }
  const std::string_view modules = "/node_modules/";
  if (const size_t at = real.find(modules); at != std::string::npos) {
    return {real.substr(0, at + modules.size() - 1), "npm packages", false};
  }
  if (base::is_within(real, file.venv.real) && file.venv.kind == FileKind::kFolder)
    return {file.venv.real, "Python environment", false};
  if (!file.package.empty()) return {file.package, "npm package", false};
  return {real, "", false};
}

bool is_credential(std::string_view path, std::string_view home) {
  return std::ranges::any_of(kCredentials,
                             [&](const char* name) { return base::is_within(path, std::string(home) + "/" + name); });
}

bool is_private(std::string_view path, std::string_view home) {
  if (path == "/" || base::is_within(home, path) || is_credential(path, home)) return true;
  return std::ranges::any_of(kCredentials,
                             [&](const char* name) { return base::is_within(std::string(home) + "/" + name, path); });
}

base::Status check_program(const ProgramFact& program, const std::string& name) {
  if (program.state == ProgramFact::State::kNotExecutable) {
    return std::unexpected(base::Error{"find the command", name, EACCES, "it is not an executable file", {}});
  }
  if (program.state == ProgramFact::State::kNotFound || program.files.empty()) {
    const char* why = name.contains('/') ? "no such program" : "no such program in PATH";
    return std::unexpected(base::Error{"find the command", name, ENOENT, why, {}});
  }
  return {};
}

base::Status add_program(Draft& draft, const std::string& name) {
  const ProgramFact& program = draft.facts.program;
  BELLJAR_TRY(check_program(program, name));
  for (const ProgramFile& file : program.files) BELLJAR_TRY(add_file(draft, file, name));
  for (const std::string& missing : program.missing) {
    draft.notes.push_back("the interpreter '" + missing + "' of " + name + " was not found");
  }
  return {};
}

}  // namespace belljar::plan
