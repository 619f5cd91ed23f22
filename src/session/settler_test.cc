#include "session/settler.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "base/temp_tree.h"
#include "session/live_rules.h"
#include "session/marker.h"
#include "session/recover.h"
#include "session/state_folder.h"

namespace belljar::session {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

bool eventually(const std::function<bool()>& done) {
  for (int i = 0; i < 2000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Processes of the test: whatever outlives its parent becomes the test's child, so that waitpid() counts them all.
class SettlerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  void TearDown() override {
    for (const pid_t pid : started_) ::kill(pid, SIGKILL);
    EXPECT_TRUE(all_gone());
  }

  static bool all_gone() {
    return eventually([] {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
    });
  }

  // A process that stands for the guest's init.
  pid_t start_guest() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) ::pause();
    }
    started_.push_back(pid);
    return pid;
  }
  static base::Fd pidfd_of(pid_t pid) { return base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

  // Its work leaves a file in the tree with what the guest's state was.
  Errand errand() {
    Errand out{"0123456789abcdef", "2026-01-02T03:04:05Z", state_, {}, {}};
    out.plan.work_folder = "/work";
    out.plan.command = {"agent", "--word"};
    workspace::Work work;
    work.name = "test work";
    work.record = tree_.at("redone");
    work.run = [path = tree_.at("done"), this](int scratch) -> base::Result<workspace::Settled> {
      std::ofstream(path) << (::kill(guest_, 0) == 0 && !is_zombie(guest_) ? "alive" : "gone") << ' '
                          << (scratch >= 0 ? text_in(scratch) : "none");
      workspace::Settled settled;
      settled.add(workspace::Quarantined{"/work/.envrc", "/quarantine/.envrc", ""});
      settled.add_note("a note");
      return settled;
    };
    out.works.push_back(work);
    return out;
  }
  static bool is_zombie(pid_t pid) {
    return text_of("/proc/" + std::to_string(pid) + "/stat").find(") Z ") != std::string::npos;
  }
  static std::string text_in(int folder) {
    const base::Fd file(::openat(folder, "kept", O_RDONLY | O_CLOEXEC));
    std::array<char, 64> text{};
    const ssize_t n = ::read(file.get(), text.data(), text.size());
    return std::string(text.data(), n > 0 ? static_cast<size_t>(n) : 0);
  }

  // A launcher of its own, which lets the agent start, or stops before, and then waits to be killed. Returns its pid
  // once it waits.
  pid_t start_launcher(bool begins = true) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      Errand mine = errand();
      auto settler = Settler::start(mine);
      bool good = settler.has_value();
      if (good) good = settler->guard(pidfd_of(guest_).get(), guest_, -1).has_value();
      if (good) good = settler->prepare().has_value();
      if (good && begins) good = settler->begin({}).has_value();
      (void)!::write(ready[1], good ? "y" : "n", 1);
      for (;;) ::pause();
    }
    started_.push_back(pid);
    ::close(ready[1]);
    char answer = 0;
    EXPECT_EQ(::read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ready[0]);
    return pid;
  }
  static pid_t child_of(pid_t parent) {
    const std::string task = std::to_string(parent);
    pid_t child = 0;
    std::istringstream(text_of("/proc/" + task + "/task/" + task + "/children")) >> child;
    return child;
  }
  std::vector<std::string> state_files() const {
    std::vector<std::string> out;
    if (!fs::exists(state_)) return out;
    for (const auto& entry : fs::directory_iterator(state_)) out.push_back(entry.path().filename());
    return out;
  }

  base::TempTree tree_;
  std::string state_ = tree_.at("state/belljar/sessions");
  std::string settlement_ = state_ + "/0123456789abcdef.json";
  std::string marker_ = state_ + "/0123456789abcdef.pending";
  std::vector<pid_t> started_;
  pid_t guest_ = start_guest();
};

TEST_F(SettlerTest, DoesTheWorkWhenTheGuestIsGone) {
  const std::string scratch = tree_.folder("scratch");
  const base::Fd folder(::open(scratch.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  tree_.file("scratch/kept", "text");
  const Errand mine = errand();
  auto settler = Settler::start(mine);
  ASSERT_TRUE(settler);
  ASSERT_TRUE(settler->guard(pidfd_of(guest_).get(), guest_, folder.get()));
  ASSERT_TRUE(settler->prepare());
  EXPECT_THAT(state_files(), ElementsAre("0123456789abcdef.pending"));
  ASSERT_TRUE(settler->begin({}));
  const auto settled = settler->settle();
  ASSERT_TRUE(settled) << settled.error().message();
  EXPECT_THAT(settled->notes(), ElementsAre("a note"));
  ASSERT_EQ(settled->quarantined().size(), 1U);
  EXPECT_EQ(settled->quarantined()[0].moved_to, "/quarantine/.envrc");
  EXPECT_EQ(text_of(tree_.at("done")), "gone text");
  EXPECT_THAT(state_files(), IsEmpty());
}

// What is released in any case is the launcher's to read until it says so.
TEST_F(SettlerTest, BeginsWhenTheGuestEndsAndReleasesAtTheWord) {
  Errand mine = errand();
  workspace::Work release;
  release.name = "release";
  release.always = true;
  release.run = [path = tree_.at("released")](int) -> base::Result<workspace::Settled> {
    std::ofstream(path) << "released";
    return workspace::Settled();
  };
  mine.works.insert(mine.works.begin(), release);
  auto settler = Settler::start(mine);
  ASSERT_TRUE(settler && settler->guard(pidfd_of(guest_).get(), guest_, -1));
  ASSERT_TRUE(settler->prepare());
  ASSERT_TRUE(settler->begin({}));
  ::kill(guest_, SIGKILL);
  ASSERT_TRUE(eventually([&] { return text_of(tree_.at("done")) == "gone none"; }));
  EXPECT_FALSE(fs::exists(tree_.at("released")));
  EXPECT_TRUE(fs::exists(marker_));
  const auto settled = settler->settle();
  ASSERT_TRUE(settled) << settled.error().message();
  EXPECT_THAT(settled->notes(), ElementsAre("a note"));
  EXPECT_TRUE(fs::exists(tree_.at("released")));
  EXPECT_THAT(state_files(), IsEmpty());
}

TEST_F(SettlerTest, DoesTheWorkWhenItsLauncherIsKilled) {
  const pid_t launcher = start_launcher();
  ::kill(launcher, SIGKILL);
  ASSERT_TRUE(eventually([&] { return fs::exists(settlement_) && !fs::exists(marker_); }));
  EXPECT_EQ(text_of(tree_.at("done")), "gone none");
  const std::string settlement = text_of(settlement_);
  EXPECT_THAT(settlement, HasSubstr("\"reason\": \"lost\""));
  EXPECT_THAT(settlement, HasSubstr("\"/quarantine/.envrc\""));
  EXPECT_THAT(settlement, HasSubstr("\"--word\""));
  EXPECT_TRUE(all_gone());
}

TEST_F(SettlerTest, DoesNothingForASessionThatNeverBegan) {
  const pid_t launcher = start_launcher(false);
  EXPECT_TRUE(fs::exists(marker_));
  ::kill(launcher, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !fs::exists(marker_); }));
  EXPECT_THAT(state_files(), IsEmpty());
  EXPECT_FALSE(fs::exists(tree_.at("done")));
  EXPECT_EQ(::kill(guest_, 0), 0);
}

TEST_F(SettlerTest, HearsNoSignalOfATerminal) {
  const pid_t launcher = start_launcher();
  const pid_t settler = child_of(launcher);
  ASSERT_GT(settler, 0);
  EXPECT_EQ(::getsid(settler), settler);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU, SIGUSR1}) {
    ::kill(settler, signal);
  }
  ::kill(launcher, SIGKILL);
  EXPECT_TRUE(eventually([&] { return fs::exists(settlement_) && !fs::exists(marker_); }));
}

// A copy of somebody else's descriptor would hide a death, or keep a file open that the caller closed.
TEST_F(SettlerTest, HoldsNothingOfItsLauncher) {
  std::array<int, 2> inherited{};
  ASSERT_EQ(::pipe2(inherited.data(), 0), 0);  // NOLINT(android-cloexec-pipe2): it is to be inherited
  const pid_t launcher = start_launcher();
  const std::string folder = "/proc/" + std::to_string(child_of(launcher)) + "/fd";
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string target = fs::read_symlink(entry.path());
    found.push_back(target.substr(0, target.find('[')));
  }
  EXPECT_THAT(found, UnorderedElementsAre("/dev/null", "/dev/null", "/dev/null", "socket:", state_, marker_,
                                          "anon_inode:"));  // the guest's pidfd
  ::close(inherited[0]);
  ::close(inherited[1]);
}

TEST_F(SettlerTest, ShowsItsDeath) {
  const Errand mine = errand();
  auto settler = Settler::start(mine);
  ASSERT_TRUE(settler && settler->guard(pidfd_of(guest_).get(), guest_, -1));
  ASSERT_TRUE(settler->prepare());
  ASSERT_TRUE(settler->begin({}));
  pollfd wait{settler->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
  std::vector<pid_t> children;
  std::istringstream list(text_of("/proc/self/task/" + std::to_string(::getpid()) + "/children"));
  for (pid_t pid = 0; list >> pid;) children.push_back(pid);
  for (const pid_t pid : children) {
    if (pid != guest_) ::kill(pid, SIGKILL);
  }
  EXPECT_EQ(::poll(&wait, 1, 10'000), 1);
  const auto settled = settler->settle();
  ASSERT_FALSE(settled);
  EXPECT_THAT(settled.error().message(), HasSubstr("belljar recover"));
  EXPECT_TRUE(fs::exists(marker_));
}

TEST_F(SettlerTest, SaysWhyItCannotWork) {
  ::mkdir(tree_.at("open").c_str(), 0777);
  ::chmod(tree_.at("open").c_str(), 0777);
  Errand mine = errand();
  mine.state_folder = tree_.at("open");
  auto settler = Settler::start(mine);
  ASSERT_TRUE(settler);
  const auto status = settler->prepare();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("others could have written it"));
}

TEST_F(SettlerTest, RefusesAStateFolderWithinTheGuestsReach) {
  Errand mine = errand();
  plan::Mount work;
  work.source = tree_.at("state");
  work.target = "/elsewhere";
  work.writable = true;
  mine.plan.mounts.push_back(work);
  auto settler = Settler::start(mine);
  ASSERT_TRUE(settler);
  const auto status = settler->prepare();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("set XDG_STATE_HOME"));
}

base::Result<workspace::Settled> redo(std::string_view record) {
  std::ofstream(std::string(record)) << "redone";
  workspace::Settled out;
  out.add_note("done from the record");
  return out;
}
const std::array<KnownWork, 1> kKnown{{{"test work", &redo, {}}}};

TEST_F(SettlerTest, WhatNobodySettledIsRecovered) {
  const pid_t launcher = start_launcher();
  const pid_t settler = child_of(launcher);
  // A session that runs is left alone.
  auto recovery = recover(state_, kKnown);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(recovery->sessions, IsEmpty());
  EXPECT_THAT(recovery->errors, IsEmpty());
  ::kill(settler, SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_zombie(settler); }));
  recovery = recover(state_, kKnown);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(recovery->sessions, IsEmpty());  // its launcher is still there
  ::kill(launcher, SIGKILL);
  ::kill(guest_, SIGKILL);
  EXPECT_TRUE(all_gone());
  EXPECT_FALSE(fs::exists(tree_.at("done")));
  (void)tree_.file("state/belljar/quarantine/0123456789abcdef/0001", "evil");
  (void)tree_.file("state/belljar/quarantine/0123456789abcdef/0001.path", "/project/.husky");
  (void)tree_.file("state/belljar/quarantine/fedcba9876543210/0001", "of another session");
  (void)tree_.file("state/belljar/quarantine/fedcba9876543210/0001.path", "/project/.idea");
  recovery = recover(state_, kKnown);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(recovery->errors, IsEmpty());
  ASSERT_EQ(recovery->sessions.size(), 1U);
  // By a recovery that was killed itself.
  ASSERT_EQ(recovery->sessions[0].settled.quarantined().size(), 1U);
  EXPECT_EQ(recovery->sessions[0].settled.quarantined()[0].path, "/project/.husky");
  EXPECT_EQ(recovery->sessions[0].session, "0123456789abcdef");
  EXPECT_EQ(recovery->sessions[0].work_folder, "/work");
  EXPECT_THAT(recovery->sessions[0].settled.notes(), ElementsAre("done from the record"));
  EXPECT_EQ(text_of(tree_.at("redone")), "redone");
  EXPECT_THAT(text_of(settlement_), HasSubstr("done from the record"));
  EXPECT_THAT(state_files(), ElementsAre("0123456789abcdef.json"));
  recovery = recover(state_, kKnown);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(recovery->sessions, IsEmpty());
}

TEST_F(SettlerTest, RecoveryNamesWhatItCannotDo) {
  const pid_t launcher = start_launcher();
  ::kill(child_of(launcher), SIGKILL);
  ::kill(launcher, SIGKILL);
  ::kill(guest_, SIGKILL);
  EXPECT_TRUE(all_gone());
  const auto recovery = recover(state_, {});
  ASSERT_TRUE(recovery);
  ASSERT_EQ(recovery->sessions.size(), 1U);
  EXPECT_THAT(recovery->sessions[0].settled.unreleased(), ElementsAre(HasSubstr("test work")));
}

// As often as it takes, and nothing else of the session's again.
TEST_F(SettlerTest, RecoveryComesBackToWhatCouldNotBeReleased) {
  const auto state = StateFolder::open(state_);
  ASSERT_TRUE(state);
  Marker marker;
  marker.session = "aaaa";
  marker.guest = 1;  // with no start time: it is gone
  marker.works.push_back({"once", tree_.at("once"), false, {}, {}});
  marker.works.push_back({"again", tree_.at("again"), true, {}, {}});
  ASSERT_TRUE(state->write_file("aaaa.pending", encode(marker)));
  // Each adds a letter to its file; the second is done when there are three.
  const auto add = [](std::string_view path) {
    const std::string before = fs::exists(path) ? text_of(std::string(path)) : "";
    std::ofstream(std::string(path)) << before + "x";
    return before.size() + 1;
  };
  static const auto kAdd = add;
  const std::vector<KnownWork> known{{"once",
                                      [](std::string_view record) -> base::Result<workspace::Settled> {
                                        kAdd(record);
                                        return workspace::Settled();
                                      },
                                      {}},
                                     {"again",
                                      [](std::string_view record) -> base::Result<workspace::Settled> {
                                        workspace::Settled out;
                                        if (kAdd(record) < 3) out.add_unreleased("not yet");
                                        return out;
                                      },
                                      {}}};
  auto recovery = recover(state_, known);
  ASSERT_TRUE(recovery);
  ASSERT_EQ(recovery->sessions.size(), 1U);
  EXPECT_THAT(recovery->sessions[0].settled.unreleased(), ElementsAre("not yet"));
  recovery = recover(state_, known);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(recovery->sessions, IsEmpty());
  ASSERT_EQ(recovery->errors.size(), 1U);
  EXPECT_THAT(recovery->errors[0].message(), HasSubstr("'aaaa': not yet"));
  recovery = recover(state_, known);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(recovery->errors, IsEmpty());
  EXPECT_EQ(text_of(tree_.at("once")), "x");
  EXPECT_EQ(text_of(tree_.at("again")), "xxx");
  EXPECT_THAT(state_files(), ElementsAre("aaaa.json"));
}

// What came to no end stays on record, and is gone on with when it is due, without the session's other works.
TEST_F(SettlerTest, WhatCameToNoEndIsGoneOnWith) {
  Errand mine = errand();
  mine.works[0].run = [](int) -> base::Result<workspace::Settled> {
    workspace::Settled out;
    out.set_unfinished();
    return out;
  };
  workspace::Work other;
  other.name = "other";
  other.run = [](int) -> base::Result<workspace::Settled> { return workspace::Settled(); };
  mine.works.push_back(other);
  {
    auto settler = Settler::start(mine);
    ASSERT_TRUE(settler);
    ASSERT_TRUE(settler->guard(pidfd_of(guest_).get(), guest_, -1));
    ASSERT_TRUE(settler->prepare());
    ASSERT_TRUE(settler->begin({}));
    ::kill(guest_, SIGKILL);
    const auto settled = settler->settle();
    ASSERT_TRUE(settled);
    EXPECT_TRUE(settled->unfinished());
  }
  EXPECT_TRUE(eventually([&] { return state_files() == std::vector<std::string>{"0123456789abcdef.pending"}; }));
  bool due = false;
  bool ends = false;
  std::vector<std::string> told;
  const std::array<KnownWork, 1> known{{{"test work",
                                         [&](std::string_view record) -> base::Result<workspace::Settled> {
                                           auto out = redo(record);
                                           if (!ends) out->set_unfinished();
                                           out->add(workspace::Quarantined{"/work/.envrc", "/quarantine/1", ""});
                                           return out;
                                         },
                                         [&](std::string_view) { return due; }}}};
  const auto tell = [&](const std::string& folder) { told.push_back(folder); };
  ASSERT_TRUE(recover(state_, known, tell));
  EXPECT_FALSE(fs::exists(tree_.at("redone")));
  EXPECT_THAT(told, IsEmpty());
  due = true;
  auto recovery = recover(state_, known, tell);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(told, ElementsAre("/work"));
  EXPECT_EQ(recovery->sessions.size(), 1U);
  EXPECT_THAT(state_files(), ElementsAre("0123456789abcdef.pending"));
  ends = true;
  recovery = recover(state_, known, tell);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(recovery->errors, IsEmpty());
  EXPECT_EQ(recovery->sessions.size(), 1U);
  EXPECT_THAT(state_files(), IsEmpty());
}

TEST_F(SettlerTest, RecoveryTakesNothingThatIsNotBelljars) {
  ASSERT_TRUE(StateFolder::open(state_));
  Marker marker;
  marker.session = "aaaa";
  marker.guest = 1;  // with no start time: it is gone
  marker.works.push_back({"test work", tree_.at("redone"), false, {}, {}});
  const std::string elsewhere = tree_.file("elsewhere", encode(marker));
  fs::create_symlink(elsewhere, state_ + "/link.pending");
  fs::create_hard_link(elsewhere, state_ + "/hard.pending");
  std::ofstream(state_ + "/garbage.pending") << "garbage";
  std::ofstream(state_ + "/short.pending") << encode(marker).substr(0, 60);
  ASSERT_EQ(::mkfifo((state_ + "/fifo.pending").c_str(), 0600), 0);
  const auto recovery = recover(state_, kKnown);
  ASSERT_TRUE(recovery);
  EXPECT_THAT(recovery->sessions, IsEmpty());
  EXPECT_EQ(recovery->errors.size(), 5U);
  EXPECT_FALSE(fs::exists(tree_.at("redone")));
}

TEST_F(SettlerTest, WhatKilledLaunchersLeftBesideIsRemoved) {
  const auto state = StateFolder::open(state_);
  ASSERT_TRUE(state);
  const auto door = make_rule_door(state_, "aaaa", "record", {});
  ASSERT_TRUE(door);
  (void)make_rule_door(state_, "bbbb", "record", {});  // its launcher is dead: nobody holds the door
  for (const char* name : {"cccc.launch", "dddd.launch.new", "eeee.bell", "ffff.json"})
    std::ofstream(state_ + "/" + name);
  remove_remains(state_);
  EXPECT_THAT(state_files(), UnorderedElementsAre("aaaa.rules", "aaaa.bell", "aaaa.launch", "cccc.launch",
                                                  "dddd.launch.new", "eeee.bell", "ffff.json"));
  remove_remains(state_, std::chrono::seconds(-1));
  EXPECT_THAT(state_files(), UnorderedElementsAre("aaaa.rules", "aaaa.bell", "aaaa.launch", "ffff.json"));
}

TEST(StatePath, FollowsTheEnvironment) {
  EXPECT_EQ(state_path("/state", "/home/someone"), "/state/belljar/sessions");
  EXPECT_EQ(state_path("relative", "/home/someone"), "/home/someone/.local/state/belljar/sessions");
  EXPECT_EQ(state_path("", ""), "");
}

}  // namespace
}  // namespace belljar::session
