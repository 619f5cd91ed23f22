// A host whose distribution restricts user namespaces (shared/cases/host.md, H1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/namespace_restriction.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What a guest tells of itself: that its network is one of its own, and that it holds no privilege.
constexpr const char* kLook =
    "echo started; sed -n 's/^ *\\([^ ]*\\):.*/\\1/p' /proc/net/dev; grep -c '^Cap.*[[:space:]]0000000000000000$' "
    "/proc/self/status; sed -n 's/^NoNewPrivs:.//p' /proc/self/status; exit 5";
constexpr const char* kSealed = "started\nlo\n5\n1\n";

void expect_refusal(const Output& output) {
  EXPECT_EQ(output.code, 125) << output.out;
  EXPECT_THAT(output.out, Not(HasSubstr("started")));
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("Operation not permitted"), HasSubstr("AppArmor"), HasSubstr("belljar doctor")));
}

class RestrictedHostTest : public ::testing::Test {
 protected:
  Output launch(std::vector<std::string> options) {
    options.insert(options.end(), {"--report", reports_ / "end.json"});
    return run(sealed_script(work_.path(), kLook, options));
  }
  [[nodiscard]] nlohmann::json report() const {
    return nlohmann::json::parse(read_text(reports_ / "end.json"), nullptr, false);
  }
  TempDir work_;
  TempDir reports_;
};

TEST_F(RestrictedHostTest, TheProfiledBubblewrapIsUsedWhenItIsAskedFor) {
  const NamespaceRestriction restriction(bubblewrap_program());
  const Output output = launch({"--mode", "bwrap"});
  EXPECT_EQ(output.code, 5) << output.err;
  EXPECT_EQ(output.out, kSealed);
  EXPECT_EQ(report()["tier"], "bwrap");
  EXPECT_FALSE(report()["probe"].is_null());
}

TEST_F(RestrictedHostTest, TheJailIsRefusedWithTheRemedyAndNothingElseIsDoneInItsPlace) {
  const NamespaceRestriction restriction(bubblewrap_program());
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{}, {"--net", "deny"}, {"--net", "allow"}}) {
    const Output output = launch(options);
    if (::geteuid() == 0) {
      // Only who has no privilege is restricted.
      EXPECT_EQ(output.code, 5) << output.err;
      EXPECT_EQ(report()["tier"], "jail");
      continue;
    }
    expect_refusal(output);
    EXPECT_EQ(report()["exit"]["reason"], "failed");
  }
}

TEST_F(RestrictedHostTest, ABubblewrapWithoutAProfileIsRefusedWithWhatItSaid) {
  const NamespaceRestriction restriction("/usr/bin/another-program");
  const Output output = launch({"--mode", "bwrap"});
  EXPECT_EQ(output.code, 125);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, AllOf(HasSubstr("bwrap: "), HasSubstr("bwrap-userns-restrict"), HasSubstr("refusing")));
}

}  // namespace
}  // namespace belljar::testing
