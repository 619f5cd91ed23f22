#include "support/belljar.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/io.h"
#include "support/temp_dir.h"

namespace belljar::testing {

std::string belljar_program() {
  const char* chosen = std::getenv("BELLJAR");
  return chosen != nullptr ? chosen : BELLJAR_PROGRAM;
}

bool by_bubblewrap() {
  const char* mode = std::getenv("BELLJAR_TEST_MODE");
  return mode != nullptr && std::string_view(mode) == "bwrap";
}

Command sealed(const std::string& folder, const std::vector<std::string>& words,
               const std::vector<std::string>& options) {
  Command command{.argv = {belljar_program(), "run"}, .cwd = folder};
  if (const char* mode = std::getenv("BELLJAR_TEST_MODE")) command.argv.insert(command.argv.end(), {"--mode", mode});
  command.argv.insert(command.argv.end(), options.begin(), options.end());
  command.argv.emplace_back("--");
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  return command;
}

Command sealed_script(const std::string& folder, const std::string& script, const std::vector<std::string>& options) {
  return sealed(folder, {"/bin/sh", "-c", script}, options);
}

std::vector<std::string> processes_with(const std::string& marker) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
    // One that ends meanwhile cannot be read, and is not there.
    std::string line = base::read_file(entry.path() / "cmdline", size_t{4} << 20U).value_or("");
    std::ranges::replace(line, '\0', ' ');
    if (line.find(marker) != std::string::npos) found.push_back(line);
  }
  return found;
}

bool eventually(const std::function<bool()>& done, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return done();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace belljar::testing
