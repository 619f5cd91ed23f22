// A folder of a test's own, gone at its end.
#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace belljar::base {

class TempTree {
 public:
  TempTree() {
    std::string pattern = std::filesystem::canonical(std::filesystem::temp_directory_path()) / "belljar-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return root_; }
  [[nodiscard]] std::string at(const std::string& path) const { return root_ + "/" + path; }
  std::string folder(const std::string& path) const {
    std::filesystem::create_directories(at(path));
    return at(path);
  }
  std::string file(const std::string& path, const std::string& text, bool executable = false) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    std::ofstream(at(path)) << text;
    using std::filesystem::perms;
    const perms mode = perms::owner_read | perms::owner_write | perms::group_read | perms::others_read;
    const perms execute = perms::owner_exec | perms::group_exec | perms::others_exec;
    std::filesystem::permissions(at(path), executable ? mode | execute : mode);
    return at(path);
  }
  std::string link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    std::filesystem::create_symlink(target, at(path));
    return at(path);
  }

 private:
  std::string root_;
};

}  // namespace belljar::base
