// What a task's first process proves before the agent starts: each protection taken away from a real container of the
// task profile, unchecked from outside, and the refusal of the check that is for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "docker/task_launch.h"
#include "docker/weakness.h"
#include "docker/world.h"
#include "guest/probe.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using guest::Check;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tiers::docker::Prepared;
using tiers::docker::task::Phase;

constexpr const char* kLogin = R"({"OPENAI_API_KEY":"sk-hush"})";
constexpr const char* kState = "/run/belljar-state/codex";

Weaken tmpfs(const char* target, const char* from, const char* to) {
  return [=](Prepared&, json& request) {
    std::string text = request["HostConfig"]["Tmpfs"][target];
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    request["HostConfig"]["Tmpfs"][target] = text.replace(at, std::string(from).size(), to);
  };
}
Weaken without_tmpfs(const char* target) {
  return [=](Prepared&, json& request) { request["HostConfig"]["Tmpfs"].erase(target); };
}
Weaken mount(const char* target, const std::function<void(json&)>& change) {
  return [=](Prepared&, json& request) {
    for (json& one : request["HostConfig"]["Mounts"]) {
      if (one["Target"] == target) change(one);
    }
  };
}
Weaken without_mount(const char* target) {
  return [=](Prepared&, json& request) {
    json kept = json::array();
    for (json& one : request["HostConfig"]["Mounts"]) {
      if (one["Target"] != target) kept.push_back(one);
    }
    request["HostConfig"]["Mounts"] = kept;
  };
}
Weaken variable(const char* name, const char* value) {
  return [=](Prepared&, json& request) {
    json kept = json::array();
    for (const json& one : request["Env"]) {
      if (!one.get<std::string>().starts_with(std::string(name) + "=")) kept.push_back(one);
    }
    if (value != nullptr) kept.push_back(std::string(name) + "=" + value);
    request["Env"] = kept;
  };
}

// A folder of the host's in place of what is there, with another in it called `.git`.
Weaken of_the_host(const char* target) {
  return [=](Prepared&, json& request) {
    static const TempDir folder;
    std::filesystem::create_directories(folder / ".git");
    std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
    json mounts = json::array();
    for (json& one : request["HostConfig"]["Mounts"]) {
      if (one["Target"] != target) mounts.push_back(one);
    }
    mounts.push_back({{"Type", "bind"}, {"Source", folder.path()}, {"Target", target}, {"ReadOnly", true}});
    request["HostConfig"]["Mounts"] = mounts;
  };
}

// A tmpfs in which something lies: the task's work once more.
Weaken used(const char* target) {
  return [=](Prepared& prepared, json& request) {
    request["HostConfig"]["Tmpfs"].erase(target);
    json volume = request["HostConfig"]["Mounts"][0];
    volume["Target"] = target;
    volume["ReadOnly"] = false;
    request["HostConfig"]["Mounts"].push_back(volume);
    auto& mounts = prepared.config.mounts;
    const auto mount = std::ranges::find(mounts, target, &guest::ExpectedMount::path);
    mount->bytes = TaskVolumes::kBytes;
    mount->files = TaskVolumes::kFiles;
  };
}

void writable(json& one) {
  one["ReadOnly"] = false;
  if (one.contains("BindOptions")) one["BindOptions"].erase("NonRecursive");
}

// And nothing told init what lies behind the mounts.
Weaken with_any_source(const Weaken& weaken) {
  return [weaken](Prepared& prepared, json& request) {
    for (guest::ExpectedMount& each : prepared.config.mounts) each.inode = 0;
    weaken(prepared, request);
  };
}

std::vector<Weakness> of_the_ids_and_limits() {
  return {
      {Check::kIdentity, "uid",
       [](Prepared& prepared, json& request) {
         prepared.profile.uid = 10002;  // who the launcher lets in
         request["User"] = "10002:10001";
         tmpfs("/home/agent", "mode=0700", "mode=0777")(prepared, request);
       }},
      {Check::kLimits, "RLIMIT_CORE",
       without_step(guest::kStepLimits, R"({"HostConfig":{"Ulimits":[{"Name":"nofile","Soft":16384,"Hard":16384},)"
                                        R"({"Name":"core","Soft":5,"Hard":5}]}})")},
  };
}

std::vector<Weakness> of_the_folders() {
  return {
      {Check::kMounts, "'/work'", mount("/work", &writable)},
      {Check::kMounts, "'/work': expected a tmpfs", of_the_host("/work")},
      {Check::kWorkFolder, "a volume of its own",
       [](Prepared&, json& request) {
         json& mounts = request["HostConfig"]["Mounts"];
         mounts[1]["Source"] = mounts[0]["Source"];
       }},
      {Check::kScratch, "bytes of /work",
       [](Prepared& prepared, json&) {
         std::ranges::find(prepared.config.mounts, "/work", &guest::ExpectedMount::path)->bytes += 4096;
       }},
      {Check::kScratch, "files of /work/.git",
       [](Prepared& prepared, json&) {
         std::ranges::find(prepared.config.mounts, "/work/.git", &guest::ExpectedMount::path)->files += 1;
       }},
      {Check::kScratch, "bytes of /tmp", tmpfs("/tmp", "size=1073741824", "size=2147483648")},
      {Check::kScratch, "files of /tmp", tmpfs("/tmp", "nr_inodes=200000", "nr_inodes=200001")},
      {Check::kScratch, "bytes of /home/agent", tmpfs("/home/agent", "size=268435456", "size=268439552")},
      {Check::kScratch, "files of /run/belljar-state/codex", tmpfs(kState, "nr_inodes=20000", "nr_inodes=0")},
      {Check::kMounts, "nosuid", tmpfs("/tmp", "nosuid", "suid")},
      {Check::kMounts, "nodev", tmpfs("/home/agent", "nodev", "dev")},
      {Check::kMounts, "'/home/agent': expected a tmpfs",
       [](Prepared& prepared, json& request) {
         without_tmpfs("/home/agent")(prepared, request);
         of_the_host("/home/agent")(prepared, request);
       }},
      // What no mount of the plan's accounts for.
      {Check::kMounts, "'/home/agent/left'", of_the_host("/home/agent/left")},
      {Check::kScratch, "'/home/agent/.git': expected an empty scratch", used("/home/agent")},
      {Check::kScratch, "codex/.git': expected an empty scratch", used(kState)},
      {Check::kMounts, "'/tmp'", without_tmpfs("/tmp")},
      {Check::kMounts, kState, without_tmpfs(kState)},
      {Check::kMounts, "/etc/passwd", mount("/etc/passwd", &writable)},
      {Check::kMounts, "'/run/belljar'", mount("/run/belljar", &writable)},
      {Check::kMounts, "/run/belljar-input/schema.json",
       mount("/run/belljar-input/schema.json", [](json& one) { one["Source"] = "/etc/hostname"; })},
      {Check::kEntrusted, "the launcher's file",
       with_any_source(mount("/run/belljar-input/schema.json", [](json& one) { one["Source"] = "/etc/hostname"; }))},
  };
}

// Where the work may be written.
std::vector<Weakness> of_the_metadata() {
  return {
      {Check::kMounts, "'/work/.git'", mount("/work/.git", &writable)},
      {Check::kMounts, "'/work/.git'", without_mount("/work/.git")},
  };
}

std::vector<Weakness> of_what_it_is_given() {
  return {
      {Check::kEntrusted, "CODEX_HOME", variable("CODEX_HOME", "/work")},
      {Check::kEntrusted, "PATH", variable("PATH", "/work:/bin")},
      {Check::kEntrusted, "npm_config_cache", variable("npm_config_cache", "/work/cache")},
      {Check::kEntrusted, "XDG_CACHE_HOME", variable("XDG_CACHE_HOME", nullptr)},
      {Check::kEntrusted, "ANTHROPIC_API_KEY", variable("ANTHROPIC_API_KEY", "sk-other")},
      {Check::kEntrusted, "HOME", variable("HOME", "/work")},
  };
}

// The codex of the profile, with all that it can be given.
base::Result<guest::ProbeRecord> prove(Phase phase, const Weaken& weaken) {
  TaskLaunch launch(BELLJAR_GUEST,
                    {.phase = phase, .agent = "codex", .login = kLogin, .schema = R"({"type":"object"})"});
  return launch.prove(weaken);
}

void refuse_each(const std::vector<Weakness>& weaknesses, Phase phase = Phase::kReview) {
  for (const Weakness& weakness : weaknesses) {
    const auto record = prove(phase, weakness.weaken);
    ASSERT_FALSE(record.has_value()) << guest::check_name(weakness.check) << " " << weakness.what;
    EXPECT_THAT(record.error().message(), AllOf(HasSubstr(std::string("probe ") + guest::check_name(weakness.check)),
                                                HasSubstr(weakness.what), Not(HasSubstr("sk-"))));
  }
}

TEST(TaskProbe, ProvesAnIntactContainerOfEachPhase) {
  for (const Phase phase : tiers::docker::task::kPhases) {
    const auto record = prove(phase, {});
    ASSERT_TRUE(record.has_value()) << record.error().message();
    EXPECT_EQ(record->failed, 0U);
    EXPECT_EQ(record->uid, tiers::docker::task::kUser);
  }
}

TEST(TaskProbe, RefusesEachThatLacksAPartOfTheBoundary) {
  refuse_each(weaknesses_of_the_boundary());
  refuse_each(of_the_ids_and_limits());
}

TEST(TaskProbe, RefusesEachWhoseFoldersAreOther) {
  refuse_each(of_the_folders());
  refuse_each(of_the_metadata(), Phase::kExecute);
}

TEST(TaskProbe, RefusesEachThatIsGivenSomethingElse) {
  refuse_each(of_what_it_is_given());
}

// What the image's labels say of its packages, and the packages do not.
TEST(TaskProbe, RefusesEachWhoseVersionsAreOther) {
  const auto with = [](std::string_view path, std::string_view holds) {
    return prove(Phase::kPlan,
                 [=](Prepared& prepared, json&) { prepared.config.files.push_back({.path = path, .holds = holds}); });
  };
  EXPECT_TRUE(with("/etc/group", "agent").has_value());
  const auto other = with("/etc/group", "\"1.2.3\"");
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message(), AllOf(HasSubstr("probe entrusted '/etc/group'"), HasSubstr("1.2.3")));
  const auto missing = with("/opt/belljar/agents/node_modules/x/package.json", "\"1.2.3\"");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message(),
              HasSubstr("probe entrusted '/opt/belljar/agents/node_modules/x/package.json'"));
}

TEST(TaskProbe, HasExactlyTheOneLogin) {
  const std::string login = std::string(kState) + "/auth.json";
  // It is missing.
  auto record = prove(Phase::kPlan, without_mount(login.c_str()));
  ASSERT_FALSE(record.has_value());
  EXPECT_THAT(record.error().message(), HasSubstr(login));
  // Another file lies there.
  const auto another = mount(login.c_str(), [](json& one) { one["Source"] = "/etc/hostname"; });
  record = prove(Phase::kPlan, another);
  ASSERT_FALSE(record.has_value());
  EXPECT_THAT(record.error().message(), AllOf(HasSubstr("probe mounts"), HasSubstr(login)));
  record = prove(Phase::kPlan, with_any_source(another));
  ASSERT_FALSE(record.has_value());
  EXPECT_THAT(record.error().message(), AllOf(HasSubstr("probe entrusted"), HasSubstr(login)));
  // It can be written to.
  record = prove(Phase::kPlan, mount(login.c_str(), &writable));
  ASSERT_FALSE(record.has_value());
  EXPECT_THAT(record.error().message(), AllOf(HasSubstr("read-only"), HasSubstr(login)));
  // Another vendor's comes along.
  record = prove(Phase::kPlan, [](Prepared& prepared, json& request) {
    request["HostConfig"]["Tmpfs"]["/run/belljar-state/claude"] = "rw,nosuid,nodev,size=4096,nr_inodes=10,mode=0777";
    prepared.config.mounts.push_back(
        {.path = "/run/belljar-state/claude", .writable = true, .tmpfs = true, .bytes = 4096, .files = 10});
  });
  ASSERT_FALSE(record.has_value());
  EXPECT_THAT(record.error().message(),
              AllOf(HasSubstr("probe entrusted"), HasSubstr("/run/belljar-state/claude"), HasSubstr("nothing")));
}

TEST(TaskProbe, HasNoLoginWhenNoneIsGiven) {
  TaskLaunch launch(BELLJAR_GUEST, {.agent = "claude", .token = "ANTHROPIC_API_KEY=sk-hush"});
  const TempDir other;
  write_file(other / "login", "{}");
  const auto record = launch.prove([&](Prepared& prepared, json& request) {
    const char* target = "/run/belljar-state/claude/.credentials.json";
    request["HostConfig"]["Mounts"].push_back({{"Type", "bind"}, {"Source", other / "login"}, {"Target", target}});
    prepared.config.mounts.push_back({.path = target, .writable = true, .plain = true});
  });
  ASSERT_FALSE(record.has_value());
  EXPECT_THAT(record.error().message(),
              AllOf(HasSubstr("probe entrusted"), HasSubstr(".credentials.json"), Not(HasSubstr("sk-hush"))));
}

}  // namespace
}  // namespace belljar::testing
