#include "docker/image_world.h"

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "docker/engine.h"
#include "support/process.h"
#include "tiers/docker/image/digest.h"

namespace belljar::testing {

using nlohmann::json;

std::vector<SmallPackage> ImageWorld::good_packages() {
  return {{"node-small",
           "1.2.3",
           // What is run by it is told by a file beside it.
           {{"node", "case $1 in --version) echo v1.2.3;; *) echo \"$1\" >>ran;; esac"}}},
          {"tool",
           "4.5.6",
           {{"tool", "case $1 in --version) echo 'tool 4.5.6 (small)';; *) echo \"uid $(id -u)\";; esac"}},
           {{"package.json", R"({"scripts":{"postinstall":"node evil.js"}})"}, {"evil.js", "planted"}}},
          {"git-small", "2.0.0", {{"git", "echo git version 2.0.0"}}},
          {"@anthropic-ai/claude-code", "9.9.9", {{"claude", "echo 9.9.9"}}, {{"install.cjs", ""}}}};
}

ImageWorld::ImageWorld(const std::vector<SmallPackage>& packages) {
  make_busybox_root(base_tar());
  std::filesystem::create_directory(this->packages());
  json lock{{"lockfileVersion", 3}, {"packages", {{"", {{"dependencies", json::object()}}}}}};
  size_t number = 0;
  for (const SmallPackage& package : packages) {
    const TempDir made;
    json programs = json::object();
    for (const auto& [name, script] : package.programs) {
      write_file(made / ("package/bin/" + name), "#!/bin/sh\n" + script + "\n");
      programs[name] = "bin/" + name;
    }
    for (const auto& [name, text] : package.files) write_file(made / ("package/" + name), text);
    const std::string file = this->packages() + "/" + std::to_string(number++) + ".tgz";
    must_run({.argv = {"tar", "-C", made.path(), "-czf", file, "package"}});
    tiers::docker::image::Integrity integrity;
    integrity.add(read_text(file));
    lock["packages"][""]["dependencies"][package.name] = package.version;
    lock["packages"]["node_modules/" + package.name] = {
        {"version", package.version}, {"integrity", integrity.finish()}, {"bin", programs}, {"hasInstallScript", true}};
  }
  write_file(this->lock(), lock.dump(1));
  std::filesystem::create_directory(state());
}

Command ImageWorld::command(const std::string& socket, std::vector<std::string> words) const {
  words.insert(words.begin(), belljar_program());
  return {.argv = std::move(words),
          .env = {{"DOCKER_HOST", "unix://" + socket}, {"XDG_STATE_HOME", state()}, {"HOME", state()}},
          .cwd = folder_.path()};
}

Command ImageWorld::build(const std::string& socket, const std::vector<std::string>& options) const {
  std::vector<std::string> words{"image", "build", "--lock", lock(), "--packages", packages()};
  if (options.empty() || options.front() != "--base") words.insert(words.end(), {"--base-tar", base_tar()});
  words.insert(words.end(), options.begin(), options.end());
  return command(socket, std::move(words));
}

std::vector<std::string> ImageWorld::records() const {
  std::vector<std::string> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(state() + "/belljar/builds", none)) {
    out.push_back(entry.path());
  }
  return out;
}

}  // namespace belljar::testing
