#include "policy/load.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "policy/host_rule.h"
#include "policy/merge.h"
#include "policy/parse.h"
#include "policy/preset.h"
#include "policy/show.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

// Files by name, instead of a disk.
FileReader reader_of(const std::map<std::string, std::string>& files) {
  return [files](const std::string& path, bool) -> base::Result<std::string> {
    const auto found = files.find(std::filesystem::path(path).lexically_normal().string());
    if (found == files.end()) return base::system_error("open", path, ENOENT);
    return found->second;
  };
}

base::Result<Policy> load_from(const std::map<std::string, std::string>& files, const std::string& file) {
  auto layers = read_layers(file, reader_of(files));
  if (!layers) return std::unexpected(layers.error());
  layers->insert(layers->begin(), built_in_layer());
  return merge(*layers);
}

TEST(Extends, AppliesInTheOrderWrittenEachWithItsOwn) {
  const std::map<std::string, std::string> files = {
      {"conf/top.toml", "extends = [\"claude\", \"a.toml\", \"sub/b.json\", \"npm\"]\n[files]\nread = [\"/top\"]"},
      {"conf/a.toml", "[files]\nread = [\"/a\"]\n[limits]\nwall = 1\npids = 10"},
      {"conf/sub/b.json", R"({"extends": ["../c.toml"], "agent": "codex", "files": {"read": ["/b"]}})"},
      {"conf/c.toml", "[files]\nread = [\"/c\"]\n[limits]\nwall = 2"},
  };
  const auto policy = load_from(files, "conf/top.toml");
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->files.read, (std::vector<std::string>{"/a", "/c", "/b", "/top"}));
  EXPECT_EQ(policy->limits.wall_seconds, 2U);
  EXPECT_EQ(policy->limits.pids, 10U);
  EXPECT_EQ(policy->agent.name, "codex");
  EXPECT_EQ(policy->sources.at("agent"), "conf/sub/b.json:1:37");
  EXPECT_EQ(policy->isolation.allow_hosts.front().source, "preset npm (conf/top.toml:1:46)");
}

TEST(Extends, RefusesWhatDoesNotEnd) {
  EXPECT_EQ(
      load_from({{"a.toml", "extends = [\"./a.toml\"]"}}, "a.toml").error().message(),
      "a.toml:1:12: extends './a.toml': extends itself (a policy cannot stand on its own: take one of the entries "
      "out)");
  EXPECT_EQ(load_from({{"a.toml", "extends = [\"d/b.toml\"]"}, {"d/b.toml", "extends = [\"../a.toml\"]"}}, "a.toml")
                .error()
                .message(),
            "d/b.toml:1:12: extends '../a.toml': extends itself (a policy cannot stand on its own: take one of the "
            "entries out)");
  std::map<std::string, std::string> chain;
  for (int i = 0; i < 12; ++i) {
    chain[std::to_string(i) + ".toml"] = "extends = [\"" + std::to_string(i + 1) + ".toml\"]";
  }
  EXPECT_EQ(load_from(chain, "0.toml").error().message(),
            "7.toml:1:12: extends '8.toml': more than 8 files inside each other (extend fewer)");
  // Each level doubles: bounded by the number of files, not by patience.
  std::map<std::string, std::string> wide;
  for (int i = 0; i < 7; ++i) {
    const std::string next = std::to_string(i + 1) + ".toml\"";
    wide[std::to_string(i) + ".toml"] = "extends = [\"" + next + ", \"./" + next + "]";
  }
  wide["7.toml"] = "";
  EXPECT_EQ(load_from(wide, "0.toml").error().reason, "more than 32 files in all");
}

TEST(Extends, SaysWhereTheMissingFileIsNamed) {
  EXPECT_EQ(load_from({{"a.toml", "extends = [\"./b.toml\"]"}}, "a.toml").error().message(),
            "a.toml:1:12: extends './b.toml': No such file or directory");
  EXPECT_EQ(load_from({{"a.toml", "extends = [\"b.toml\"]"}, {"b.toml", "gti = 1"}}, "a.toml").error().operation,
            "b.toml:1:1");
}

class PolicyFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "belljar-policy-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST_F(PolicyFiles, AreRegularFiles) {
  const std::string fifo = (folder_ / "fifo.toml").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(check(fifo).error().message(), "read '" + fifo + "': not a regular file (name a plain file)");
  EXPECT_EQ(check(folder_.string()).error().message(),
            "read '" + folder_.string() + "': not a regular file (name a plain file)");
  EXPECT_EQ(check("/dev/null").error().reason, "not a regular file");
  EXPECT_EQ(check((folder_ / "none.toml").string()).error().code, ENOENT);
  const std::string huge = write("huge.toml", std::string(300 * 1024, ' '));
  EXPECT_EQ(check(huge).error().reason, "larger than 256 KiB");
}

// A link beside a policy could be anyone's; the file a person names may be a link.
TEST_F(PolicyFiles, AreNotReachedByLinksFromAPolicy) {
  write("real.toml", "git = \"write\"");
  std::filesystem::create_symlink("real.toml", folder_ / "link.toml");
  const std::string top = write("top.toml", "extends = [\"./link.toml\"]");
  EXPECT_EQ(check(top).error().message(),
            top + ":1:12: extends './link.toml': is a symbolic link (name the file itself)");
  ASSERT_TRUE(check((folder_ / "link.toml").string()));
  EXPECT_EQ(check((folder_ / "link.toml").string())->git, GitAccess::kWrite);
}

TEST_F(PolicyFiles, AreCheckedAndShown) {
  const std::string file = write("p.toml", "agent = \"codex\"\n[isolation]\nallow_hosts = [\"a.test\"]");
  EXPECT_EQ(check_text(file).value(), file + ": good: mode jail, network deny but for 21 hosts, agent codex\n");
  EXPECT_EQ(show_text(file, false).value(), show(check(file).value()));
  EXPECT_EQ(show_text(file, true).value(), show_json(check(file).value()));
  FlagOverrides flags;
  flags.allow_hosts = {"b.test"};
  EXPECT_EQ(load({}, file, flags)->isolation.allow_hosts.size(), 2U);
}

TEST(Show, SaysEverySettingWithItsSource) {
  const auto policy = load_from(
      {{"p.toml",
        "[isolation]\nallow_hosts = [\"a.test:1\"]\n[limits]\nwall = 5400\npids = 50\n[env.set]\nA = \"\\\"\""}},
      "p.toml");
  EXPECT_EQ(show(policy.value()), R"(git = "read"  # built-in policy

[isolation]
mode = "jail"  # built-in policy
network = "deny"  # built-in policy
allow_hosts = [
  "a.test:1",  # p.toml:2:16
]

[files]
home = "agent"  # built-in policy
toolchains = "auto"  # built-in policy

[limits]
pids = 50  # p.toml:5:8
wall = "1h30m"  # p.toml:4:8

[env]

[env.set]
A = "\""  # p.toml:7:5

[terminal]
clipboard = "deny"  # built-in policy
)");
  EXPECT_EQ(show_json(policy.value()), R"({
  "git": "read",
  "isolation": {
    "mode": "jail",
    "network": "deny",
    "allow_hosts": [
      "a.test:1"
    ]
  },
  "files": {
    "home": "agent",
    "toolchains": "auto"
  },
  "limits": {
    "pids": 50,
    "wall": "1h30m"
  },
  "env": {
    "set": {
      "A": "\""
    }
  },
  "terminal": {
    "clipboard": "deny"
  }
}
)");
}

std::string pick(std::vector<std::string> choices) {
  return *rc::gen::elementOf(std::move(choices));
}

std::string drawn_path() {
  return pick({"/", "~/", "./", "../"}) + pick({"a", "b c", "d\"e", "f\\g", "h'i", "#j", "\xc3\xbc"}) +
         pick({"", "/k", "/.l"});
}

std::vector<std::string> drawn_list(const std::function<std::string()>& draw) {
  std::vector<std::string> out;
  for (int left = *rc::gen::inRange(0, 4); left > 0; --left) {
    std::string text = draw();
    if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
  }
  return out;
}

std::vector<Said<std::string>> said(const std::vector<std::string>& values) {
  std::vector<Said<std::string>> out;
  for (const auto& value : values) out.push_back({parse_path(value).value_or(value), "a\nplace # \"'"});
  return out;
}

Agent drawn_agent() {
  Agent agent;
  agent.name = pick({"mine", "x.y-z_0"});
  agent.commands = drawn_list([] { return pick({"mine", "with space", "q\"", "\xc3\xbc"}); });
  agent.config_dirs = drawn_list([] { return "~/" + pick({".mine", ".config/mine", "a b"}); });
  agent.config_files = drawn_list([] { return "~/" + pick({".minerc", ".mine.json"}); });
  agent.obeyed = drawn_list([] { return "~/" + pick({".o", ".config/o/x"}); });
  agent.history = drawn_list([] { return "~/" + pick({".h", ".h2/{project}"}); });
  if (*rc::gen::arbitrary<bool>()) {
    agent.state_file = "~/.s.json";
    agent.state_keys = drawn_list([] { return pick({"a", "b \"c"}); });
  }
  agent.credential_env = drawn_list([] { return pick({"A_KEY", "B_TOKEN"}); });
  agent.hosts = drawn_list([] { return pick({"a.test", "*.b.test:*", "2001:db8::1", "[2001:db8::1]:1"}); });
  agent.registries = drawn_list([] { return pick({"c.test", "192.0.2.1:80"}); });
  agent.extra_arguments = {pick({"-x", "--y=\"{}\"", "\\"}), pick({"-x", "z z"})};
  if (*rc::gen::arbitrary<bool>()) agent.env[pick({"M", "IS_SANDBOX"})] = pick({"1", "", "\x01\x7f\n\"\\"});
  return agent;
}

PolicyLayer drawn_layer() {
  PolicyLayer layer;
  const auto coin = [] { return *rc::gen::arbitrary<bool>(); };
  const std::string source = "here";
  if (coin()) layer.mode = {*rc::gen::element(Mode::kNone, Mode::kJail, Mode::kBwrap, Mode::kDocker), source};
  if (coin()) layer.network = {*rc::gen::element(Network::kAllow, Network::kDeny), source};
  if (layer.mode && layer.mode->value == Mode::kDocker && coin()) layer.docker_image = {"debian:12", source};
  for (const auto& text : drawn_list([] { return pick({"a.test", "*.b.test:*", "::1", "[::1]:1", "1.2.3.4:5"}); })) {
    layer.allow_hosts.push_back(parse_host_rule(text, source).value());
  }
  for (const auto& text : drawn_list([] { return pick({"3000", "8080:80", "65535:1", "1"}); })) {
    layer.expose.push_back({parse_exposed_port(text).value(), source});
  }
  if (coin()) layer.nested = {coin(), source};
  if (coin()) layer.ask = {coin(), source};
  if (coin()) layer.ask_seconds = {*rc::gen::inRange<uint64_t>(1, 3601), source};
  if (coin()) layer.upstream_proxy = {pick({"environment", "http://[::1]:1", "http://p.test:3128"}), source};
  if (coin()) layer.clipboard = {*rc::gen::element(Clipboard::kDeny, Clipboard::kAllow), source};
  layer.read = said(drawn_list(drawn_path));
  layer.write = said(drawn_list(drawn_path));
  if (coin()) layer.hide = said(drawn_list(drawn_path));
  if (coin()) layer.home = {*rc::gen::element(Home::kAgent, Home::kEmpty), source};
  if (coin()) layer.allow_home = {coin(), source};
  if (coin()) layer.git = {*rc::gen::element(GitAccess::kRead, GitAccess::kWrite), source};
  for (const LimitSpec& spec : limit_specs()) {
    if (coin()) layer.limits[std::string(spec.name)] = {*rc::gen::inRange(spec.min, spec.max), source};
  }
  layer.env_allow = said(drawn_list([] { return pick({"EDITOR", "TERM_X", "LD_PRELOAD"}); }));
  for (auto& entry : layer.env_allow) entry.value = entry.value.substr(entry.value.starts_with("./") ? 2 : 0);
  for (const auto& name : drawn_list([] { return pick({"A", "B_c", "LANG"}); })) {
    layer.env_set[name] = {pick({"", "x y", "\"\\\n\t\x01\x7f", "\xe2\x80\xae", "# no comment"}), source};
  }
  if (coin()) layer.agent = {coin() ? drawn_agent() : *find_agent(pick({"claude", "codex", "gemini"})), source};
  return layer;
}

RC_GTEST_PROP(Show, ReadsBackAsTheSamePolicy, ()) {
  const auto policy = merge(std::vector<PolicyLayer>{built_in_layer(), drawn_layer(), drawn_layer()});
  RC_CLASSIFY(policy.has_value(), "consistent");
  if (!policy) return;
  Policy plain = *policy;
  // Sources must be printable; drawn ones need not be.
  for (auto& [key, source] : plain.sources) source = "p.toml:1:1";
  const auto from_toml = load_from({{"p.toml", show(plain)}}, "p.toml");
  if (!from_toml) RC_FAIL(from_toml.error().message() + "\n" + show(plain));
  RC_ASSERT(*from_toml == *policy);
  const auto from_json = load_from({{"p.json", show_json(*policy)}}, "p.json");
  if (!from_json) RC_FAIL(from_json.error().message() + "\n" + show_json(*policy));
  RC_ASSERT(*from_json == *policy);
  RC_ASSERT(show_json(*from_json) == show_json(*policy));
}

RC_GTEST_PROP(Values, ReadBackWhatTheyPrint, (uint64_t value)) {
  RC_ASSERT(parse_size(size_text(value)).value() == value);
  RC_ASSERT(parse_duration(duration_text(value)).value() == value);
}

RC_GTEST_PROP(Values, MakePathsCanonicalOnce, ()) {
  std::string text;
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::elementOf(std::vector<std::string>{"/", "~", ".", "..", "a", "b", "//", "~/", "./", "../", "$", "-"}));
  for (const auto& part : parts) text += part;
  const auto path = parse_path(text);
  RC_CLASSIFY(path.has_value(), "accepted");
  if (!path) return;
  RC_ASSERT(parse_path(*path).value() == *path);
  RC_ASSERT(*path == "." || *path == ".." || path->starts_with("/") || path->starts_with("~/") ||
            path->starts_with("./") || path->starts_with("../"));
}

TEST(Values, KnowTheVariablesThatRunCode) {
  for (const char* name : {"LD_PRELOAD", "BASH_ENV", "ENV", "NODE_OPTIONS", "GIT_SSH_COMMAND", "PYTHONPATH",
                           "PYTHONSTARTUP", "SSH_AUTH_SOCK"}) {
    EXPECT_TRUE(is_guarded_env(name)) << name;
  }
  for (const char* name : {"EDITOR", "LANG", "GITHUB", "SOCKS", "ENVIRONMENT"}) EXPECT_FALSE(is_guarded_env(name));
}

}  // namespace
}  // namespace belljar::policy
