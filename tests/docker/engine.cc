#include "docker/engine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "support/belljar.h"
#include "tiers/docker/channel.h"

namespace belljar::testing {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool answers(const std::string& socket) {
  const auto outcome = tiers::docker::carry_out(
      socket, {.method = "GET", .target = "/_ping", .deadline = base::Deadline::after(std::chrono::seconds(5))});
  return std::holds_alternative<tiers::docker::Answered>(outcome);
}

}  // namespace

OwnEngine::OwnEngine() {
  daemon_.emplace(Command{.argv = {std::string(BELLJAR_TESTS_DIR) + "/../tools/test-engine", folder_.path(), "0"},
                          .out = Stream::null(),
                          .err = Stream::null()});
  if (eventually([&] { return answers(socket()); }, std::chrono::seconds(60))) return;
  std::fprintf(stderr, "the engine does not start:\n%s\n", read_text(folder_ / "log").c_str());
  std::abort();
}

OwnEngine::~OwnEngine() {
  daemon_.reset();
  // What its cgroups held is gone now.
  (void)run({.argv = {"sh", "-c",
                      "find /sys/fs/cgroup/belljar-test-$0 /sys/fs/cgroup/*/belljar-test-$0 -depth -type d "
                      "-exec rmdir {} + 2>/dev/null",
                      std::to_string(::getpid())}});
}

TestEngine::TestEngine() : socket_(variable("BELLJAR_TEST_ENGINE")) {
  if (!socket_.empty()) {
    if (!eventually([&] { return answers(socket_); }, std::chrono::seconds(60))) socket_.clear();
    return;
  }
  if (::geteuid() != 0) return;
  own_ = std::make_unique<OwnEngine>();
  socket_ = own_->socket();
}

void make_busybox_root(const std::string& path) {
  const std::string busybox = variable("BELLJAR_TEST_MACHINE") + "/busybox";
  const TempDir root;
  for (const char* folder : {"bin", "etc", "proc", "sys", "dev", "run", "tmp", "var/tmp", "root"}) {
    std::filesystem::create_directories(root / folder);
  }
  std::error_code error;
  if (!std::filesystem::copy_file(busybox, root / "bin/busybox", error)) {
    std::fprintf(stderr, "no busybox at '%s': is BELLJAR_TEST_MACHINE set? (./dev test sets it)\n", busybox.c_str());
    std::abort();
  }
  ::chmod((root / "bin/busybox").c_str(), 0755);
  for (const char* name :
       {"sh", "echo", "cat",   "ls", "id",   "env", "sleep", "true", "false", "wget", "mount", "stat", "touch",
        "rm", "grep", "mkdir", "dd", "kill", "ps",  "nc",    "ln",   "ip",    "df",   "tar",   "chmod"}) {
    std::filesystem::create_symlink("busybox", root / (std::string("bin/") + name));
  }
  write_file(root / "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
  write_file(root / "etc/group", "root:x:0:\n");
  must_run({.argv = {"tar", "--owner=0", "--group=0", "-C", root.path(), "-cf", path, "."}});
}

}  // namespace belljar::testing
