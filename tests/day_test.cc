// A day's work, offline: in one default launch for each kind of project, clone it from a mirror, build and test it,
// edit it, look at the difference. What works outside works inside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;

class DayTest : public ::testing::Test {
 protected:
  DayTest() : hosts_({"registry.test"}) {}

  void SetUp() override {
    std::filesystem::create_directories(work_);
    std::filesystem::create_directories(home_ + "/bin");
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name, home_ + "/bin/" + name);
    }
    write_file(home_ + "/.gitconfig",
               "[user]\n\tname = Ada Lovelace\n\temail = ada@example.com\n[alias]\n\tst = !touch /tmp/alias\n"
               "[credential]\n\thelper = store\n[core]\n\tpager = evil\n");
    for (const char* name : {"/.npmrc", "/.netrc", "/.pypirc", "/.cargo/credentials.toml"}) {
      write_file(home_ + name, "a-secret-of-the-home\n");
    }
  }

  // A bare repository beside the project, as a local mirror: made outside of the guest, read inside.
  void mirror(const std::map<std::string, std::string>& files) {
    const std::string source = home_ + "/source";
    for (const auto& [name, text] : files) write_file(source + "/" + name, text);
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"git", "init", "-q", "."},
             {"git", "add", "-A"},
             {"git", "-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "Begin"},
             {"git", "clone", "-q", "--bare", ".", work_ + "/mirror.git"}}) {
      must_run({.argv = words, .cwd = source});
    }
    std::filesystem::remove_all(source);
  }

  // The same steps outside first, so that what fails inside is the seal's doing.
  void expect_a_day(const std::string& build, const std::string& edited, const std::string& says) {
    const std::string day = "set -e\ngit clone -q mirror.git project\ncd project\n" + build +
                            "\ntest -z \"$(git status --porcelain --untracked-files=no)\"\n"
                            "echo '// edited' >>" +
                            edited +
                            "\ngit diff --stat\ngit status --short\n"
                            "git log --format=%s\ngit config user.name\ngit config user.email\n";
    for (const bool inside : {false, true}) {
      const Command command =
          inside ? sealed_script(work_, day) : Command{.argv = {"/bin/sh", "-c", day}, .cwd = work_};
      const Output output = run(as_person(command), std::chrono::seconds(240));
      std::filesystem::remove_all(work_ + "/project");
      const char* where = inside ? "inside" : "outside";
      ASSERT_EQ(output.code, 0) << where << "\n" << output.out << output.err;
      EXPECT_THAT(output.out, HasSubstr(says)) << where;
      EXPECT_THAT(output.out, HasSubstr("1 file changed, 1 insertion(+)")) << where;
      EXPECT_THAT(output.out, HasSubstr(" M " + edited)) << where;
      EXPECT_THAT(output.out, HasSubstr("Begin\nAda Lovelace\nada@example.com\n")) << where;
      EXPECT_THAT(output.err, ::testing::Not(HasSubstr("dubious"))) << where;
    }
  }

  Command as_person(Command command) {
    if (command.argv[0] == belljar_program()) command.argv[0] = home_ + "/bin/belljar";
    command.env = {{"HOME", home_}, {"PATH", way_there() + home_ + "/bin:/usr/local/bin:/usr/bin:/bin"}};
    return hosts_.as_caller(std::move(command));
  }
  // The ssh of a run on a target.
  static std::string way_there() {
    const char* loop = std::getenv("BELLJAR_TEST_LOOP");
    return loop != nullptr ? loop + std::string("/bin:") : "";
  }
  Output inside(const std::string& script, const std::vector<std::string>& options = {}) {
    return run(as_person(sealed_script(work_, script, options)), std::chrono::seconds(60));
  }

  TestHosts hosts_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/work";
};

TEST_F(DayTest, CMakeWithAddressSanitizer) {
  mirror({{"CMakeLists.txt", R"(cmake_minimum_required(VERSION 3.20)
project(day CXX)
enable_testing()
add_compile_options(-fsanitize=address,undefined -g)
add_link_options(-fsanitize=address,undefined)
add_library(sum sum.cc)
add_executable(sum_test sum_test.cc)
target_link_libraries(sum_test sum)
add_test(NAME sum COMMAND sum_test)
)"},
          {"sum.h", "int sum(int a, int b);\n"},
          {"sum.cc", "#include \"sum.h\"\nint sum(int a, int b) { return a + b; }\n"},
          {"sum_test.cc",
           "#include \"sum.h\"\n#include <vector>\nint main() { std::vector<int> v(9, 1); return sum(v[0], 1) == 2 "
           "? 0 : 1; }\n"},
          {".gitignore", "build\n"}});
  expect_a_day("cmake -S . -B build >/dev/null && cmake --build build >/dev/null && ctest --test-dir build", "sum.cc",
               "100% tests passed");
}

TEST_F(DayTest, Cargo) {
  mirror({{"Cargo.toml", "[workspace]\nmembers = [\"app\", \"util\"]\n"},
          {"app/Cargo.toml",
           "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nutil = { path = "
           "\"../util\" }\nleft = \"1\"\n"},
          {"app/src/main.rs",
           "fn main() { println!(\"{}\", util::twice(left::one())); }\n#[test]\nfn works() { "
           "assert_eq!(util::twice(left::one()), 2); }\n"},
          {"util/Cargo.toml", "[package]\nname = \"util\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"},
          {"util/src/lib.rs", "pub fn twice(x: u32) -> u32 { 2 * x }\n"},
          {"vendor/left/Cargo.toml", "[package]\nname = \"left\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"},
          {"vendor/left/src/lib.rs", "pub fn one() -> u32 { 1 }\n"},
          {"vendor/left/.cargo-checksum.json", "{\"files\":{}}\n"},
          {".cargo/config.toml",
           "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"vendor\"\n"},
          {".gitignore", "target\nCargo.lock\n"}});
  expect_a_day("cargo build --offline 2>&1 && cargo test --offline 2>&1", "util/src/lib.rs", "test works ... ok");
}

TEST_F(DayTest, Npm) {
  mirror({{"package.json", R"({"name":"day","version":"1.0.0","scripts":{"test":"node test.js"},)"
                           R"("dependencies":{"left":"file:left"}}
)"},
          {"left/package.json", "{\"name\":\"left\",\"version\":\"1.0.0\",\"scripts\":{\"install\":\"node -e 0\"}}\n"},
          {"left/index.js", "module.exports = 1;\n"},
          {"test.js", "require('assert').equal(require('left'), 1); console.log('npm works');\n"},
          {".gitignore", "node_modules\npackage-lock.json\n"}});
  expect_a_day("npm install --offline --no-audit --no-fund && npm ci --offline --no-audit --no-fund && npm test",
               "test.js", "npm works");
}

TEST_F(DayTest, PipAndVenv) {
  mirror({{"setup.py", "from setuptools import setup\nsetup(name='day', version='1.0', py_modules=['day'])\n"},
          {"day.py", "def twice(x):\n    return 2 * x\n"},
          {"test_day.py", "import day\n\ndef test_twice():\n    assert day.twice(2) == 4\n"},
          {".gitignore", "venv\nbuild\n*.egg-info\n__pycache__\n.pytest_cache\n"}});
  expect_a_day(
      "python3 -m venv --system-site-packages venv && venv/bin/pip install -q --no-index --no-build-isolation . && "
      "venv/bin/python -m pytest -q test_day.py",
      "day.py", "1 passed");
}

TEST_F(DayTest, Go) {
  mirror({{"go.mod", "module day.test/day\n\ngo 1.19\n"},
          {"main.go", "package main\n\nimport \"day.test/day/sum\"\n\nfunc main() { println(sum.Of(1, 2)) }\n"},
          {"sum/sum.go", "package sum\n\nfunc Of(a, b int) int { return a + b }\n"},
          {"sum/sum_test.go",
           "package sum\n\nimport \"testing\"\n\nfunc TestOf(t *testing.T) {\n\tif Of(1, 2) != 3 "
           "{\n\t\tt.Fail()\n\t}\n}\n"},
          {".gitignore", "day\n"}});
  expect_a_day("go build ./... && go test ./... && go vet ./...", "sum/sum.go", "ok  \tday.test/day/sum");
}

TEST_F(DayTest, ProgramsOfTheHomeAreThereAndCredentialsAreNot) {
  write_file(home_ + "/.cargo/bin/mytool", "#!/bin/sh\necho my tool\n");
  write_file(home_ + "/tools/linked", "#!/bin/sh\necho a linked tool\n");
  write_file(home_ + "/tools/secret", "a-secret-of-the-home\n");
  std::filesystem::create_directories(home_ + "/.local/bin");
  std::filesystem::create_symlink("../../tools/linked", home_ + "/.local/bin/linked");
  for (const char* name : {"/.cargo/bin/mytool", "/tools/linked"}) {
    std::filesystem::permissions(home_ + name, std::filesystem::perms(0755));
  }
  Command command = sealed_script(work_,
                                  "mytool; linked; echo evil >~/.cargo/bin/mytool || echo refused; "
                                  "cat ~/.npmrc ~/.netrc ~/.pypirc ~/.cargo/credentials.toml ~/tools/secret; true");
  command = as_person(std::move(command));
  command.env["PATH"] = way_there() + home_ + "/.cargo/bin:" + home_ + "/.local/bin:/usr/bin:/bin";
  const Output output = run(command);
  EXPECT_EQ(output.out, "my tool\na linked tool\nrefused\n") << output.err;
}

TEST_F(DayTest, CachesLastAndReachNobodyElse) {
  EXPECT_EQ(
      inside("echo mine >~/.cache/x; mkdir -p ~/.cargo/registry; echo mine >~/.cargo/registry/x; echo mine >~/.npm/x")
          .code,
      0);
  EXPECT_EQ(inside("cat ~/.cache/x ~/.cargo/registry/x ~/.npm/x").out, "mine\nmine\nmine\n");
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.npm"));
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.cargo/registry"));
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.cache/x"));
  work_ = home_ + "/other";
  std::filesystem::create_directories(work_);
  const Output other =
      inside("cat ~/.cache/x ~/.cargo/registry/x ~/.npm/x; find / -name projects -path '*belljar*' 2>/dev/null; true");
  EXPECT_EQ(other.out, "");
}

TEST_F(DayTest, GitKnowsThePersonAndNothingElseOfTheirs) {
  const Output output = inside("git config --global --list; git config user.name");
  // A folder of root's has another owner inside, which git must not look at.
  const bool by_root = run(hosts_.as_caller({.argv = {"id", "-u"}})).out == "0\n";
  const std::string owner = by_root ? "core.checkstat=minimal\n" : "";
  EXPECT_EQ(output.out,
            "safe.directory=*\n" + owner + "user.name=Ada Lovelace\nuser.email=ada@example.com\nAda Lovelace\n");
}

}  // namespace
}  // namespace belljar::testing
