// Small packages in the place of agents', and builds of images of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {

// A package whose programs are shell scripts: NAME -> script.
struct SmallPackage {
  std::string name;
  std::string version;
  std::map<std::string, std::string> programs;
  std::map<std::string, std::string> files{};
};

// A folder with a base, packages, a lock file that names them, and a state folder of its own.
class ImageWorld {
 public:
  // node 1.2.3, tool 4.5.6, git, and one that is called as the package whose script may run.
  static std::vector<SmallPackage> good_packages();
  explicit ImageWorld(const std::vector<SmallPackage>& packages = good_packages());

  // `belljar image build` by the engine at `socket`, and any other command of belljar's with the same state.
  [[nodiscard]] Command build(const std::string& socket, const std::vector<std::string>& options = {}) const;
  [[nodiscard]] Command command(const std::string& socket, std::vector<std::string> words) const;

  [[nodiscard]] std::string base_tar() const { return folder_ / "base.tar"; }
  [[nodiscard]] std::string packages() const { return folder_ / "packages"; }
  [[nodiscard]] std::string lock() const { return folder_ / "package-lock.json"; }
  [[nodiscard]] std::string state() const { return folder_ / "state"; }
  // Records of builds that are under way or were not finished.
  [[nodiscard]] std::vector<std::string> records() const;

 private:
  TempDir folder_;
};

}  // namespace belljar::testing
