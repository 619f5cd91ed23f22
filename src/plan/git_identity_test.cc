#include "plan/git_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

GitIdentity read(std::string_view text) {
  GitIdentity out;
  read_git_identity(text, out);
  return out;
}

TEST(GitIdentity, IsReadAsGitReadsIt) {
  struct Case {
    std::string_view text, name, email;
  };
  const Case cases[] = {
      {"[user]\n\tname = Ada Lovelace\n\temail = ada@example.com\n", "Ada Lovelace", "ada@example.com"},
      {"[USER]\nName=Ada  L # x\nEMAIL = \"a;b#c\" ; y", "Ada  L", "a;b#c"},
      {"\xef\xbb\xbf[user] name = Ada\n", "Ada", ""},
      {"[user]\nname = \"Ada \\\"The\\\" L\\\\\"\n", "Ada \"The\" L\\", ""},
      {"[user]\nname = Ada \\\n  Lovelace\r\n", "Ada   Lovelace", ""},
      {"[user]\nname = one\n[core]\nname = two\n[user \"x\"]\nname = three\n[user]\nemail = e\n", "one", "e"},
      {"[user]\nname = one\nname = two\n", "two", ""},
      {"[user]\nsigningkey\nname = Ada\n", "Ada", ""},
      {"[user]\nname = a\\nb\nemail = e\n", "", "e"},
      {"[alias]\nx = !touch /tmp/x\n[user]\nname = \"  Ada  \"\n", "  Ada  ", ""},
      {"[user]\nname = \xc3\x84"
       "da\n",
       "\xc3\x84"
       "da",
       ""},
      {"[user]\nname = Ada\n[broken\nemail = e\n", "Ada", ""},
      {"[user]\nname = \"Ada\n", "", ""},
      {"[user]\nname = Ada\\x\n", "", ""},
      {"[include]\npath = /etc/passwd\n", "", ""},
      {"", "", ""},
      {"[", "", ""},
      {"[user]\nname =", "", ""},
      {"= x", "", ""},
  };
  for (const auto& [text, name, email] : cases) {
    const GitIdentity who = read(text);
    EXPECT_EQ(who.name, name) << text;
    EXPECT_EQ(who.email, email) << text;
  }
}

TEST(GitIdentity, StandsInTheGuestsOwnHome) {
  Host host;
  host.facts.git_identity = {"Ada \"\\\" L", "ada@example.com"};
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  const Mount* config = mount_at(*plan, "/home/alice/.gitconfig");
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(config->kind, MountKind::kFile);
  EXPECT_EQ(config->source,
            "[safe]\n\tdirectory = *\n[user]\n\tname = \"Ada \\\"\\\\\\\" L\"\n\temail = \"ada@example.com\"\n");
  EXPECT_EQ(read(config->source).name, host.facts.git_identity.name);
  host.policy.files.home = policy::Home::kEmpty;
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.gitconfig"), nullptr);
}

// Else each `git status` would read 20,000 files: 180 ms in place of 47.
TEST(GitIdentity, DoesNotCompareOwnersThatTheIdMapChanges) {
  Host host(true);
  PathFact& work = host.facts.paths["/home/alice/work"];
  work.uid = work.gid = 0;
  work.idmap_possible = true;
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_NE(plan->identity.guest_uid, plan->identity.disk_uid);
  const auto config =
      std::ranges::find_if(plan->mounts, [](const Mount& mount) { return mount.target.ends_with("/.gitconfig"); });
  ASSERT_NE(config, plan->mounts.end());
  EXPECT_THAT(config->source, ::testing::HasSubstr("checkStat = minimal"));
}

TEST(GitIdentity, FindsWhereConfigsLead) {
  GitRedirects found;
  read_git_redirects(
      "[core]\n\tHooksPath = .githooks\n\tfsmonitor = tools/watch\n[include]\npath = ../shared\n"
      "[includeIf \"gitdir:~/x/\"]\n path = \"~/a b\"\n[include \"x\"]\npath = no\n[alias]\nhookspath = no\n",
      found);
  EXPECT_EQ(found.programs, (std::vector<std::string>{".githooks"}));
  EXPECT_EQ(found.words, (std::vector<std::string>{"tools/watch"}));
  EXPECT_EQ(found.files, (std::vector<std::string>{"../shared", "~/a b"}));
}

TEST(GitIdentity, TakesCommandLinesApart) {
  const auto words = [](const std::string& text) {
    GitRedirects found;
    read_git_redirects(text, found);
    return found.words;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("[filter \"x\"]\nclean = python3 strip.py --in=a/b|x/y f\n"), (Words{"strip.py", "a/b", "x/y"}));
  EXPECT_EQ(words("[filter \"x\"]\nclean = git-lfs clean -- %f\n"), Words{}) << "no word of it is a path";
  EXPECT_EQ(words("[filter \"x\"]\nclean = \"'tools/my clean' %f\"\n"), (Words{"tools/my clean", "tools/my"}))
      << "a quoted name may hold blanks";
  EXPECT_EQ(words("[core]\nsshCommand = $(git rev-parse --show-toplevel)/tools/ssh\n"),
            (Words{"/tools/ssh", "./tools/ssh"}));
  EXPECT_EQ(words("[core]\nsshCommand = $PWD/tools/ssh\n"), (Words{"PWD/tools/ssh", "./tools/ssh"}));
  EXPECT_EQ(words("[filter.x]\nclean = tools/clean\\t%f\n"), Words{"tools/clean"}) << "a dotted section, a tab";
  EXPECT_EQ(
      words("[pager]\nlog = tools/p\n[difftool \"x\"]\ncmd = t/no\n[diff]\ntextconv = t/no\n[alias]\nx = !t/no\n"),
      Words{"tools/p"});
}

TEST(GitIdentity, GivesWayToAFileOfThePolicys) {
  Host host;
  host.file("/home/alice/.gitconfig");
  host.policy.files.read = {"~/.gitconfig"};
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/home/alice/.gitconfig")->kind, MountKind::kBind);
}

}  // namespace
}  // namespace belljar::plan
