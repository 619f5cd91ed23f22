#include "support/git_repository.h"

#include <filesystem>

#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {

std::string git(const std::string& folder, std::vector<std::string> words) {
  words.insert(words.begin(),
               {"git", "-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "protocol.file.allow=always"});
  return must_run({.argv = words, .cwd = folder});
}

void repository(const std::string& folder) {
  std::filesystem::create_directories(folder);
  git(folder, {"init", "-q", "-b", "main", "."});
  write_file(folder + "/code.cc", "int main() {}\n");
  git(folder, {"add", "."});
  git(folder, {"commit", "-q", "-m", "first"});
}

}  // namespace belljar::testing
