// `belljar image`, with the built program, a real engine and small packages.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "docker/image_world.h"
#include "docker/world.h"

namespace belljar::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}
const tiers::docker::Engine& engine() {
  return DockerWorld::get().engine();
}

class ImageTest : public ::testing::Test {
 protected:
  ~ImageTest() override {
    for (const char* label : {"belljar.build", "belljar.import"}) {
      const auto images = engine().images_with(label, soon());
      for (const std::string& id : images ? *images : std::vector<std::string>{}) {
        (void)engine().ask("DELETE", "/images/" + id + "?force=1", soon());
      }
    }
  }

  static std::string line(std::string text) {
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }
  static Output build(const ImageWorld& world, const std::vector<std::string>& options = {}) {
    return run(world.build(DockerWorld::get().socket(), options));
  }
  static Output belljar(const ImageWorld& world, const std::vector<std::string>& words) {
    return run(world.command(DockerWorld::get().socket(), words));
  }
  // Whatever bears a label of a build's.
  static std::vector<std::string> left() {
    std::vector<std::string> out;
    const auto containers = engine().containers_with("belljar.build", soon());
    EXPECT_TRUE(containers.has_value());
    if (containers) {
      for (const auto& one : *containers) out.push_back(one.name);
    }
    for (const char* label : {"belljar.build", "belljar.import"}) {
      const auto images = engine().images_with(label, soon());
      EXPECT_TRUE(images.has_value());
      if (images) out.insert(out.end(), images->begin(), images->end());
    }
    return out;
  }
  static void expect_nothing(const ImageWorld& world) {
    EXPECT_THAT(left(), IsEmpty());
    EXPECT_EQ(belljar(world, {"image", "ls"}).out, "");
    EXPECT_THAT(world.records(), IsEmpty());
  }
  // Why it was refused; and nothing may be left of it.
  static std::string refused(const ImageWorld& world, const std::vector<std::string>& options = {}) {
    const Output output = build(world, options);
    EXPECT_EQ(output.code, 125) << output.err;
    EXPECT_EQ(output.out, "");
    expect_nothing(world);
    return output.err;
  }
  // In a container of the image, as a launch makes it.
  static Output in_image(const ImageWorld& world, const std::string& id, const std::string& script) {
    const TempDir work;
    if (::geteuid() == 0) (void)!::chown(work.path().c_str(), 23458, 23458);
    Command command = world.command(DockerWorld::get().socket(),
                                    {"run", "--mode", "docker", "--docker-image", id, "--", "sh", "-c", script});
    command.cwd = work.path();
    return run(command);
  }
  static SmallPackage& package(std::vector<SmallPackage>& packages, const std::string& name) {
    return *std::ranges::find(packages, name, &SmallPackage::name);
  }
};

TEST_F(ImageTest, IsBuiltFromALocalRootRegisteredAndUsed) {
  const ImageWorld world;
  const Output output = build(world);
  ASSERT_EQ(output.code, 0) << output.err;
  const std::string id = line(output.out);
  const auto image = engine().image(id, soon());
  ASSERT_TRUE(image.has_value()) << image.error().message();
  EXPECT_EQ(image->id, id);
  EXPECT_THAT(image->labels.at("belljar.pin.tool"), StartsWith("tool@4.5.6 sha512-"));
  EXPECT_THAT(image->labels.at("belljar.pin.base"), StartsWith("sha256:"));
  EXPECT_THAT(image->labels.at("belljar.pin.lock"), StartsWith("sha256:"));
  EXPECT_THAT(*engine().containers_with("belljar.build", soon()), IsEmpty());
  EXPECT_THAT(world.records(), IsEmpty());
  const Output list = belljar(world, {"image", "ls"});
  EXPECT_THAT(list.out, AllOf(StartsWith(id.substr(0, 19)), HasSubstr("belljar-agents:"),
                              HasSubstr("\n  tool=tool@4.5.6 sha512-"), HasSubstr("base=sha256:")))
      << list.err;
  const Output inside = in_image(world, id,
                                 "tool; cd /opt/belljar/agents/node_modules; cat @anthropic-ai/claude-code/ran; "
                                 "ls node-small tool; ls -l /opt/belljar | grep -v root; ls -d /belljar-build;"
                                 "grep agent /etc/passwd; touch /opt/belljar/x");
  // The one script that may run has run, in its own folder, and no other.
  EXPECT_THAT(inside.out,
              AllOf(StartsWith("uid "), HasSubstr("\ninstall.cjs\n"), HasSubstr("evil.js"), Not(HasSubstr("ran\n"))))
      << inside.err;
  EXPECT_THAT(inside.err, AllOf(HasSubstr("/belljar-build: No such file"), HasSubstr("Read-only file system")));

  EXPECT_THAT(belljar(world, {"image", "rm", "belljar-test:busybox"}).err, HasSubstr("no image that was built here"));
  EXPECT_THAT(belljar(world, {"image", "rm", DockerWorld::get().image_id()}).err,
              HasSubstr("no image that was built here"));
  const Output removed = belljar(world, {"image", "rm", id.substr(7, 12)});
  EXPECT_EQ(removed.out, "removed " + id + "\n") << removed.err;
  expect_nothing(world);
}

// A second image on the same base, by its id; the base of one that was built here is no base.
TEST_F(ImageTest, HasABaseThatIsNamedByItsContent) {
  const ImageWorld world;
  const std::string base = DockerWorld::get().image_id();
  const Output first = build(world, {"--base", base});
  ASSERT_EQ(first.code, 0) << first.err;
  const auto image = engine().image(line(first.out), soon());
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->labels.at("belljar.pin.base"), base);
  EXPECT_EQ(image->labels.at("made-by"), "tests");
  EXPECT_THAT(image->env, Contains("PATH=/usr/local/bin:/bin"));
  const auto why = [&](const std::string& reference) { return build(world, {"--base", reference}).err; };
  EXPECT_THAT(why("belljar-test:busybox"), HasSubstr("that may mean another image tomorrow, refusing"));
  EXPECT_THAT(why(base.substr(7, 12)), HasSubstr("that may mean another image tomorrow"));
  EXPECT_THAT(why("sha256:" + std::string(64, 'b')), HasSubstr("does not have it, refusing"));
  EXPECT_THAT(why("debian@sha256:" + std::string(64, 'b')), HasSubstr("does not have it, refusing"));
  EXPECT_THAT(why(line(first.out)), HasSubstr("it was built by belljar itself, refusing"));
  ASSERT_EQ(belljar(world, {"image", "rm", line(first.out)}).code, 0);
  EXPECT_TRUE(engine().image(base, soon()).has_value()) << "the base is not the image's";
  expect_nothing(world);
}

TEST_F(ImageTest, RefusesWhatIsNotWhatTheLockNames) {
  const ImageWorld world;
  {
    std::ofstream(world.packages() + "/1.tgz", std::ios::app) << "more";
  }
  EXPECT_THAT(refused(world), HasSubstr("nothing there is tool 4.5.6 by its digest, refusing"));
  std::filesystem::remove(world.packages() + "/1.tgz");
  EXPECT_THAT(refused(world), HasSubstr("nothing there is tool 4.5.6 by its digest, refusing"));
  EXPECT_THAT(refused(world, {"--timeout", "x"}), HasSubstr("--timeout 'x'"));
  EXPECT_THAT(belljar(world, {"image", "build"}).err, HasSubstr("it takes one base"));
}

TEST_F(ImageTest, ChecksEachToolInTheBuiltImage) {
  auto packages = ImageWorld::good_packages();
  package(packages, "tool").programs["tool"] = "echo tool 4.5.7";
  EXPECT_THAT(refused(ImageWorld(packages)),
              HasSubstr("check the image 'tool': it calls itself 'tool 4.5.7', not 4.5.6, refusing"));
  package(packages, "tool").programs["tool"] = "echo 4.5.6; exit 3";
  EXPECT_THAT(refused(ImageWorld(packages)), HasSubstr("it ended with 3"));
  // What the check's container may not do: no network, no root, nothing to write, no capability.
  package(packages, "tool").programs["tool"] =
      "echo 4.5.6; id -u >&2; ls /sys/class/net >&2; touch /x; grep -E 'Cap(Eff|Bnd)|NoNew' /proc/self/status >&2; "
      "exit 1";
  EXPECT_THAT(
      refused(ImageWorld(packages)),
      AllOf(HasSubstr("10001\\nlo\\n"), HasSubstr("Read-only file system"), HasSubstr("CapEff:\\t0000000000000000"),
            HasSubstr("CapBnd:\\t0000000000000000"), HasSubstr("NoNewPrivs:\\t1")));
}

// The script that may run, runs without a network and without a capability too.
TEST_F(ImageTest, TheInstallScriptIsConfined) {
  auto packages = ImageWorld::good_packages();
  package(packages, "node-small").programs["node"] =
      "ls /sys/class/net >&2; grep -E 'Cap(Eff|Bnd)|NoNew|Seccomp:' /proc/self/status >&2; chown 1 $0 || exit 7";
  EXPECT_THAT(refused(ImageWorld(packages)),
              AllOf(HasSubstr("it ended with 7"), HasSubstr("lo\\nCap"), HasSubstr("CapEff:\\t0000000000000000"),
                    HasSubstr("CapBnd:\\t0000000000000000"), HasSubstr("NoNewPrivs:\\t1"), HasSubstr("Seccomp:\\t2"),
                    HasSubstr("Operation not permitted")));
}

std::vector<SmallPackage> that_never_end() {
  auto packages = ImageWorld::good_packages();
  packages.front().programs["node"] = "sleep 1000";
  return packages;
}

TEST_F(ImageTest, EndsAtItsDeadlineAndLeavesNothing) {
  const ImageWorld world(that_never_end());
  const auto start = std::chrono::steady_clock::now();
  const Output output = build(world, {"--timeout", "8s"});
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("Connection timed out"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_EQ(belljar(world, {"image", "ls"}).out, "");
  // What was under way then is looked for once more.
  EXPECT_THAT(world.records(), SizeIs(1));
  EXPECT_EQ(belljar(world, {"recover"}).code, 0);
  expect_nothing(world);
}

TEST_F(ImageTest, RecoverRemovesWhatAKilledBuilderLeft) {
  const ImageWorld world(that_never_end());
  Process process(world.build(DockerWorld::get().socket()));
  ASSERT_TRUE(eventually(
      [] {
        const auto found = engine().containers_with("belljar.build", soon());
        return found && found->size() == 1 && found->front().state == "running";
      },
      std::chrono::seconds(40)));
  EXPECT_EQ(belljar(world, {"recover"}).code, 0);
  EXPECT_THAT(left(), Not(IsEmpty())) << "its builder lives";
  process.signal(SIGKILL);
  (void)process.wait();
  const Output recovered = belljar(world, {"recover"});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  EXPECT_THAT(recovered.err, HasSubstr("recovered build "));
  expect_nothing(world);
}

}  // namespace
}  // namespace belljar::testing
