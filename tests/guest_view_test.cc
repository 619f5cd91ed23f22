// What the guest sees and can do, judged from the inside and checked on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GuestViewTest : public ::testing::Test {
 protected:
  GuestViewTest() {
    write_file(home_ / ".ssh/id_ed25519", "secret-of-the-home");
    write_file(home_ / "notes.txt", "secret-of-the-home");
  }

  Output script(const std::string& text, const std::vector<std::string>& options = {}) {
    Command command = sealed_script(work_.path(), text, options);
    command.env = {{"HOME", home_.path()}};
    return run(command);
  }

  // The mode and owner of a file of the work folder, as the host has them.
  struct stat on_host(const std::string& name) {
    struct stat info{};
    EXPECT_EQ(::lstat((work_ / name).c_str(), &info), 0) << name;
    return info;
  }

  TempDir home_;
  TempDir work_;
};

// A lease would keep the host's programs from a file, a limit would end init before it can say how the agent ended.
TEST_F(GuestViewTest, TakesNoLeaseAndLimitsNotItsInit) {
  const Output tried = script(
      "echo >file; exec /usr/bin/python3 -c 'import fcntl, resource\n"
      "for what in (lambda: fcntl.fcntl(open(\"file\"), fcntl.F_SETLEASE, fcntl.F_RDLCK),\n"
      "             lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)),\n"
      "             lambda: resource.prlimit(0, resource.RLIMIT_CPU, (900, 900))):\n"
      "    try: print(what())\n"
      "    except OSError as error: print(error.errno)\n'");
  EXPECT_EQ(tried.out, "1\n1\n(-1, -1)\n");
}

TEST_F(GuestViewTest, HasOneInterfaceAndItIsUp) {
  const Output output = script("sed -n 's/^ *\\([^ ]*\\):.*/\\1/p' /proc/net/dev; cat /proc/net/if_inet6");
  EXPECT_EQ(output.out.substr(0, 3), "lo\n");
  EXPECT_THAT(output.out, HasSubstr("00000000000000000000000000000001"));
  // And the one for programs that ask for addresses only when there is one beside the loopback's: of the transparent
  // way, which the bwrap tier has not.
  EXPECT_EQ(output.out.contains("fd53000000000000000000000001fffe"), !by_bubblewrap());
  EXPECT_EQ(std::count(output.out.begin(), output.out.end(), '\n'), by_bubblewrap() ? 2 : 3) << output.out;
  const std::string server =
      "perl -MSocket -e 'socket(S,AF_INET,SOCK_STREAM,0); bind(S,pack_sockaddr_in(0,inet_aton(\"127.0.0.1\"))) or die; "
      "listen(S,1) or die; ($p)=unpack_sockaddr_in(getsockname(S)); socket(C,AF_INET,SOCK_STREAM,0); "
      "connect(C,pack_sockaddr_in($p,inet_aton(\"127.0.0.1\"))) or die; print \"connected\"'";
  EXPECT_EQ(script(server).out, "connected");
}

TEST_F(GuestViewTest, HasNoFileOfTheHome) {
  const Output output = script("cat ~/.ssh/id_ed25519 ~/notes.txt " + home_ / "notes.txt" + "; ls -A ~");
  EXPECT_THAT(output.out, Not(HasSubstr("secret")));
  EXPECT_THAT(output.out, Not(HasSubstr("notes")));
}

TEST_F(GuestViewTest, HasNoSecretOfEtc) {
  const Output output = script("cat /etc/shadow /etc/gshadow /etc/sudoers; ls /etc/ssl/private; ls /root; echo; id -u");
  EXPECT_EQ(output.out.substr(0, 1), "\n") << output.out;
}

TEST_F(GuestViewTest, IsNotRootInsideOrOut) {
  const Output output = script("id -u; cat /proc/self/uid_map");
  EXPECT_THAT(output.out, Not(::testing::StartsWith("0\n")));
  // Columns: inside, outside, length. The outside id that matters is seen from the host's side:
  const std::string marker = "8642." + std::to_string(::getpid());
  const Process process(sealed(work_.path(), {"sleep", marker}));
  ASSERT_TRUE(eventually([&] {
    const Output owner = run({.argv = {"sh", "-c",
                                       "for p in /proc/[0-9]*; do [ \"$(tr '\\0' ' ' <$p/cmdline)\" = 'sleep " +
                                           marker + " ' ] && sed -n 's/^Uid:.//p' $p/status; done; :"}});
    EXPECT_THAT(owner.out, Not(::testing::StartsWith("0\t")));
    return !owner.out.empty();
  }));
}

TEST_F(GuestViewTest, HasNoPrivilegeLeft) {
  const Output output = script("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
  EXPECT_EQ(output.out,
            "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
            "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
}

TEST_F(GuestViewTest, SeesOnlyItsOwnProcesses) {
  const Output output = script("cat /proc/1/comm; set -- /proc/[0-9]*; echo $#");
  EXPECT_EQ(output.out, "belljar-guest\n2\n");
}

TEST_F(GuestViewTest, CannotTouchItsInit) {
  const Output output = script(
      "for f in environ mem maps root cwd exe fd syscall; do cat /proc/1/$f >/dev/null 2>&1 && echo $f; "
      "ls /proc/1/$f/ >/dev/null 2>&1 && echo $f/; done; kill -9 1; kill -STOP 1; kill -TERM 1; echo alive");
  EXPECT_EQ(output.out, "alive\n");
  EXPECT_EQ(output.code, 0);
}

TEST_F(GuestViewTest, WritesOnlyWhereItMay) {
  const Output output = script(
      "for d in / /usr /usr/bin /etc /bin /proc /proc/sys /dev /sys /var; do echo x 2>/dev/null >$d/belljar-x && echo "
      "$d; done; "
      "for d in . ~ /tmp /var/tmp /run /dev/shm; do echo x >$d/belljar-x || echo no $d; done");
  EXPECT_EQ(output.out, "") << output.err;
  EXPECT_TRUE(std::filesystem::exists(work_ / "belljar-x"));
  EXPECT_FALSE(std::filesystem::exists("/tmp/belljar-x"));
  EXPECT_FALSE(std::filesystem::exists(home_ / "belljar-x"));
}

TEST_F(GuestViewTest, GivesItsFilesToTheOwnerOfTheWorkFolder) {
  EXPECT_EQ(script("echo x >file; mkdir folder; ln -s file link").code, 0);
  for (const char* name : {"file", "folder", "link"}) {
    EXPECT_EQ(on_host(name).st_uid, on_host(".").st_uid) << name;
    EXPECT_EQ(on_host(name).st_gid, on_host(".").st_gid) << name;
  }
}

TEST_F(GuestViewTest, LeavesNoSetIdFileOrDevice) {
  // Every way the kernel has to make one (FACTS: chmod, fchmod, fchmodat, open, creat, mknod, mkdir and their kin).
  script(R"(cp /bin/true a; chmod 4755 a; cp /bin/true b; chmod 2755 b; mkdir c; chmod 2777 c; mkdir -m 2777 d
install -m 6755 /bin/true e
perl -e 'use Fcntl; sysopen(F, "f", O_CREAT|O_WRONLY, 04755); chmod(06755, F); syscall(133, "g", 0104755, 0);
  syscall(259, -100, "h", 0104755, 0); syscall(85, "i", 04755); syscall(257, -100, "j", 0101, 04755);
  syscall(90, "f", 04755); syscall(268, -100, "f", 04755); syscall(452, -100, "f", 04755, 0);
  syscall(83, "k", 06777); syscall(258, -100, "l", 06777);
  # openat2, with struct open_how
  $how = pack("QQQ", 0101, 04755, 0); syscall(437, -100, "m", $how, 24);'
mknod n c 1 3; mknod o b 8 0; mkfifo p)");
  int looked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(work_.path())) {
    struct stat info{};
    ASSERT_EQ(::lstat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & (S_ISUID | S_ISGID), 0U) << entry.path();
    EXPECT_FALSE(S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) << entry.path();
    ++looked;
  }
  EXPECT_GE(looked, 4);  // the harmless part of each attempt came through
}

TEST_F(GuestViewTest, MakesNoNamespaceAndNoMount) {
  EXPECT_NE(script("unshare --user true").code, 0);
  EXPECT_NE(script("unshare --user --mount --net true").code, 0);
  EXPECT_NE(script("mount -t tmpfs none /tmp").code, 0);
  // clone3 must say that it is not there, so that libc falls back to a clone whose flags can be judged.
  EXPECT_EQ(script("perl -e '$r = syscall(435, 0, 0); print $!+0'").out, "38");
}

TEST_F(GuestViewTest, KeepsGitAsItIs) {
  must_run({.argv = {"sh", "-ec", "git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one"},
            .cwd = work_.path()});
  const Output output = script(
      "git log --format=%s; echo x >.git/hooks/pre-commit; echo x >>.git/config; mv .git .git2; rm -rf .git; "
      "git status --porcelain --untracked-files=no; ls -d .git");
  EXPECT_EQ(output.out, "one\n.git\n") << output.err;
  EXPECT_FALSE(std::filesystem::exists(work_ / ".git/hooks/pre-commit"));
  EXPECT_EQ(run({.argv = {"git", "fsck"}, .cwd = work_.path()}).code, 0);
}

TEST_F(GuestViewTest, KeepsNoCoreFiles) {
  EXPECT_THAT(script("ulimit -c").out, ::testing::AnyOf("0\n", "1\n"));
}

TEST_F(GuestViewTest, HasDevicesThatProgramsNeedAndNoOthers) {
  const Output output = script(
      "for d in null zero full random urandom tty ptmx; do test -e /dev/$d || echo no $d; done; "
      "echo x >/dev/null && head -c 4 /dev/zero | wc -c; find /dev -type b; ls /dev/mem /dev/kmsg /dev/fuse 2>&1 | "
      "grep -c cannot");
  EXPECT_EQ(output.out, "4\n3\n");
}

TEST_F(GuestViewTest, SharesTheHostsNetworkWhenToldTo) {
  EXPECT_EQ(script("readlink /proc/self/ns/net", {"--net", "allow"}).out,
            run({.argv = {"readlink", "/proc/self/ns/net"}}).out);
  EXPECT_NE(script("readlink /proc/self/ns/net").out, run({.argv = {"readlink", "/proc/self/ns/net"}}).out);
}

TEST_F(GuestViewTest, SharesNoNamespaceOtherwise) {
  const std::string names = "for n in user mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$n; done";
  const Output inside = script(names);
  const Output outside = run({.argv = {"sh", "-c", names}});
  std::istringstream ours(outside.out);
  for (std::string line; std::getline(ours, line);) EXPECT_THAT(inside.out, Not(HasSubstr(line)));
  EXPECT_EQ(std::count(inside.out.begin(), inside.out.end(), '\n'), 7);
}

TEST_F(GuestViewTest, LeavesTheWorkFolderAsItWas) {
  must_run({.argv = {"git", "init", "-q", "."}, .cwd = work_.path()});
  EXPECT_EQ(script("true").code, 0);
  EXPECT_EQ(run({.argv = {"git", "status", "--porcelain", "--ignored"}, .cwd = work_.path()}).out, "");
  EXPECT_EQ(run({.argv = {"ls", "-A", work_.path()}}).out, ".git\n");
  // Belljar's own state and caches, and nothing else.
  EXPECT_EQ(run({.argv = {"ls", "-A", home_.path()}}).out, ".cache\n.local\n.ssh\nnotes.txt\n");
  EXPECT_EQ(run({.argv = {"find", home_.path() + "/.local", home_.path() + "/.cache", "-type", "f"}}).out, "");
}

}  // namespace
}  // namespace belljar::testing
