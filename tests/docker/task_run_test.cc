// `belljar task run`, with the built programs and a real engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "docker/test_task.h"
#include "docker/world.h"
#include "support/belljar.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kReading[] = {"plan", "questions", "review"};
constexpr const char* kWriting[] = {"execute", "fix"};

class TaskRunTest : public ::testing::Test {
 protected:
  ~TaskRunTest() override { remove_session_containers(); }

  Command task_run(const std::string& phase, std::vector<std::string> options,
                   const std::vector<std::string>& command = {}) {
    std::vector<std::string> argv{"task", "run", task_.id(), "--phase", phase, "--report", state_ / "end.json"};
    argv.insert(argv.end(), options.begin(), options.end());
    if (!command.empty()) argv.emplace_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
    return task_.belljar(std::move(argv));
  }
  Output inside(const std::string& phase, const std::string& script, const std::vector<std::string>& options = {}) {
    return run(task_run(phase, options, {"sh", "-c", script}));
  }
  json settlement() { return json::parse(read_text(state_ / "end.json"), nullptr, false); }

  std::vector<std::string> files_session_containers() {
    std::vector<std::string> out;
    std::error_code none;
    for (const char* name : {"containers", "credentials"}) {
      for (const auto& entry :
           std::filesystem::directory_iterator(state_ / (std::string("state/belljar/") + name), none)) {
        out.push_back(entry.path());
      }
    }
    return out;
  }

  const TempDir state_;
  const TestTask task_{state_.path(), DockerWorld::get().image_id(), DockerWorld::get().socket()};
};

TEST_F(TaskRunTest, RunsACommandInTheTasksContainerAndLeavesNothing) {
  Command command = task_run("execute", {}, {"sh", "-c", "cat; pwd; id -u; id -G; echo $HOME; cat /work/file; exit 7"});
  command.in = Stream::pipe("input\n");
  const Output output = run(command);
  EXPECT_EQ(output.code, 7) << output.err;
  EXPECT_EQ(output.out, "input\n/work\n10001\n10001\n/home/agent\ncontent\n");
  const json end = settlement();
  EXPECT_EQ(end["tier"], "docker");
  EXPECT_EQ(end["exit"]["reason"], "exited");
  EXPECT_THAT(end["unreleased"], IsEmpty());
  EXPECT_THAT(session_containers(), IsEmpty());
  EXPECT_THAT(files_session_containers(), IsEmpty());
}

TEST_F(TaskRunTest, OnlyTwoPhasesWriteAndNoneToTheMetadata) {
  const std::string script =
      "echo x >/work/new 2>/dev/null && echo wrote; echo x >/work/.git/new 2>/dev/null && echo wrote metadata;"
      "mv /work/.git /work/git 2>/dev/null && echo moved metadata; test -s /work/.git/HEAD && echo head; rm -f "
      "/work/new";
  for (const char* phase : kReading) {
    const Output output = inside(phase, script);
    EXPECT_EQ(output.out, "head\n") << phase << output.err;
  }
  for (const char* phase : kWriting) {
    const Output output = inside(phase, script);
    EXPECT_EQ(output.out, "wrote\nhead\n") << phase << output.err;
  }
}

// Judged from the inside.
TEST_F(TaskRunTest, HasNoPrivilegeAndNothingOfTheHost) {
  const Output output =
      inside("execute",
             "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; touch /new 2>&1; ls /sys/class/net | grep -v lo;"
             "test -e /run/docker.sock || test -e /var/run/docker.sock || echo no socket; ls -A $HOME /tmp | grep -v :;"
             "env | grep -E 'cache|CACHE|HOME|PATH'; nc 127.0.0.1 61080 </dev/null >/dev/null && echo proxy");
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("CapEff:\t0000000000000000"), HasSubstr("CapBnd:\t0000000000000000"),
                    HasSubstr("NoNewPrivs:\t1"), HasSubstr("Seccomp:\t2"), HasSubstr("/new: Read-only file system"),
                    HasSubstr("no socket"), HasSubstr("npm_config_cache=/tmp/npm-cache\n"),
                    HasSubstr("XDG_CACHE_HOME=/tmp/xdg-cache\n"), HasSubstr("PATH=/usr/local/bin:/bin\n")));
  EXPECT_THAT(output.out, AllOf(Not(HasSubstr("eth0")), HasSubstr("proxy\n"))) << output.err;
}

// A plain command has no host at all: the way out refuses.
TEST_F(TaskRunTest, ReachesNobody) {
  const Output output = inside("execute", "wget -q -O - http://api.anthropic.com/ 2>&1; echo $?");
  EXPECT_THAT(output.out, HasSubstr("403")) << output.err;
  EXPECT_EQ(settlement()["denials"][0]["host"], "api.anthropic.com");
}

// Filled, not only asked: bytes and files of the home and of the work.
TEST_F(TaskRunTest, EachMemoryHasItsEnd) {
  const Output output =
      inside("execute",
             "for f in /home/agent /work; do dd if=/dev/zero of=$f/big bs=1M 2>/dev/null; stat -c %s $f/big; rm $f/big;"
             "i=0; while true >$f/f$i; do i=$((i+1)); test $i -gt 25000 && break; done 2>/dev/null; echo $i; done");
  std::istringstream lines(output.out);
  long home_bytes = 0, home_files = 0, work_bytes = 0, work_files = 0;
  lines >> home_bytes >> home_files >> work_bytes >> work_files;
  EXPECT_LE(home_bytes, 256L << 20) << output.err;
  EXPECT_GT(home_bytes, 250L << 20);
  EXPECT_LT(home_files, 20'000);
  EXPECT_GT(home_files, 19'000);
  EXPECT_LE(work_bytes, static_cast<long>(TestTask::kBytes));
  EXPECT_GT(work_bytes, static_cast<long>(TestTask::kBytes) / 2);
  EXPECT_LT(work_files, static_cast<long>(TestTask::kFiles));
  EXPECT_GT(work_files, static_cast<long>(TestTask::kFiles) / 2);
}

// Fresh at each launch, whatever the one before has left; the work stays.
TEST_F(TaskRunTest, NothingButTheWorkOutlivesALaunch) {
  EXPECT_EQ(inside("execute", "echo 1 >$HOME/x; echo 1 >/tmp/x; echo 1 >/dev/shm/x; echo 1 >/work/x").code, 0);
  const Output output = inside("review", "cat $HOME/x /tmp/x /dev/shm/x 2>/dev/null; ls /work");
  EXPECT_EQ(output.out, "code.cc\nfile\nx\n") << output.err;
}

TEST_F(TaskRunTest, AnAttemptIsCapturedOnce) {
  EXPECT_EQ(run(task_run("plan", {"--attempt", "one"}, {"true"})).code, 0);
  const Output again = run(task_run("execute", {"--attempt", "one"}, {"sh", "-c", "echo ran"}));
  EXPECT_EQ(again.code, 125);
  EXPECT_EQ(again.out, "");
  EXPECT_THAT(again.err, HasSubstr("capture the request 'one': this attempt was captured before, refusing"));
  EXPECT_THAT(session_containers(), IsEmpty());
}

TEST_F(TaskRunTest, NeverOutlivesItsDeadline) {
  const auto started = base::boot_now();
  const Output output = inside("execute",
                               "trap '' TERM; busybox date +%s >/work/first; echo started; sleep 1000 &"
                               "while :; do busybox date +%s >/work/last; busybox usleep 100000; done",
                               {"--deadline", "6s"});
  const auto took = base::boot_now() - started;
  EXPECT_EQ(output.code, 124) << output.err;
  EXPECT_EQ(output.out, "started\n");
  EXPECT_EQ(settlement()["exit"]["reason"], "deadline");
  EXPECT_THAT(session_containers(), IsEmpty());
  EXPECT_LT(took, std::chrono::seconds(16)) << "with all that a busy machine may add to the clean-up";
  // Nothing of it ran two seconds after its deadline, which was before the first of these.
  std::istringstream beats(inside("review", "cat /work/first /work/last").out);
  long first = 0;
  long last = 0;
  beats >> first >> last;
  EXPECT_GT(last, 0);
  EXPECT_LE(last - first, 6 + 2);
}

// Its limits are the person's to say, within bounds; what is not said has a standard.
TEST_F(TaskRunTest, HasTheLimitsThatAreAskedFor) {
  const Output output =
      inside("execute", "dd if=/dev/zero of=/tmp/big bs=1M count=5 2>/dev/null; stat -c %s /tmp/big; ulimit -n",
             {"--tmp-size", "2MiB", "--open-files", "100"});
  EXPECT_EQ(output.out, "2097152\n100\n") << output.err;
  EXPECT_THAT(inside("plan", "i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done", {"--pids", "20"}).err,
              HasSubstr("fork"));
  EXPECT_THAT(inside("plan", "dd if=/dev/zero of=/dev/null bs=200M count=1; echo ended $?", {"--memory", "64MiB"}).out,
              HasSubstr("ended 137"));
  const Output refused = inside("plan", "echo ran", {"--memory", "1MiB"});
  EXPECT_EQ(refused.code, 125);
  EXPECT_THAT(refused.err,
              HasSubstr("capture the request '--memory': 1MiB is out of bounds, refusing (32MiB to 1TiB)"));
  EXPECT_THAT(inside("plan", "echo ran", {"--cpu", "100000%"}).err, HasSubstr("the container engine refused"));
}

TEST_F(TaskRunTest, OnlyAnImageThatWasBuiltHereIsUsed) {
  const Output output = run(task_run("plan", {"--image", "belljar-test:other"}, {"true"}));
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, AllOf(HasSubstr("use the image 'belljar-test:other'"), HasSubstr("has not built")));
  EXPECT_EQ(run(task_run("plan", {"--image", DockerWorld::kImage}, {"true"})).code, 0);
}

TEST_F(TaskRunTest, SaysWhatItCannotDo) {
  const auto refused = [&](const Command& command) {
    const Output output = run(command);
    EXPECT_EQ(output.code, 125) << output.out;
    EXPECT_THAT(output.out, Not(HasSubstr("ran")));
    return output.err;
  };
  const std::vector<std::string> echo{"echo", "ran"};
  EXPECT_THAT(refused(task_run("rest", {}, echo)), HasSubstr("plan, questions, review, execute or fix is expected"));
  EXPECT_THAT(refused(task_run("plan", {"--agent", "gemini", "--prompt", "x"})), HasSubstr("no adapter"));
  EXPECT_THAT(refused(task_run("plan", {"--agent", "claude", "--prompt", "x"}, echo)), HasSubstr("either an agent"));
  EXPECT_THAT(refused(task_run("plan", {"--deadline", "0s"}, echo)), HasSubstr("deadline"));
  EXPECT_THAT(refused(task_run("plan", {"--attempt", "../x"}, echo)), HasSubstr("an attempt is named by"));
  EXPECT_THAT(refused(task_run("plan", {"--token-env", "OPENAI_API_KEY"}, echo)), HasSubstr("a credential goes to"));
  Command other = task_run("plan", {}, echo);
  other.argv[3] = "ffffffffffffffff";
  EXPECT_THAT(refused(other), HasSubstr("ffffffffffffffff"));
  EXPECT_THAT(session_containers(), IsEmpty());
}

}  // namespace
}  // namespace belljar::testing
