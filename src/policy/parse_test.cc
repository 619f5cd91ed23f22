#include "policy/parse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/document.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

struct Bad {
  std::string text;
  std::string message;
};

void expect_refused(const std::string& name, const std::vector<Bad>& cases) {
  for (const auto& [text, message] : cases) {
    const auto layer = parse_policy(text, name);
    ASSERT_FALSE(layer) << text.substr(0, 200);
    EXPECT_EQ(layer.error().message(), message);
  }
}

const std::string kIsolationKeys =
    "mode, network, docker_image, allow_hosts, deny_hosts, host_ports, expose, nested, transparent, ask, ask_timeout, "
    "upstream_proxy)";
const std::string kTopKeys =
    "one of extends, agent, git, target, isolation, files, limits, env, terminal, audit, hook)";

TEST(ParseToml, RefusesUnknownKeysWithTheNearestName) {
  expect_refused(
      "p.toml",
      {{"gti = \"read\"", "p.toml:1:1: unknown key 'gti' (" + kTopKeys},
       {"limit = 1", "p.toml:1:1: unknown key 'limit' (did you mean 'limits'? " + kTopKeys},
       {"[isolation]\n  networks = \"deny\"",
        "p.toml:2:3: unknown key 'networks' in [isolation] (did you mean 'network'? one of " + kIsolationKeys},
       {"mode = \"jail\"", "p.toml:1:1: unknown key 'mode' (write it as isolation.mode)"},
       {"[files]\nwall = 3", "p.toml:2:1: unknown key 'wall' in [files] (write it as limits.wall)"},
       {"[isolation]\ngit = \"read\"",
        "p.toml:2:1: unknown key 'git' in [isolation] (write it as git, outside the other sections)"},
       {"[limits]\nmemroy = 1",
        "p.toml:2:1: unknown key 'memroy' in [limits] (did you mean 'memory'? one of memory, cpu, pids, processes, "
        "scratch_bytes, scratch_files, open_files, file_bytes, wall)"},
       {"[agent]\nname = \"x\"\ncommand = []",
        "p.toml:3:1: unknown key 'command' in [agent] (did you mean 'commands'? one of name, commands, config_dirs, "
        "config_files, obeyed, history, state_file, state_keys, credential_env, hosts, registries, env, "
        "extra_arguments)"},
       {"\"a\\u001bb\" = 1", "p.toml:1:1: unknown key 'a\\x1bb' (" + kTopKeys}});
}

TEST(ParseToml, TakesPortsAsNumbersAndAsTexts) {
  const auto layer = parse_policy("[isolation]\nexpose = [3000, \"8080:80\"]\nnested = true", "p.toml");
  ASSERT_TRUE(layer) << layer.error().message();
  ASSERT_EQ(layer->expose.size(), 2U);
  EXPECT_EQ(layer->expose[0].value, (ExposedPort{3000, 3000}));
  EXPECT_EQ(layer->expose[1].value, (ExposedPort{8080, 80}));
  EXPECT_EQ(layer->expose[1].source, "p.toml:2:17");
  EXPECT_TRUE(layer->nested->value);
  const std::string hint = ": not a port (write PORT or PORT:GUESTPORT, each 1 to 65535)";
  expect_refused(
      "p.toml",
      {{"[isolation]\nexpose = 3000", "p.toml:2:10: isolation.expose: expected a list of ports, found an integer"},
       {"[isolation]\nexpose = [true]",
        "p.toml:2:11: isolation.expose: expected a port, as 3000 or \"8080:3000\", found true or false"},
       {"[isolation]\nexpose = [0]", "p.toml:2:11: isolation.expose '0'" + hint},
       {"[isolation]\nexpose = [\"1:70000\"]", "p.toml:2:11: isolation.expose '1:70000'" + hint},
       {"[isolation]\nexpose = [1, \"1:1\"]", "p.toml:2:14: isolation.expose '1:1': listed twice (name it once)"},
       {"[isolation]\nexpose = [1, \"1:2\"]",
        "p.toml:2:14: expose = \"1:2\" contradicts expose = \"1\" (p.toml:2:11) (one port of this host leads to one "
        "port of the guest)"},
       {"[isolation]\nnested = 1", "p.toml:2:10: isolation.nested: expected true or false, found an integer"}});
}

TEST(ParseToml, TakesTheQuestionAndTheUpstreamProxy) {
  const auto layer = parse_policy(
      "[isolation]\nask = true\nask_timeout = \"2m\"\nupstream_proxy = \"http://Proxy.TEST.:3128/\"", "p.toml");
  ASSERT_TRUE(layer) << layer.error().message();
  EXPECT_TRUE(layer->ask->value);
  EXPECT_EQ(layer->ask_seconds->value, 120U);
  EXPECT_EQ(layer->upstream_proxy->value, "http://proxy.test:3128");
  const std::string place = "p.toml:2:18: isolation.upstream_proxy ";
  expect_refused(
      "p.toml",
      {{"[isolation]\nask = 1", "p.toml:2:7: isolation.ask: expected true or false, found an integer"},
       {"[isolation]\nask_timeout = \"2h\"",
        "p.toml:2:15: isolation.ask_timeout '2h': out of bounds (between 1s and 1h)"},
       {"[isolation]\nupstream_proxy = \"http://u:p@proxy.test:1\"",
        place + "'http://u:p@proxy.test:1': holds a user name (say \"environment\" and leave the credentials to "
                "HTTPS_PROXY)"},
       {"[isolation]\nupstream_proxy = \"https://proxy.test:1\"",
        place + "'https://proxy.test:1': not the URL of an HTTP proxy (write http://HOST:PORT, or \"environment\")"}});
}

TEST(ParseToml, RefusesWrongTypes) {
  expect_refused(
      "p.toml",
      {{"git = 1", "p.toml:1:7: git: expected a string, found an integer"},
       {"git = 2020-01-01", "p.toml:1:7: git: expected a string, found a date"},
       {"isolation = 3", "p.toml:1:13: isolation: expected a table, found an integer (its keys are " + kIsolationKeys},
       {"[[isolation]]\nmode = \"jail\"",
        "p.toml:1:1: isolation: expected a table, found a list (its keys are " + kIsolationKeys},
       {"[isolation]\nallow_hosts = \"a.test\"",
        "p.toml:2:15: isolation.allow_hosts: expected a list of hosts, found a string"},
       {"[files]\nread = [\"/a\",\n  [\"/b\"]]",
        "p.toml:3:3: files.read: expected a string in this list, found a list"},
       {"[env]\nset = [\"A=1\"]", "p.toml:2:7: env.set: expected a table of names and values, found a list"},
       {"[env.set]\nA = 1", "p.toml:2:5: env.set.A: expected a string, found an integer"},
       {"agent = true", "p.toml:1:9: agent: expected a name or a table, found true or false"},
       {"[limits]\npids = \"12\"", "p.toml:2:8: limits.pids: expected a whole number, found a string"},
       {"[limits]\npids = 1e3", "p.toml:2:8: limits.pids: expected a whole number, found a number with a fraction"},
       {"[limits]\ncpu = 2",
        "p.toml:2:7: limits.cpu: expected a share such as \"200%\" for two cores, found an integer"},
       {"[limits]\nmemory = true",
        "p.toml:2:10: limits.memory: expected a size such as \"2GiB\" or a number of bytes, found true or false"},
       {"[limits]\nwall = 1.5",
        "p.toml:2:8: limits.wall: expected a duration such as \"2h\" or a number of seconds, found a number with a "
        "fraction"}});
}

TEST(ParseToml, RefusesValuesThatMeanNothing) {
  expect_refused(
      "p.toml",
      {{"git = \"raed\"", "p.toml:1:7: git 'raed': unknown value (one of read, write)"},
       {"[isolation]\nmode = \"jai\"",
        "p.toml:2:8: isolation.mode 'jai': unknown value (did you mean 'jail'? one of none, jail, bwrap, docker)"},
       {"[isolation]\nmode = \"\"", "p.toml:2:8: isolation.mode: unknown value (one of none, jail, bwrap, docker)"},
       {"[isolation]\nmode = \"docker\"\ndocker_image = \"\"",
        "p.toml:3:16: isolation.docker_image: empty (name an image such as debian:bookworm-slim, or leave it out)"},
       {"[isolation]\nmode = \"docker\"\ndocker_image = \"-v /:/host\"",
        "p.toml:3:16: isolation.docker_image '-v /:/host': not a name of an image (such as debian:bookworm-slim or "
        "NAME@sha256:…)"},
       {"[isolation]\nallow_hosts = [\"a.test\", \"https://x/\"]",
        "p.toml:2:26: isolation.allow_hosts 'https://x/': a URL, not a host (write only the host, without scheme and "
        "path)"},
       {"[isolation]\nallow_hosts = [\"010.0.0.1\"]",
        "p.toml:2:16: isolation.allow_hosts '010.0.0.1': an IPv4 address in a notation that programs read differently "
        "(write four decimal numbers without leading zeros, such as 192.0.2.7)"},
       {"[files]\nread = [\"/a/../b\"]",
        "p.toml:2:9: files.read '/a/../b': holds '..' (write where it leads: behind a link '..' is not what it seems)"},
       {"[files]\nread = [\"/\"]", "p.toml:2:9: files.read '/': the whole machine (name the folders that are needed)"},
       {"[files]\nwrite = [\"~\"]",
        "p.toml:2:10: files.write '~': the whole home (name the folders in it that are needed)"},
       {"[files]\nhide = [\"**/.env\"]",
        "p.toml:2:9: files.hide '**/.env': looks like a pattern, and paths are taken as they are (name each file or "
        "the "
        "folder that holds them)"},
       {"[files]\nread = [\"$HOME/x\"]",
        "p.toml:2:9: files.read '$HOME/x': variables are not expanded (write ~/… for the home, or the absolute path)"},
       {"[files]\nread = [\"~root/x\"]",
        "p.toml:2:9: files.read '~root/x': the home of another user (write the absolute path)"},
       {"[files]\nread = [\"/a\\u0000b\"]",
        "p.toml:2:9: files.read '/a\\x00b': holds a control character (such a path cannot be named in a policy)"},
       {"[files]\nread = [\"\"]", "p.toml:2:9: files.read: empty (name a file or folder, such as ./data)"},
       {"[files]\nhome = \"all\"", "p.toml:2:8: files.home 'all': unknown value (one of agent, empty)"},
       {"[env]\nallow = [\"LC_*\"]",
        "p.toml:2:10: env.allow 'LC_*': a pattern (write each name: some variables run code or hold secrets)"},
       {"[env]\nallow = [\"A=B\"]",
        "p.toml:2:10: env.allow 'A=B': not a name of a variable (letters, digits and '_', not a digit first)"},
       {"[env.set]\n\"1A\" = \"x\"",
        "p.toml:2:1: env.set '1A': not a name of a variable (letters, digits and '_', not a digit first)"},
       {"[env.set]\nKEY = \"secret\\u0000\"", "p.toml:2:7: env.set.KEY: its value holds a NUL byte (no variable can)"},
       {"agent = \"Claude\"",
        "p.toml:1:9: agent 'Claude': not a name of an agent (lower case letters, digits, '-', '_' and '.', at most "
        "64)"},
       {"[agent]\ncommands = [\"x\"]", "p.toml:1:1: agent: has no name (add name = \"…\")"},
       {"[agent]\nname = \"x\"\nconfig_dirs = [\"/etc\"]",
        "p.toml:3:16: agent.config_dirs '/etc': not below the home (write ~/…; other paths go under [files])"},
       {"[agent]\nname = \"x\"\ncommands = [\"/bin/x\"]",
        "p.toml:3:13: agent.commands '/bin/x': not a name of a program (write it without a folder, such as claude)"},
       {"[agent]\nname = \"x\"\nextra_arguments = [\"\"]", "p.toml:3:20: agent.extra_arguments: empty (leave it out)"},
       {"extends = [\"clade\"]",
        "p.toml:1:12: extends 'clade': unknown preset (did you mean 'claude'? one of claude, codex, gemini, npm, pypi, "
        "crates, go, rubygems, maven, debian, registries, github; a file is written with a '/' or ends in .toml or "
        ".json)"}});
}

TEST(ParseToml, RefusesLimitsOutOfRange) {
  expect_refused(
      "p.toml",
      {{"[limits]\nmemory = \"2GB\"",
        "p.toml:2:10: limits.memory '2GB': not a size (write a whole number and B, KiB, MiB, GiB or TiB, such as "
        "2GiB)"},
       {"[limits]\nmemory = \"99999999999TiB\"",
        "p.toml:2:10: limits.memory '99999999999TiB': not a size (write a whole number and B, KiB, MiB, GiB or TiB, "
        "such "
        "as 2GiB)"},
       {"[limits]\nmemory = 1", "p.toml:2:10: limits.memory '1': out of range (from 16MiB to 1024TiB)"},
       {"[limits]\npids = -1", "p.toml:2:8: limits.pids '-1': out of range (from 8 to 4194304)"},
       {"[limits]\nprocesses = 4194305", "p.toml:2:13: limits.processes '4194305': out of range (from 8 to 4194304)"},
       {"[limits]\ncpu = \"0%\"", "p.toml:2:7: limits.cpu '0%': out of range (from 1% to 1000000%)"},
       {"[limits]\ncpu = \"2\"",
        "p.toml:2:7: limits.cpu '2': not a share of a core (write per cent, such as 200% for two cores)"},
       {"[limits]\nwall = 0", "p.toml:2:8: limits.wall '0': out of range (from 1s to 366d)"},
       {"[limits]\nwall = \"30m1h\"",
        "p.toml:2:8: limits.wall '30m1h': not a duration (write whole numbers and d, h, m or s, such as 2h or 1h30m)"},
       {"[limits]\nwall = \"2\"",
        "p.toml:2:8: limits.wall '2': not a duration (write whole numbers and d, h, m or s, such as 2h or 1h30m)"}});
}

TEST(ParseToml, RefusesDuplicatesAndContradictions) {
  expect_refused(
      "p.toml",
      {{"git = \"read\"\ngit = \"write\"",
        "p.toml:2:7: Error while parsing key-value pair: cannot redefine existing string 'git' (not valid TOML)"},
       {"[files]\nread = [\"/a\", \"/a/\"]", "p.toml:2:15: files.read '/a': given twice (first at p.toml:2:9)"},
       {"[isolation]\nallow_hosts = [\"a.test\",\n\"A.TEST.\"]",
        "p.toml:3:1: isolation.allow_hosts 'a.test': given twice (first at p.toml:2:16)"},
       {"[isolation]\nnetwork = \"allow\"\nallow_hosts = [\"a.test\"]",
        "p.toml:3:16: allow_hosts = \"a.test\" contradicts network = \"allow\" (p.toml:2:11) (deny the network, or "
        "leave "
        "the hosts out: nothing holds them back)"},
       {"[isolation]\nnetwork = \"allow\"\nask = true",
        "p.toml:3:7: ask = true contradicts network = \"allow\" (p.toml:2:11) (deny the network, or leave the asking "
        "out: nothing waits for an answer)"},
       {"[isolation]\nnetwork = \"allow\"\n[hook]\nurl = \"https://a.test/\"\ntoken_env = \"TOKEN\"",
        "p.toml:5:13: hook.token_env = \"TOKEN\" contradicts network = \"allow\" (p.toml:2:11) (deny the network, or "
        "leave the token out: nothing is relayed that it could go along with)"},
       {"[isolation]\nmode = \"none\"\nnetwork = \"deny\"",
        "p.toml:2:8: mode = \"none\" contradicts network = \"deny\" (p.toml:3:11) (without a boundary nothing is "
        "denied: "
        "say network = \"allow\" (--net allow) as well)"},
       {"[isolation]\nmode = \"jail\"\ndocker_image = \"debian\"",
        "p.toml:3:16: docker_image contradicts mode = \"jail\" (p.toml:2:8) (only mode = \"docker\" has an image: "
        "leave "
        "it out)"},
       {"[files]\nread = [\"/a\"]\nhide = [\"/a\"]",
        "p.toml:3:9: hide = \"/a\" contradicts the same path under 'read' (p.toml:2:9) (write includes read: name a "
        "path "
        "in one list)"},
       {"[files]\nread = [\"./a\"]\nwrite = [\"a\"]",
        "p.toml:3:10: write = \"./a\" contradicts the same path under 'read' (p.toml:2:9) (write includes read: name a "
        "path in one list)"},
       {"[env]\nallow = [\"A\"]\nset = { A = \"1\" }",
        "p.toml:2:10: env.allow = \"A\" contradicts env.set.A (p.toml:3:13) (pass the launcher's value or set one, not "
        "both)"},
       {"[agent]\nname = \"x\"\nconfig_dirs = [\"~/.x\"]\nconfig_files = [\"~/.x/\"]",
        "p.toml:4:17: agent.config_files '~/.x': is also in agent.config_dirs (name it in one of them)"},
       {"[agent]\nname = \"x\"\nconfig_dirs = [\"~/.x\"]\nobeyed = [\"~/.x/y\"]",
        "p.toml:4:11: agent.obeyed '~/.x/y': lies in '~/.x' of agent.config_dirs (name the parts of that folder one by "
        "one)"},
       {"[agent]\nname = \"x\"\nstate_file = \"~/.x\"\nhistory = [\"~/.x\"]",
        "p.toml:3:14: agent.state_file '~/.x': is also in agent.history (name it in one of them)"},
       {"[agent]\nname = \"x\"\nstate_keys = [\"a\"]",
        "p.toml:3:14: agent.state_keys: there is no state_file that they are of (add state_file = \"…\")"}});
}

TEST(ParseAny, RefusesWhatIsNoTextOrNoEnd) {
  const std::string nul("git = \"a\0b\"", 11);
  for (const std::string name : {"p.toml", "p.json"}) {
    expect_refused(name, {{nul, name + ":1:9: holds a NUL byte (a policy is a text file)"},
                          {"\xEF\xBB\xBFgit = \"read\"",
                           name + ":1:1: starts with a byte order mark (save it as UTF-8 without one)"},
                          {"# \xC3\xBC\n#\xC3\xBC\xFF", name + ":2:3: is not valid UTF-8 (save the file as UTF-8)"},
                          {"# \xED\xA0\x80", name + ":1:3: is not valid UTF-8 (save the file as UTF-8)"},
                          {"# \xC0\xAF", name + ":1:3: is not valid UTF-8 (save the file as UTF-8)"},
                          {"# \xF4\x90\x80\x80", name + ":1:3: is not valid UTF-8 (save the file as UTF-8)"},
                          {"# \xE2\x82", name + ":1:3: is not valid UTF-8 (save the file as UTF-8)"},
                          {std::string(kMaxDocument + 1, ' '),
                           name + ": larger than 256 KiB (a policy is a short file: is this the right one?)"}});
  }
  EXPECT_TRUE(parse_policy("# " + std::string(kMaxDocument - 2, 'x'), "p.toml"));
}

std::string repeated(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

// Each of these would exhaust the stack of a reader that follows it down.
TEST(ParseAny, RefusesDeepNestingWithoutFollowingIt) {
  expect_refused("p.toml", {{"a" + repeated(".a", 100'000) + " = 1",
                             "p.toml:1:2050: holds too many dotted keys (no policy needs more than a few)"},
                            {"[a" + repeated(".a", 100'000) + "]",
                             "p.toml:1:2051: holds too many dotted keys (no policy needs more than a few)"},
                            {repeated("a.b = [{", 200),
                             "p.toml:1:1031: Error while parsing value: exceeded maximum nested value depth of 256 "
                             "(TOML_MAX_NESTED_VALUES) (not valid TOML)"}});
  for (const std::string& text : {"a = " + repeated("[", 100'000), "a" + repeated(".a", 1000) + " = 1",
                                  "a = " + repeated("[", 9) + repeated("]", 9)}) {
    EXPECT_FALSE(parse_policy(text, "p.toml"));
  }
  expect_refused("p.json", {{repeated("{\"a\":", 40'000),
                             "p.json:1:41: nested more than 8 levels deep (no part of a "
                             "policy is that deep)"},
                            {"{\"a\":" + repeated("[", 200'000),
                             "p.json:1:13: nested more than 8 levels deep (no part of a policy is that deep)"}});
}

// toml++ 3.3 asserts on some of these and runs into undefined behaviour on others: a policy must never be able to abort
// the program.
TEST(ParseToml, RefusesWhatItsReaderCannotBeGiven) {
  const std::string nearby = " (not valid TOML)";
  const std::string keys = "Error while parsing root table: expected keys, tables, whitespace or comments, saw ";
  expect_refused("p.toml",
                 {{"[.a]", "p.toml:1:2: unexpected character" + nearby},
                  {"# \xC3\xBC\n[files]\nread = []\n[ .a]\n# more", "p.toml:4:3: unexpected character" + nearby},
                  {"\xC3\xBC = 1", "p.toml:1:1: " + keys + "'\xC3\xBC'" + nearby},
                  {"# \xEF\xB5\xBF\ngit = \"read\" # \xEF\xB5\xBF\n\xEF\xB5\xBFx = 1",
                   "p.toml:3:1: " + keys + "'\xEF\xB5\xBF'" + nearby}});
  for (const char* text :
       {"a = \xC3\xBC", "a = +7\"\"\"'\xCD\x9C", "a=5{\"m>\xC2\xBA>", "a\xC3\xBC = 1", "[\xC3\xBC]"}) {
    EXPECT_FALSE(parse_policy(text, "p.toml")) << text;
  }
}

// The count of dots must not stop at what only looks like a string, nor count what is inside one.
TEST(ParseToml, CountsDotsOutsideStringsOnly) {
  const std::string dots(2000, '.');
  EXPECT_TRUE(parse_policy("[env.set]\nA = \"" + dots + "\"\nB = '" + dots + "' # " + dots + "\nC = \"\"\"" + dots +
                               "\\\"\"\"\"\nD = '''" + dots + "'''''",
                           "p.toml"));
  const std::string keys = repeated(".a", 2000) + " = 1";
  for (const std::string& text :
       {"a = \"\"\"x\"\"\"\"\"\nb" + keys, "a = '''x'''''\nb" + keys, "a = \"\\\\\"\nb" + keys, "a = '\\'\nb" + keys,
        "a = ''\nb" + keys, "a = \"\"\nb" + keys}) {
    const auto layer = parse_policy(text, "p.toml");
    ASSERT_FALSE(layer);
    EXPECT_EQ(layer.error().reason, "holds too many dotted keys") << text.substr(0, 30);
  }
}

TEST(ParseJson, SaysLineAndColumn) {
  expect_refused(
      "p.json",
      {{"",
        "p.json:1:1: syntax error while parsing value - unexpected end of input; expected '[', '{', or a literal "
        "(not valid JSON)"},
       {"[]", "p.json:1:1: expected an object, found a list (write { … })"},
       {"3", "p.json:1:1: expected an object, found an integer (write { … })"},
       {"{\"git\":\"read\",\n \"git\" : \"write\"}", "p.json:2:2: 'git' is given twice (first at p.json:1:2)"},
       {"{\"g\\u0069t\":\"read\",\"git\":\"read\"}", "p.json:1:20: 'git' is given twice (first at p.json:1:2)"},
       {"{\"gti\": 1}", "p.json:1:2: unknown key 'gti' (" + kTopKeys},
       {"{\"\xC3\xBC\": {}, \"x\": 1}", "p.json:1:2: unknown key '\xC3\xBC' (" + kTopKeys},
       {"{\"isolation\":\n  {\"mode\": null}}", "p.json:2:12: isolation.mode: expected a string, found null"},
       {"{\"limits\":{\"pids\":100 ,\n\"memory\" :5}}",
        "p.json:2:11: limits.memory '5': out of range (from 16MiB to 1024TiB)"},
       {"{\"limits\":{\"pids\":1.5}}",
        "p.json:1:19: limits.pids: expected a whole number, found a number with a fraction"},
       {"{\"limits\":{\"pids\":99999999999999999999}}",
        "p.json:1:19: an integer of more than 64 bits (no limit is that large)"},
       {"{\"limits\":{\"pids\":9223372036854775808}}",
        "p.json:1:19: an integer of more than 64 bits (no limit is that large)"},
       {"{\"files\": {\"read\": [\"/\xC3\xBC\", 1, 2]}}",
        "p.json:1:27: files.read: expected a string in this list, found an integer"},
       {"{\"files\": {\"read\": [[], 1]}}", "p.json:1:21: files.read: expected a string in this list, found a list"},
       {"{\"git\":\"read\"} x", "p.json:1:16: syntax error while parsing value - invalid literal (not valid JSON)"},
       {"{\"git\":\"read\",}",
        "p.json:1:15: syntax error while parsing object key - unexpected '}'; expected string literal (not valid "
        "JSON)"},
       {"// x\n{}", "p.json:1:1: syntax error while parsing value - invalid literal (not valid JSON)"}});
}

TEST(ParseJson, RefusesWhatTheLaunchFormCannotMean) {
  expect_refused(
      "p.json",
      {{R"({"mode":"bwrap","allow_hosts":["x"]})",
        "p.json:1:32: allow_hosts = \"x\" contradicts network = \"allow\" (p.json:1:1: launch form without a network) "
        "(deny "
        "the network, or leave the hosts out: nothing holds them back)"},
       {R"({"network":"deny"})",
        "p.json:1:1: launch form without a mode: mode = \"none\" contradicts network = \"deny\" (p.json:1:12) (without "
        "a "
        "boundary nothing is denied: say network = \"allow\" (--net allow) as well)"},
       {R"({"mode":"jail","files":{}})",
        "p.json:1:16: 'files' cannot stand beside the keys of the launch form (write mode, network, docker_image and "
        "allow_hosts under isolation)"},
       {R"({"mode":"jail","nework":"deny"})",
        "p.json:1:16: unknown key 'nework' (did you mean 'network'? one of mode, network, docker_image, allow_hosts)"},
       {R"({"mode":"jail","network":"allow","docker_image":"debian"})",
        "p.json:1:49: docker_image contradicts mode = \"jail\" (p.json:1:9) (only mode = \"docker\" has an image: "
        "leave it "
        "out)"}});
}

TEST(ParseJson, TakesTheLaunchFormWithItsDefaults) {
  const auto full = parse_policy(
      R"({"mode": "bwrap", "network": "deny", "docker_image": "", "allow_hosts": ["Example.com"]})", "p.json");
  ASSERT_TRUE(full) << full.error().message();
  EXPECT_EQ(full->mode->value, Mode::kBwrap);
  EXPECT_EQ(full->mode->source, "p.json:1:10");
  EXPECT_EQ(full->network->value, Network::kDeny);
  EXPECT_FALSE(full->docker_image);
  EXPECT_EQ(full->allow_hosts.front().pattern, "example.com");
  const auto opt_out = parse_policy(R"({"mode": ""})", "p.json");
  ASSERT_TRUE(opt_out);
  EXPECT_EQ(opt_out->mode->value, Mode::kNone);
  EXPECT_EQ(opt_out->network->value, Network::kAllow);
  const auto no_network = parse_policy(R"({"mode": "docker", "docker_image": "debian:bookworm-slim"})", "p.json");
  ASSERT_TRUE(no_network);
  EXPECT_EQ(no_network->network->value, Network::kAllow);
  EXPECT_EQ(no_network->docker_image->value, "debian:bookworm-slim");
  // Nothing said is nothing weakened.
  const auto nothing = parse_policy("{}", "p.json");
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->mode);
  EXPECT_FALSE(nothing->network);
}

TEST(ParseAny, ReadsEverySetting) {
  const std::string toml = R"(
extends = ["claude", "npm", "./base.toml"]
git = "write"
[isolation]
mode = "docker"
network = "deny"
docker_image = "debian@sha256:0123"
allow_hosts = ["*.Example.com:*", "[2001:DB8::1]:8443"]
[files]
read = ["/data//x/./y/", "~/notes", "src", "../lib", "."]
write = ["./out"]
hide = ["./secrets"]
home = "empty"
[limits]
memory = "2GiB"
cpu = "150%"
pids = 100
processes = 200
scratch_bytes = 1048576
scratch_files = 1000
open_files = 1024
file_bytes = "64MiB"
wall = "1h30m"
[env]
allow = ["EDITOR", "LD_PRELOAD"]
set = { LANG = "C", EMPTY = "" }
[agent]
name = "mine"
commands = ["mine"]
config_dirs = ["~/.mine/"]
config_files = ["~/.minerc"]
obeyed = ["~/.m/set"]
history = ["~/.m/{project}"]
state_file = "~/.m.json"
state_keys = ["a", "b"]
credential_env = ["MINE_KEY"]
hosts = ["API.mine.test"]
registries = ["npm.mine.test"]
extra_arguments = ["-v", "-v"]
env = { MARK = "1" }
)";
  const std::string json = R"({"extends": ["claude", "npm", "./base.toml"], "git": "write",
"isolation": {"mode": "docker", "network": "deny", "docker_image": "debian@sha256:0123",
  "allow_hosts": ["*.Example.com:*", "[2001:DB8::1]:8443"]},
"files": {"read": ["/data//x/./y/", "~/notes", "src", "../lib", "."], "write": ["./out"], "hide": ["./secrets"],
  "home": "empty"},
"limits": {"memory": "2GiB", "cpu": "150%", "pids": 100, "processes": 200, "scratch_bytes": 1048576,
  "scratch_files": 1000, "open_files": 1024, "file_bytes": "64MiB", "wall": "1h30m"},
"env": {"allow": ["EDITOR", "LD_PRELOAD"], "set": {"LANG": "C", "EMPTY": ""}},
"agent": {"name": "mine", "commands": ["mine"], "config_dirs": ["~/.mine/"], "config_files": ["~/.minerc"],
  "obeyed": ["~/.m/set"], "history": ["~/.m/{project}"], "state_file": "~/.m.json", "state_keys": ["a", "b"],
  "credential_env": ["MINE_KEY"], "hosts": ["API.mine.test"], "registries": ["npm.mine.test"],
  "extra_arguments": ["-v", "-v"], "env": {"MARK": "1"}}})";
  for (const auto& [text, name] :
       {std::pair{toml, "p.toml"}, std::pair{json, "p.json"}, std::pair{toml, "policy"}, std::pair{json, "policy"}}) {
    const auto layer = parse_policy(text, name);
    ASSERT_TRUE(layer) << layer.error().message();
    const auto values = [](const std::vector<Said<std::string>>& list) {
      std::vector<std::string> out;
      for (const auto& said : list) out.push_back(said.value);
      return out;
    };
    EXPECT_EQ(values(layer->extends), (std::vector<std::string>{"claude", "npm", "./base.toml"}));
    EXPECT_EQ(layer->git->value, GitAccess::kWrite);
    EXPECT_EQ(layer->mode->value, Mode::kDocker);
    EXPECT_EQ(layer->docker_image->value, "debian@sha256:0123");
    EXPECT_EQ(layer->allow_hosts.size(), 2U);
    EXPECT_EQ(values(layer->read), (std::vector<std::string>{"/data/x/y", "~/notes", "./src", "../lib", "."}));
    EXPECT_EQ(values(layer->write), std::vector<std::string>{"./out"});
    EXPECT_EQ(values(layer->hide), std::vector<std::string>{"./secrets"});
    EXPECT_EQ(layer->home->value, Home::kEmpty);
    EXPECT_EQ(layer->limits.at("memory").value, uint64_t{2} << 30U);
    EXPECT_EQ(layer->limits.at("cpu").value, 150U);
    EXPECT_EQ(layer->limits.at("wall").value, 5400U);
    EXPECT_EQ(layer->limits.size(), limit_specs().size());
    EXPECT_EQ(values(layer->env_allow), (std::vector<std::string>{"EDITOR", "LD_PRELOAD"}));
    EXPECT_EQ(layer->env_set.at("EMPTY").value, "");
    EXPECT_EQ(layer->agent->value.config_dirs, std::vector<std::string>{"~/.mine"});
    EXPECT_EQ(layer->agent->value.obeyed, std::vector<std::string>{"~/.m/set"});
    EXPECT_EQ(layer->agent->value.history, std::vector<std::string>{"~/.m/{project}"});
    EXPECT_EQ(layer->agent->value.state_file, "~/.m.json");
    EXPECT_EQ(layer->agent->value.state_keys, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(layer->agent->value.hosts, std::vector<std::string>{"api.mine.test"});
    EXPECT_EQ(layer->agent->value.extra_arguments, (std::vector<std::string>{"-v", "-v"}));
    EXPECT_EQ(layer->agent->value.env.at("MARK"), "1");
  }
}

TEST(ParseAny, GivesAnUndescribedAgentNoPaths) {
  const auto layer = parse_policy("agent = \"aider\"", "p.toml");
  ASSERT_TRUE(layer);
  Agent bare;
  bare.name = "aider";
  EXPECT_EQ(layer->agent->value, bare);
}

TEST(ParseAny, EscapesTheNameOfTheFile) {
  const auto layer = parse_policy("x = 1", "a\n\x1b[31m.toml");
  ASSERT_FALSE(layer);
  EXPECT_TRUE(layer.error().message().starts_with("a\\n\\x1b[31m.toml:1:1: unknown key 'x'"));
}

TEST(ParseHosts, ATableSaysWhatTextCannot) {
  const auto layer = parse_policy(
      "[isolation]\nallow_hosts = [\"a.test\", { host = \"B.test\", ports = [8443, 443], methods = [\"GET\", "
      "\"HEAD\"], "
      "paths = [\"/v1/\"], max_bytes = \"2MiB\" }, {host = \"*.c.test:22\", tls = \"any\", max_connections = 2, "
      "requests_per_minute = 60}, {host = \"d.test\", ports = [80, 443], tls = \"required\"}, \"10.0.0.0/8:5432\"]\n"
      "deny_hosts = [\"x.a.test\", \"192.0.2.0/24\", \"y.test:443\"]\nhost_ports = [5432]",
      "p.toml");
  ASSERT_TRUE(layer) << layer.error().message();
  ASSERT_EQ(layer->allow_hosts.size(), 5U);
  const HostRule& table = layer->allow_hosts[1];
  EXPECT_EQ(table.pattern, "b.test");
  EXPECT_EQ(table.ports, (std::vector<uint16_t>{443, 8443}));
  EXPECT_EQ(table.methods, (std::vector<std::string>{"GET", "HEAD"}));
  EXPECT_EQ(table.paths, std::vector<std::string>{"/v1/"});
  EXPECT_EQ(table.max_bytes, 2U << 20U);
  EXPECT_EQ(table.source, "p.toml:2:26");
  EXPECT_TRUE(table.only_plain_http());
  EXPECT_EQ(layer->allow_hosts[2].tls, Tls::kAny);
  EXPECT_EQ(layer->allow_hosts[2].port, 22);
  EXPECT_EQ(layer->allow_hosts[2].max_connections, 2U);
  EXPECT_EQ(layer->allow_hosts[2].requests_per_minute, 60U);
  EXPECT_EQ(layer->allow_hosts[3].tls, Tls::kRequired);
  EXPECT_TRUE(layer->allow_hosts[3].ports.empty()) << "80 and 443 are what no ports mean";
  EXPECT_TRUE(layer->deny_hosts[0].any_port);
  EXPECT_TRUE(layer->deny_hosts[1].deny);
  EXPECT_EQ(layer->deny_hosts[2].port, 443);
  EXPECT_TRUE(layer->host_ports[0].host_port);
}

TEST(ParseHosts, RefusesWhatATableCannotMean) {
  const auto message = [](const std::string& entry, const std::string& key = "allow_hosts") {
    const auto layer = parse_policy("[isolation]\n" + key + " = [" + entry + "]", "p.toml");
    return layer ? std::string("accepted") : layer.error().message();
  };
  const std::string at = "p.toml:2:16: isolation.allow_hosts";
  EXPECT_EQ(message("{}"), at + ".host: missing (name the host that this rule is for)");
  EXPECT_TRUE(message("{host = \"a\", port = 1}")
                  .contains("unknown key 'port' in [isolation.allow_hosts] (did you mean "
                            "'ports'?"));
  EXPECT_EQ(message("3"), at + ": expected a host, or a table with 'host' and its options, found an integer");
  EXPECT_TRUE(message("{host = \"a:1\", ports = [2]}").contains("the host has a port already"));
  EXPECT_TRUE(message("{host = \"a\", ports = []}").contains("expected a list of port numbers"));
  EXPECT_TRUE(message("{host = \"a\", ports = [0]}").contains("allow_hosts.ports '0': not a port"));
  EXPECT_TRUE(message("{host = \"a\", ports = [7, 7]}").contains("given twice"));
  EXPECT_TRUE(message("{host = \"a\", methods = [\"get\"]}").contains("not an HTTP method (write it in capitals"));
  EXPECT_TRUE(message("{host = \"a\", methods = [\"CONNECT\"]}").contains("no method of plain HTTP"));
  for (const char* path : {"v1", "/a/../b", "/a//b", "/%61", "/a;b", "/a?b", "/."}) {
    EXPECT_TRUE(message("{host = \"a\", paths = [\"" + std::string(path) + "\"]}").contains("allow_hosts.paths"))
        << path;
  }
  EXPECT_TRUE(message("{host = \"a\", tls = \"yes\"}").contains("unknown value (one of required, any)"));
  EXPECT_TRUE(message("{host = \"a\", tls = \"any\", methods = [\"GET\"]}").contains("contradicts methods and paths"));
  EXPECT_TRUE(message("{host = \"a\", max_bytes = 0}").contains("out of range"));
  EXPECT_TRUE(message("{host = \"a\", max_bytes = \"2GB\"}").contains("not a size"));
  EXPECT_TRUE(message("{host = \"a\", max_connections = -1}").contains("out of range"));
  EXPECT_TRUE(message("{host = \"a\"}, \"A.\"").contains("'a': given twice"));
  EXPECT_TRUE(message("\"host.belljar\"").contains("Belljar's own name for the host (grant one port"));
  EXPECT_TRUE(message("{host = \"a\"}", "deny_hosts").contains("expected a host, found a table"));
  EXPECT_TRUE(message("65536", "host_ports").contains("isolation.host_ports '65536': not a port"));
  EXPECT_TRUE(message("\"80\"", "host_ports").contains("expected a port number"));
}

}  // namespace
}  // namespace belljar::policy
