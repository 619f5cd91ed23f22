// nested = true: sandboxes work inside, and inside of them everything else still holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class NestedTest : public ::testing::Test {
 protected:
  NestedTest() {
    must_run({.argv = {"git", "init", "-q", "."}, .cwd = work_.path()});
    write_file(work_ / ".mcp.json", "{}\n");
    std::filesystem::create_directories(work_ / "hidden");
    write_file(work_ / "hidden/secret", "a-hidden-secret");
    write_file(home_ / ".ssh/id_ed25519", "secret-of-the-home");
  }

  Output script(const std::string& text, std::vector<std::string> options = {"--nested"}) {
    Command command = sealed_script(work_.path(), text, options);
    command.env = {{"HOME", home_.path()}};
    return run(command);
  }
  // As root of a user, mount, pid, network, ipc and uts namespace made inside, with all capabilities there are.
  Output as_inner_root(const std::string& text, const std::vector<std::string>& options = {"--nested"}) {
    write_file(work_ / "inner.sh", text);
    return script("unshare -Urmpniuf --mount-proc sh inner.sh", options);
  }

  TempDir home_;
  TempDir work_;
};

TEST_F(NestedTest, UnshareMakesASandboxInside) {
  const Output output =
      as_inner_root("id -u; cat /proc/1/comm; mount -t tmpfs none /tmp && ls -A /tmp; hostname mine && hostname");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "0\nsh\nmine\n");
}

TEST_F(NestedTest, BubblewrapMakesASandboxInside) {
  const Output output = script(
      "bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --bind $PWD $PWD "
      "--chdir $PWD "
      "-- sh -c 'echo $$; echo made >made; echo x >/usr/x || echo read-only'");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "2\nread-only\n");
  EXPECT_EQ(read_text(work_ / "made"), "made\n");
}

// Root of a namespace may give capabilities to its own files, and where the work folder is root's, who gives them is
// root.
TEST_F(NestedTest, NoFileGetsCapabilities) {
  const Output output = as_inner_root(
      "cp /bin/true mine; exec /usr/bin/python3 -c 'import os, struct\n"
      "for value in (struct.pack(\"<IIIII\", 0x2000001, 0xff, 0, 0, 0), struct.pack(\"<IIIIII\", 0x3000001, 0xff, 0, "
      "0, 0, 0)):\n"
      "    try: os.setxattr(\"mine\", \"security.capability\", value)\n"
      "    except OSError as error: print(error.errno)\n'");
  EXPECT_EQ(output.out, "95\n95\n") << output.err;
  EXPECT_LT(::getxattr((work_ / "mine").c_str(), "security.capability", nullptr, 0), 0);
}

// The other half of both: without the word, neither works.
TEST_F(NestedTest, NothingOfTheKindWorksWithoutTheWord) {
  EXPECT_NE(as_inner_root("echo inside", {}).code, 0);
  const Output output = script("bwrap --unshare-all --ro-bind / / true", {});
  EXPECT_NE(output.code, 0);
  EXPECT_THAT(output.err, HasSubstr("bwrap:"));
}

TEST_F(NestedTest, AnInnerRootUncoversAndWritesNothing) {
  const std::string work = work_.path();
  const Output output = as_inner_root(
      "try() { \"$@\" 2>/dev/null && echo \"DONE: $*\"; }\n"
      "cd " +
          work +
          "\n"
          "try umount .git; try umount -l .git; try umount .mcp.json; try umount hidden; try umount /etc/shadow\n"
          "try mount -o remount,rw,bind .git; try mount -o remount,rw,bind /usr; try mount -o remount,rw,bind /\n"
          "mkdir -p /tmp/a; try mount --bind . /tmp/a; try mount --bind /etc /tmp/a; try mount --bind / /tmp/a\n"
          "mount --rbind . /tmp/a; try umount /tmp/a/.git; try umount -l /tmp/a/hidden; cat /tmp/a/hidden/secret\n"
          "mkdir -p /tmp/u /tmp/w /tmp/m; try mount -t overlay o -o lowerdir=.,upperdir=/tmp/u,workdir=/tmp/w /tmp/m\n"
          "cat /tmp/m/hidden/secret; try mount --move .git /tmp/m\n"
          "echo evil >.git/hooks/pre-commit; echo evil >.git/config; echo evil >.mcp.json; cat hidden/secret\n"
          "try mv .git elsewhere; try rm -rf .git; try mv .mcp.json elsewhere; cat /etc/shadow\n"
          "mkdir -p /tmp/r/old; mount --rbind / /tmp/r && cd /tmp/r && pivot_root . tmp && umount -l /tmp\n"
          "cat " +
          home_.path() + "/.ssh/id_ed25519; :",
      {"--nested", "--hide", "hidden"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, Not(HasSubstr("secret"))) << output.err;
  EXPECT_THAT(output.out, Not(HasSubstr("DONE: umount"))) << output.err;
  EXPECT_THAT(output.out, Not(HasSubstr("remount"))) << output.err;
  EXPECT_THAT(output.out, Not(HasSubstr("DONE: m"))) << output.err;
  EXPECT_THAT(output.out, Not(HasSubstr("root:"))) << output.err;
  EXPECT_FALSE(std::filesystem::exists(work_ / ".git/hooks/pre-commit"));
  EXPECT_EQ(read_text(work_ / ".mcp.json"), "{}\n");
  EXPECT_EQ(run({.argv = {"git", "status", "--porcelain", "inner.sh"}, .cwd = work}).out, "?? inner.sh\n");
}

// The kernel keeps a mount point in its place for those who have the mount: through a descriptor of the mount namespace
// before, who has left that one renames and removes it (rename(2), EBUSY).
TEST_F(NestedTest, WhatAnInnerRootMovesAwayKeepsItsContentAndIsSaid) {
  write_file(work_ / "inner.py",
             "import os, ctypes\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "uid, gid = os.getuid(), os.getgid()\n"
             "work = os.open('.', os.O_RDONLY | os.O_DIRECTORY)\n"
             "assert libc.unshare(0x10020000) == 0\n"
             "for name, text in (('setgroups', 'deny'), ('uid_map', '0 %d 1' % uid), ('gid_map', '0 %d 1' % gid)):\n"
             "  open('/proc/self/' + name, 'w').write(text)\n"
             "libc.mount(None, b'/', None, 0x44000, None)\n"
             "os.makedirs('/tmp/new')\n"
             "libc.mount(b'tmpfs', b'/tmp/new', b'tmpfs', 0, None)\n"
             "os.mkdir('/tmp/new/old'); os.chdir('/tmp/new')\n"
             "libc.syscall(155, b'.', b'old'); os.chdir('/'); libc.umount2(b'/old', 2)\n"
             "os.rename('.git', 'moved', src_dir_fd=work, dst_dir_fd=work)\n"
             "os.unlink('.mcp.json', dir_fd=work)\n"
             "os.unlink('.envrc', dir_fd=work)\n"
             "os.mkdir('.git', dir_fd=work)\n"
             "for name in ('.mcp.json', 'moved/config'):\n"
             "  try: os.write(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=work), b'evil')\n"
             "  except OSError as fault: print(name, fault.strerror)\n");
  write_file(work_ / ".envrc", "export A=1\n");
  const std::string config = read_text(work_ / ".git/config");
  const Output output = script("python3 inner.py", {"--nested", "--report", home_ / "report"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "moved/config Read-only file system\n") << output.err;
  EXPECT_EQ(read_text(work_ / "moved/config"), config);
  EXPECT_FALSE(std::filesystem::exists(work_ / ".git"));
  EXPECT_FALSE(std::filesystem::exists(work_ / ".mcp.json"));
  const auto after = nlohmann::json::parse(read_text(home_ / "report"))["after"];
  EXPECT_THAT(after["notes"], ::testing::UnorderedElementsAre("'.git' is now at 'moved'", "'.envrc' is gone"));
  EXPECT_EQ(after["quarantined"].size(), 2U) << after;
}

TEST_F(NestedTest, AnInnerRootMakesNoSetIdFileAndNoDeviceOnTheHost) {
  const Output output = as_inner_root(
      "cp /bin/true copy; chmod 4755 copy && echo set-id; chmod 2755 copy && echo set-id; "
      "mknod device c 1 3 && echo device; setcap cap_sys_admin+ep copy 2>/dev/null; :");
  EXPECT_EQ(output.out, "") << output.err;
  struct stat made{};
  ASSERT_EQ(::stat((work_ / "copy").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 06000U, 0U);
  // A capability that was set holds in that user namespace only (capabilities(7), "Namespaced file capabilities").
  const Output sealed_again = script("./copy && grep -h CapBnd /proc/self/status");
  EXPECT_THAT(sealed_again.out, HasSubstr("0000000000000000"));
  // Not on a disk either, through an image of the guest's own making.
  EXPECT_THAT(as_inner_root("truncate -s 1M image; mount -o loop image /tmp && echo mounted; :").out,
              Not(HasSubstr("mounted")));
}

TEST_F(NestedTest, AnInnerRootHasNoWayToTheHostsNetworkProcessesOrKernel) {
  const Output output = script(
      "readlink /proc/self/ns/net; unshare -Urmp -f --mount-proc=/proc sh -c '"
      "echo 1 >/proc/sys/kernel/panic; echo x >/proc/sysrq-trigger; echo /x >/proc/sys/kernel/core_pattern; "
      "echo 10000 >/proc/sys/user/max_user_namespaces; ip link add dummy0 type dummy; ip link set lo down; "
      "cat /proc/kcore | head -c1; cat /proc/1/comm; ls /proc | grep -c ^[0-9]*$; "
      "mount -t sysfs none /tmp && echo sysfs; mount -t debugfs none /tmp && echo debugfs; "
      "mount -t devtmpfs none /tmp && echo devtmpfs; mount -t securityfs none /tmp && echo securityfs; "
      "keyctl show @s; dmesg; nsenter -t 1 -a true; :' 2>/dev/null; "
      "cat /proc/sys/user/max_user_namespaces; grep -c lo: /proc/net/dev");
  EXPECT_THAT(output.out, StartsWith("net:["));
  const std::string rest = output.out.substr(output.out.find('\n') + 1);
  EXPECT_EQ(rest.substr(0, 3), "sh\n") << output.out;
  for (const char* never : {"sysfs", "debugfs", "devtmpfs", "securityfs"}) EXPECT_THAT(rest, Not(HasSubstr(never)));
  EXPECT_THAT(rest, ::testing::EndsWith("\n256\n1\n")) << output.out;
}

TEST_F(NestedTest, PlanBadgeAndSettlementSayIt) {
  Command plan{.argv = {belljar_program(), "plan", "--json", "--nested", "--", "true"}, .cwd = work_.path()};
  plan.env = {{"HOME", home_.path()}};
  const auto planned = nlohmann::json::parse(run(plan).out);
  EXPECT_TRUE(planned["nested"].get<bool>());
  EXPECT_THAT(planned["weakenings"].dump(), HasSubstr("nested = true"));
  const Output output = script("true", {"--nested", "--report", home_ / "report"});
  EXPECT_THAT(output.err, HasSubstr("nested = true"));
  const auto report = nlohmann::json::parse(read_text(home_ / "report"));
  EXPECT_THAT(report.dump(), HasSubstr("nested = true"));
  EXPECT_THAT(report.dump(), HasSubstr("\"nested\":true"));
}

}  // namespace
}  // namespace belljar::testing
