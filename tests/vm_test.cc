// Limits on cgroup v2, the clock and the rest that this machine cannot be asked for: a kernel of Debian's is booted
// under qemu's software emulation, with the programs in its initial file system, and plays the scenes of vm/scenes once
// for all of them. Needs in BELLJAR_TEST_MACHINE a folder with vmlinuz and a static busybox; ./dev test sets it.
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

std::string initial_files() {
  const std::string vm = std::string(BELLJAR_TESTS_DIR) + "/vm/";
  const std::string programs = std::filesystem::path(belljar_program()).parent_path();
  Archive out;
  for (const char* name : {"bin", "etc", "proc", "sys", "dev", "new", "root", "belljar", "tmp", "work"}) {
    out.folder(name, std::string(name) == "tmp" ? 01777 : 0755);
  }
  out.file("init", read_text(vm + "init"));
  out.file("scenes", read_text(vm + "scenes"));
  out.file("mark", read_text(programs + "/vm-mark"));
  out.link("bin/mark", "/mark");
  out.file("bin/busybox", read_text(variable("BELLJAR_TEST_MACHINE") + "/busybox"));
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
    write_file(folder / "initrd", initial_files());
    const Output output =
        run({.argv = {"qemu-system-x86_64", "-M", "pc", "-cpu", "max", "-m", "768", "-nographic", "-no-reboot", "-nic",
                      "none", "-kernel", variable("BELLJAR_TEST_MACHINE") + "/vmlinuz", "-initrd", folder / "initrd",
                      "-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on mitigations=off tsc=unstable"}},
            std::chrono::seconds(280));
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

 private:
  std::map<std::string, std::vector<std::string>> said_;
};

// One case, as every case is a process of its own and would boot its own machine.
TEST_F(VmTest, LimitsAndDeadlinesOnAKernelWithCgroup2) {
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
}

}  // namespace
}  // namespace belljar::testing
