// The launcher has shut itself in before the agent's first instruction: judged by what the kernel says of its threads.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Pair;
using ::testing::SizeIs;

// The status fields of each thread (proc_pid_status(5)).
std::vector<std::map<std::string, std::string>> threads_of(pid_t pid) {
  std::vector<std::map<std::string, std::string>> out;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream status(entry.path() / "status");
    auto& fields = out.emplace_back();
    for (std::string line; std::getline(status, line);) {
      const size_t colon = line.find(":\t");
      if (colon != std::string::npos) fields[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  return out;
}

constexpr const char* kNone = "0000000000000000";

auto is_sealed() {
  return AllOf(::testing::Contains(Pair("Seccomp", "2")), ::testing::Contains(Pair("NoNewPrivs", "1")),
               ::testing::Contains(Pair("CapEff", kNone)), ::testing::Contains(Pair("CapPrm", kNone)),
               ::testing::Contains(Pair("CapInh", kNone)), ::testing::Contains(Pair("CapAmb", kNone)));
}

// The launcher among the processes of `process`: itself.
TEST(SealedLauncher, EveryThreadIsWhenTheAgentSpeaks) {
  const TempDir work;
  for (const char* network : {"deny", "allow"}) {
    Process process(sealed_script(work.path(), "echo ready; sleep 60", {"--net", network}));
    ASSERT_EQ(process.read_line(), "ready");
    const auto threads = threads_of(process.pid());
    EXPECT_THAT(threads, SizeIs(2));  // the supervisor, and the keeper, which runs the proxy
    EXPECT_THAT(threads, Each(is_sealed()));
  }
}

TEST(SealedLauncher, IsToldFromOneThatIsNot) {
  EXPECT_THAT(threads_of(::getpid()), ::testing::Not(Each(is_sealed())));
}

TEST(SealedLauncher, HoldsNothingThatItsCallerLeftOpen) {
  const TempDir work;
  write_file(work / "secret", "secret");
  Command command = sealed_script(work.path(), "echo ready; sleep 60");
  command.before_exec = [path = work / "secret"] {
    const int file = ::open(path.c_str(), O_RDONLY);  // NOLINT(android-cloexec-open): it is to be inherited
    return file >= 0 && ::dup2(file, 77) == 77;
  };
  Process process(command);
  ASSERT_EQ(process.read_line(), "ready");
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(process.pid()) + "/fd")) {
    std::error_code closed;  // the launcher is at work
    EXPECT_NE(fs::read_symlink(entry.path(), closed), work / "secret") << entry.path();
  }
}

// Everything that supervising does after the seal is done by these launches: the deadline's kill, signals, the report.
TEST(SealedLauncher, EndsAGuestThatDoesNotListen) {
  const TempDir work;
  const TempDir reports;
  const Output output = run(sealed_script(work.path(), "trap '' TERM; while :; do sleep 1; done",
                                          {"--timeout", "1s", "--report", reports / "report"}));
  EXPECT_EQ(output.code, 124) << output.err;
  EXPECT_THAT(read_text(reports / "report"), ::testing::HasSubstr("\"reason\": \"deadline\""));
}

}  // namespace
}  // namespace belljar::testing
