// `belljar run` as a person meets it: exit codes, standard descriptors, options, refusals.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunTest : public ::testing::Test {
 protected:
  Output script(const std::string& text, const std::vector<std::string>& options = {}) {
    return run(sealed_script(work_.path(), text, options));
  }
  TempDir work_;
};

TEST_F(RunTest, GivesTheCommandsOwnCode) {
  for (const int code : {0, 1, 7, 125, 255}) EXPECT_EQ(script("exit " + std::to_string(code)).code, code);
}

TEST_F(RunTest, GivesASignalAsAShellDoes) {
  EXPECT_EQ(script("kill -KILL $$").code, 137);
  EXPECT_EQ(script("kill -TERM $$").code, 143);
  EXPECT_EQ(script("kill -SEGV $$").code, 139);
}

TEST_F(RunTest, SaysThatACommandIsNotThere) {
  const Output output = run(sealed(work_.path(), {"no-such-command-here"}));
  EXPECT_EQ(output.code, 127);
  EXPECT_THAT(output.err, HasSubstr("no-such-command-here"));
}

TEST_F(RunTest, SaysThatACommandCannotBeExecuted) {
  write_file(work_ / "data", "not a program\n");
  const Output output = run(sealed(work_.path(), {"./data"}));
  EXPECT_EQ(output.code, 126);
  EXPECT_THAT(output.err, HasSubstr("data"));
  EXPECT_EQ(run(sealed(work_.path(), {work_.path()})).code, 126);
}

TEST_F(RunTest, EndsTheCommandAtTheDeadline) {
  const std::string marker = "7531." + std::to_string(::getpid());
  const Output output = run(sealed(work_.path(), {"sh", "-c", "trap '' TERM; sleep " + marker}, {"--timeout", "1s"}));
  EXPECT_EQ(output.code, 124);
  EXPECT_FALSE(output.timed_out);
  EXPECT_THAT(processes_with("sleep " + marker), ::testing::IsEmpty());
}

TEST_F(RunTest, ADeadlineThatIsNotReachedChangesNothing) {
  EXPECT_EQ(script("exit 5", {"--timeout", "1h"}).code, 5);
}

// ---- standard descriptors ----

TEST_F(RunTest, PassesEveryByteBothWays) {
  std::string bytes;
  for (int i = 0; i < 256 * 64; ++i) bytes.push_back(static_cast<char>(i * 7 % 256));
  Command command = sealed(work_.path(), {"cat"});
  command.in = Stream::pipe(bytes);
  const Output output = run(command);
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, bytes);
}

TEST_F(RunTest, KeepsOutputAndErrorsApart) {
  const Output output = script("echo out; echo err >&2");
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
}

TEST_F(RunTest, PassesAGigabyteUnchanged) {
  // Not repeating in any power of two: a lost or doubled block changes the sum.
  const std::string make =
      "openssl enc -aes-128-ctr -nosalt -K 00 -iv 00 -in /dev/zero 2>/dev/null | head -c 1073741824";
  const std::string plain = must_run({.argv = {"sh", "-c", make + " | sha256sum"}});
  Command command = sealed(work_.path(), {"cat"});
  command.argv.insert(command.argv.begin(), {"sh", "-c", make + " | \"$@\" | sha256sum", "sh"});
  const std::string through = must_run(command);
  EXPECT_EQ(through, plain);
}

// As without Belljar (the same script, run both ways).
TEST_F(RunTest, TreatsClosedAndSharedDescriptorsAsWithoutIt) {
  for (const auto& [in, out, text] : std::vector<std::tuple<Stream, Stream, std::string>>{
           {Stream::closed(), Stream::pipe(), "cat; echo $?"},
           {Stream::null(), Stream::closed(), "/bin/echo hi"},
           {Stream::closed(), Stream::closed(), "exit 3"},
           {Stream::null(), Stream::pipe(), "cat; echo $?"},
       }) {
    Command with = sealed_script(work_.path(), text);
    Command without{.argv = {"/bin/sh", "-c", text}, .cwd = work_.path()};
    with.in = without.in = in;
    with.out = without.out = out;
    const Output one = run(with);
    const Output other = run(without);
    EXPECT_EQ(one.code, other.code) << text << one.err;
    EXPECT_EQ(one.out, other.out) << text;
  }
}

TEST_F(RunTest, WritesErrorsInOrderIntoOnePipe) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const base::Fd read_end(pipe[0]);
  base::Fd write_end(pipe[1]);
  Command command = sealed_script(work_.path(), "for i in 1 2 3; do echo out$i; echo err$i >&2; done");
  command.out = command.err = Stream::from(write_end.get());
  EXPECT_EQ(run(command).code, 0);
  write_end.reset();
  std::array<char, 256> buffer{};
  const ssize_t got = ::read(read_end.get(), buffer.data(), buffer.size());
  EXPECT_EQ(std::string(buffer.data(), static_cast<size_t>(got)), "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
}

TEST_F(RunTest, AReaderThatGoesEndsTheWriter) {
  Command command = sealed(work_.path(), {"yes"});
  command.argv.insert(command.argv.begin(), {"bash", "-c", "\"$@\" | head -n 1; echo ${PIPESTATUS[0]}", "bash"});
  const Output output = run(command);
  EXPECT_EQ(output.out, "y\n141\n") << output.err;
}

TEST_F(RunTest, InheritsNothingElse) {
  const base::Fd secret(::open("/etc/hostname", O_RDONLY | O_CLOEXEC));
  Command command = sealed_script(work_.path(), "ls /proc/self/fd");
  command.before_exec = [&] { return ::dup2(secret.get(), 9) == 9 && ::dup2(secret.get(), 200) == 200; };
  const Output output = run(command);
  EXPECT_EQ(output.out, "0\n1\n2\n3\n") << output.err;  // 3 is ls reading the folder
}

TEST_F(RunTest, PassesSignalsOn) {
  Process process(sealed_script(work_.path(), "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done"));
  ASSERT_EQ(process.read_line(), "ready");
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 9);
}

TEST_F(RunTest, ASignalThatTheCommandDoesNotCatchEndsItAsWithoutBelljar) {
  Process process(sealed_script(work_.path(), "echo ready; sleep 100 & wait"));
  ASSERT_EQ(process.read_line(), "ready");
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
}

// ---- options ----

TEST_F(RunTest, StartsWhereItIsTold) {
  std::filesystem::create_directory(work_ / "below");
  EXPECT_EQ(script("pwd").out, work_.path() + "\n");
  EXPECT_EQ(script("pwd", {"--chdir", work_ / "below"}).out, work_ / "below" + "\n");
  EXPECT_EQ(script("pwd", {"--chdir", "/usr"}).out, "/usr\n");
}

TEST_F(RunTest, ReadsWritesAndHidesWhatItIsTold) {
  const TempDir other;
  write_file(other / "read/file", "text");
  write_file(other / "write/file", "text");
  write_file(other / "neither/file", "text");
  write_file(work_ / "hidden/file", "text");
  write_file(work_ / "hidden-file", "text");
  const Output output = script("cat " + other / "read/file" + "; echo x >" + other / "read/new" + "; echo new >" +
                                   other / "write/new" + "; ls " + other / "neither" + "; cat hidden/file hidden-file",
                               {"--read", other / "read", "--write", other / "write", "--hide", work_ / "hidden",
                                "--hide", work_ / "hidden-file"});
  EXPECT_EQ(output.out, "text");
  EXPECT_FALSE(std::filesystem::exists(other / "read/new"));
  EXPECT_EQ(read_text(other / "write/new"), "new\n");
  EXPECT_EQ(read_text(work_ / "hidden/file"), "text");
}

TEST_F(RunTest, PassesOnlyHarmlessVariablesAndThoseAskedFor) {
  Command command = sealed(work_.path(), {"env"}, {"--env", "ASKED", "--env", "SET=a=b"});
  command.env = {{"ASKED", "asked"},        {"UNASKED", "x"},
                 {"LD_LIBRARY_PATH", "/x"}, {"BASH_ENV", "/x"},
                 {"NODE_OPTIONS", "-x"},    {"GIT_DIR", "/x"},
                 {"PYTHONPATH", "/x"},      {"SSH_AUTH_SOCK", "/x"},
                 {"GITHUB_TOKEN", "x"},     {"AWS_SECRET_ACCESS_KEY", "x"},
                 {"LANG", "C.UTF-8"},       {"TERM", "xterm-test"}};
  const std::string out = "\n" + run(command).out;
  for (const char* there : {"\nASKED=asked\n", "\nSET=a=b\n", "\nLANG=C.UTF-8\n", "\nTERM=xterm-test\n",
                            "\nHTTPS_PROXY=http", "\nhttps_proxy=http", "\nHOME=", "\nPATH="}) {
    EXPECT_THAT(out, HasSubstr(there));
  }
  for (const char* gone : {"\nUNASKED=", "\nLD_LIBRARY_PATH=", "\nBASH_ENV=", "\nGIT_DIR=", "\nPYTHONPATH=",
                           "\nSSH_AUTH_SOCK=", "\nGITHUB_TOKEN=", "\nAWS_SECRET_ACCESS_KEY="}) {
    EXPECT_THAT(out, ::testing::Not(HasSubstr(gone)));
  }
  EXPECT_THAT(out, ::testing::Not(HasSubstr("NODE_OPTIONS=-x")));
}

TEST_F(RunTest, WritesTheSettlement) {
  const TempDir other;
  script("exit 6", {"--report", other / "report.json"});
  const auto report = nlohmann::json::parse(read_text(other / "report.json"), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_TRUE(report.contains("denials")) << report;
  EXPECT_THAT(report.dump(), HasSubstr("6"));
}

TEST_F(RunTest, WritesTheSettlementWhateverSignalsCome) {
  const TempDir other;
  // So that there is something to look through when the command has ended.
  Process process(sealed_script(work_.path(), "trap '' TERM; mkdir d; cd d; seq 3000 | xargs touch; echo done",
                                {"--report", other / "report.json"}));
  ASSERT_EQ(process.read_line(), "done");
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(process.pid()), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0) {
    process.signal(SIGTERM);
    ::usleep(200);
  }
  (void)process.wait();
  const auto report = nlohmann::json::parse(read_text(other / "report.json"), nullptr, false);
  ASSERT_TRUE(report.is_object()) << "the report is empty";
  EXPECT_EQ(report["exit"]["code"], 0) << report;
}

TEST_F(RunTest, SaysWhenTheReportWasTakenAway) {
  const Output output = script("rm end.json; echo '{}' >end.json", {"--report", work_ / "end.json"});
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("end.json': the file was removed meanwhile"));
}

TEST_F(RunTest, FollowsNoLinkToTheReport) {
  const TempDir other;
  write_file(other / "precious", "as it was");
  ASSERT_EQ(::symlink((other / "precious").c_str(), (other / "report.json").c_str()), 0);
  const Output output = script("touch ran", {"--report", other / "report.json"});
  EXPECT_EQ(output.code, 125);
  EXPECT_EQ(read_text(other / "precious"), "as it was");
  EXPECT_FALSE(std::filesystem::exists(work_ / "ran"));
}

// ---- refusals: nothing runs ----

struct Refusal {
  std::vector<std::string> options;
  std::string message;
};

TEST_F(RunTest, RefusesWhatItDoesNotUnderstand) {
  for (const auto& [options, message] : std::vector<Refusal>{
           {{"--alow-host", "a.test"}, "--allow-host"},
           {{"--net", "maybe"}, "maybe"},
           {{"--mode", "jial"}, "jail"},
           {{"--allow-host", "http://a.test/"}, "http://a.test/"},
           {{"--allow-host", "a.test:99999"}, "99999"},
           {{"--timeout", "soon"}, "soon"},
           {{"--timeout", "0s"}, "0s"},
           {{"--read", "/no/such/path"}, "/no/such/path"},
           {{"--policy", "/no/such/policy.toml"}, "/no/such/policy.toml"},
           {{"--env", "=x"}, "--env"},
           {{"--chdir", "/no/such/folder"}, "/no/such/folder"},
           {{"--report", "/no/such/folder/report"}, "/no/such/folder/report"},
       }) {
    const Output output = script("touch ran", options);
    EXPECT_EQ(output.code, 125) << options[1];
    EXPECT_THAT(output.err, StartsWith("belljar: "));
    EXPECT_THAT(output.err, HasSubstr(message));
    EXPECT_EQ(output.out, "");
    EXPECT_FALSE(std::filesystem::exists(work_ / "ran")) << options[1];
  }
}

TEST_F(RunTest, RefusesAMissingCommandAndValue) {
  EXPECT_EQ(run({.argv = {belljar_program(), "run"}, .cwd = work_.path()}).code, 125);
  EXPECT_EQ(run({.argv = {belljar_program(), "run", "--net"}, .cwd = work_.path()}).code, 125);
  EXPECT_EQ(run({.argv = {belljar_program(), "rnu", "--", "true"}, .cwd = work_.path()}).code, 125);
}

TEST_F(RunTest, NoTerminalEscapeOfAHostileNameReachesTheScreen) {
  const Output output = run(sealed(work_.path(), {"\x1b]0;owned\x07"}));
  EXPECT_EQ(output.code, 127);
  EXPECT_THAT(output.err, ::testing::Not(HasSubstr("\x1b")));
}

TEST_F(RunTest, LoadsNoThirdPartyLibrary) {
  const Output output = run({.argv = {"ldd", belljar_program()}});
  EXPECT_THAT(output.out,
              ::testing::Not(::testing::ContainsRegex("boost|ssl|crypto|seccomp|libcap|toml|sqlite|cares")));
  EXPECT_THAT(run({.argv = {belljar_program(), "--version"}}).out, StartsWith("belljar "));
}

}  // namespace
}  // namespace belljar::testing
