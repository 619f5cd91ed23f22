// Which images a task may be made of, with a real engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "docker/world.h"
#include "support/temp_dir.h"
#include "tiers/docker/image/registered.h"

namespace belljar::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tiers::docker::Answered;
using tiers::docker::image::Registry;
using tiers::docker::image::require_registered;

constexpr const char* kTag = "belljar-registered:1";

class RegisteredTest : public ::testing::Test {
 protected:
  RegisteredTest() {
    id_ = DockerWorld::get().image_id();
    const auto other = engine().image("belljar-test:other", soon());
    EXPECT_TRUE(other.has_value());
    other_ = other ? other->id : "";
    give_tag(id_);
  }
  ~RegisteredTest() override { (void)engine().ask("DELETE", "/images/" + std::string(kTag), soon()); }

  static base::Deadline soon() { return base::Deadline::after(std::chrono::seconds(60)); }
  static const tiers::docker::Engine& engine() { return DockerWorld::get().engine(); }
  static void give_tag(const std::string& id) {
    const auto answer = engine().ask("POST", "/images/" + id + "/tag?repo=belljar-registered&tag=1", soon());
    EXPECT_TRUE(std::holds_alternative<Answered>(answer));
  }
  // The id, or why not.
  static std::string asked(const Registry& registry, const std::string& reference) {
    const auto image = require_registered(registry, engine(), reference, soon());
    return image ? image->id() : image.error().message();
  }

  std::string id_;
  std::string other_;
};

TEST_F(RegisteredTest, IsFoundByItsIdItsFirstDigitsAndItsTag) {
  const Registry registry{{id_, kTag}};
  EXPECT_EQ(asked(registry, id_), id_);
  EXPECT_EQ(asked(registry, id_.substr(7, 12)), id_);
  EXPECT_EQ(asked(registry, id_.substr(0, 7 + 12)), id_);
  EXPECT_EQ(asked(registry, kTag), id_);
  const auto image = require_registered(registry, engine(), id_, soon());
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->image().labels.at("made-by"), "tests");
}

TEST_F(RegisteredTest, AMovedTagIsRefused) {
  give_tag(other_);
  EXPECT_THAT(asked({{id_, kTag}}, kTag), AllOf(HasSubstr("the tag has moved"), HasSubstr(id_), HasSubstr(other_)));
  // Also when what it means now is registered too: it is not what was meant.
  EXPECT_THAT(asked({{id_, kTag}, {other_, "a:1"}}, kTag), HasSubstr("the tag has moved"));
  EXPECT_EQ(asked({{id_, kTag}}, id_), id_) << "the id is what counts";
}

TEST_F(RegisteredTest, AnImageThatWasNotBuiltIsRefused) {
  EXPECT_THAT(asked({{id_, kTag}}, other_), HasSubstr("belljar has not built it, refusing ('belljar image ls'"));
  EXPECT_THAT(asked({{id_, kTag}}, "belljar-test:other"), HasSubstr("belljar has not built " + other_));
  EXPECT_THAT(asked({}, id_), HasSubstr("belljar has not built it, refusing"));
  EXPECT_THAT(asked({{id_, kTag}}, "sha256:" + std::string(64, 'a')), HasSubstr("belljar has not built it"));
}

// What an image says of itself is whatever its maker wrote.
TEST_F(RegisteredTest, ACopiedLabelDoesNotHelp) {
  const TempDir temp;
  make_busybox_root(temp / "root.tar");
  const auto copy = import_root(engine(), temp / "root.tar", "belljar-copy:1",
                                {"ENV PATH=/usr/local/bin:/bin", "LABEL made-by=tests"});
  ASSERT_TRUE(copy.has_value()) << copy.error().message();
  ASSERT_NE(*copy, id_);
  EXPECT_EQ(engine().image(*copy, soon())->labels, engine().image(id_, soon())->labels);
  EXPECT_THAT(asked({{id_, kTag}}, *copy), HasSubstr("belljar has not built it"));
  EXPECT_THAT(asked({{id_, kTag}}, "belljar-copy:1"), HasSubstr("belljar has not built " + *copy));
  (void)engine().ask("DELETE", "/images/" + *copy + "?force=1", soon());
}

TEST_F(RegisteredTest, OneThatTheEngineDoesNotHaveIsRefused) {
  const std::string gone = "sha256:" + std::string(64, 'a');
  EXPECT_THAT(asked({{gone, ""}}, gone), HasSubstr("the container engine does not have it, refusing"));
  EXPECT_THAT(asked({{"latest", ""}}, "latest"), HasSubstr("holds what is no id, refusing"));
  EXPECT_THAT(asked({{id_, kTag}}, ""), HasSubstr("refusing"));
}

}  // namespace
}  // namespace belljar::testing
