#include "support/belljar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <thread>

#include "base/io.h"
#include "support/ssh_loop.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

constexpr std::string_view kBwrap = "bwrap";

std::string_view mode() {
  const char* value = std::getenv("BELLJAR_TEST_MODE");
  return value != nullptr ? value : "";
}

std::string_view suite() {
  const std::string_view text = mode();
  return text.starts_with("bwrap-") ? text.substr(kBwrap.size() + 1) : "";
}

std::string folder_of_suite() {
  const char* all = std::getenv("BELLJAR_TEST_BUBBLEWRAPS");
  return std::string(all != nullptr ? all : "/no/BELLJAR_TEST_BUBBLEWRAPS") + "/" + std::string(suite());
}

void put_before_path(const std::string& folder) {
  const char* path = std::getenv("PATH");
  ::setenv("PATH", (folder + ":" + (path != nullptr ? path : "")).c_str(), 1);
}

// What $BELLJAR_TEST_MODE needs beside options: the other bubblewrap in front of the distribution's, and told which it
// is; a target to launch on.
class OtherWay : public ::testing::Environment {
 public:
  void SetUp() override {
    if (over_ssh()) {
      loop_ = std::make_unique<SshLoop>();
      put_before_path(loop_->folder() + "/bin");
      ::setenv("BELLJAR", (loop_->folder() + "/programs/belljar").c_str(), 1);
      ::setenv("BELLJAR_TEST_LOOP", loop_->folder().c_str(), 1);
    }
    if (suite().empty()) return;
    const Output version = run({.argv = {bubblewrap_program(), "--version"}});
    ASSERT_EQ(version.code, 0) << bubblewrap_program() << version.err;
    std::printf("with %s", version.out.c_str());
    put_before_path(folder_of_suite());
  }
  void TearDown() override { loop_.reset(); }

 private:
  std::unique_ptr<SshLoop> loop_;
};

const ::testing::Environment* const kOtherWay = ::testing::AddGlobalTestEnvironment(new OtherWay);

}  // namespace

std::string belljar_program() {
  const char* chosen = std::getenv("BELLJAR");
  return chosen != nullptr ? chosen : BELLJAR_PROGRAM;
}

bool over_ssh() {
  return mode() == "ssh";
}

bool by_bubblewrap() {
  return mode().starts_with(kBwrap);
}

std::string bubblewrap_program() {
  return (suite().empty() ? std::string("/usr/bin") : folder_of_suite()) + "/bwrap";
}

Command sealed(const std::string& folder, const std::vector<std::string>& words,
               const std::vector<std::string>& options) {
  Command command{.argv = {belljar_program(), "run"}, .cwd = folder};
  if (over_ssh()) command.argv.insert(command.argv.end(), {"--target", "ssh:there"});
  if (by_bubblewrap()) command.argv.insert(command.argv.end(), {"--mode", std::string(kBwrap)});
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
