// A folder of one test's own.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace belljar::testing {

// Made under $TMPDIR (else /tmp) with mode 0755, removed with all it holds when the object goes. Aborts when it cannot
// be made.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// Writes a file, its folders included; aborts when that fails.
void write_file(const std::string& path, std::string_view text);

// The whole text of a file; empty when there is none.
[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace belljar::testing
