#include "tiers/docker/image/setup.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "tiers/docker/image/archive.h"

namespace belljar::tiers::docker::image {
namespace {

// A version's own letters: what stands beside it must be none of them, so that 1.2 is not found in 11.2.3. A `v` before
// it belongs to nobody.
bool is_of_version(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z' && c != 'v') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == '+';
}

bool holds_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool starts = at == 0 || !is_of_version(text[at - 1]);
    if (starts && (end == text.size() || !is_of_version(text[end]))) return true;
  }
  return false;
}

std::string unpack(const Lock& lock, size_t package) {
  const std::string folder = std::string(kAgentsFolder) + "/" + lock.packages[package].place;
  return "mkdir -p " + folder + "\ntar -xzof /" + kBuildFolder + "/" + std::to_string(archive_number(lock, package)) +
         ".tgz -C " + folder + " --strip-components=1\n";
}

}  // namespace

const char* install_script(const Package& package) {
  return package.name == "@anthropic-ai/claude-code" ? "install.cjs" : nullptr;
}

std::string setup_script(const Lock& lock) {
  const std::string agents = kAgentsFolder;
  const std::string uid = std::to_string(kAgentUid);
  std::string out =
      "set -eu\numask 022\n"
      "if [ -e " +
      agents + " ]; then echo 'the base has " + agents +
      " already' >&2; exit 1; fi\n"
      "if grep -q '^\\(agent:\\|[^:]*:[^:]*:" +
      uid +
      ":\\)' /etc/passwd /etc/group; then\n"
      "  echo 'the base has a user or group agent, or one of id " +
      uid +
      ", already' >&2; exit 1\nfi\n"
      "echo 'agent:x:" +
      uid + ":" + uid +
      "::/home/agent:/bin/sh' >>/etc/passwd\n"
      "echo 'agent:x:" +
      uid +
      ":' >>/etc/group\n"
      "mkdir -p /home/agent /work " +
      agents + " " + kProgramsFolder + "\n";
  for (size_t i = 0; i < lock.packages.size(); ++i) out += unpack(lock, i);
  out += "chmod -R u+rwX,go+rX,go-w,a-s " + agents + "\n";
  for (const Package& package : lock.packages) {
    if (!package.asked_for) continue;
    for (const auto& [name, file] : package.programs) {
      const std::string path = agents + "/" + package.place + "/" + file;
      out += "chmod 755 " + path + "\nln -s " + path + " " + kProgramsFolder + "/" + name + "\n";
    }
  }
  for (const Package& package : lock.packages) {
    if (const char* const script = install_script(package)) {
      out += "(cd " + agents + "/" + package.place + " && " + kProgramsFolder + "/node " + script + ")\n";
    }
  }
  return out + "rm -rf /" + kBuildFolder + "\n";
}

std::vector<Tool> tools_of(const Lock& lock) {
  std::vector<Tool> out{{"tar", ""}, {"git", ""}};
  for (const Package& package : lock.packages) {
    if (!package.asked_for) continue;
    for (const auto& [name, file] : package.programs) out.push_back({name, package.version});
  }
  return out;
}

std::string check_script(const std::vector<Tool>& tools) {
  std::string out = "set -eu\nif [ \"$(id -u)\" = 0 ]; then echo 'this is root' >&2; exit 1; fi\n";
  for (const Tool& tool : tools) out += "echo '> " + tool.name + "'\n" + tool.name + " --version </dev/null\n";
  return out;
}

base::Status check_versions(const std::vector<Tool>& tools, const std::string& output) {
  std::map<std::string, std::string, std::less<>> said;
  std::string tool;
  for (const std::string_view line : base::split(output, '\n')) {
    if (line.starts_with("> ")) {
      tool = line.substr(2);
      continue;
    }
    // The first line is the version; a later one may name those of libraries.
    std::string& text = said[tool];
    if (text.empty()) text = line;
  }
  for (const Tool& one : tools) {
    const std::string& found = said[one.name];
    if (found.empty() || (!one.version.empty() && !holds_word(found, one.version))) {
      return base::refuse(
          "check the image", one.name,
          "it calls itself '" + found + "', not " + (one.version.empty() ? "anything" : one.version) + ", refusing");
    }
  }
  return {};
}

}  // namespace belljar::tiers::docker::image
