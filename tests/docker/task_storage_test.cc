// `belljar task` as a person uses it, on a real engine: create, change, inspect, commit, take home, remove, recover.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "docker/world.h"
#include "store/store.h"
#include "support/belljar.h"
#include "support/git_repository.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/storage/allocate.h"
#include "tiers/docker/storage/helpers.h"
#include "tiers/docker/storage/task_storage.h"

namespace belljar::testing {
namespace {

namespace storage = tiers::docker::storage;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using tiers::docker::Engine;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

class TaskStorageTest : public ::testing::Test {
 protected:
  TaskStorageTest() {
    ::chmod(root_.path().c_str(), 0700);
    repository(root_ / "project");
    write_file(root_ / "project/keep.txt", "keep\n");
    write_file(root_ / "project/sub/old.txt", "old\n");
    write_file(root_ / ("project/" + std::string(120, 'd') + "/" + std::string(200, 'f')), "long\n");
    write_file(root_ / "project/\u00fcber \"quoted\"\nname", "odd\n");
    git(root_ / "project", {"add", "--all"});
    git(root_ / "project", {"commit", "--quiet", "--message=more"});
    auto store = store::Store::open(root_ / "state/belljar");
    EXPECT_TRUE(store.has_value());
    // As if it had been built.
    EXPECT_TRUE(store
                    ->register_image({.id = DockerWorld::get().image_id(),
                                      .tag = DockerWorld::kImage,
                                      .engine = DockerWorld::get().socket(),
                                      .pins = "",
                                      .made = 1})
                    .has_value());
  }
  ~TaskStorageTest() override {
    for (const store::Task& one : tasks()) belljar({"task", "rm", one.id});
    belljar({"recover"});
    EXPECT_TRUE(nothing_is_left());
  }

  [[nodiscard]] Command command(std::vector<std::string> words) const {
    words.insert(words.begin(), belljar_program());
    return {.argv = std::move(words),
            .env = {{"DOCKER_HOST", "unix://" + DockerWorld::get().socket()},
                    {"XDG_STATE_HOME", root_ / "state"},
                    {"HOME", root_.path()}},
            .cwd = root_.path()};
  }
  Output belljar(std::vector<std::string> words) const { return run(command(std::move(words))); }
  std::string create(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"task",        "create", "--image",      DockerWorld::kImage,
                                   "--work-size", "4MiB",   "--work-files", "100"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(root_ / "project");
    const Output output = belljar(words);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out.substr(0, output.out.find('\n'));
  }
  [[nodiscard]] std::vector<store::Task> tasks() const {
    const auto store = store::Store::open(root_ / "state/belljar");
    return store->tasks().value_or(std::vector<store::Task>{});
  }
  [[nodiscard]] storage::TaskStorage storage_of(const std::string& id) const {
    const auto store = store::Store::open(root_ / "state/belljar");
    return *storage::decode_storage((*store->task(id))->storage);
  }
  static const Engine& engine() { return DockerWorld::get().engine(); }
  static bool nothing_is_left() {
    return engine().containers_with(storage::kTaskLabel, soon())->empty() &&
           engine().volumes_with(storage::kTaskLabel, soon())->empty();
  }
  // What the shell prints as an agent of the task's, in a container that has both volumes as a task's does.
  std::string as_agent(const std::string& id, const std::string& script, bool read_only_git = true) const {
    const storage::TaskStorage of = storage_of(id);
    const Output output =
        run({.argv = {"docker", "-H", "unix://" + DockerWorld::get().socket(), "run", "--rm", "--network", "none",
                      "--user", "10001:10001", "--volume", of.work.name + ":/work", "--volume",
                      of.git.name + ":/work/.git" + (read_only_git ? ":ro" : ""), "--workdir", "/work",
                      DockerWorld::kImage, "sh", "-c", script}});
    return output.out + output.err;
  }
  static std::string digest_of(const std::string& inspected) {
    const size_t at = inspected.rfind("manifest ");
    return at == std::string::npos ? "" : inspected.substr(at + 9, 64);
  }

  const TempDir root_;
};

// A task whose engine is gone for good does not keep its share of the pool for ever; while the engine answers, it does.
TEST_F(TaskStorageTest, ATaskWhoseEngineIsGoneCanBeForgotten) {
  const std::string link = root_ / "engine.sock";
  std::filesystem::create_symlink(DockerWorld::get().socket(), link);
  Command making = command({"task", "create", "--image", DockerWorld::kImage, root_ / "project"});
  making.env["DOCKER_HOST"] = "unix://" + link;
  const Output made = run(making);
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string id = made.out.substr(0, 16);
  const storage::TaskStorage of = storage_of(id);
  const Output refused = belljar({"task", "rm", "--forget", id});
  EXPECT_EQ(refused.code, 125);
  EXPECT_THAT(refused.err, HasSubstr("forget the task '" + id + "': its engine answers, refusing"));
  EXPECT_EQ(tasks().size(), 1U);

  std::filesystem::remove(link);
  EXPECT_THAT(belljar({"task", "rm", id}).err, HasSubstr("the container engine was not reached"));
  EXPECT_THAT(belljar({"task", "pool"}).out, HasSubstr("taken by 1 task\n"));
  const Output forgotten = belljar({"task", "rm", "--forget", id});
  EXPECT_EQ(forgotten.code, 0) << forgotten.err;
  EXPECT_THAT(forgotten.err, AllOf(HasSubstr("weaker than it could be"), HasSubstr(of.keeper), HasSubstr(of.work.name),
                                   HasSubstr(of.git.name), HasSubstr(of.allocation)));
  EXPECT_THAT(belljar({"task", "pool"}).out, HasSubstr("taken by 0 tasks\n"));
  EXPECT_FALSE(std::filesystem::exists(root_ / ("state/belljar/tasks/" + id)));
  EXPECT_EQ(belljar({"recover"}).code, 0);
  EXPECT_FALSE(nothing_is_left()) << "what it named is there";
  EXPECT_THAT(storage::release(DockerWorld::get().socket(), of, false, soon()).unreleased, IsEmpty());
}

TEST_F(TaskStorageTest, TakesTheWorkHomeAsACommit) {
  const std::string id = create();
  ASSERT_EQ(id.size(), 16U);
  EXPECT_THAT(belljar({"task", "ls"}).out, AllOf(HasSubstr(id), HasSubstr("  ready "), HasSubstr("/project\n")));
  EXPECT_THAT(belljar({"task", "pool"}).out, HasSubstr("taken by 1 task\n"));
  EXPECT_FALSE(std::filesystem::exists(root_ / ("state/belljar/tasks/" + id + "/clone/keep.txt")));
  // Nothing yet, as to the long and foreign names that the engine's archive has extended headers for.
  Output inspected = belljar({"task", "inspect", id.substr(0, 6)});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, Not(HasSubstr("  ")));
  EXPECT_EQ(as_agent(id,
                     "echo changed >keep.txt; rm sub/old.txt; mkdir new; printf '\\033[31mred' >new/file; "
                     "chmod 755 new/file; ln -s ../keep.txt new/link"),
            "");
  inspected = belljar({"task", "inspect", id});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("M  100644  8  keep.txt\n"), HasSubstr("D  000000  0  sub/old.txt\n"),
                                   HasSubstr("A  100755  8  new/file\n"), HasSubstr("A  120000  11  new/link\n"),
                                   HasSubstr("+changed\n")));
  EXPECT_THAT(inspected.out, Not(HasSubstr("\033")));
  const Output exported = belljar({"task", "export", id});
  const json list = json::parse(exported.out, nullptr, false);
  ASSERT_TRUE(list.is_object()) << exported.err;
  EXPECT_EQ(list["digest"], digest_of(inspected.out));
  EXPECT_EQ(list["changes"].size(), 4U);
  const auto commit = [&](const std::string& digest) {
    return belljar({"task", "commit", "--manifest", digest, "--message", "Do it", "--author", "A B <a@b>", "--to",
                    root_ / "out.bundle", id});
  };
  // Changed after it was looked at: not what was inspected.
  EXPECT_EQ(as_agent(id, "echo more >>keep.txt"), "");
  const Output stale = commit(digest_of(inspected.out));
  EXPECT_EQ(stale.code, 125);
  EXPECT_THAT(stale.err, HasSubstr("its work is not what was inspected"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "out.bundle"));
  const Output made = commit(digest_of(belljar({"task", "inspect", id}).out));
  ASSERT_EQ(made.code, 0) << made.err;
  git(root_ / "project", {"fetch", "--quiet", root_ / "out.bundle", "belljar/" + id + ":taken"});
  EXPECT_EQ(git(root_ / "project", {"rev-parse", "taken"}), made.out);
  EXPECT_EQ(git(root_ / "project", {"show", "taken:keep.txt"}), "changed\nmore\n");
  EXPECT_EQ(git(root_ / "project", {"log", "-1", "--format=%an %s", "taken"}), "A B Do it\n");
  EXPECT_EQ(belljar({"task", "rm", id}).code, 0);
  EXPECT_TRUE(nothing_is_left());
  EXPECT_FALSE(std::filesystem::exists(root_ / ("state/belljar/tasks/" + id)));
  EXPECT_THAT(tasks(), IsEmpty());
}

TEST_F(TaskStorageTest, GitOfTheAgentSeesACleanCheckoutAndCannotCommit) {
  const std::string id = create();
  EXPECT_THAT(as_agent(id, "cat .git/HEAD; echo x >.git/HEAD"),
              AllOf(HasSubstr("ref: refs/heads/main\n"), HasSubstr("Read-only file system")));
  EXPECT_THAT(as_agent(id, "rm -rf .git; mkdir .git/x; ls .git/HEAD"), HasSubstr(".git/HEAD\n"));
  EXPECT_EQ(belljar({"task", "inspect", id}).code, 0);
}

TEST_F(TaskStorageTest, RefusesByNameWhatNoCommitMayHold) {
  const std::string id = create();
  const auto refusal = [&](const std::string& script) {
    EXPECT_EQ(as_agent(id, script), "") << script;
    const Output inspected = belljar({"task", "inspect", id});
    EXPECT_EQ(inspected.code, 0) << inspected.err;
    const Output commit = belljar({"task", "commit", "--manifest", digest_of(inspected.out), "--message", "m", "--to",
                                   root_ / "refused.bundle", id});
    EXPECT_EQ(commit.code, 125);
    EXPECT_FALSE(std::filesystem::exists(root_ / "refused.bundle"));
    // As it was before.
    EXPECT_EQ(as_agent(id, "rm -rf bad* a sub/.git"), "");
    return inspected.out + commit.err;
  };
  EXPECT_THAT(refusal("ln -s /etc/passwd bad"), AllOf(HasSubstr("!  bad: the link leaves"), HasSubstr("refusing")));
  EXPECT_THAT(refusal("ln keep.txt bad"), AllOf(HasSubstr("it is a hard link"), HasSubstr("refusing")));
  EXPECT_THAT(refusal("mkdir -p sub/.git/refs; echo x >sub/.git/HEAD"),
              AllOf(HasSubstr("!  sub/.git: it is a repository of the agent's"), HasSubstr("refusing")));
  EXPECT_THAT(refusal("echo x >\"$(printf 'bad\\377')\""),
              AllOf(HasSubstr("!  bad\\xff: its name is not UTF-8"), HasSubstr("refusing")));
}

TEST_F(TaskStorageTest, RefusesChangedMetadata) {
  const std::string id = create();
  // As no agent of a task's can: with the metadata writable.
  EXPECT_EQ(as_agent(id, "echo '[alias]' >>.git/config", false), "");
  const Output changed = belljar({"task", "inspect", id});
  EXPECT_EQ(changed.code, 125);
  EXPECT_THAT(changed.err, HasSubstr("'config': metadata changed"));
  const std::string other = create();
  EXPECT_EQ(as_agent(other, "echo 0123456789012345678901234567890123456789 >.git/refs/heads/more", false), "");
  EXPECT_THAT(belljar({"task", "inspect", other}).err, HasSubstr("'refs/heads/more': agent commits"));
}

TEST_F(TaskStorageTest, HoldsBothCeilings) {
  const std::string id = create();
  // Bytes: really written, to the page.
  const std::string full = as_agent(id, "dd if=/dev/zero of=fill bs=4096 2>&1; df -k /work | tail -1; rm fill");
  EXPECT_THAT(full, AllOf(HasSubstr("No space left on device"), HasSubstr("4096      4096         0 100%")));
  const std::string files =
      as_agent(id, "i=0; while touch f$i 2>/dev/null; do i=$((i+1)); done; ls | grep -c '^f'; rm f*; ls keep.txt");
  // 100 inodes: the root, .git, and seven more are there already.
  EXPECT_EQ(files, "91\nkeep.txt\n");
  EXPECT_EQ(belljar({"task", "inspect", id}).code, 0);
  // A file that is a hole, larger than the volume, is not read to its end.
  EXPECT_EQ(as_agent(id, "dd if=/dev/zero of=hole bs=1 count=1 seek=1000000000000 2>/dev/null"), "");
  EXPECT_THAT(belljar({"task", "inspect", id}).err, HasSubstr("'hole': the files are larger than their volume"));
}

TEST_F(TaskStorageTest, AdmitsNoMoreThanThePoolHas) {
  ASSERT_EQ(belljar({"task", "pool", "6MiB"}).code, 0);
  const std::string id = create();
  const Output refused =
      belljar({"task", "create", "--image", DockerWorld::kImage, "--work-size", "4MiB", root_ / "project"});
  EXPECT_EQ(refused.code, 125);
  EXPECT_THAT(refused.err, HasSubstr("which is more than the pool's 6MiB, refusing"));
  EXPECT_EQ(tasks().size(), 1U);
  EXPECT_EQ(belljar({"task", "rm", id}).code, 0);
  create();
}

TEST_F(TaskStorageTest, RefusesWhatItCannotHold) {
  const auto refusal = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"task", "create"};
    words.insert(words.end(), more.begin(), more.end());
    const Output output = belljar(words);
    EXPECT_EQ(output.code, 125);
    EXPECT_THAT(tasks(), IsEmpty());
    EXPECT_TRUE(std::filesystem::is_empty(root_ / "state/belljar/tasks"));
    return output.err;
  };
  EXPECT_THAT(refusal({"--image", DockerWorld::kImage, "--work-size", "4KiB", root_ / "project"}),
              HasSubstr("--work-size allows 4KiB, refusing"));
  EXPECT_THAT(refusal({"--image", "belljar-test:other", root_ / "project"}), HasSubstr("refusing"));
  EXPECT_THAT(refusal({"--image", DockerWorld::kImage, root_.path()}), HasSubstr("clone"));
}

TEST_F(TaskStorageTest, IsLeftAloneWhileAContainerHasIt) {
  const std::string id = create();
  const storage::TaskStorage of = storage_of(id);
  const std::string name = "belljar-test-user";
  must_run({.argv = {"docker", "-H", "unix://" + DockerWorld::get().socket(), "run", "--detach", "--name", name,
                     "--network", "none", "--volume", of.work.name + ":/work", DockerWorld::kImage, "sleep", "100"}});
  EXPECT_THAT(belljar({"task", "inspect", id}).err,
              HasSubstr("'belljar-test-user' still has its work volume, refusing"));
  EXPECT_EQ(belljar({"task", "rm", id}).code, 125);
  EXPECT_EQ(tasks().size(), 1U);
  must_run({.argv = {"docker", "-H", "unix://" + DockerWorld::get().socket(), "rm", "--force", name}});
  EXPECT_EQ(belljar({"task", "inspect", id}).code, 0);
}

TEST_F(TaskStorageTest, IsGoneWithItsKeeperAndSaysSo) {
  const std::string id = create();
  must_run({.argv = {"docker", "-H", "unix://" + DockerWorld::get().socket(), "kill", storage_of(id).keeper}});
  EXPECT_THAT(belljar({"task", "inspect", id}).err, HasSubstr("it does not run: the task's files are gone, refusing"));
}

// Killed at any moment: recover removes what there is, and only that.
TEST_F(TaskStorageTest, RecoversFromADeathAtAnyMoment) {
  const std::string whole = create();
  int unfinished = 0;
  for (int milliseconds = 100; milliseconds <= 2500; milliseconds += 240) {
    {
      Process process(
          command({"task", "create", "--image", DockerWorld::kImage, "--work-size", "4MiB", root_ / "project"}));
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      process.signal(SIGKILL);
    }
    for (const store::Task& one : tasks()) unfinished += one.state != store::TaskState::kReady ? 1 : 0;
    Output recovered = belljar({"recover"});
    EXPECT_EQ(recovered.code, 0) << recovered.err;
    // A request that was under way may end after its asker.
    recovered = belljar({"recover"});
    EXPECT_EQ(recovered.code, 0) << recovered.err;
    for (const store::Task& one : tasks()) {
      EXPECT_EQ(one.state, store::TaskState::kReady);
      if (one.id == whole) continue;
      EXPECT_EQ(belljar({"task", "rm", one.id}).code, 0);
    }
    EXPECT_EQ(engine().containers_with(storage::kTaskLabel, soon())->size(), 1U) << milliseconds;
    EXPECT_EQ(engine().volumes_with(storage::kTaskLabel, soon())->size(), 2U) << milliseconds;
  }
  EXPECT_GT(unfinished, 0) << "no death came while there was something to recover";
  EXPECT_EQ(belljar({"task", "inspect", whole}).code, 0);
}

}  // namespace
}  // namespace belljar::testing
