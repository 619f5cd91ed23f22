// A hostile agent inside, and what the host looks like afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <ostream>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSecret = "secret-of-the-host\n";
constexpr const char* kProxyPort = "61080";
constexpr uid_t kOther = 64107;
constexpr gid_t kOtherGroup = 64108;
constexpr auto kPatience = std::chrono::seconds(240);

// Whose the work folder is. kOwn: the launcher's, so root's for a launch by root. kShared: a set-gid folder that a
// group may write, which for a launch by root belongs to another user.
enum class Folder : uint8_t { kOwn, kShared };

void PrintTo(Folder folder, std::ostream* out) {
  *out << (folder == Folder::kOwn ? "Own" : "Shared");
}

// Everything below `folder` but the attempts' own: what it is, whose, how large, and its text.
std::map<std::string, std::string> snapshot(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat found{};
    ::lstat(entry.path().c_str(), &found);
    std::string text = std::to_string(found.st_mode) + " " + std::to_string(found.st_uid) + " " +
                       std::to_string(found.st_gid) + " " + std::to_string(found.st_mtime);
    if (S_ISREG(found.st_mode)) text += " " + read_text(entry.path());
    out.emplace(entry.path(), std::move(text));
  }
  return out;
}

class BreakoutTest : public ::testing::TestWithParam<Folder> {
 protected:
  BreakoutTest() {
    fs::create_directories(work());
    write_file(outside() + "/secret", kSecret);
    write_file(reading() + "/file", "read only\n");
    write_file(
        temp_ / "policy.toml",
        std::string("[limits]\nscratch_bytes = \"8MiB\"\nfile_bytes = \"12MiB\"\nprocesses = 64\nopen_files = 256\n") +
            (by_bubblewrap() ? "" : "scratch_files = 2000\n"));
    std::filesystem::create_directory(home());
    must_run({.argv = {"git", "init", "-q", "."}, .env = {{"HOME", home()}}, .cwd = work()});
    write_file(work() + "/replacement", "replaced\n");
    fs::copy(BELLJAR_HOSTILE, work() + "/hostile");
    fs::copy("/usr/bin/true", work() + "/planted-set-uid");
    if (GetParam() == Folder::kShared) {
      if (::geteuid() == 0) {
        must_run({.argv = {"chown", "-R", std::to_string(kOther) + ":" + std::to_string(kOtherGroup), work()}});
      }
      fs::permissions(work(), static_cast<fs::perms>(02775));
    }
    // After the change of owner, which would take the bit away. The second is root's in a launch by root.
    fs::copy(BELLJAR_HOSTILE, work() + "/planted-set-uid-hostile");
    for (const char* name : {"/planted-set-uid", "/planted-set-uid-hostile"}) {
      fs::permissions(work() + name, static_cast<fs::perms>(04755));
    }
  }

  [[nodiscard]] std::string work() const { return temp_ / "work"; }
  [[nodiscard]] std::string outside() const { return temp_ / "outside"; }
  [[nodiscard]] std::string reading() const { return temp_ / "reading"; }
  [[nodiscard]] std::string home() const { return temp_ / "home"; }

  [[nodiscard]] std::vector<std::string> words(const std::string& group) const {
    std::vector<std::string> out{work() + "/hostile",
                                 group,
                                 "secret=" + outside() + "/secret",
                                 "outside=" + outside(),
                                 "work=" + work(),
                                 "reading=" + reading(),
                                 std::string("proxy=") + kProxyPort};
    out.insert(out.end(), facts_.begin(), facts_.end());
    // What the bwrap tier does not promise (docs/bwrap.md): it counts no files of scratch, and devices are not mounted
    // read-only.
    if (by_bubblewrap()) {
      out.emplace_back("skip=files-in-temporary,files-in-shared-memory,change-the-times-of-a-device");
    }
    return out;
  }

  [[nodiscard]] Command inside(const std::string& group) const {
    Command command = sealed(work(), words(group), {"--policy", temp_ / "policy.toml", "--read", reading()});
    command.env = {{"HOME", home()}};
    return command;
  }

  // Tries the whole group sealed: nothing may get through, and the host may not look different.
  void try_all(const std::string& group) {
    judge(group, [&] { return run(inside(group), kPatience); });
  }

  void judge(const std::string& group, const std::function<Output()>& try_group) {
    const auto git = snapshot(work() + "/.git");
    const auto other = snapshot(outside());
    const auto read = snapshot(reading());
    const std::vector<std::string> beside = names_in(temp_.path());
    const Output output = try_group();
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_THAT(output.out, Not(HasSubstr("THROUGH")));
    EXPECT_THAT(output.out, Not(HasSubstr("BROKEN")));
    EXPECT_THAT(output.out, HasSubstr("attempts were stopped")) << group << output.err;
    EXPECT_EQ(snapshot(work() + "/.git"), git);
    EXPECT_EQ(snapshot(outside()), other);
    EXPECT_EQ(snapshot(reading()), read);
    EXPECT_EQ(names_in(temp_.path()), beside);
    judge_work();
  }

  // The same attempts without belljar, where they do no harm: they get through, so they are worth something.
  void must_get_through_outside(const std::string& group, const std::vector<std::string>& names) {
    std::string only = "only=";
    for (const std::string& name : names) only += name + ",";
    Command command{.argv = words(group), .env = {{"HOME", home()}}, .cwd = work()};
    command.argv.insert(command.argv.end(), {only, "marked=outside-"});
    const Output output = run(command, kPatience);
    for (const std::string& name : names) EXPECT_THAT(output.out, HasSubstr("THROUGH " + name + ": "));
  }

  std::vector<std::string> facts_;

 private:
  static std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
    std::ranges::sort(out);
    return out;
  }

  void judge_work() {
    struct stat owner{};
    ASSERT_EQ(::lstat(work().c_str(), &owner), 0);
    for (const auto& entry : fs::recursive_directory_iterator(work())) {
      const std::string path = entry.path();
      struct stat found{};
      ASSERT_EQ(::lstat(path.c_str(), &found), 0) << path;
      const bool planted = path.starts_with(work() + "/planted-");
      EXPECT_FALSE(S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode)) << path << " is a device";
      EXPECT_TRUE(planted || (found.st_mode & S_ISUID) == 0) << path << " is set-uid";
      // A folder in a set-gid folder is one too, and that is no privilege (inode(7)).
      EXPECT_TRUE(planted || S_ISDIR(found.st_mode) || (found.st_mode & S_ISGID) == 0) << path << " is set-gid";
      EXPECT_TRUE(planted || found.st_uid == owner.st_uid) << path << " belongs to user " << found.st_uid;
      EXPECT_TRUE(planted || found.st_gid == owner.st_gid) << path << " belongs to group " << found.st_gid;
      EXPECT_LT(::lgetxattr(path.c_str(), "security.capability", nullptr, 0), 0) << path << " has a capability";
    }
  }

  TempDir temp_;
};

TEST_P(BreakoutTest, NoSetIdFileOrDevice) {
  try_all("set-id");
}
TEST_P(BreakoutTest, NoFileOfTheHost) {
  try_all("files");
}
TEST_P(BreakoutTest, NothingWrittenWhereItMayOnlyRead) {
  try_all("read-only");
}
TEST_P(BreakoutTest, NoPowerOverInit) {
  try_all("processes");
}
TEST_P(BreakoutTest, NoKernelFeature) {
  try_all("kernel");
}

TEST_P(BreakoutTest, NothingUsedUpOutside) {
  try_all("exhaustion");
  EXPECT_EQ(run({.argv = {"true"}}).code, 0);
}

TEST_P(BreakoutTest, SameAttemptsGetThroughOutside) {
  must_get_through_outside("set-id", {"chmod", "chmod-setgid", "chmod-both", "fchmod", "fchmodat", "chmod-by-proc-fd",
                                      "open", "open-setgid", "openat", "openat2", "creat", "mknod-regular",
                                      "temporary-file-linked", "temporary-file-changed-then-linked",
                                      "socket-of-a-changed-mode", "folder-set-uid", "install-set-uid", "perl-chmod"});
  std::vector<std::string> names{"secret-by-its-path", "secret-by-climbing", "secret-by-own-root",
                                 "secret-by-a-link-in-work"};
  // A machine without systemd may have none.
  if (!read_text("/etc/machine-id").empty()) names.emplace_back("machine-id");
  must_get_through_outside("files", names);
  must_get_through_outside("processes", {"push-input", "line-discipline", "another-process-of-the-host"});
  must_get_through_outside("kernel", {"clone", "unshare-by-tool", "executable-reads"});
  must_get_through_outside("read-only",
                           {"git-write", "git-create", "git-change", "git-link-and-write", "git-by-folder-descriptor",
                            "read-folder-write", "read-folder-reopen", "read-folder-link"});
}

// Its own world of hosts, so that there are a loopback and an address to reach.
TEST_P(BreakoutTest, NoWayButTheProxy) {
  const TestHosts hosts({"allowed.test"});
  const base::Fd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  ASSERT_EQ(::bind(tcp.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(tcp.get(), 64), 0);
  ASSERT_EQ(::getsockname(tcp.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
  const std::string abstract = "belljar-breakout-" + std::to_string(::getpid());
  const std::string path = outside() + "/socket";
  const auto listen_at = [](const std::string& name, bool is_abstract) {
    base::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + (is_abstract ? 1 : 0), sizeof address.sun_path - 2);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(fd.get(), 64), 0);
    return fd;
  };
  const base::Fd unix_abstract = listen_at(abstract, true);
  const base::Fd unix_path = listen_at(path, false);
  facts_ = {"port=" + std::to_string(ntohs(any.sin_port)), std::string("address=") + TestHosts::kHost,
            "abstract=" + abstract, "socket=" + path};
  judge("network", [&] { return run(hosts.as_caller(inside("network")), kPatience); });
  must_get_through_outside("network", {"host-loopback", "host-loopback-other", "host-address",
                                       "abstract-socket-of-the-host", "socket-of-the-host"});
}

INSTANTIATE_TEST_SUITE_P(In, BreakoutTest, ::testing::Values(Folder::kOwn, Folder::kShared),
                         [](const auto& each) { return std::string(each.param == Folder::kOwn ? "Own" : "Shared"); });

// Whatever an agent kills or stops, the launcher learns the truth and ends.
TEST(BreakoutEndTest, KillingEverybodyLeavesInit) {
  const TempDir work;
  const Output output = run(sealed_script(work.path(), "sleep 1000 & kill -9 -1; wait; echo alive; exit 7"));
  EXPECT_EQ(output.code, 7) << output.err;
  EXPECT_EQ(output.out, "alive\n");
}

}  // namespace
}  // namespace belljar::testing
