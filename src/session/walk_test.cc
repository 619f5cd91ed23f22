#include "session/walk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/temp_tree.h"

namespace belljar::session {
namespace {

using plan::FileKind;
using plan::PathFact;

TEST(Walk, TellsKindsAndOwners) {
  const base::TempTree tree;
  tree.folder("d");
  tree.file("f", "x");
  ASSERT_EQ(::mkfifo(tree.at("p").c_str(), 0600), 0);
  Walker walker(false);
  EXPECT_EQ(walker.walk(tree.at("d")).kind, FileKind::kFolder);
  EXPECT_EQ(walker.walk(tree.at("f")).kind, FileKind::kFile);
  EXPECT_EQ(walker.walk(tree.at("f")).mode, 0644U);
  EXPECT_EQ(walker.walk(tree.at("p")).kind, FileKind::kFifo);
  EXPECT_EQ(walker.walk("/dev/null").kind, FileKind::kOther);
  EXPECT_EQ(walker.walk(tree.at("none")).kind, FileKind::kAbsent);
  EXPECT_EQ(walker.walk(tree.at("f/below")).kind, FileKind::kAbsent);
  EXPECT_EQ(walker.walk("/").real, "/");
  EXPECT_EQ(walker.walk("/").kind, FileKind::kFolder);
  EXPECT_EQ(walker.walk(tree.at("f")).uid, ::geteuid());
}

TEST(Walk, RecordsEveryLinkWithTheRealPathOfItsFolder) {
  const base::TempTree tree;
  tree.file("real/deep/f", "x");
  tree.link("a", "real");
  tree.link("real/b", "deep/../deep");
  tree.link("abs", tree.at("a/b"));
  Walker walker(false);
  const PathFact fact = walker.walk(tree.at("abs/f"));
  EXPECT_EQ(fact.kind, FileKind::kFile);
  EXPECT_EQ(fact.real, tree.at("real/deep/f"));
  ASSERT_EQ(fact.links.size(), 3U);
  EXPECT_EQ(fact.links[0].path, tree.at("abs"));
  EXPECT_EQ(fact.links[0].target, tree.at("a/b"));
  EXPECT_EQ(fact.links[1].path, tree.at("a"));
  EXPECT_EQ(fact.links[1].target, "real");
  EXPECT_EQ(fact.links[2].path, tree.at("real/b"));
}

TEST(Walk, GoesUpFromWhereALinkLed) {
  const base::TempTree tree;
  tree.file("x/sibling", "x");
  tree.folder("x/y");
  tree.link("l", "x/y");
  Walker walker(false);
  const PathFact fact = walker.walk(tree.at("l/../sibling"));
  EXPECT_EQ(fact.real, tree.at("x/sibling"));
  EXPECT_EQ(fact.left, std::vector<std::string>{tree.at("x/y")});
  tree.link("nowhere", "none/../x/sibling");
  const PathFact absent = walker.walk(tree.at("nowhere"));
  EXPECT_EQ(absent.kind, FileKind::kAbsent);
  EXPECT_EQ(absent.left, std::vector<std::string>{tree.at("none")});
}

TEST(Walk, EndsAtLoopsAndDanglingLinks) {
  const base::TempTree tree;
  tree.link("loop", "loop");
  tree.link("dangling", "gone/deeper");
  Walker walker(false);
  EXPECT_EQ(walker.walk(tree.at("loop")).kind, FileKind::kAbsent);
  const PathFact fact = walker.walk(tree.at("dangling/x"));
  EXPECT_EQ(fact.kind, FileKind::kAbsent);
  EXPECT_EQ(fact.real, tree.at("gone/deeper/x")) << "where it would be";
  ASSERT_EQ(fact.links.size(), 1U);
}

TEST(Walk, TakesNamesAsBytes) {
  const base::TempTree tree;
  const std::string name = "sp ace\nline\xff";
  tree.file(name, "x");
  Walker walker(false);
  EXPECT_EQ(walker.walk(tree.at(name)).real, tree.at(name));
}

TEST(Walk, KnowsWhichFileSystemsMapIds) {
  Walker walker(true);
  EXPECT_FALSE(walker.walk("/proc/self").idmap_possible);
  EXPECT_FALSE(Walker(false).walk("/").idmap_possible);
  EXPECT_EQ(file_system_name("/proc"), "0x9fa0");
  EXPECT_EQ(file_system_name("/nowhere"), "unknown");
}

}  // namespace
}  // namespace belljar::session
