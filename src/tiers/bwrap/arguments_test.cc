#include "tiers/bwrap/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/plan_fixture.h"
#include "policy/preset.h"

namespace belljar::tiers::bwrap {
namespace {

using plan::Host;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;

using Words = std::vector<std::string>;

// Alice's host with bubblewrap, and her agents' files: a login, settings, a history, of each.
Host host_with(const std::string& agent, policy::Network network, bool root = false) {
  Host host(root);
  host.policy.isolation.mode = policy::Mode::kBwrap;
  host.policy.isolation.network = network;
  host.facts.bwrap.path = "/usr/bin/bwrap";
  host.facts.bwrap.version = "0.8.0";
  const std::string home = host.facts.home;
  for (const char* file : {"/.claude.json", "/.claude/.credentials.json", "/.claude/settings.json", "/.codex/auth.json",
                           "/.codex/config.toml", "/.gemini/oauth_creds.json", "/.gemini/settings.json"}) {
    host.file(home + file);
  }
  for (const char* folder : {"/.claude", "/.codex", "/.codex/sessions", "/.gemini", "/.gemini/history", "/.own",
                             "/.claude/projects/-home-alice-work"}) {
    host.folder(home + folder);
  }
  if (const policy::Agent* preset = policy::find_agent(agent)) host.policy.agent = *preset;
  if (agent == "own") {
    host.policy.agent.name = "own";
    host.policy.agent.commands = {"own"};
    host.policy.agent.config_dirs = {"~/.own"};
  }
  return host;
}

// Everything that is covered is there; .git of the work folder as a folder.
TargetFacts all_there(const plan::Plan& plan, bool root = false) {
  TargetFacts out;
  for (const std::string& path : covered_paths(plan)) {
    out.there[path] = path.ends_with(".git") || path == "/proc/sys" || path == "/proc/bus" || path.ends_with("/hooks");
  }
  if (root) out.stage = "/stage";
  return out;
}

Arguments arguments(const Host& host, bool root = false) {
  const auto plan = host.plan();
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  auto made = arguments_of(*plan, all_there(*plan, root), {}, true);
  EXPECT_TRUE(made) << (made ? "" : made.error().message());
  return made ? std::move(*made) : Arguments{};
}

// The words between the program and the first mount.
Words head_of(const Words& words) {
  const auto end = std::ranges::find(words, "--info-fd");
  return {words.begin(), end};
}

// `--bind SRC DEST` and its like, as "KIND SRC DEST".
Words binds_of(const Words& words) {
  Words out;
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == "--bind" || words[i] == "--ro-bind" || words[i] == "--bind-try" || words[i] == "--ro-bind-try") {
      out.push_back(words[i] + " " + words[i + 1] + " " + words[i + 2]);
    }
  }
  return out;
}

size_t place_of(const Words& words, const Words& part) {
  const auto found = std::ranges::search(words, part);
  EXPECT_FALSE(found.empty()) << ::testing::PrintToString(part);
  return static_cast<size_t>(found.begin() - words.begin());
}

struct Case {
  const char* agent;
  Words binds;  // of its own files; everything else of the home stays out of view
};

class EachAgentAndNetwork : public ::testing::TestWithParam<std::tuple<Case, policy::Network>> {};

TEST_P(EachAgentAndNetwork, GetsItsNamespacesAndItsOwnFiles) {
  const auto& [test, network] = GetParam();
  const Arguments made = arguments(host_with(test.agent, network));
  Words head = {"/usr/bin/bwrap", "--unshare-user", "--unshare-pid",
                "--unshare-ipc",  "--unshare-uts",  "--unshare-cgroup"};
  if (network == policy::Network::kDeny) head.emplace_back("--unshare-net");
  for (const char* word : {"--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL",
                           "--uid", "1000", "--gid", "1000", "--hostname", "belljar"}) {
    head.emplace_back(word);
  }
  EXPECT_EQ(head_of(made.words), head);
  Words own;
  for (const std::string& bind : binds_of(made.words)) {
    if (bind.contains(" /home/alice/") && !bind.contains("/work")) own.push_back(bind);
  }
  std::ranges::sort(own);
  EXPECT_EQ(own, test.binds);
  EXPECT_THAT(binds_of(made.words),
              IsSupersetOf({"--ro-bind /usr /usr", "--ro-bind /etc /etc", "--bind /home/alice/work /home/alice/work",
                            "--ro-bind /proc/sys /proc/sys"}));
  EXPECT_THAT(Words(made.words.end() - 8, made.words.end()),
              ElementsAre("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--", "/proc/self/fd/8"));
}

// What bubblewrap 0.8.0 knows, by its bwrap(1), of what is said to any version. Later ones know all of it (0.12.0 and
// 0.13.1 are run by tests of their own), so those in between do, too.
const std::set<std::string> kKnownToAll = {"--as-pid-1",     "--bind",
                                           "--bind-try",     "--cap-drop",
                                           "--chdir",        "--dev",
                                           "--dev-bind-try", "--die-with-parent",
                                           "--dir",          "--disable-userns",
                                           "--file",         "--gid",
                                           "--hostname",     "--info-fd",
                                           "--new-session",  "--perms",
                                           "--proc",         "--remount-ro",
                                           "--ro-bind",      "--ro-bind-data",
                                           "--ro-bind-try",  "--size",
                                           "--symlink",      "--tmpfs",
                                           "--uid",          "--unshare-cgroup",
                                           "--unshare-ipc",  "--unshare-net",
                                           "--unshare-pid",  "--unshare-user",
                                           "--unshare-uts"};

TEST_P(EachAgentAndNetwork, AsksForNothingThatOneOfTheVersionsDoesNotKnow) {
  const auto& [test, network] = GetParam();
  for (const bool root : {false, true}) {
    for (const std::string& word : arguments(host_with(test.agent, network, root), root).words) {
      EXPECT_TRUE(!word.starts_with("--") || word == "--" || kKnownToAll.contains(word)) << word;
    }
  }
}

const Case kCases[] = {
    {"", {}},
    {"claude",
     {"--bind /home/alice/.claude/projects/-home-alice-work /home/alice/.claude/projects/-home-alice-work",
      "--ro-bind /home/alice/.claude/settings.json /home/alice/.claude/settings.json"}},
    {"codex",
     {"--bind /home/alice/.codex/sessions /home/alice/.codex/sessions",
      "--ro-bind /home/alice/.codex/config.toml /home/alice/.codex/config.toml"}},
    {"gemini", {"--ro-bind /home/alice/.gemini/settings.json /home/alice/.gemini/settings.json"}},
    {"own", {"--bind /home/alice/.own /home/alice/.own"}}};

std::string case_name(const ::testing::TestParamInfo<std::tuple<Case, policy::Network>>& info) {
  const auto& [test, network] = info.param;
  const std::string agent = *test.agent == '\0' ? "none" : test.agent;
  return agent + (network == policy::Network::kDeny ? "Deny" : "Allow");
}

INSTANTIATE_TEST_SUITE_P(All, EachAgentAndNetwork,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(policy::Network::kDeny, policy::Network::kAllow)),
                         case_name);

TEST(Arguments, TheNetworkChangesOneWord) {
  Words deny = arguments(host_with("", policy::Network::kDeny)).words;
  const Words allow = arguments(host_with("", policy::Network::kAllow)).words;
  EXPECT_EQ(std::erase(deny, "--unshare-net"), 1U);
  EXPECT_EQ(head_of(deny), head_of(allow));
}

TEST(Arguments, MakeEachThingOnTopOfWhatItLiesOn) {
  Host host = host_with("claude", policy::Network::kDeny);
  host.facts.protected_paths.push_back({.path = "/home/alice/work/.git", .kind = plan::ProtectedPath::Kind::kFolder});
  const Words words = arguments(host).words;
  const size_t work = place_of(words, {"--bind", "/home/alice/work", "/home/alice/work"});
  EXPECT_LT(place_of(words, {"--tmpfs", "/home/alice"}), work);
  EXPECT_LT(work, place_of(words, {"--ro-bind", "/home/alice/work/.git", "/home/alice/work/.git"}));
  EXPECT_LT(place_of(words, {"--dev", "/dev"}), place_of(words, {"--tmpfs", "/dev/shm"}));
  EXPECT_LT(place_of(words, {"--tmpfs", "/dev/shm"}), place_of(words, {"--remount-ro", "/dev"}));
  EXPECT_LT(place_of(words, {"--proc", "/proc"}), place_of(words, {"--ro-bind", "/proc/sys", "/proc/sys"}));
  EXPECT_THAT(words, Not(Contains("--dev-bind-try"))) << "what --dev makes is not made twice";
}

TEST(Arguments, ScratchIsDividedAndTheHomeComesFirst) {
  Host host = host_with("", policy::Network::kDeny);
  host.policy.limits.scratch_bytes = 1'000'000;
  const Arguments made = arguments(host);
  EXPECT_THAT(made.scratch, ::testing::UnorderedElementsAre("/home/alice", "/tmp", "/run", "/var/tmp", "/dev/shm"));
  EXPECT_EQ(made.scratch.front(), "/home/alice");
  EXPECT_EQ(made.scratch_share, 196608U) << "a fifth, in whole pages";
  for (const std::string& folder : made.scratch) {
    const size_t at = place_of(made.words, {"--size", "196608", "--tmpfs", folder});
    EXPECT_EQ(made.words[at - 1], folder == "/home/alice" || folder == "/run" ? "0755" : "1777") << folder;
  }
}

TEST(Arguments, CopiesAndTextsTravelByDescriptor) {
  const Host host = host_with("claude", policy::Network::kDeny);
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  const auto made =
      arguments_of(*plan, all_there(*plan), {{"/home/alice/.claude/.credentials.json", "the login"}}, false);
  ASSERT_TRUE(made);
  const size_t at = place_of(made->words, {"/home/alice/.claude/.credentials.json"});
  EXPECT_EQ(Words(made->words.begin() + static_cast<long>(at) - 4, made->words.begin() + static_cast<long>(at) - 1),
            Words({"--perms", "0600", "--file"}));
  const size_t number = std::stoul(made->words[at - 1]);
  EXPECT_EQ(made->texts.at(number - kFirstData).content, "the login");
  EXPECT_THAT(made->words, Not(Contains("/home/alice/.claude.json"))) << "one that is gone is left out";
  for (const std::string& word : made->words) EXPECT_FALSE(word.contains("the login"));
}

TEST(Arguments, WhatIsNotThereIsNotHiddenAndStillExpectedWhenItComes) {
  const Host host = host_with("", policy::Network::kDeny);
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  TargetFacts facts = all_there(*plan);
  facts.there.erase("/etc/shadow");
  facts.there["/etc/sudoers"] = true;
  const auto made = arguments_of(*plan, facts, {}, false);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->words, Not(Contains("/etc/shadow")));
  place_of(made->words, {"--tmpfs", "/etc/sudoers", "--remount-ro", "/etc/sudoers"});
  const auto expected = std::ranges::find(made->mounts, "/etc/shadow", &guest::ExpectedMount::path);
  ASSERT_NE(expected, made->mounts.end());
  EXPECT_TRUE(expected->optional);
}

TEST(Arguments, RootsBindsComeFromTheStage) {
  Host host = host_with("", policy::Network::kDeny, true);
  host.facts.protected_paths.push_back({.path = "/home/alice/work/.git", .kind = plan::ProtectedPath::Kind::kFolder});
  const Arguments made = arguments(host, true);
  const auto work = std::ranges::find(made.sources, "/home/alice/work", &Source::path);
  ASSERT_NE(work, made.sources.end());
  EXPECT_TRUE(work->idmap);
  const std::string staged = "/stage/" + std::to_string(work - made.sources.begin());
  place_of(made.words, {"--bind", staged, "/home/alice/work"});
  place_of(made.words, {"--ro-bind", staged + "/.git", "/home/alice/work/.git"});
  place_of(made.words, {"--ro-bind", "/proc/sys", "/proc/sys"});
  for (const std::string& bind : binds_of(made.words)) {
    EXPECT_TRUE(bind.contains(" /stage/") || bind.contains(" /proc/")) << bind;
  }
}

TEST(Arguments, TheCanaryIsOnlyThereForLandlock) {
  const auto plan = host_with("", policy::Network::kDeny).plan();
  ASSERT_TRUE(plan);
  EXPECT_THAT(arguments_of(*plan, all_there(*plan), {}, true)->words, Contains(kCanary));
  EXPECT_THAT(arguments_of(*plan, all_there(*plan), {}, false)->words, Not(Contains(kCanary)));
}

TEST(Arguments, RefuseWhatWouldBeMadeInAFolderOfTheHost) {
  const auto plan = host_with("", policy::Network::kDeny).plan();
  ASSERT_TRUE(plan);
  TargetFacts facts = all_there(*plan);
  facts.there.erase("/etc/hosts");
  const auto made = arguments_of(*plan, facts, {}, false);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(), "plan a mount '/etc/hosts': it would have to be made in a folder of the host");
}

}  // namespace
}  // namespace belljar::tiers::bwrap
