#include "session/special_facts.h"

#include <fcntl.h>
#include <linux/openat2.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "workspace/protected.h"

namespace belljar::session {
namespace {

constexpr size_t kMostUnixText = size_t{16} << 20U;

// The real paths of folders that the policy names outside of the work folder, none within another.
std::vector<std::string> named_folders(const policy::Policy& policy, const plan::Facts& facts) {
  std::vector<std::string> out;
  for (const auto* list : {&policy.files.read, &policy.files.write}) {
    for (const std::string& text : *list) {
      const auto path = plan::expand_path(text, facts.home, facts.work_folder);
      const auto fact = path ? facts.paths.find(*path) : facts.paths.end();
      if (fact == facts.paths.end() || fact->second.kind != plan::FileKind::kFolder) continue;
      const std::string& real = fact->second.real;
      if (!base::is_within(real, facts.work_folder) && is_to_be_looked_through(real, facts)) out.push_back(real);
    }
  }
  std::ranges::sort(out);
  std::vector<std::string> outermost;
  for (std::string& path : out) {
    if (outermost.empty() || !base::is_within(path, outermost.back())) outermost.push_back(std::move(path));
  }
  return outermost;
}

// Folders of the host that no guest gets unless the policy names them.
bool may_be_given(const std::string& path, const std::vector<std::string>& named) {
  static constexpr std::array kNever = {"/run", "/var", "/tmp", "/dev", "/proc", "/sys"};
  const auto holds = [&](const auto& folder) { return base::is_within(path, folder); };
  return std::ranges::none_of(kNever, holds) || std::ranges::any_of(named, holds);
}

// One socket a line: seven fields, then the path that it was bound to, if any.
std::vector<std::string> bound_sockets(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view line : base::split(text, '\n')) {
    const size_t at = line.find(" /");
    if (at != std::string_view::npos) out.emplace_back(line.substr(at + 1));
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

}  // namespace

bool is_to_be_looked_through(const std::string& folder, const plan::Facts& facts) {
  if (folder == "/" || (!facts.home.empty() && base::is_within(facts.home, folder))) return false;
  return !base::is_within(folder, "/proc") && !base::is_within(folder, "/sys") && !base::is_within(folder, "/dev");
}

base::Status gather_special_files(const policy::Policy& policy, plan::Facts& facts, Walker& walker) {
  const std::vector<std::string> named = named_folders(policy, facts);
  for (const std::string& folder : named) {
    // What cannot be opened here is refused, or told of, where it is bound.
    const auto root = base::open_resolved(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    if (!root) continue;
    BELLJAR_ASSIGN(std::vector<workspace::Special> found, workspace::find_special(root->get()));
    for (const workspace::Special& each : found) facts.special_files.push_back({folder + "/" + each.path, each.socket});
  }
  if (const auto text = base::read_file("/proc/net/unix", kMostUnixText)) {
    for (const std::string& path : bound_sockets(*text)) {
      const bool seen = may_be_given(path, named) || base::is_within(path, facts.work_folder);
      if (base::normal_path(path) != path || !seen) continue;
      plan::PathFact fact = walker.walk(path);
      if (fact.kind == plan::FileKind::kSocket) facts.special_files.push_back({std::move(fact.real), true});
    }
  }
  std::ranges::sort(facts.special_files, {}, &plan::SpecialFile::path);
  const auto repeated = std::ranges::unique(facts.special_files, {}, &plan::SpecialFile::path);
  facts.special_files.erase(repeated.begin(), repeated.end());
  return {};
}

}  // namespace belljar::session
