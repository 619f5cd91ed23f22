// Limits on cgroup v2, the clock, sleep, file systems and the rest that this machine cannot be asked for: a kernel of
// Debian's is booted under qemu's software emulation, with the programs in its initial file system, and plays the
// scenes of vm/scenes once for all of them. Needs in BELLJAR_TEST_MACHINE a folder with vmlinuz, its modules and a
// static busybox; ./dev test sets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// An archive as the kernel unpacks it (Documentation/driver-api/early-userspace/buffer-format.rst, "newc").
class Archive {
 public:
  void folder(const std::string& name, unsigned mode = 0755) { add(name, S_IFDIR | mode, ""); }
  void file(const std::string& name, const std::string& text, unsigned mode = 0755) { add(name, S_IFREG | mode, text); }
  void link(const std::string& name, const std::string& target) { add(name, S_IFLNK | 0777U, target); }
  std::string finish() {
    add("TRAILER!!!", 0, "");
    return std::move(bytes_);
  }

 private:
  void add(const std::string& name, unsigned mode, const std::string& text) {
    std::array<char, 128> head{};
    std::snprintf(head.data(), head.size(), "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", ++inode_,
                  mode, 0U, 0U, 1U, 0U, static_cast<unsigned>(text.size()), 0U, 0U, 0U, 0U,
                  static_cast<unsigned>(name.size() + 1), 0U);
    bytes_ += head.data() + name + '\0';
    pad();
    bytes_ += text;
    pad();
  }
  void pad() { bytes_.resize((bytes_.size() + 3) / 4 * 4); }
  std::string bytes_;
  unsigned inode_ = 0;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A file system that counts what each user has in it.
std::string file_system_with_quotas(const TempDir& folder) {
  const std::string path = folder / "quota.img";
  (void)must_run({.argv = {"/sbin/mke2fs", "-q", "-t", "ext4", "-O", "quota,^has_journal", "-E", "quotatype=usrquota",
                           path, "4M"}});
  return read_text(path);
}

std::string initial_files(const TempDir& folder) {
  const std::string vm = std::string(BELLJAR_TESTS_DIR) + "/vm/";
  const std::string machine = variable("BELLJAR_TEST_MACHINE");
  const std::string programs = std::filesystem::path(belljar_program()).parent_path();
  Archive out;
  for (const char* name : {"bin", "etc", "proc", "sys", "dev", "new", "root", "belljar", "tmp", "work", "modules"}) {
    out.folder(name, std::string(name) == "tmp" ? 01777 : 0755);
  }
  out.file("init", read_text(vm + "init"));
  out.file("scenes", read_text(vm + "scenes"));
  out.file("file_systems", read_text(vm + "file_systems"));
  out.file("quota.img", file_system_with_quotas(folder));
  for (const auto& module : std::filesystem::directory_iterator(machine + "/modules")) {
    out.file("modules/" + module.path().filename().string(), read_text(module.path()));
  }
  out.file("mark", read_text(programs + "/vm-mark"));
  out.link("bin/mark", "/mark");
  out.file("bin/busybox", read_text(machine + "/busybox"));
  out.link("bin/sh", "busybox");
  out.file("belljar/belljar", read_text(belljar_program()));
  out.file("belljar/belljar-guest", read_text(programs + "/belljar-guest"));
  out.link("bin/belljar", "/belljar/belljar");
  out.file("etc/passwd", "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/work:/bin/sh\n", 0644);
  out.file("etc/group", "root:x:0:\nuser:x:1000:\n", 0644);
  out.file("etc/hosts", "127.0.0.1 localhost\n", 0644);
  return out.finish();
}

// Everything the scenes said, by scene and key; a key may come more than once.
class VmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(variable("BELLJAR_TEST_MACHINE").empty()) << "BELLJAR_TEST_MACHINE is not set (./dev test sets it)";
    const TempDir folder;
    write_file(folder / "initrd", initial_files(folder));
    const Output output =
        run({.argv = {"qemu-system-x86_64", "-M", "pc", "-cpu", "max", "-m", "768", "-nographic", "-no-reboot", "-nic",
                      "none", "-kernel", variable("BELLJAR_TEST_MACHINE") + "/vmlinuz", "-initrd", folder / "initrd",
                      "-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on mitigations=off tsc=unstable"}},
            std::chrono::seconds(480));
    for (size_t at = 0; at < output.out.size();) {
      const size_t end = std::min(output.out.find('\n', at), output.out.size());
      std::string line = output.out.substr(at, end - at);
      at = end + 1;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      const size_t scene = line.find("SCENE ");
      if (scene == std::string::npos) continue;
      line = line.substr(scene + 6);
      const size_t key = line.find(' ', line.find(' ') + 1);
      said_[line.substr(0, key)].push_back(key == std::string::npos ? "" : line.substr(key + 1));
    }
    ASSERT_TRUE(said_.contains("end of"))
        << output.out.substr(output.out.size() > 4000 ? output.out.size() - 4000 : 0) << output.err;
  }

  std::string said(const std::string& what) {
    std::string out;
    for (const std::string& line : said_[what]) out += line + "\n";
    return out;
  }
  // The scene's limit was met, the rest of the guest went on, and nothing of its group is left.
  void expect_met(const std::string& scene, const std::string& reason) {
    EXPECT_EQ(said(scene + " reasons"), reason + " \n") << said(scene + " err");
    EXPECT_EQ(said(scene + " out"), "alive\n");
    EXPECT_EQ(said(scene + " code"), "0\n");
    EXPECT_EQ(said(scene + " left"), "0\n");
  }

  // A launch of file_systems' try(): all that is the agent's to do was done, what it left was put away, and what it
  // wrote to a private copy, where there is one, was seen in there only.
  void expect_a_day(const std::string& scene, const std::string& copied) {
    EXPECT_EQ(said(scene + " code"), copied.empty() ? "1\n" : "0\n") << said(scene + " err");
    EXPECT_EQ(said(scene + " out"), "made\nmoved\ntheirs\n" + (copied.empty() ? "" : copied + "\n"));
    EXPECT_EQ(said(scene + " owner"), "1000\n");
    const std::string after = said(scene + " after");
    EXPECT_THAT(after, HasSubstr(".vscode: settings.json  sub: moved "));
    for (const char* left : {".GIT", ".mcp.json", ".EnvRc"}) EXPECT_THAT(after, Not(HasSubstr(left)));
  }

 private:
  std::map<std::string, std::vector<std::string>> said_;
};

// One case, as every case is a process of its own and would boot its own machine.
TEST_F(VmTest, LimitsDeadlinesAndFileSystemsOfAnotherKernel) {
  EXPECT_THAT(said("root plan"), HasSubstr("(cgroup v2 in /sys/fs/cgroup)"));
  expect_met("root-memory", "out_of_memory");
  expect_met("root-pids", "too_many_pids");
  EXPECT_EQ(said("root-all out"), "alive\n") << said("root-all err");
  EXPECT_EQ(said("root-all left"), "0\n");

  EXPECT_EQ(said("refused code"), "125\n");
  EXPECT_THAT(said("refused err"), HasSubstr("limits 'memory': this host cannot hold it: no group can be made in"));
  EXPECT_EQ(said("refused out"), "");
  EXPECT_EQ(said("without out"), "alive\n") << said("without err");

  expect_met("given-memory", "out_of_memory");
  expect_met("given-pids", "too_many_pids");
  EXPECT_EQ(said("alone reasons"), "out_of_memory \n") << said("alone err");
  EXPECT_EQ(said("alone left"), "0\n");

  EXPECT_EQ(said("killed before"), "0\n");
  EXPECT_EQ(said("killed left"), "0\n");

  for (const char* scene : {"clock86400", "clock-86400"}) {
    EXPECT_EQ(said(std::string(scene) + " code"), "124\n");
    EXPECT_EQ(said(std::string(scene) + " reasons"), "deadline \n");
    const int seconds = std::atoi(said(std::string(scene) + " took").c_str());
    EXPECT_GE(seconds, 3) << scene;
    EXPECT_LE(seconds, 40) << scene;
  }

  // Of its 12 s it slept through most: no clock that stands still meanwhile would have told it.
  EXPECT_EQ(said("sleep code"), "124\n");
  EXPECT_LT(std::atoi(said("sleep awake").c_str()), 12'000);

  expect_a_day("nfs-user", "mine");
  EXPECT_EQ(said("nfs-user put"), "/nfs/users/one/.GIT /nfs/users/one/.mcp.json /nfs/users/one/sub/.EnvRc \n");
  for (const char* scene : {"nfs-root", "nfs-others"}) {
    EXPECT_EQ(said(std::string(scene) + " code"), "125\n") << said(std::string(scene) + " out");
    EXPECT_THAT(said(std::string(scene) + " err"), HasSubstr("root may not write there"));
  }
  // No overlay can be made over it.
  for (const char* scene : {"fat-user", "fat-root"}) {
    expect_a_day(scene, "");
    EXPECT_THAT(said(std::string(scene) + " err"), HasSubstr("/.vscode' was read-only: "));
  }
  EXPECT_EQ(said("fat-root put"), "/fat/two/sub/.EnvRc /fat/two/.mcp.json /fat/two/.GIT \n");
  for (const char* scene : {"quota-1000", "quota-0"}) {
    EXPECT_EQ(said(std::string(scene) + " code"), "0\n");
    EXPECT_THAT(said(std::string(scene) + " err"), HasSubstr("Disk quota exceeded"));
    EXPECT_EQ(said(std::string(scene) + " out"), "big\nsmall\n");
  }
  EXPECT_EQ(said("full-quota code"), "125\n");
  EXPECT_THAT(said("full-quota err"), HasSubstr("Disk quota exceeded (set XDG_"));
}

}  // namespace
}  // namespace belljar::testing
