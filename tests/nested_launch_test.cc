// Launches within launches: each works, or is refused with the reason, as a probe in the same place says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/text.h"
#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

enum class Outer : uint8_t { kJail, kNestedJail, kBwrapTier, kBubblewrap };
enum class Inner : uint8_t { kJail, kBwrapTier };

struct Nesting {
  Outer outer;
  Inner inner;
  // What must not work, whatever the host: nothing may be made inside. Of the rest the probe decides.
  [[nodiscard]] bool shut() const { return outer == Outer::kJail || outer == Outer::kBwrapTier; }
};

std::string name_of(const Nesting& nesting) {
  constexpr const char* kOuter[] = {"Jail", "NestedJail", "BwrapTier", "Bubblewrap"};
  constexpr const char* kInner[] = {"Jail", "BwrapTier"};
  return std::string(kInner[static_cast<size_t>(nesting.inner)]) + "In" + kOuter[static_cast<size_t>(nesting.outer)];
}

void PrintTo(const Nesting& nesting, std::ostream* out) {
  *out << name_of(nesting);
}

class NestedLaunchTest : public ::testing::TestWithParam<Nesting> {
 protected:
  NestedLaunchTest() {
    std::filesystem::permissions(programs_.path(), static_cast<std::filesystem::perms>(0755));
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy(base::parent_of(belljar_program()) + "/" + name, programs_ / name);
    }
  }

  // `script`, with $BELLJAR and $MODE, inside of the outer boundary.
  Output outer(const std::string& script) {
    // A guest sees nothing of the belljar that launches it: this one is installed for it.
    const std::string program = programs_ / "belljar";
    const std::string mode = GetParam().inner == Inner::kBwrapTier ? "--mode bwrap" : "";
    const std::string text = "BELLJAR=" + base::shell_quote(program) + "\nMODE='" + mode + "'\n" + script;
    if (GetParam().outer == Outer::kBubblewrap) {
      return run({.argv = {"bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--die-with-parent", "--bind",
                           "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "/bin/sh", "-c", text},
                  .cwd = work_.path()});
    }
    std::vector<std::string> options{"--read", programs_.path()};
    if (GetParam().outer == Outer::kNestedJail) options.emplace_back("--nested");
    if (GetParam().outer == Outer::kBwrapTier) options.insert(options.end(), {"--mode", "bwrap"});
    return run(sealed_script(work_.path(), text, options));
  }
  TempDir work_;
  TempDir programs_;
};

// Probe and run in one place: neither is assumed of the other.
TEST_P(NestedLaunchTest, WorksOrIsRefusedAsTheProbeSays) {
  const Output probe = outer("$BELLJAR probe $MODE 2>&1");
  const Output launch = outer(
      "$BELLJAR run $MODE -- sh -c 'echo it-ran; touch made; touch /usr/made 2>/dev/null && echo hole; "
      "cat /proc/1/comm; exit 7' 2>&1");
  const bool works = probe.code == 0;
  if (works) {
    EXPECT_EQ(launch.code, 7) << launch.out << launch.err;
    EXPECT_THAT(launch.out, HasSubstr("it-ran\nbelljar-guest\n"));
    EXPECT_TRUE(std::filesystem::exists(work_ / "made"));
    std::printf("works here, as the probe says\n");
  } else {
    EXPECT_EQ(launch.code, 125);
    EXPECT_FALSE(std::filesystem::exists(work_ / "made"));
    EXPECT_THAT(launch.out, Not(HasSubstr("it-ran")));
    EXPECT_THAT(launch.out, HasSubstr("belljar: "));
    // The same reason, in words.
    const std::string reason = probe.out.substr(0, probe.out.find('\n'));
    EXPECT_THAT(launch.out, HasSubstr(reason));
    EXPECT_GT(reason.size(), 20U);
    std::printf("refused here, as the probe says: %s\n", base::escape(reason).c_str());
  }
  EXPECT_FALSE(works && GetParam().shut()) << probe.out;
}

INSTANTIATE_TEST_SUITE_P(
    Of, NestedLaunchTest,
    ::testing::Values(Nesting{Outer::kJail, Inner::kJail}, Nesting{Outer::kJail, Inner::kBwrapTier},
                      Nesting{Outer::kNestedJail, Inner::kJail}, Nesting{Outer::kNestedJail, Inner::kBwrapTier},
                      Nesting{Outer::kBwrapTier, Inner::kJail}, Nesting{Outer::kBwrapTier, Inner::kBwrapTier},
                      Nesting{Outer::kBubblewrap, Inner::kJail}, Nesting{Outer::kBubblewrap, Inner::kBwrapTier}),
    [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace belljar::testing
