// The near end with a target that lies. What is `ssh` here says what a script tells it to.
#include "remote/near_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "remote/frame.h"

namespace belljar::remote {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class LyingTarget : public ::testing::Test {
 protected:
  LyingTarget() {
    std::string pattern = ::testing::TempDir() + "belljar-near-end-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = ::getenv("PATH");
    ::setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
    ::signal(SIGPIPE, SIG_IGN);  // belljar holds it for as long as it runs
  }
  ~LyingTarget() override {
    ::signal(SIGPIPE, SIG_DFL);
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  // What the target says when it is ready: `said`, then what `script`, one of a shell, prints.
  base::Result<LinkEnd> serve(const std::string& said, const std::string& script = "", base::Deadline latest = {}) {
    std::ofstream(folder_ + "/said") << said;
    std::ofstream(folder_ + "/ssh") << "#!/bin/sh\n[ \"$1\" != -G ] && [ \"$2\" != -G ] || exit 0\n"
                                    << "printf '\\nbelljar link 1 ready\\n'; cat '" << folder_ << "/said'\n"
                                    << script << "\n";
    ::chmod((folder_ + "/ssh").c_str(), 0700);
    BELLJAR_ASSIGN(Ssh ssh, Ssh::start("there", "command"));
    BELLJAR_ASSIGN(const bool ready, await_far_end(ssh, "there"));
    EXPECT_TRUE(ready);
    constexpr uint32_t kAllClosed = 7;
    return serve_near_end(std::move(ssh), "there", {}, kAllClosed, {}, latest);
  }

 private:
  std::string folder_;
  std::string path_;
};

TEST_F(LyingTarget, TellsTheCodeAndTheReportWhenItDoesNot) {
  const auto end = serve(frame(FrameType::kReport, "{\"a\":") + frame(FrameType::kReport, "1}") +
                         frame(FrameType::kEnded, uint32_t{255}));
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_EQ(end->code, 255);
  EXPECT_EQ(end->report, "{\"a\":1}");
}

TEST_F(LyingTarget, SaysNoCodeThatIsNone) {
  for (const uint32_t code : {256U, 0x100U * 256, 0x80000000U, 0xffffffffU}) {
    const auto end = serve(frame(FrameType::kEnded, code));
    ASSERT_FALSE(end) << code;
    EXPECT_THAT(end.error().message(), HasSubstr("an exit code that is none"));
  }
  EXPECT_FALSE(serve(frame(FrameType::kEnded, "0")));
}

TEST_F(LyingTarget, FillsNoMemoryByItsReport) {
  const auto end =
      serve(frame(FrameType::kReport, std::string(kMaxPayload, 'x')), "while cat \"${0%/*}/said\"; do :; done");
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message(), HasSubstr("a report without end"));
}

TEST_F(LyingTarget, DoesNotHoldAnyoneBeyondTheDeadline) {
  const auto end = serve(frame(FrameType::kAlive), "while cat \"${0%/*}/said\"; do sleep 0.05; done",
                         base::Deadline::after(std::chrono::milliseconds(300)));
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message(), StartsWith("run on the target 'there': its deadline has passed"));
}

}  // namespace
}  // namespace belljar::remote
