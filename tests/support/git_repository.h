// Repositories for tests, made by the host's own git.
#pragma once

#include <string>
#include <vector>

namespace belljar::testing {

// Runs git in `folder` as somebody with a name, allowing submodules of local paths; what it printed. Fails the test
// when git does.
std::string git(const std::string& folder, std::vector<std::string> words);
// A repository in `folder`, which is made, with code.cc in one commit on `main`.
void repository(const std::string& folder);

}  // namespace belljar::testing
