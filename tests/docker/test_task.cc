#include "docker/test_task.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "docker/engine.h"
#include "docker/world.h"
#include "store/store.h"
#include "support/belljar.h"
#include "support/git_repository.h"
#include "support/temp_dir.h"

namespace belljar::testing {

TestTask::TestTask(std::string root, const std::string& image, std::string engine)
    : root_(std::move(root)), engine_(std::move(engine)) {
  std::filesystem::create_directories(root_ + "/state");
  std::filesystem::create_directories(root_ + "/home");
  const auto store = store::Store::open(root_ + "/state/belljar");
  EXPECT_TRUE(store && store->register_image({.id = image, .tag = {}, .engine = engine_, .pins = {}, .made = 1}));
  repository(root_ + "/project");
  write_file(root_ + "/project/file", "content\n");
  git(root_ + "/project", {"add", "--all"});
  git(root_ + "/project", {"commit", "-q", "-m", "file"});
  const Output made = run(belljar({"task", "create", "--image", image, "--work-size", "4MiB", "--work-files",
                                   std::to_string(kFiles), root_ + "/project"}));
  EXPECT_EQ(made.code, 0) << made.err;
  id_ = made.out.substr(0, made.out.find('\n'));
}

TestTask::~TestTask() {
  const Output removed = run(belljar({"task", "rm", id_}));
  EXPECT_EQ(removed.code, 0) << removed.err;
}

Command TestTask::belljar(std::vector<std::string> words) const {
  words.insert(words.begin(), belljar_program());
  return {
      .argv = std::move(words),
      .env = {{"DOCKER_HOST", "unix://" + engine_}, {"XDG_STATE_HOME", root_ + "/state"}, {"HOME", root_ + "/home"}},
      .cwd = root_};
}

const std::string& agents_image() {
  static const std::string id = [] {
    const TempDir temp;
    make_busybox_root(temp / "root.tar");
    for (const char* name : {"claude", "codex"}) {
      write_file(temp / (std::string("usr/local/bin/") + name), "#!/bin/sh\nfor last; do :; done\neval \"$last\"\n");
      ::chmod((temp / (std::string("usr/local/bin/") + name)).c_str(), 0755);
    }
    must_run({.argv = {"tar", "--owner=0", "--group=0", "-C", temp.path(), "-rf", temp / "root.tar", "usr"}});
    const auto made = import_root(DockerWorld::get().engine(), temp / "root.tar", "belljar-test:agents",
                                  {"ENV PATH=/usr/local/bin:/bin"});
    EXPECT_TRUE(made.has_value());
    return made.value_or("");
  }();
  return id;
}

}  // namespace belljar::testing
