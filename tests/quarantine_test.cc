// `belljar quarantine`: what an agent left is found, taken back and removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class QuarantineTest : public ::testing::Test {
 protected:
  QuarantineTest() { fs::create_directories(work()); }
  [[nodiscard]] std::string work() const { return dir_ / "work"; }
  Output guest(const std::string& script) {
    Command command = sealed_script(work(), script);
    command.env["XDG_STATE_HOME"] = dir_ / "state";
    return run(command);
  }
  Output quarantine(std::vector<std::string> words) {
    words.insert(words.begin(), {belljar_program(), "quarantine"});
    Command command{.argv = words, .cwd = work()};
    command.env["XDG_STATE_HOME"] = dir_ / "state";
    command.env["TZ"] = "UTC";
    return run(command);
  }
  // The ids, by the path that each was put away from.
  std::map<std::string, std::string> ids() {
    std::map<std::string, std::string> out;
    std::istringstream lines(quarantine({"ls"}).out);
    for (std::string line; std::getline(lines, line);) {
      out[line.substr(line.find(" /") + 1)] = line.substr(0, line.find(' '));
    }
    return out;
  }
  TempDir dir_;
};

TEST_F(QuarantineTest, ListsRestoresAndDrops) {
  EXPECT_EQ(quarantine({"ls"}).out, "");
  (void)guest("mkdir -p a/.git/objects a/.git/refs; echo x >a/.git/HEAD; echo mine >.envrc; ln -s /etc .claude");
  const std::string real = fs::canonical(work());
  auto found = ids();
  ASSERT_THAT(found, SizeIs(3)) << quarantine({"ls"}).out;
  EXPECT_THAT(quarantine({}).out, HasSubstr("folder  " + real + "/a/.git\n"));

  const Output restored = quarantine({"restore", found[real + "/.envrc"]});
  EXPECT_EQ(restored.code, 0) << restored.err;
  EXPECT_EQ(restored.out, "restored '" + real + "/.envrc'\n");
  EXPECT_EQ(read_text(work() + "/.envrc"), "mine\n");
  EXPECT_EQ(quarantine({"restore", found[real + "/a/.git"]}).code, 0);
  EXPECT_EQ(read_text(work() + "/a/.git/HEAD"), "x\n") << "no longer made inert";
  EXPECT_THAT(ids(), SizeIs(1));

  EXPECT_EQ(quarantine({"drop", found[real + "/.claude"]}).code, 0);
  EXPECT_TRUE(fs::exists("/etc/passwd"));
  EXPECT_EQ(quarantine({"ls"}).out, "");
  EXPECT_TRUE(fs::is_empty(dir_ / "state/belljar/quarantine"));
}

TEST_F(QuarantineTest, OverwritesNothingAndFollowsNoLink) {
  (void)guest("mkdir sub; echo evil >sub/.envrc; echo evil >.mcp.json");
  const std::string real = fs::canonical(work());
  auto found = ids();
  write_file(work() + "/.mcp.json", "the person's");
  const Output there = quarantine({"restore", found[real + "/.mcp.json"]});
  EXPECT_EQ(there.code, 125);
  EXPECT_THAT(there.err, HasSubstr("--to PATH"));
  EXPECT_EQ(read_text(work() + "/.mcp.json"), "the person's");
  EXPECT_EQ(quarantine({"restore", "--to", "copy", found[real + "/.mcp.json"]}).code, 0);
  EXPECT_EQ(read_text(work() + "/copy"), "evil\n");
  // The folder above it was replaced by a link meanwhile.
  fs::create_directories(dir_ / "elsewhere");
  fs::rename(work() + "/sub", work() + "/gone");
  fs::create_symlink(dir_ / "elsewhere", work() + "/sub");
  EXPECT_EQ(quarantine({"restore", found[real + "/sub/.envrc"]}).code, 125);
  EXPECT_TRUE(fs::is_empty(dir_ / "elsewhere"));
}

TEST_F(QuarantineTest, DropsWhatIsDeepAndShut) {
  (void)guest(
      "mkdir .vscode; cd .vscode; i=0; while [ $i -lt 600 ]; do mkdir long-name-of-a-folder-$i || exit; "
      "cd long-name-of-a-folder-$i; i=$((i+1)); done; : >file; chmod 0 .; cd /; ln -s /etc " +
      work() + "/.vscode/link; chmod 500 " + work() + "/.vscode");
  EXPECT_THAT(ids(), SizeIs(1));
  const Output dropped = quarantine({"drop", "--all"});
  EXPECT_EQ(dropped.code, 0) << dropped.err;
  EXPECT_EQ(quarantine({"ls"}).out, "");
  EXPECT_TRUE(fs::is_empty(dir_ / "state/belljar/quarantine"));
  EXPECT_TRUE(fs::exists("/etc/passwd"));
}

// Its former path is no path that any system call takes.
TEST_F(QuarantineTest, ListsAndDropsWhatHadALongPath) {
  const Output made = guest(
      "python3 -c \"\nimport os\nfor i in range(280):\n os.mkdir('d' * 250)\n os.chdir('d' * 250)\n"
      "open('.envrc', 'w').write('evil')\"");
  EXPECT_EQ(made.code, 0) << made.err;
  ASSERT_THAT(ids(), SizeIs(1));
  EXPECT_EQ(quarantine({"restore", ids().begin()->second}).code, 125);
  const Output dropped = quarantine({"drop", "--all"});
  EXPECT_EQ(dropped.code, 0) << dropped.err;
  EXPECT_TRUE(fs::is_empty(dir_ / "state/belljar/quarantine"));
}

// Git looks for repositories at any depth, and by their shape.
TEST_F(QuarantineTest, NoRepositoryInItIsOne) {
  (void)guest(
      "mkdir -p .vscode/sub/deep; git init -q .vscode/sub/deep; git init -q --bare .vscode/bare; chmod 500 "
      ".vscode/bare "
      ".vscode/sub/deep .vscode/sub/deep/.git; chmod 0 .vscode/sub; git init -q --bare .vscode/.git; chmod 500 "
      ".vscode");
  const auto open = [](const std::string& place) { must_run({.argv = {"chmod", "-R", "u+rwX", place}}); };
  open(dir_ / "state");
  EXPECT_EQ(must_run({.argv = {"find", dir_ / "state", "-name", ".git", "-o", "-name", "HEAD"}}), "");
  const auto found = ids();
  ASSERT_THAT(found, SizeIs(1)) << quarantine({"ls"}).out;
  EXPECT_EQ(quarantine({"restore", found.begin()->second}).code, 0);
  open(work());
  for (const char* path : {"/.vscode/sub/deep/.git/HEAD", "/.vscode/bare/HEAD", "/.vscode/.git/HEAD"}) {
    EXPECT_TRUE(fs::exists(work() + path)) << path;
  }
}

TEST_F(QuarantineTest, KnowsOnlyItsOwn) {
  write_file(dir_ / "state/belljar/secret", "x");
  fs::permissions(dir_ / "state/belljar", fs::perms::owner_all);
  (void)guest("echo evil >.envrc");
  for (const std::string id : {"../0001", "x/../../secret", "0001", "none/0001", "/", ""}) {
    const Output output = quarantine({"drop", id});
    EXPECT_EQ(output.code, 125) << id;
  }
  EXPECT_TRUE(fs::exists(dir_ / "state/belljar/secret"));
  EXPECT_EQ(quarantine({"burn"}).code, 125);
}

}  // namespace
}  // namespace belljar::testing
