// The Engine API client against a real engine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "docker/world.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/frames.h"

namespace belljar::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using tiers::docker::Answered;
using tiers::docker::Engine;
using tiers::docker::Hijacked;
using tiers::docker::Outcome;
using tiers::docker::Refused;

class ClientTest : public ::testing::Test {
 protected:
  static base::Deadline soon() { return base::Deadline::after(std::chrono::seconds(60)); }
  const Engine& engine() { return DockerWorld::get().engine(); }

  // Creates a container and returns its id; it is removed at the end.
  std::string create(const std::string& json) {
    const auto answer = require(engine().post("/containers/create", json, soon()), "create", "");
    EXPECT_TRUE(answer.has_value()) << answer.error().message();
    const auto id = answer ? tiers::docker::read_id(answer->body) : std::nullopt;
    made_.push_back(id.value_or(""));
    return made_.back();
  }
  void TearDown() override {
    for (const std::string& id : made_) (void)engine().ask("DELETE", "/containers/" + id + "?force=1&v=1", soon());
  }
  std::vector<std::string> made_;
};

TEST_F(ClientTest, KnowsTheEngine) {
  EXPECT_FALSE(engine().info().version.empty());
  EXPECT_THAT(engine().info().runtimes, Contains("runc"));
  EXPECT_THAT(engine().info().security_options, Contains(HasSubstr("name=seccomp")));
  EXPECT_TRUE(engine().info().pids_limit);
}

TEST_F(ClientTest, NamesAnImageByItsContent) {
  const auto image = engine().image(DockerWorld::kImage, soon());
  ASSERT_TRUE(image.has_value()) << image.error().message();
  EXPECT_EQ(image->id, DockerWorld::get().image_id());
  EXPECT_THAT(image->env, Contains("PATH=/usr/local/bin:/bin"));
  EXPECT_EQ(image->labels.at("made-by"), "tests");
  const auto by_id = engine().image(image->id, soon());
  ASSERT_TRUE(by_id.has_value());
  EXPECT_EQ(by_id->id, image->id);
  EXPECT_THAT(engine().image("no-such-image:at-all", soon()).error().message(),
              HasSubstr("does not have it, refusing (fetch it first: docker pull)"));
}

TEST_F(ClientTest, TellsRefusalsByTheirStatus) {
  const Outcome absent = engine().ask("GET", "/containers/no-such-container/json", soon());
  ASSERT_TRUE(std::holds_alternative<Refused>(absent));
  EXPECT_TRUE(std::get<Refused>(absent).absent());
  const Outcome bad = engine().post("/containers/create", "{", soon());
  ASSERT_TRUE(std::holds_alternative<Refused>(bad));
  EXPECT_GE(std::get<Refused>(bad).status, 400);
}

TEST_F(ClientTest, FindsWhatBearsALabel) {
  const std::string label = "belljar.test=" + std::to_string(::getpid());
  const std::string id =
      create(R"({"Image":")" + DockerWorld::get().image_id() + R"(","Cmd":["/bin/true"],"Labels":{"belljar.test":")" +
             std::to_string(::getpid()) + R"("}})");
  const auto found = engine().containers_with(label, soon());
  ASSERT_TRUE(found.has_value());
  ASSERT_THAT(*found, SizeIs(1));
  EXPECT_EQ(found->front().id, id);
  EXPECT_EQ(found->front().state, "created");
  EXPECT_THAT(*engine().containers_with(label + "0", soon()), SizeIs(0));
  EXPECT_THAT(*engine().volumes_with(label, soon()), SizeIs(0));
}

// A whole conversation over the hijacked connection: input, its end, and both outputs apart.
TEST_F(ClientTest, AttachesByAnUpgrade) {
  const std::string id = create(R"({"Image":")" + DockerWorld::get().image_id() +
                                R"(","Cmd":["sh","-c","cat; echo problem >&2"],"AttachStdin":true,"AttachStdout":true,)"
                                R"("AttachStderr":true,"OpenStdin":true,"StdinOnce":true,)"
                                R"("HostConfig":{"NetworkMode":"none"}})");
  Hijacked attached;
  const auto taken =
      require(engine().hijack("/containers/" + id + "/attach?stream=1&stdin=1&stdout=1&stderr=1", "", attached, soon()),
              "attach", id);
  ASSERT_TRUE(taken.has_value()) << taken.error().message();
  ASSERT_TRUE(std::holds_alternative<Answered>(engine().ask("POST", "/containers/" + id + "/start", soon())));
  const std::string much(100'000, 'x');
  const auto output = tiers::docker::gather(std::move(attached), much, 1'000'000, soon());
  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_EQ(output->out, much);
  EXPECT_EQ(output->err, "problem\n");
}

}  // namespace
}  // namespace belljar::testing
