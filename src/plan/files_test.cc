#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/make_plan.h"
#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(WorkFolder, RefusesTheHomeWhatIsAboveItAndTheSystem) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/", "seal work folder '/': it is the root folder, refusing (start belljar in the folder of a project)"},
      {"/home/alice", "seal work folder '/home/alice': it is the home, with every login and key in it, refusing"},
      {"/home", "seal work folder '/home': the home lies in it, with every login and key, refusing"},
      {"/usr", "seal work folder '/usr': it belongs to the system, refusing"},
      {"/usr/local/lib", "seal work folder '/usr/local/lib': it belongs to the system, refusing"},
      {"/etc/nginx", "seal work folder '/etc/nginx': it belongs to the system, refusing"},
      {"/proc/1", "seal work folder '/proc/1': it belongs to the system, refusing"},
      {"/dev", "seal work folder '/dev': it belongs to the system, refusing"},
      {"/run/user/1000", "seal work folder '/run/user/1000': it belongs to the system, refusing"},
      {"/tmp", "seal work folder '/tmp': programs of the host share it; the guest has its own, refusing"},
      {"/var", "seal work folder '/var': programs of the host share it; the guest has its own, refusing"},
      {"/home/alice/.ssh", "seal work folder '/home/alice/.ssh': credentials are kept there, refusing"},
      {"/home/alice/.aws/cli", "seal work folder '/home/alice/.aws/cli': credentials are kept there, refusing"},
  };
  for (const bool root : {false, true}) {
    for (const auto& [folder, message] : cases) {
      Host host(root);
      host.facts.home = "/home/alice";
      host.facts.work_folder = folder;
      host.folder(folder);
      EXPECT_THAT(host.refusal(), StartsWith(message));
    }
  }
  for (const char* good : {"/home/alice/a b", "/tmp/x", "/srv/x", "/var/www", "/usr/src/app", "/opt/project"}) {
    Host host;
    host.facts.work_folder = good;
    host.folder(good);
    EXPECT_EQ(host.refusal(), "") << good;
  }
}

TEST(WorkFolder, OfAHomeBehindALinkIsStillTheHome) {
  Host host;
  host.facts.paths["/home/alice"] =
      through_link(path_fact(FileKind::kFolder, "/data/alice", 1000), "/home/alice", "/data/alice");
  host.facts.work_folder = "/data/alice";
  host.folder("/data/alice");
  EXPECT_THAT(host.refusal(), HasSubstr("it is the home"));
  host.facts.work_folder = "/data/alice/w";
  host.folder("/data/alice/w");
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->home, "/home/alice");
  EXPECT_EQ(mount_at(*plan, "/home/alice")->kind, MountKind::kLink);
  EXPECT_EQ(mount_at(*plan, "/data/alice")->kind, MountKind::kScratch);
}

TEST(Home, ThatCannotBePrivateIsReplaced) {
  for (const char* home : {"/", "", "/usr/games", "/opt/missing"}) {
    Host host;
    host.agent();
    host.facts.home = home;
    if (*home == '/' && std::string_view(home) != "/opt/missing") host.folder(home);
    const auto plan = host.plan();
    ASSERT_TRUE(plan) << home << plan.error().message();
    EXPECT_EQ(plan->home, "/home/agent");
    EXPECT_TRUE(any_contains(plan->notes, "cannot be private"));
  }
}

TEST(Files, RefusalsOfWriteAndReadNameThePathAndTheRemedy) {
  struct Case {
    std::string write, read, message;
  };
  const std::vector<Case> cases = {
      {"/", "", "files.write '/': it is the root folder, refusing (name the folder inside it that the agent needs)"},
      {"/usr", "", "files.write '/usr': it belongs to the system, refusing"},
      {"/etc", "", "files.write '/etc': it belongs to the system, refusing"},
      {"/proc", "", "files.write '/proc': it belongs to the system, refusing"},
      {"/dev", "", "files.write '/dev': it belongs to the system, refusing"},
      {"/home", "", "files.write '/home': the home lies in it"},
      {"~", "", "files.write '~': it is the home"},
      {"/tmp", "", "files.write '/tmp': programs of the host share it"},
      {"~bob/x", "", "resolve path '~bob/x': homes of other users are not looked up (write the absolute path)"},
      {"/absent", "",
       "files.write '/absent': there is no '/absent', refusing (create it, or take it out of the policy)"},
      {"/device", "", "files.write '/device': it is a device, refusing (name a file or a folder)"},
      {".git", "", "files.write '.git': git = \"read\" keeps '.git' read-only, refusing"},
      {"", "/", "files.read '/': it is the root folder, refusing"},
      {"", "~", "files.read '~': every login and key of the home would be in it, refusing"},
      {"", "/home", "files.read '/home': every login and key of the home would be in it, refusing"},
      {"", "/proc", "files.read '/proc': the guest has its own, or none, refusing"},
      {"", "/run", "files.read '/run': the sockets of the host's services are in it, refusing"},
      {"", "/run/user/1000", "files.read '/run/user/1000': the sockets of the host's services are in it, refusing"},
      {"", "/absent", "files.read '/absent': there is no '/absent', refusing"},
      {"", "/device", "files.read '/device': it is a device, refusing"},
      {"", "/srv/docker.sock",
       "files.read '/srv/docker.sock': who reaches a container engine is root of the host, refusing"},
      {"/engine", "", "files.write '/engine': who reaches a container engine is root of the host, refusing"},
      {"", ".", "files.read '.': the same path is writable in this launch, refusing (take it out of one of the two)"},
      {"/data", "/data", "files.read '/data': the same path is writable in this launch, refusing"},
      {"", "../../..//..", "resolve path '../../..//..': it holds a NUL byte or climbs above '/'"},
  };
  for (const Case& test : cases) {
    Host host;
    for (const char* folder : {"/", "/usr", "/etc", "/proc", "/dev", "/home", "/tmp", "/run", "/run/user/1000", "/data",
                               "/home/alice/work/.git"}) {
      host.folder(folder);
    }
    host.facts.paths["/device"] = path_fact(FileKind::kOther, "/device", 0);
    host.facts.environment["DOCKER_HOST"] = "unix:///engine";
    for (const char* engine : {"/srv/docker.sock", "/engine"}) {
      host.facts.paths[engine] = path_fact(FileKind::kSocket, engine, 0);
    }
    if (!test.write.empty()) host.policy.files.write = {test.write};
    if (!test.read.empty()) host.policy.files.read = {test.read};
    EXPECT_THAT(host.refusal(), StartsWith(test.message)) << test.write << test.read;
  }
}

TEST(Files, TheHomeIsAWorkFolderOnlyByName) {
  Host host;
  host.facts.work_folder = "/home/alice";
  host.facts.own_folders = {"/home/alice/.config/belljar", "/home/alice/.local/state/belljar"};
  EXPECT_THAT(host.refusal(), HasSubstr("or say --allow-home"));
  host.policy.files.allow_home = true;
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_THAT(plan->weakenings, Contains(StartsWith("allow_home = true: ")));
  ASSERT_NE(mount_at(*plan, "/home/alice"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/home/alice")->kind, MountKind::kBind);
  EXPECT_TRUE(plan->private_home.empty());
  // Nothing between the two can be moved away, nor can what is missing be made.
  for (const char* pinned : {"/home/alice/.config", "/home/alice/.local", "/home/alice/.local/state"}) {
    ASSERT_NE(mount_at(*plan, pinned), nullptr) << pinned;
    EXPECT_EQ(mount_at(*plan, pinned)->kind, MountKind::kBind);
    EXPECT_TRUE(mount_at(*plan, pinned)->writable);
  }
  for (const std::string& own : host.facts.own_folders) {
    EXPECT_EQ(mount_at(*plan, own)->kind, MountKind::kMask);
    EXPECT_THAT(plan->caches, Contains(own));
  }
  host.facts.work_folder = "/";
  EXPECT_THAT(host.refusal(), HasSubstr("it is the root folder"));
  host.facts.work_folder = "/home";
  host.folder("/home");
  EXPECT_EQ(host.refusal(), "");
  // What is no such folder is refused as before.
  host.facts.work_folder = "/etc/nginx";
  EXPECT_THAT(host.refusal(), HasSubstr("it belongs to the system"));
}

TEST(Files, SocketsAndFifosAreHiddenUnlessNamed) {
  Host host;
  host.folder("/data");
  host.facts.paths["/data/named"] = path_fact(FileKind::kSocket, "/data/named", 1000);
  host.policy.files.read = {"/data", "/data/named"};
  for (const char* path : {"/home/alice/work/a/s", "/data/named", "/data/docker.sock", "/usr/lib/s", "/elsewhere/s"}) {
    host.facts.special_files.push_back({path, true});
  }
  host.facts.special_files.push_back({"/data/f", false});
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  for (const char* path : {"/home/alice/work/a/s", "/data/docker.sock", "/usr/lib/s", "/data/f"}) {
    ASSERT_NE(mount_at(*plan, path), nullptr) << path;
    EXPECT_EQ(mount_at(*plan, path)->kind, MountKind::kMask);
  }
  EXPECT_EQ(mount_at(*plan, "/data/f")->reason, "a FIFO of the host");
  EXPECT_EQ(mount_at(*plan, "/elsewhere/s"), nullptr) << "is not in view";
  ASSERT_TRUE(mount_at(*plan, "/data/named") == nullptr || mount_at(*plan, "/data/named")->kind == MountKind::kBind);
  EXPECT_THAT(plan->weakenings, Contains(StartsWith("'/data/named' is a socket of the host")));
}

TEST(Files, ReadAndWriteAreBoundAtTheirRealPaths) {
  Host host;
  host.policy.files.write = {"~/out", "sub"};
  host.policy.files.read = {"~/lib", "sub/fixed", "/usr/share"};
  host.folder("/home/alice/work/sub");
  host.folder("/home/alice/work/sub/fixed");
  host.folder("/usr/share", 0);
  host.folder("/home/alice/out");
  host.facts.paths["/home/alice/lib"] =
      through_link(path_fact(FileKind::kFolder, "/data/lib", 1000), "/home/alice/lib", "../../data/lib");
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(mount_at(*plan, "/home/alice/out")->writable);
  EXPECT_EQ(mount_at(*plan, "/home/alice/lib")->kind, MountKind::kLink);
  EXPECT_FALSE(mount_at(*plan, "/data/lib")->writable);
  EXPECT_TRUE(mount_at(*plan, "/home/alice/work/sub")->writable) << "held in place, since what is in it is read-only";
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/sub/fixed")->kind, MountKind::kReadOnly);
  EXPECT_EQ(mount_at(*plan, "/usr/share"), nullptr) << "already there";
  EXPECT_THAT(plan->writable, Contains("/home/alice/out"));
}

TEST(Files, ALinkThatTheAgentCouldHaveMadeGivesNothing) {
  for (const bool write : {false, true}) {
    Host host;
    (write ? host.policy.files.write : host.policy.files.read) = {"out"};
    host.facts.paths["/home/alice/work/out"] =
        through_link(path_fact(FileKind::kFolder, "/home/alice/private", 1000), "/home/alice/work/out", "../private");
    EXPECT_THAT(host.refusal(), HasSubstr("the link '/home/alice/work/out' lies in a folder the agent can write, and "
                                          "leads to '/home/alice/private', refusing (name what it leads to)"));
  }
  // What the guest may read anyway must not become writable by it.
  Host host;
  host.policy.files.write = {"out"};
  host.facts.paths["/home/alice/work/out"] =
      through_link(path_fact(FileKind::kFolder, "/opt/tool", 1000), "/home/alice/work/out", "/opt/tool");
  EXPECT_THAT(host.refusal(), HasSubstr("leads to '/opt/tool', refusing"));
}

TEST(Files, HidesWhatABindShowsAndNothingElse) {
  Host host;
  host.policy.files.hide = {"secrets", "missing", "~/elsewhere", "/opt", "/etc/fstab"};
  host.folder("/home/alice/work/secrets");
  host.folder("/home/alice/elsewhere");
  host.folder("/opt", 0);
  host.file("/etc/fstab", 0);
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/secrets")->kind, MountKind::kMask);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/missing"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/home/alice/elsewhere"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/opt"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/etc/fstab")->kind, MountKind::kMask);
  EXPECT_EQ(plan->mounts.back().kind, MountKind::kMask);
}

TEST(Files, HidingWhatTheLaunchNeedsIsRefused) {
  for (const char* hidden : {"/home/alice/work", "/home/alice", "/usr", "/data", "/data/lib", "/", "/usr/bin/dash"}) {
    Host host;
    host.policy.files.read = {"/data/lib"};
    host.folder("/data/lib");
    host.folder("/data");
    host.folder("/");
    host.file("/usr/bin/dash", 0);
    host.policy.files.hide = {hidden};
    EXPECT_THAT(host.refusal(), StartsWith("files.hide '" + std::string(hidden) + "': '")) << hidden;
    EXPECT_THAT(host.refusal(), HasSubstr("is needed by this launch, refusing (hide a smaller part")) << hidden;
  }
}

TEST(Files, ASecretOfEtcCanBeNamedButNotReachedInto) {
  Host host;
  host.policy.files.read = {"/etc/sudoers"};
  host.file("/etc/sudoers", 0, 0440);
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/etc/sudoers")->kind, MountKind::kBind);
  host.facts.etc_secrets = {"/etc/ssl/private"};
  host.policy.files.read = {"/etc/ssl/private/key.pem"};
  host.file("/etc/ssl/private/key.pem", 0, 0600);
  EXPECT_THAT(host.refusal(), HasSubstr("it lies in '/etc/ssl/private', which is hidden, refusing"));
}

TEST(AgentFolder, IsBoundWhenItExistsAndIsTheOwners) {
  Host host;
  host.agent_of_one_folder();
  host.folder("/home/alice/.claude");
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(mount_at(*plan, "/home/alice/.claude")->writable);
  EXPECT_TRUE(any_contains(plan->weakenings, "config_dirs of agent claude: what it writes to '~/.claude'"));

  host.facts.paths["/home/alice/.claude"] =
      through_link(path_fact(FileKind::kFolder, "/home/alice", 1000), "/home/alice/.claude", ".");
  EXPECT_THAT(host.refusal(), HasSubstr("it leads to '/home/alice': it is the home"));
  host.file("/home/alice/.claude");
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_TRUE(any_contains(plan->notes, "~/.claude is not a folder"));
}

TEST(AgentFolder, OfAnotherUserIsLeftOutForRoot) {
  Host host(true);
  host.agent_of_one_folder();
  host.folder("/root/.claude", 0);
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/root/.claude"), nullptr);
  EXPECT_TRUE(any_contains(plan->notes,
                           "~/.claude was left out, so claude has no login or settings from there: it "
                           "belongs to user 0, the work folder to user 1000"));
  host.folder("/root/.claude", 1000);
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_TRUE(mount_at(*plan, "/root/.claude")->idmap);
  host.facts.paths["/root/.claude"].idmap_possible = false;
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_TRUE(any_contains(plan->notes, "its file system cannot be mounted with an id map"));
}

TEST(AgentConfig, WithoutAnAgentNothingOfTheHomeIsThere) {
  Host host;
  host.folder("/home/alice/.claude");
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  for (const Mount& mount : plan->mounts) {
    if (mount.target == "/home/alice/work" || mount.target == "/home/alice/work/.git") continue;
    EXPECT_FALSE(mount.kind == MountKind::kBind && mount.target.starts_with("/home/")) << mount.target;
  }
}

TEST(Git, WriteIsANamedWeakeningThatKeepsHooksAndConfig) {
  Host host;
  host.policy.git = policy::GitAccess::kWrite;
  host.facts.git.has_hooks = host.facts.git.has_config = true;
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(mount_at(*plan, "/home/alice/work/.git")->writable);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.git/hooks")->kind, MountKind::kReadOnly);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.git/config")->kind, MountKind::kReadOnly);
  EXPECT_TRUE(any_contains(plan->weakenings, "git = write"));
  host.facts.git.has_links = true;
  EXPECT_THAT(host.refusal(), HasSubstr("hooks or config of '/home/alice/work/.git' is a link"));
}

TEST(Git, WorktreeIsGivenReadOnlyOnlyWhenItPointsBack) {
  Host host;
  host.facts.git.kind = GitFact::Kind::kWorktree;
  host.facts.git.common = path_fact(FileKind::kFolder, "/home/alice/main/.git", 1000);
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.git")->kind, MountKind::kReadOnly);
  const Mount* common = mount_at(*plan, "/home/alice/main/.git");
  ASSERT_NE(common, nullptr);
  EXPECT_FALSE(common->writable);
  host.policy.git = policy::GitAccess::kWrite;
  // A submodule: its folder, but for what git obeys.
  host.facts.git.has_hooks = host.facts.git.has_config = true;
  plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(mount_at(*plan, "/home/alice/main/.git")->writable);
  EXPECT_EQ(mount_at(*plan, "/home/alice/main/.git/config")->kind, MountKind::kReadOnly);
  // A linked worktree: what a commit writes, and nothing of its siblings.
  host.facts.git.own = path_fact(FileKind::kFolder, "/home/alice/main/.git/worktrees/w", 1000);
  for (const char* name : {"objects", "objects/info", "refs", "logs/refs"}) {
    host.facts.git.shared.push_back(path_fact(FileKind::kFolder, "/home/alice/main/.git/" + std::string(name), 1000));
  }
  plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_FALSE(mount_at(*plan, "/home/alice/main/.git")->writable);
  for (const char* name : {"objects", "refs", "logs/refs", "worktrees/w"}) {
    EXPECT_TRUE(mount_at(*plan, "/home/alice/main/.git/" + std::string(name))->writable) << name;
  }
  EXPECT_EQ(mount_at(*plan, "/home/alice/main/.git/objects/info")->kind, MountKind::kReadOnly);
  host.facts.git.shared[1].kind = FileKind::kAbsent;
  EXPECT_THAT(host.refusal(), HasSubstr("objects/info' is not a folder, refusing"));
  host.facts.git.own = {};

  host.policy.git = policy::GitAccess::kRead;
  host.facts.git.common.real = "/home/alice/.ssh";
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.ssh"), nullptr);
  EXPECT_TRUE(any_contains(plan->notes, "credentials lie beside it"));

  host.facts.git.kind = GitFact::Kind::kUnverified;
  host.facts.git.reason = "it does not point back here";
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.git")->kind, MountKind::kReadOnly);
  EXPECT_TRUE(any_contains(plan->notes, "it does not point back here"));
}

TEST(Git, LinkAndNoneAreSaid) {
  Host host;
  host.facts.git.kind = GitFact::Kind::kLink;
  host.facts.git.common = path_fact(FileKind::kFolder, "/home/alice/work/shared", 1000);
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/shared")->kind, MountKind::kReadOnly);
  host.facts.git.common.real = "/home/alice/work";  // `.git` -> `.` must not take the work folder's own mount away
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work")->kind, MountKind::kBind);
  EXPECT_TRUE(any_contains(plan->notes, "'.git' is a link"));
  host.facts.git = {};
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.git"), nullptr);
  EXPECT_TRUE(any_contains(plan->notes, "has no '.git'"));
}

TEST(OwnFolders, AreHiddenAndNeverWritable) {
  Host host;
  host.facts.own_folders = {"/home/alice/.config/belljar", "/home/alice/.local/state/belljar"};
  host.folder("/home/alice/.config/belljar");
  host.folder("/home/alice/.config");
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.config/belljar"), nullptr) << "the private home does not show it";

  host.policy.files.read = {"~/.config"};
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.config/belljar")->kind, MountKind::kMask);

  host.policy.files.read.clear();
  host.policy.files.write = {"~/.config"};
  plan = host.plan();
  ASSERT_TRUE(plan) << "a mount point cannot be renamed";
  EXPECT_EQ(mount_at(*plan, "/home/alice/.config/belljar")->kind, MountKind::kMask);

  host.facts.paths.erase("/home/alice/.config/belljar");
  EXPECT_THAT(host.refusal(), HasSubstr("the agent could write belljar's own folder '/home/alice/.config/belljar'"));

  host.policy.files.write = {"~/.local"};
  host.folder("/home/alice/.local");
  host.folder("/home/alice/.local/state/belljar");
  EXPECT_THAT(host.refusal(), HasSubstr("the agent could write belljar's own folder")) << "state can be renamed away";

  host.policy.files.write.clear();
  host.facts.work_folder = "/home/alice/.local/state/belljar/x";
  host.folder(host.facts.work_folder);
  EXPECT_THAT(host.refusal(), HasSubstr("it lies in belljar's own folder"));
}

TEST(OwnFolders, HoldProgramsThatAreNeverWritable) {
  Host host;
  const std::string program = "/home/alice/bin/belljar";
  host.facts.own_folders = {program};
  host.folder("/home/alice/bin");
  host.file(program);
  for (const char* named : {"~/bin", "~/bin/belljar"}) {
    host.policy.files = {};
    host.policy.files.write = {named};
    EXPECT_THAT(host.refusal(), HasSubstr("the agent could write belljar's own program '" + program + "'")) << named;
    host.policy.files = {};
    host.policy.files.read = {named};
    const auto plan = host.plan();
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(mount_at(*plan, program)->kind, named == std::string("~/bin") ? MountKind::kMask : MountKind::kBind);
  }
  host.policy.files = {};
  host.facts.work_folder = "/home/alice/bin";
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, program), nullptr) << "who works on it builds it";
  EXPECT_TRUE(any_contains(plan->weakenings, "the agent can change belljar's own program '" + program + "'"));

  host.facts.work_folder = "/home/alice";
  host.policy.files.allow_home = true;
  plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, program)->kind, MountKind::kMask);
  ASSERT_NE(mount_at(*plan, "/home/alice/bin"), nullptr) << "it could be renamed, mask and all";
  EXPECT_THAT(plan->caches, Not(Contains(program)));
}

}  // namespace
}  // namespace belljar::plan
