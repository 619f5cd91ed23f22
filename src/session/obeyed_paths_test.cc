#include "session/obeyed_paths.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "base/temp_tree.h"
#include "session/walk.h"

namespace belljar::session {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// While it lives nothing can be opened (EMFILE): what stands for a disk or a server that fails.
class NothingOpens {
 public:
  NothingOpens() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const base::Fd next(::open("/", O_PATH | O_CLOEXEC));
    const rlimit now{static_cast<rlim_t>(next.get()), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NothingOpens() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NothingOpens(const NothingOpens&) = delete;
  NothingOpens& operator=(const NothingOpens&) = delete;

 private:
  rlimit before_{};
};

class ObeyedPathsTest : public ::testing::Test {
 protected:
  ObeyedPathsTest() {
    tree_.file("work/.claude/settings.json", "{}");
    facts_.root = ::geteuid() == 0;
    paths_.set_trees({tree_.at("work")});
  }
  std::string fault() const { return paths_.status() ? "" : paths_.status().error().message(); }

  base::TempTree tree_;
  policy::Policy policy_;
  plan::Facts facts_;
  Walker walker_{false};
  ObeyedPaths paths_{policy_, facts_, walker_};
};

TEST_F(ObeyedPathsTest, WhatIsNotThereHoldsNothing) {
  EXPECT_THAT(paths_.entries(tree_.at("work/.claude"), 10), SizeIs(1));
  EXPECT_THAT(paths_.entries(tree_.at("work/.codex"), 10), SizeIs(0));
  EXPECT_THAT(paths_.entries(tree_.at("work/.claude/settings.json"), 10), SizeIs(0));
  EXPECT_EQ(paths_.read(tree_.at("work/.claude/settings.json"), 10, false), "{}");
  EXPECT_EQ(paths_.read(tree_.at("work/.claude/x"), 10, false), std::nullopt);
  EXPECT_EQ(fault(), "");
}

// The sanitizer looks at objects by a pipe of its own and takes one that it cannot make for a defect.
#ifdef __has_feature
#if __has_feature(undefined_behavior_sanitizer)
#define BELLJAR_NEEDS_DESCRIPTORS
#endif
#endif
#ifndef BELLJAR_NEEDS_DESCRIPTORS
TEST_F(ObeyedPathsTest, AFolderThatCannotBeReadNowIsNotAnEmptyOne) {
  {
    const NothingOpens now;
    EXPECT_THAT(paths_.entries(tree_.at("work/.claude"), 10), SizeIs(0));
  }
  EXPECT_THAT(fault(), HasSubstr("/work/.claude': it cannot be read: Too many open files"));
}

TEST_F(ObeyedPathsTest, NorIsAFile) {
  {
    const NothingOpens now;
    EXPECT_EQ(paths_.read(tree_.at("work/.claude/settings.json"), 10, false), std::nullopt);
  }
  EXPECT_THAT(fault(), HasSubstr("/work/.claude/settings.json': it cannot be read: Too many open files"));
}
#endif

}  // namespace
}  // namespace belljar::session
