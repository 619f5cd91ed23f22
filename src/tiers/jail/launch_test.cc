// What a launch says when it cannot be made, that it leaves nothing behind, and that a guest never outlives its
// launcher, whenever that is killed.
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "base/io.h"
#include "base/path.h"
#include "tiers/jail/jail_fixture.h"

namespace belljar::tiers::jail {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::abort();
}

// Everything a launch could leave: processes, mounts, files, descriptors.
std::string surroundings(const Scene& scene) {
  std::string out = base::read_file("/proc/self/mountinfo", size_t{1} << 22U).value_or("unreadable");
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(scene.folder)) {
    struct stat found{};
    ::lstat(entry.path().c_str(), &found);
    names.push_back(entry.path().string() + " " + std::to_string(found.st_mode) + " " + std::to_string(found.st_uid));
  }
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const fs::path target = fs::read_symlink(entry.path(), gone);
    if (!gone && !target.string().starts_with("/proc/")) names.push_back("open: " + target.string());
  }
  std::ranges::sort(names);
  for (const std::string& name : names) out += name + "\n";
  siginfo_t info{};
  const bool none = ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
  return out + (none ? "no process\n" : "processes\n");
}

// ------------------------------------------------------------------------------------------- launches that cannot be

struct Failure {
  const char* situation;
  // Leads to it; returns the message when it comes before start().
  std::string (*spoil)(Scene&);
  const char* message;  // a pattern, fnmatch(3)
};

void PrintTo(const Failure& failure, std::ostream* out) {
  *out << failure.situation;
}

std::string prepared_again(Scene& scene, const std::string& guest) {
  auto made = prepare(scene.plan, guest);
  if (!made) return made.error().message();
  scene.prepared = std::move(*made);
  return {};
}

std::string copy_of_guest(const Scene& scene, mode_t mode) {
  std::string path = scene.folder + "/other/guest";
  fs::copy_file(guest_program(), path);
  must(::chmod(path.c_str(), mode) == 0, "chmod");
  return path;
}

plan::Mount host_bind(const std::string& source, const std::string& target) {
  plan::Mount out;
  out.source = source;
  out.target = target;
  return out;
}

std::string with_mount(Scene& scene, const plan::Mount& mount) {
  scene.plan.mounts.push_back(mount);
  return prepared_again(scene, guest_program());
}

const Failure kFailures[] = {
    {"GuestProgramMissing", [](Scene& scene) { return prepared_again(scene, scene.folder + "/nowhere"); },
     "open '*/nowhere': No such file or directory (belljar-guest belongs beside belljar; install both)"},
    {"GuestProgramWritableByOthers", [](Scene& scene) { return prepared_again(scene, copy_of_guest(scene, 0757)); },
     "use '*/other/guest': others could have written it, refusing (chmod go-w it and own it)"},
    {"GuestProgramWritableByGroup", [](Scene& scene) { return prepared_again(scene, copy_of_guest(scene, 0775)); },
     "use '*/other/guest': others could have written it, refusing (chmod go-w it and own it)"},
    {"GuestProgramALink",
     [](Scene& scene) {
       fs::create_symlink(guest_program(), scene.folder + "/other/link");
       return prepared_again(scene, scene.folder + "/other/link");
     },
     "use '*/other/link': it is not a regular file, refusing"},
    {"GuestProgramNotExecutable", [](Scene& scene) { return prepared_again(scene, copy_of_guest(scene, 0644)); },
     "execute '*/other/guest': Permission denied*"},
    {"GuestProgramNoProgram",
     [](Scene& scene) {
       const std::string path = scene.folder + "/other/text";
       std::ofstream(path) << "no program\n";
       must(::chmod(path.c_str(), 0755) == 0, "chmod");
       return prepared_again(scene, path);
     },
     "execute '*/other/text': Exec format error*"},
    {"GuestProgramThroughALink",
     [](Scene& scene) {
       copy_of_guest(scene, 0755);
       fs::create_directory_symlink("other", scene.folder + "/way");
       return prepared_again(scene, scene.folder + "/way/guest");
     },
     "open '*/way/guest': Too many levels of symbolic links*"},

    {"SourceMissing",
     [](Scene& scene) {
       fs::remove_all(scene.reading());
       return prepared_again(scene, guest_program());
     },
     "bind '*/reading': No such file or directory*"},
    {"SourceGoneAfterwards",
     [](Scene& scene) {
       fs::remove_all(scene.reading());
       return std::string();
     },
     "open '*/reading': No such file or directory*"},
    {"SourceALink",
     [](Scene& scene) {
       fs::remove_all(scene.reading());
       fs::create_directory_symlink("/etc", scene.reading());
       return prepared_again(scene, guest_program());
     },
     "bind '*/reading': it is a symbolic link*"},
    {"SourceALinkAfterwards",
     [](Scene& scene) {
       fs::remove_all(scene.reading());
       fs::create_directory_symlink("/etc", scene.reading());
       return std::string();
     },
     "open '*/reading': Too many levels of symbolic links*"},
    {"WorkFolderGone",
     [](Scene& scene) {
       fs::remove_all(scene.work());
       return prepared_again(scene, guest_program());
     },
     "bind '*/work': No such file or directory*"},
    {"IdsThatCannotBeMapped",
     [](Scene& scene) {
       scene.add_step(Op::kFolder, "/more", "");
       scene.add_step(Op::kBind, "/more", "/proc");
       scene.step(Op::kBind, "/more").idmap = true;
       return std::string();
     },
     "map the ids of '/proc': Invalid argument (its file system cannot be id-mapped: *)"},

    {"TargetClaimedTwice",
     [](Scene& scene) { return with_mount(scene, host_bind(scene.folder + "/other", scene.reading())); },
     "plan a mount '*/reading': two mounts claim it*"},
    {"TargetNotNormal", [](Scene& scene) { return with_mount(scene, host_bind("/usr", "/a/../b")); },
     "plan a mount '/a/../b': the target is not an absolute path in normal form*"},
    {"TargetTheRoot", [](Scene& scene) { return with_mount(scene, host_bind("/usr", "/")); },
     "plan a mount '/': the target is not an absolute path in normal form*"},
    {"TargetBelowAFile",
     [](Scene& scene) {
       plan::Mount file;
       file.kind = plan::MountKind::kFile;
       file.target = "/file";
       scene.plan.mounts.push_back(file);
       return with_mount(scene, host_bind("/usr", "/file/below"));
     },
     "plan a mount below '/file': it is not a folder*"},
    {"TargetMissingInReadFolder",
     [](Scene& scene) { return with_mount(scene, host_bind(scene.folder + "/other", scene.reading() + "/new")); },
     "attach '*/reading/new': No such file or directory*"},
    {"TargetMissingInWorkFolder",
     [](Scene& scene) { return with_mount(scene, host_bind(scene.folder + "/other", scene.work() + "/new/deep")); },
     "open in the guest '*/work/new/deep': No such file or directory*"},
    {"ScratchMissingInWorkFolder",
     [](Scene& scene) {
       plan::Mount scratch;
       scratch.kind = plan::MountKind::kScratch;
       scratch.target = scene.work() + "/scratch";
       return with_mount(scene, scratch);
     },
     "attach '*/work/scratch': No such file or directory*"},
    {"TargetALinkInWorkFolder",
     [](Scene& scene) {
       fs::create_directory_symlink("/etc", scene.work() + "/link");
       return with_mount(scene, host_bind(scene.folder + "/other", scene.work() + "/link"));
     },
     "attach '*/work/link': Invalid argument*"},
    {"TargetThroughALinkInWorkFolder",
     [](Scene& scene) {
       fs::create_directory_symlink("../reading", scene.work() + "/link");
       return with_mount(scene, host_bind(scene.folder + "/other", scene.work() + "/link/inner"));
     },
     "open in the guest '*/work/link/inner': Too many levels of symbolic links*"},

    {"RootOutside",
     [](Scene& scene) {
       scene.plan.identity.host_uid = 0;
       return prepared_again(scene, guest_program());
     },
     "launch '*/work': the guest would be root on the host, refusing"},
    {"CapabilityThatInitCannotDrop",
     [](Scene& scene) {
       scene.prepared.program.protections.drop_bounding_set = false;
       return std::string();
     },
     "drop the capabilities: Operation not permitted (see 'belljar doctor')"},
    {"StartFolderMissing",
     [](Scene& scene) {
       scene.prepared.config.chdir = "/nowhere";
       return std::string();
     },
     "start in '/nowhere': No such file or directory*"},
};

class FailureTest : public ::testing::TestWithParam<Failure> {};

TEST_P(FailureTest, IsNamedAndLeavesNothing) {
  const Failure& failure = GetParam();
  const TestFolder folder;
  std::string change;
  const std::string said = in_launcher([&] {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {});
    std::string text = failure.spoil(scene);
    if (!text.empty()) return text;
    const std::string before = surroundings(scene);
    text = launch(scene);
    const std::string after = surroundings(scene);
    return before == after ? text : text + "\nleft something behind, before:\n" + before + "after:\n" + after;
  });
  EXPECT_EQ(::fnmatch(failure.message, said.c_str(), FNM_NOESCAPE), 0) << said << "\nbut wanted\n" << failure.message;
  EXPECT_EQ(said.find("left something behind"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(When, FailureTest, ::testing::ValuesIn(kFailures),
                         [](const auto& each) { return std::string(each.param.situation); });

// --------------------------------------------------------------------------------------------- nothing is left behind

// How far a launch goes before it is given up.
enum class Stage : uint8_t { kStarted, kProved, kReleased, kRunning };

constexpr std::array kStages = {Stage::kStarted, Stage::kProved, Stage::kReleased, Stage::kRunning};

std::string stage_name(const ::testing::TestParamInfo<Stage>& info) {
  constexpr std::array<const char*, kStages.size()> kNames = {"Started", "Proved", "Released", "Running"};
  return kNames.at(static_cast<size_t>(info.param));
}

// The command starts children that leave its session and its process group, and says so.
const std::vector<std::string> kFamily = {
    "sh", "-c", "setsid sh -c 'sleep 1000 & sleep 1000' & (sleep 1000 &) ; echo started; exec sleep 1000"};

// A guest of `scene` that has come to `stage`; empty, with the reason in `why`, when that fails.
std::optional<Guest> guest_at(Scene& scene, Stage stage, std::string& why) {
  std::array<int, 2> ends{};
  must(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
  const base::Fd output(ends[0]);
  base::Fd inner_output(ends[1]);
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto guest = start(scene.prepared, {{null.get(), inner_output.get(), null.get()}});
  inner_output.reset();
  const auto fail = [&](const base::Error& error) {
    why = error.message();
    return std::nullopt;
  };
  if (!guest) return fail(guest.error());
  if (stage == Stage::kStarted) return std::move(*guest);
  if (auto record = prove(*guest); !record) return fail(record.error());
  if (stage == Stage::kProved) return std::move(*guest);
  if (auto released = guest->release(); !released) return fail(released.error());
  if (stage == Stage::kReleased) return std::move(*guest);
  char byte = 0;
  if (!base::read_exact(output.get(), &byte, 1)) return fail({"read", "the command's output", 0, "it ended", ""});
  return std::move(*guest);
}

class EndTest : public ::testing::TestWithParam<Stage> {};

TEST_P(EndTest, OfTheGuestLeavesNothing) {
  const TestFolder folder;
  const std::string said = in_launcher([&] {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {.command = kFamily});
    const std::string before = surroundings(scene);
    std::string why;
    guest_at(scene, GetParam(), why).reset();
    const std::string after = surroundings(scene);
    if (!why.empty()) return why;
    return before == after ? std::string() : "before:\n" + before + "after:\n" + after;
  });
  EXPECT_EQ(said, "");
}

// True when every process that descended from this one and lost its parent has ended within `patience`.
bool all_gone(std::chrono::milliseconds patience) {
  const auto end = steady_clock::now() + patience;
  for (;;) {
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid < 0 && errno == ECHILD) return true;
    if (pid == 0) {
      if (steady_clock::now() > end) return false;
      ::usleep(500);
    }
  }
}

// A second is what it takes where nothing else is done. Beside this test others take network namespaces down, which
// holds the lock that a dying child may wait for (rtnl_lock() cannot be interrupted).
constexpr auto kAtMost = std::chrono::seconds(10);

// Forks a launcher that goes to `stage` and stays there.
pid_t launcher_at(Scene& scene, Stage stage, int told) {
  const pid_t pid = ::fork();
  must(pid >= 0, "fork");
  if (pid != 0) return pid;
  std::string why;
  const auto guest = guest_at(scene, stage, why);
  (void)base::write_all(told, why.empty() ? "." : why);
  for (;;) ::pause();
}

// Every process that loses its parent becomes a child of this one (prctl(2), PR_SET_CHILD_SUBREAPER): init of a guest
// does, and the kernel reports its end only after that of everything in its pid namespace (pid_namespaces(7)).
void adopt_orphans() {
  must(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "subreaper");
}

TEST_P(EndTest, OfTheLauncherIsTheGuests) {
  const TestFolder folder;
  const std::string said = in_launcher([&]() -> std::string {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {.command = kFamily});
    adopt_orphans();
    const std::string before = surroundings(scene);
    std::array<int, 2> ends{};
    must(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
    base::Fd read_end(ends[0]);
    base::Fd write_end(ends[1]);
    const pid_t launcher = launcher_at(scene, GetParam(), write_end.get());
    char byte = 0;
    const bool told = base::read_exact(read_end.get(), &byte, 1) && byte == '.';
    ::kill(launcher, SIGKILL);
    const bool gone = all_gone(kAtMost);
    read_end.reset();
    write_end.reset();
    if (!told) return "the launch failed";
    if (!gone) return "something is still alive";
    return surroundings(scene) == before ? "" : "something was left";
  });
  EXPECT_EQ(said, "");
}

INSTANTIATE_TEST_SUITE_P(At, EndTest, ::testing::ValuesIn(kStages), stage_name);

// At no moment of the set-up either. The moments are drawn from the time that a whole launch takes here.
TEST(KilledLauncherTest, TakesTheGuestWithItAtAnyMoment) {
  constexpr int kRounds = 200;
  const TestFolder folder;
  const std::string said = in_launcher([&]() -> std::string {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {.command = kFamily});
    adopt_orphans();
    const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const std::string before = surroundings(scene);
    const auto first = steady_clock::now();
    std::string why;
    guest_at(scene, Stage::kRunning, why).reset();
    if (!why.empty()) return why;
    const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - first).count();
    std::mt19937 random(20261129);
    std::uniform_int_distribution<long> moment(0, whole + whole / 4);
    for (int round = 0; round < kRounds; ++round) {
      const auto wait = static_cast<useconds_t>(moment(random));
      const pid_t launcher = launcher_at(scene, Stage::kRunning, null.get());
      ::usleep(wait);
      ::kill(launcher, SIGKILL);
      if (!all_gone(kAtMost)) {
        return "round " + std::to_string(round) + ", killed after " + std::to_string(wait) + " µs of " +
               std::to_string(whole) + ": something is still alive";
      }
    }
    return surroundings(scene) == before ? "" : "something was left";
  });
  EXPECT_EQ(said, "");
}

// The same when the child was begun before there was a plan for it.
TEST(KilledLauncherTest, TakesAGuestWithoutAnOrderWithIt) {
  const TestFolder folder;
  const std::string said = in_launcher([&]() -> std::string {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {});
    adopt_orphans();
    std::mt19937 random(5309);
    std::uniform_int_distribution<useconds_t> moment(0, 3000);
    for (int round = 0; round < 60; ++round) {
      const pid_t launcher = ::fork();
      must(launcher >= 0, "fork");
      if (launcher == 0) {
        const auto keeper = Keeper::start(foundation_of(scene.prepared.program));
        for (;;) ::pause();
      }
      ::usleep(moment(random));
      ::kill(launcher, SIGKILL);
      if (!all_gone(kAtMost)) return "round " + std::to_string(round) + ": something is still alive";
    }
    return "";
  });
  EXPECT_EQ(said, "");
}

TEST(KeeperTest, LeavesNothingWhenNoOrderComes) {
  const TestFolder folder;
  const std::string said = in_launcher([&]() -> std::string {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {});
    const std::string before = surroundings(scene);
    for (int round = 0; round < 10; ++round) {
      auto keeper = Keeper::start(foundation_of(scene.prepared.program));
      if (!keeper) return keeper.error().message();
      if (round % 2 == 0) ::usleep(2000);
      keeper->reset();
    }
    return surroundings(scene) == before ? "" : "something was left";
  });
  EXPECT_EQ(said, "");
}

TEST(KeeperTest, RefusesAPlanItWasNotBegunFor) {
  const TestFolder folder;
  const std::string said = in_launcher([&]() -> std::string {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {});
    const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const std::string before = surroundings(scene);
    auto keeper = Keeper::start(foundation_of(0, policy::Transparent::kAuto, scene.root));
    if (!keeper) return keeper.error().message();
    std::string text;
    {
      const auto guest = start(scene.prepared, {{null.get(), null.get(), null.get()}}, std::move(*keeper));
      text = guest ? "started" : guest.error().message();
    }
    return surroundings(scene) == before ? text : "something was left";
  });
  EXPECT_EQ(said, "start the guest: it was begun for another plan, refusing");
}

// -------------------------------------------------------------------------------------------------------- its scratch

TEST(ScratchTest, IsThereWhenTheGuestIsGone) {
  const TestFolder folder;
  const std::string found = in_launcher([&]() -> std::string {
    Scene scene = empty_scene(folder.path());
    set_scene(scene, {.command = {"touch", "/tmp/left behind"}});
    const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    auto guest = start(scene.prepared, Stdio{{null.get(), null.get(), null.get()}});
    if (!guest) return guest.error().message();
    const base::Fd scratch = guest->take_scratch();
    if (guest->take_scratch()) return "given twice";
    const auto record = prove(*guest);
    if (!record) return record.error().message();
    if (auto released = guest->release(); !released) return released.error().message();
    while (guest->receive()) continue;
    guest->kill();
    const std::string path = scratch_folder(scene.prepared.program, "/tmp") + "/left behind";
    if (!scratch_folder(scene.prepared.program, scene.work()).empty()) return "the work folder is not scratch";
    struct stat file{};
    return ::fstatat(scratch.get(), path.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 ? "there" : path + " is missing";
  });
  EXPECT_EQ(found, "there");
}

}  // namespace
}  // namespace belljar::tiers::jail
