// What a command meets: closed and shared descriptors, locale and limits of the caller, very long words and paths.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HostCase : public ::testing::Test {
 protected:
  Output script(const std::string& text, const std::vector<std::string>& options = {}) {
    return run(sealed_script(work_.path(), text, options));
  }
  TempDir work_;
};

// ---- H16: stdin closed, stdout closed, stderr to the same pipe, SIGPIPE, binary data; as without Belljar ----

TEST_F(HostCase, DescriptorsAreAsWithoutBelljar) {
  struct Case {
    Stream in, out, err;
    std::string text;
  };
  const std::string tell =
      "for f in 0 1 2; do test -e /proc/$$/fd/$f; printf %s $? >>told; done; echo out; echo err >&2";
  for (const Case& each : std::vector<Case>{
           {Stream::closed(), Stream::pipe(), Stream::pipe(), tell},
           {Stream::null(), Stream::closed(), Stream::pipe(), tell},
           {Stream::null(), Stream::pipe(), Stream::closed(), tell},
           {Stream::closed(), Stream::closed(), Stream::closed(), tell},
       }) {
    const TempDir one;
    const TempDir other;
    Command with = sealed_script(one.path(), each.text);
    Command without{.argv = {"/bin/sh", "-c", each.text}, .cwd = other.path()};
    for (Command* command : {&with, &without}) {
      command->in = each.in;
      command->out = each.out;
      command->err = each.err;
    }
    const Output sealed_output = run(with);
    const Output plain = run(without);
    EXPECT_EQ(sealed_output.code, plain.code);
    EXPECT_EQ(sealed_output.out, plain.out);
    EXPECT_EQ(read_text(one / "told"), read_text(other / "told"));
  }
}

TEST_F(HostCase, BinaryDataPassesInBothDirectionsAndOnBothOutputs) {
  std::string bytes;
  for (int i = 0; i < 256 * 1024; ++i) bytes.push_back(static_cast<char>((i * 131 + i / 257) % 256));
  Command command = sealed_script(work_.path(), "cat >copy; cat copy; cat copy >&2");
  command.in = Stream::pipe(bytes);
  const Output output = run(command);
  EXPECT_EQ(output.code, 0);
  EXPECT_TRUE(output.out == bytes);
  EXPECT_TRUE(output.err == bytes);
}

// ---- H17: what is inherited, and what is not (docs/policy.md) ----

TEST_F(HostCase, TheCallersLocaleZoneAndTerminalPass) {
  Command command = sealed(work_.path(), {"env"});
  command.env = {{"LANG", "de_DE.UTF-8"},
                 {"LC_TIME", "C"},
                 {"TZ", "Asia/Tokyo"},
                 {"TERM", "xterm-kitty"},
                 {"COLORTERM", "truecolor"}};
  const std::string out = "\n" + run(command).out;
  for (const char* there : {"\nLANG=de_DE.UTF-8\n", "\nLC_TIME=C\n", "\nTZ=Asia/Tokyo\n", "\nTERM=xterm-kitty\n",
                            "\nCOLORTERM=truecolor\n"}) {
    EXPECT_THAT(out, HasSubstr(there));
  }
  EXPECT_EQ(run(sealed(work_.path(), {"date", "-d@0", "+%H:%M"})).code, 0);
  command = sealed(work_.path(), {"date", "-d@0", "+%H:%M"});
  command.env = {{"TZ", "UTC-5"}};
  EXPECT_EQ(run(command).out, "05:00\n");
}

TEST_F(HostCase, WithoutLocaleAndTerminalTheCommandRunsAllTheSame) {
  Command command = sealed_script(work_.path(), "echo \"${LANG-none} ${TERM-none} ${COLORTERM-none} ${TZ-none}\"");
  for (const char* name : {"LANG", "LC_ALL", "LC_CTYPE", "LC_TIME", "TERM", "COLORTERM", "TZ"}) command.env[name] = {};
  const Output output = run(command);
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("none"));
}

TEST_F(HostCase, TheCallersUmaskNicenessAndLimitsHold) {
  Command command = sealed_script(work_.path(), "umask; nice; ulimit -Sn; ulimit -Sf; : >made");
  command.before_exec = [] {
    ::umask(027);
    const rlimit files{200, 500};
    const rlimit size{20480 * 512, 20480 * 512};
    return ::setpriority(PRIO_PROCESS, 0, 7) == 0 && ::setrlimit(RLIMIT_NOFILE, &files) == 0 &&
           ::setrlimit(RLIMIT_FSIZE, &size) == 0;
  };
  const Output output = run(command);
  EXPECT_EQ(output.code, 0) << output.err;
  // Open files are the policy's, but never more than the hard limit that the caller has.
  EXPECT_EQ(output.out, "0027\n7\n500\n20480\n");
  struct stat made{};
  ASSERT_EQ(::stat((work_ / "made").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777U, 0640U);
}

// ---- H18: very long ----

TEST_F(HostCase, AVeryLongArgumentListArrives) {
  // About 1.2 MB in 12,000 words: with the environment below the 2 MB that Linux takes (a quarter of an 8 MB stack).
  std::vector<std::string> words{"sh", "-c", "echo $#; for last; do :; done; echo ${#last}", "sh"};
  for (int i = 0; i < 12000; ++i) words.emplace_back(100, 'x');
  const Output output = run(sealed(work_.path(), words));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "12000\n100\n");
}

TEST_F(HostCase, OneArgumentOfTheLargestSizeArrives) {
  const std::string word(131071, 'y');  // MAX_ARG_STRLEN without its NUL (execve(2))
  const Output output = run(sealed(work_.path(), {"sh", "-c", "echo ${#1}", "sh", word}));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "131071\n");
}

TEST_F(HostCase, TenThousandVariablesOfTheCallerDoNotHinder) {
  Command command = sealed(work_.path(), {"sh", "-c", "env | grep -c ^MANY_"}, {"--env", "MANY_9999"});
  for (int i = 0; i < 10000; ++i) command.env["MANY_" + std::to_string(i)] = "value of a variable";
  const Output output = run(command);
  EXPECT_EQ(output.out, "1\n") << output.err;
}

TEST_F(HostCase, TenThousandVariablesThatAreSetArrive) {
  std::string policy = "[env.set]\n";
  for (int i = 0; i < 10000; ++i) policy += "MANY_" + std::to_string(i) + " = \"v\"\n";
  const TempDir elsewhere;
  write_file(elsewhere / "policy.toml", policy);
  const Output output =
      run(sealed(work_.path(), {"sh", "-c", "env | grep -c ^MANY_"}, {"--policy", elsewhere / "policy.toml"}));
  EXPECT_EQ(output.out, "10000\n") << output.err;
}

// A folder of 300 levels, whose path is longer than most programs expect and shorter than PATH_MAX.
TEST_F(HostCase, WorksDeepDown) {
  std::string folder = work_.path();
  for (int i = 0; i < 300; ++i) folder += "/deep-folder";
  ASSERT_LT(folder.size(), 4096U);
  std::filesystem::create_directories(folder);
  const Output output = run(sealed_script(folder, "pwd; echo made >file; cat file"));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, folder + "\nmade\n");
  EXPECT_EQ(read_text(folder + "/file"), "made\n");
}

TEST_F(HostCase, APathThatIsTooLongIsNamed) {
  const std::string path = "/" + std::string(5000, 'x');
  const Output output = run(sealed_script(work_.path(), "echo started", {"--chdir", path}));
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.out, Not(HasSubstr("started")));
  EXPECT_THAT(output.err, HasSubstr("xxxx"));
}

// ---- H13: what builds and databases do with files ----

TEST_F(HostCase, DatabasesLocksAndLinksWorkInTheWorkFolder) {
  const Output output = script(
      "set -e; python3 -c \"import sqlite3; c = sqlite3.connect('db'); c.execute('pragma journal_mode=wal'); "
      "c.execute('create table t(x)'); c.execute('insert into t values (1)'); c.commit(); "
      "print(c.execute('select count(*) from t').fetchone()[0])\"; "
      "flock lock true; mkdir a b; echo x >a/f; mv a/f b/g; ln b/g a/h; mv b c; cat a/h; "
      "cp --reflink=auto c/g d; install -m 755 d e; test -x e; mkfifo p; rm p; truncate -s 4M sparse; "
      "python3 -c \"import mmap; f = open('sparse', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[5] = 7; m.flush(); "
      "print(m[5])\"");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "1\nx\n7\n");
}

// ---- H20: many launches at once, in one folder ----

TEST_F(HostCase, AHundredLaunchesInOneFolderAreIndependent) {
  // Those on a target are four processes and two hashed programs each, and disturb the tests beside this one.
  const int many = over_ssh() ? 25 : 100;
  if (over_ssh()) {
    ASSERT_EQ(script("true").code, 0);
  }
  std::vector<std::unique_ptr<Process>> all;
  std::vector<base::Fd> inputs;
  for (int i = 0; i < many; ++i) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const base::Fd input(ends[0]);
    inputs.emplace_back(ends[1]);
    const std::string name = "made-" + std::to_string(i);
    Command command = sealed_script(
        work_.path(), "echo " + name + " >" + name + "; echo started; cat >/dev/null; exit " + std::to_string(i));
    command.in = Stream::from(input.get());
    all.push_back(std::make_unique<Process>(command));
  }
  // All of them are there at a time.
  for (const auto& process : all)
    ASSERT_EQ(process->read_line(std::chrono::seconds(120)), "started") << process->wait().err;
  inputs.clear();
  for (int i = 0; i < many; ++i) {
    const Output output = all[static_cast<size_t>(i)]->wait();
    EXPECT_EQ(output.code, i) << output.err;
    const std::string name = "made-" + std::to_string(i);
    EXPECT_EQ(read_text(work_ / name), name + "\n");
  }
}

}  // namespace
}  // namespace belljar::testing
