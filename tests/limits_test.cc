// What a guest uses up ends inside, is told by name, and leaves its neighbours alive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

json plan_of(const std::string& folder) {
  Command command{.argv = {belljar_program(), "plan", "--json", "--", "true"}, .cwd = folder};
  return json::parse(must_run(command));
}

// Folders called `name`, at any depth below `folder`. Others' groups come and go meanwhile.
// NOLINTNEXTLINE(misc-no-recursion)
void find_folders(const std::filesystem::path& folder, const std::string& name, std::vector<std::string>& out) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    if (entry->symlink_status(gone).type() != std::filesystem::file_type::directory) continue;
    if (entry->path().filename() == name) out.push_back(entry->path());
    find_folders(entry->path(), name, out);
  }
}

// Groups of this machine with a name of ours, wherever they are.
std::vector<std::string> groups_of(const std::string& session) {
  std::vector<std::string> out;
  find_folders("/sys/fs/cgroup", "belljar-" + session, out);
  return out;
}

class LimitsTest : public ::testing::Test {
 protected:
  struct End {
    Output output;
    json settlement;

    [[nodiscard]] std::vector<std::string> reasons() const {
      std::vector<std::string> out;
      for (const json& hit : settlement["limits_hit"]) out.push_back(hit["reason"]);
      return out;
    }
  };

  // Runs `script` under `options` beside a guest that works on afterwards.
  End exhaust(const std::string& script, std::vector<std::string> options, const std::string& policy = "") {
    const TempDir beside;
    Process neighbour(sealed_script(beside.path(),
                                    "echo ready; until test -e go; do sleep 0.02; done; "
                                    "head -c 20000000 /dev/zero >/tmp/x && for i in 1 2 3 4 5; do sleep 0 & done; "
                                    "wait; wc -c </tmp/x"));
    EXPECT_EQ(neighbour.read_line(), "ready");
    const std::string report = reports_ / "end.json";
    options.insert(options.end(), {"--report", report});
    if (!policy.empty()) {
      write_file(reports_ / "policy.toml", policy);
      options.insert(options.end(), {"--policy", reports_ / "policy.toml"});
    }
    End out;
    out.output = run(sealed_script(work_.path(), script, options));
    write_file(beside / "go", "");
    EXPECT_EQ(neighbour.read_line(), "20000000") << "the neighbour does not work any more";
    EXPECT_EQ(neighbour.wait().code, 0);
    out.settlement = json::parse(read_text(report), nullptr, false);
    EXPECT_TRUE(out.settlement.is_object()) << out.output.err;
    if (!out.settlement.is_object()) return out;
    EXPECT_THAT(groups_of(out.settlement["session"]), IsEmpty());
    EXPECT_THAT(out.settlement["unreleased"], IsEmpty());
    return out;
  }

  [[nodiscard]] bool can_limit(const char* what) const { return !plan_of(work_.path())["limits"][what].is_null(); }

  TempDir work_;
  TempDir reports_;
};

// A limit that the host cannot hold is refused by name, with what to do; the other half of the tests below.
void expect_refusal(const Output& output, const std::string& key) {
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("limits '" + key + "': this host cannot hold it: "));
  EXPECT_THAT(output.err, HasSubstr("belljar doctor"));
  EXPECT_THAT(output.out, Not(HasSubstr("started")));
}

TEST_F(LimitsTest, Memory) {
  const End end = exhaust("echo started; head -c 300000000 /dev/zero | tail; exit 0", {"--memory", "100MiB"});
  if (!can_limit("memory_bytes")) return expect_refusal(end.output, "memory");
  EXPECT_EQ(end.output.code, 0) << "the command's own code stays";
  EXPECT_THAT(end.reasons(), ::testing::ElementsAre("out_of_memory"));
  EXPECT_EQ(end.settlement["limits_hit"][0]["limit"], 100U << 20U);
  EXPECT_THAT(end.output.err, HasSubstr("out of memory: 1 process was killed at the limit of 100 MiB (--memory)\n"));
  EXPECT_GE(end.settlement["usage"]["peak_memory_bytes"], 90U << 20U);
  EXPECT_LE(end.settlement["usage"]["peak_memory_bytes"], 100U << 20U);
}

// What lies in scratch is memory too, and counts as the guest's.
TEST_F(LimitsTest, MemoryOfScratch) {
  const End end = exhaust("echo started; head -c 300000000 /dev/zero >/tmp/fill", {"--memory", "100MiB"});
  if (!can_limit("memory_bytes")) return expect_refusal(end.output, "memory");
  EXPECT_THAT(end.reasons(), ::testing::ElementsAre("out_of_memory"));
}

TEST_F(LimitsTest, Pids) {
  const End end = exhaust("echo started; for i in $(seq 50); do sleep 5 & done 2>/dev/null", {"--pids", "30"});
  if (!can_limit("pids")) return expect_refusal(end.output, "pids");
  EXPECT_THAT(end.reasons(), ::testing::ElementsAre("too_many_pids"));
  EXPECT_THAT(end.output.err, HasSubstr("too many processes: "));
}

// Two processes that only spin, for two seconds of the clock, get half a processor between them.
TEST_F(LimitsTest, Cpu) {
  const End end = exhaust(
      "echo started; timeout 2 sh -c 'while :; do :; done' & "
      "timeout 2 sh -c 'while :; do :; done'; wait; exit 0",
      {"--cpu", "50%"});
  if (!can_limit("cpu_percent")) return expect_refusal(end.output, "cpu");
  EXPECT_EQ(end.output.code, 0);
  // A machine that is busy gives less; more it must not be. A tenth is for periods that were begun.
  EXPECT_LE(end.settlement["usage"]["cpu_ms"].get<double>(),
            0.5 * 1.1 * end.settlement["duration_ms"].get<double>() + 200);
  EXPECT_THAT(end.reasons(), IsEmpty()) << "slower is no failure";
}

TEST_F(LimitsTest, SpaceOfScratch) {
  const End end =
      exhaust("head -c 300000000 /dev/zero >/tmp/fill; echo code $?", {}, "[limits]\nscratch_bytes = \"64MiB\"\n");
  EXPECT_THAT(end.output.out, HasSubstr("code 1"));
  EXPECT_EQ(end.output.code, 0);
  EXPECT_THAT(end.reasons(), ::testing::ElementsAre("no_space"));
  // Bubblewrap's is divided between five folders, in whole pages.
  EXPECT_EQ(end.settlement["usage"]["scratch_bytes"], by_bubblewrap() ? 13418496U : 64U << 20U);
  EXPECT_THAT(end.output.err, HasSubstr("no space: the scratch of 64 MiB was full (limits.scratch_bytes)\n"));
}

TEST_F(LimitsTest, InodesOfScratch) {
  const End end =
      exhaust("cd /dev/shm; i=0; while : >f$i; do i=$((i+1)); done; exit 0", {}, "[limits]\nscratch_files = 500\n");
  EXPECT_THAT(end.reasons(), ::testing::ElementsAre("no_inodes"));
  EXPECT_EQ(end.settlement["usage"]["scratch_files"], 500);
}

TEST_F(LimitsTest, Deadline) {
  const End end = exhaust("sleep 60", {"--timeout", "1s"});
  EXPECT_EQ(end.output.code, 124);
  EXPECT_EQ(end.settlement["exit"]["reason"], "deadline");
  EXPECT_THAT(end.reasons(), ::testing::ElementsAre("deadline"));
  EXPECT_THAT(end.output.err, HasSubstr("deadline: ended after 1 s (--timeout)\n"));
}

// The words of the command do not make a reason: it says and returns what it likes.
TEST_F(LimitsTest, NoneWhenOnlyTheCommandSaysSo) {
  const End end = exhaust("echo 'No space left on device, Out of memory' >&2; kill -9 $$", {});
  EXPECT_EQ(end.output.code, 137);
  EXPECT_THAT(end.reasons(), IsEmpty());
}

// The kernel counts these for the person who launches too.
TEST_F(LimitsTest, LeavesThePersonHalfOfWhatIsCountedForAUser) {
  constexpr const char* kScript =
      "import ctypes, resource\n"
      "libc = ctypes.CDLL(None)\n"
      "count = 0\n"
      "while libc.inotify_init() >= 0: count += 1\n"
      "print(count, resource.getrlimit(resource.RLIMIT_SIGPENDING)[1], "
      "resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1])\n";
  const TempDir folder;
  write_file(folder / "take.py", kScript);
  Command command = sealed_script(folder.path(), "exec /usr/bin/python3 take.py", {});
  const Output output = run(command);
  std::istringstream counts(output.out);
  uint64_t watches = 0;
  uint64_t signals = 0;
  uint64_t queues = 0;
  ASSERT_TRUE(counts >> watches >> signals >> queues) << output.err;
  EXPECT_EQ(watches, std::stoull(read_text("/proc/sys/fs/inotify/max_user_instances")) / 2);
  for (const auto& [resource, found] : {std::pair{RLIMIT_SIGPENDING, signals}, std::pair{RLIMIT_MSGQUEUE, queues}}) {
    rlimit whole{};
    ASSERT_EQ(::getrlimit(resource, &whole), 0);
    EXPECT_EQ(found, whole.rlim_cur / 2);
  }
}

// With enough of everything the same commands meet no limit, and use is told.
TEST_F(LimitsTest, UseIsTold) {
  const End end = exhaust(
      "head -c 60000000 /dev/zero | tail -c 50000000 >/tmp/x; i=0; "
      "while [ $i -lt 100000 ]; do i=$((i+1)); done",
      {});
  EXPECT_EQ(end.output.code, 0);
  EXPECT_THAT(end.reasons(), IsEmpty());
  const json& usage = end.settlement["usage"];
  EXPECT_GT(usage["cpu_ms"], 20);
  EXPECT_GE(usage["scratch_bytes"], 50000000);
  EXPECT_GE(usage["largest_process_bytes"], 40000000);
  EXPECT_EQ(usage["peak_memory_bytes"].is_null(), !can_limit("memory_bytes"));
}

// A launcher that is killed by -9 takes its guest along; the group that it leaves is empty, and the next launch, or
// whoever settles for it, takes it away.
TEST_F(LimitsTest, AKilledLaunchersGroupGoes) {
  std::string group;
  {
    Process launcher(sealed_script(work_.path(), "cat /proc/self/cgroup; echo end; sleep 60"));
    while (const auto line = launcher.read_line()) {
      if (*line == "end") break;
      const size_t at = line->find("belljar-");
      if (at != std::string::npos) group = line->substr(at + 8);
    }
    launcher.signal(SIGKILL);
    launcher.wait();
  }
  EXPECT_EQ(group.empty(), !can_limit("pids"));
  if (group.empty()) return;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(run(sealed_script(work_.path(), "true")).code, 0);
    return groups_of(group).empty();
  }));
}

}  // namespace
}  // namespace belljar::testing
