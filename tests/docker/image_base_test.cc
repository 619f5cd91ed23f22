// `belljar image build` on a base that the engine has fetched, named by the digest by which it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "docker/engine.h"
#include "docker/image_world.h"
#include "docker/world.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

TEST(ImageBase, IsNamedByTheDigestThatItWasFetchedBy) {
  const auto& engine = DockerWorld::get().engine();
  const TempDir temp;
  make_busybox_root(temp / "root.tar");
  // Where the engine is: on the loopback it speaks to a registry without TLS.
  Process registry(
      {.argv = {"nsenter", "--net=/proc/" + std::to_string(DockerWorld::get().engine_process()) + "/ns/net", "python3",
                std::string(BELLJAR_TESTS_DIR) + "/docker/registry.py", temp / "root.tar"}});
  const std::string line = registry.read_line().value_or("");
  const size_t space = line.find(' ');
  ASSERT_NE(space, std::string::npos) << line;
  const std::string name = "127.0.0.1:" + line.substr(0, space) + "/base";
  const std::string digest = line.substr(space + 1);
  const std::string reference = name + "@" + digest;

  const ImageWorld world;
  const auto build = [&](const std::string& base) {
    return run(world.build(engine.socket(), {"--base", base}), std::chrono::seconds(120));
  };
  EXPECT_THAT(build(reference).err, HasSubstr("the container engine does not have it, refusing"));

  const auto fetched = require(engine.ask("POST",
                                          "/images/create?fromImage=" + tiers::docker::percent_encode(name) +
                                              "&tag=" + tiers::docker::percent_encode(digest),
                                          soon()),
                               "fetch", reference);
  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  const auto base = engine.image(reference, soon());
  ASSERT_TRUE(base.has_value()) << base.error().message() << fetched->body;
  EXPECT_NE(base->id, digest) << "the one is of the manifest, the other of the content";

  const Output built = build(reference);
  ASSERT_EQ(built.code, 0) << built.err;
  const std::string id = built.out.substr(0, built.out.find('\n'));
  const auto image = engine.image(id, soon());
  ASSERT_TRUE(image.has_value()) << image.error().message();
  EXPECT_EQ(image->labels.at("belljar.pin.base"), base->id);

  EXPECT_THAT(build(name).err, HasSubstr("that may mean another image tomorrow, refusing"));
  EXPECT_THAT(build(name + "@sha256:" + std::string(64, '0')).err,
              HasSubstr("the container engine does not have it, refusing"));
  EXPECT_EQ(run(world.command(engine.socket(), {"image", "rm", id})).code, 0);
  EXPECT_TRUE(engine.image(reference, soon()).has_value()) << "the base is not the image's";
  (void)engine.ask("DELETE", "/images/" + tiers::docker::percent_encode(base->id) + "?force=1", soon());
}

}  // namespace
}  // namespace belljar::testing
