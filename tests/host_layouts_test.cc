// Hosts of other shapes (shared/cases/host.md, H1 to H8 and H19), made in a mount namespace of the test's own: an
// ordinary user makes it in a user namespace, in which it stays who it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// `script` may mount; in it `sealed WORDS...` is `belljar run WORDS...` without the rights for that.
class LayoutTest : public ::testing::Test {
 protected:
  Output host(const std::string& script) {
    const std::string belljar = std::filesystem::path(belljar_program()).parent_path();
    const std::string bubblewrap = std::filesystem::path(bubblewrap_program()).parent_path();
    const char* loop = std::getenv("BELLJAR_TEST_LOOP");  // of a run over ssh
    const std::string text =
        "L='" + std::string(loop != nullptr ? loop : "") + "'\n" +
        "MODE=" + std::string(by_bubblewrap() ? "bwrap" : "jail") + "; B='" + belljar + "'; W='" + bubblewrap +
        "'; T='" + dir_.path() +
        "'\n"
        "plain() { setpriv --inh-caps=-all --ambient-caps=-all \"$@\"; }\n"
        "sealed() { plain env XDG_STATE_HOME=\"$T/state\" XDG_CACHE_HOME=\"$T/cache\" \"$B/belljar\" run --mode $MODE "
        "${L:+--target ssh:there} "
        "\"$@\"; }\n"
        // The host's tree once more, for a root of another shape at $M.
        "trees() { M=$T/root; mkdir -p $M; ${1:-plain_root}\n"
        "  mkdir -p $M/proc $M/sys $M/dev $M/run $M/tmp $M/old $M/etc $M/home/me/work $M$B $M/work\n"
        "  for d in proc sys dev; do mount --rbind /$d $M/$d; done\n"
        "  mount --bind $B $M$B; [ $W = /usr/bin ] || { mkdir -p $M$W; mount --bind $W $M$W; }\n"
        "  [ -z $L ] || { mkdir -p $M$L $M/run/sshd; mount --bind $L $M$L; }\n"
        "  cp -a /etc/passwd /etc/group /etc/ld.so.cache $M/etc/ 2>/dev/null\n"
        "  echo '127.0.0.1 localhost' >$M/etc/hosts; chmod 1777 $M/tmp; }\n"
        "plain_root() { mount -t tmpfs -o mode=755 none $M; }\n"
        "overlay_root() { mkdir $T/s; mount -t tmpfs -o mode=755 none $T/s; mkdir $T/s/l $T/s/u $T/s/w\n"
        "  mount -t overlay none -o lowerdir=$T/s/l,upperdir=$T/s/u,workdir=$T/s/w $M || exit 77; }\n"
        "enter() { cd $M; pivot_root . old; umount -l old 2>/dev/null; T=/tmp; export HOME=/home/me; cd /work; }\n" +
        script;
    std::vector<std::string> words{"unshare", "-m", "--propagation", "private"};
    if (::geteuid() != 0) words = {"unshare", "-c", "--keep-caps", "-m", "--propagation", "private"};
    words.insert(words.end(), {"sh", "-uc", text});
    Command command{.argv = words, .cwd = work_.path()};
    command.env = {{"HOME", dir_ / "home"},
                   {"PATH", (loop != nullptr ? loop + std::string("/bin:") : "") + bubblewrap +
                                ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}};
    return run(command);
  }
  TempDir dir_;
  TempDir work_;
};

// ---- H1 ----

TEST_F(LayoutTest, WithoutUserNamespacesTheSettingAndTheRemedyAreNamed) {
  const std::string drop = ::geteuid() == 0 ? "" : "setpriv --inh-caps=-all --ambient-caps=-all ";
  const Output output = run({.argv = {"unshare", "-U", "-m", "-c", "--keep-caps", "sh", "-c",
                                      "echo 0 >/proc/sys/user/max_user_namespaces && exec " + drop + belljar_program() +
                                          " run -- sh -c 'echo started; cat /proc/net/dev'"},
                             .cwd = work_.path()});
  EXPECT_EQ(output.code, 125) << output.out;
  EXPECT_THAT(output.out, Not(HasSubstr("started")));
  if (::geteuid() == 0) {
    // Root of a user namespace of one id: it has none to give, and is told so before the limit is met.
    EXPECT_THAT(output.err, HasSubstr("not in this user namespace, refusing"));
    return;
  }
  EXPECT_THAT(output.err, HasSubstr("user.max_user_namespaces"));
  EXPECT_THAT(output.err, HasSubstr("belljar doctor"));
}

// ---- H3: /proc masked, as in a container ----

TEST_F(LayoutTest, AMaskedProcIsFoundAndTold) {
  const Output output = host(
      "mount --bind /dev/null /proc/kcore; mount -t tmpfs none /proc/acpi; "
      "mount --bind /proc/sys /proc/sys; sealed -- sh -c 'ls -d /proc/self; cat /proc/1/comm'");
  if (output.code == 0) {
    EXPECT_EQ(output.out, "/proc/self\nbelljar-guest\n");
    return;
  }
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("parts of /proc are masked here"));
  EXPECT_THAT(output.err, HasSubstr(by_bubblewrap() ? "systempaths=unconfined" : "belljar doctor"));
}

// ---- H4: root on an overlay, of any propagation ----

TEST_F(LayoutTest, WorksOnARootThatIsAnOverlay) {
  const Output output = host(
      "trees overlay_root; mkdir -p $M/usr; mount --rbind /usr $M/usr; for d in bin sbin lib lib64; do ln -s usr/$d "
      "$M/$d; "
      "done; enter; sealed -- sh -c 'echo started; echo x >made'; echo code $?; cat made");
  ASSERT_NE(output.code, 77) << output.err;
  // Works, or names the file system that cannot map root's files to somebody else.
  EXPECT_THAT(output.out + output.err, AnyOf(HasSubstr("started\ncode 0\nx"), HasSubstr("overlay")));
}

TEST_F(LayoutTest, WorksWhateverTheRootsPropagation) {
  for (const char* kind : {"shared", "slave", "unbindable"}) {
    const Output output = host(std::string("mount --make-r") + kind +
                               " / 2>/dev/null; sealed -- echo started; "
                               "grep -c belljar-guest /proc/self/mountinfo");
    EXPECT_THAT(output.out, AnyOf(StartsWith("started\n"), HasSubstr("0\n"))) << kind << output.err;
    if (std::string(kind) != "unbindable") {
      EXPECT_EQ(output.out, "started\n0\n") << kind << output.err;
    }
  }
}

// ---- H5 ----

TEST_F(LayoutTest, WorksOnMergedAndSplitLayouts) {
  const Output split = host(
      "trees; mkdir -p $M/usr $M/bin $M/sbin $M/lib $M/lib64; mount --rbind /usr $M/usr; mount --bind /usr/bin $M/bin; "
      "mount --bind /usr/sbin $M/sbin; mount --bind /usr/lib $M/lib; mount --bind /usr/lib64 $M/lib64; enter; "
      "sealed -- /bin/sh -c 'test -d /bin && ! test -L /bin && ! test -L /lib64 && echo split'");
  EXPECT_EQ(split.out, "split\n") << split.err;
  const Output merged = host(
      "trees; mkdir -p $M/usr; mount --rbind /usr $M/usr; for d in bin sbin lib lib64; do ln -s usr/$d $M/$d; done; "
      "enter; "
      "sealed -- /bin/sh -c 'test -L /bin && test -L /lib64 && echo merged'");
  EXPECT_EQ(merged.out, "merged\n") << merged.err;
  // No /lib64 at all: what needs it is not there for anybody.
  const Output none = host(
      "trees; mkdir -p $M/usr; mount --rbind /usr $M/usr; for d in bin sbin lib; do ln -s usr/$d $M/$d; done; enter; "
      "sealed -- /bin/sh -c 'echo started'; echo code $?");
  EXPECT_THAT(none.out + none.err, AnyOf(HasSubstr("code 12"), HasSubstr("not found"), HasSubstr("No such file")));
}

// ---- H6: no /usr/bin, no /bin/bash; programs in a store, found by a profile that is a link ----

TEST_F(LayoutTest, WorksWithAStoreAndAProfile) {
  const Output output = host(
      "trees; mkdir -p $M/nix/store/abc-tools $M/nix/var/nix/profiles/per-user/me $M/bin $M/lib64 $M/lib $M/usr; "
      "mount --rbind /usr $M/nix/store/abc-tools; ln -s /nix/store/abc-tools/bin/sh $M/bin/sh; "
      "mount --bind /usr/lib64 $M/lib64; mount --bind /usr/lib $M/lib; "
      "ln -s /nix/store/abc-tools $M/nix/var/nix/profiles/per-user/me/profile; ln -s /nowhere $M/run/current-system; "
      "ln -s /nix/var/nix/profiles/per-user/me/profile $M/home/me/.nix-profile; "
      "sed -i 's|:/bin/bash$|:/bin/sh|' $M/etc/passwd; enter; "
      "export SHELL=/bin/sh BELLJAR_TEST_USR=/nix/store/abc-tools; "
      "export PATH=${L:+$L/bin:}$W:/run/current-system/sw/bin:/home/me/.nix-profile/bin:/nix/store/abc-tools/bin:/bin; "
      "sealed -- /bin/sh -c 'echo started; ls -d /usr/bin /bin/bash' ; sealed -- /bin/bash -c true; echo code $?");
  EXPECT_THAT(output.out, StartsWith("started\n")) << output.err;
  EXPECT_THAT(output.out, HasSubstr("code 127\n"));
  EXPECT_THAT(output.err, HasSubstr("/bin/bash"));
}

// ---- H7 ----

TEST_F(LayoutTest, ALinkedResolverFileIsItsContentAndADanglingOneIsTold) {
  const std::string layout =
      "trees; mkdir -p $M/usr; mount --rbind /usr $M/usr; for d in bin sbin lib lib64; do ln -s usr/$d $M/$d; done; "
      "mkdir -p $M/run/resolver; echo secret >$M/run/resolver/other; ";
  const Output there =
      host(layout +
           "echo 'nameserver 192.0.2.53' >$M/run/resolver/stub; ln -s ../run/resolver/stub "
           "$M/etc/resolv.conf; enter; sealed --net allow -- sh -c 'cat /etc/resolv.conf; ls /run /run/resolver'");
  EXPECT_EQ(there.out, "nameserver 192.0.2.53\n/run:\nresolver\n\n/run/resolver:\nstub\n") << there.err;
  const Output dangling =
      host(layout +
           "ln -s ../run/resolver/gone $M/etc/resolv.conf; enter; sealed --net allow -- sh -c 'ls /run'; "
           "plain $B/belljar plan --net allow -- true");
  EXPECT_THAT(dangling.out, StartsWith("command ")) << dangling.err;
  EXPECT_THAT(dangling.out, HasSubstr("/etc/resolv.conf is a link to '../run/resolver/gone', which is missing"));
}

// ---- H8: what lets a program of another system be started from here ----

TEST_F(LayoutTest, NothingLeadsToProgramsOfAnotherSystem) {
  const Output output = host(
      "mkdir -p $T/mnt/c/Windows; mount --bind $T/mnt /mnt; export WSL_INTEROP=/run/WSL/1_interop; "
      "sealed -- sh -c 'ls /mnt /run/WSL /proc/sys/fs/binfmt_misc/* 2>/dev/null; echo ${WSL_INTEROP-none}; "
      "perl -MSocket -e \"socket(S, 40, SOCK_STREAM, 0) and print qq{vsock\\n}\"'");
  EXPECT_EQ(output.out, "none\n") << output.err;
}

// ---- H19 ----

TEST_F(LayoutTest, WorksOnOtherFileSystemsOrNamesThem) {
  struct Case {
    const char* name;
    const char* mount;  // of $W
    const char* says;   // what the command prints, or part of the refusal
  };
  constexpr const char* kWrite = "sealed -- sh -c 'echo x 2>/dev/null >made && cat made || echo cannot write'";
  for (const Case& each :
       {Case{"tmpfs", "mount -t tmpfs -o mode=777 none $W", "x\n"},
        Case{"noexec", "mount -t tmpfs -o mode=777,noexec none $W", "x\n"},
        Case{"read-only", "mount -t tmpfs -o mode=777 none $W; mount -o remount,ro,bind $W", "cannot write\n"},
        Case{"full", "mount -t tmpfs -o mode=777,size=4k none $W; head -c 4096 /dev/zero >$W/fill", "cannot write\n"},
        Case{"no inodes", "mount -t tmpfs -o mode=777,nr_inodes=2 none $W; : >$W/fill", "cannot write\n"}}) {
    const Output output = host(std::string("W=$T/w; mkdir $W; ") + each.mount + "; cd $W; " + kWrite);
    EXPECT_THAT(output.out + output.err, AnyOf(HasSubstr(each.says), HasSubstr("tmpfs"))) << each.name << output.err;
    if (::geteuid() != 0) {
      EXPECT_EQ(output.out, each.says) << each.name << output.err;
    }
  }
}

TEST_F(LayoutTest, WorksWithTheTemporaryFolderAndTheHomeElsewhere) {
  const Output output = host(
      "mount -t tmpfs -o mode=1777,noexec none /var/tmp; mkdir -p $T/home $T/ro; mount -t tmpfs -o mode=777 none "
      "$T/home; "
      "export HOME=$T/home TMPDIR=$T/ro; mount -t tmpfs none $T/ro; mount -o remount,ro,bind $T/ro; "
      "sealed -- sh -c 'echo x >~/f && cat ~/f && echo y >/tmp/f && cat /tmp/f'; ls -A $T/home");
  EXPECT_EQ(output.out, "x\ny\n") << output.err;
}

// Wherever the room ends: for the caches, the state folder, what stands in it for the session.
TEST_F(LayoutTest, AFullHomeIsNamed) {
  const Output output = host(
      "mkdir $T/home $T/w; cd $T/w; T=$T/home; export HOME=$T; for n in $(seq 24); do "
      "mount -t tmpfs -o mode=777,nr_inodes=$n none $T; sealed -- echo started || echo refused; umount $T; done");
  const auto count = [](const std::string& text, const std::string& word) {
    size_t out = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++out;
    return out;
  };
  EXPECT_EQ(count(output.out, "\n"), 24) << output.err;
  EXPECT_GT(count(output.out, "started"), 0) << output.err;
  EXPECT_GT(count(output.out, "refused"), 10) << output.err;
  EXPECT_EQ(count(output.err, "No space left on device"), count(output.out, "refused")) << output.err;
}

}  // namespace
}  // namespace belljar::testing
