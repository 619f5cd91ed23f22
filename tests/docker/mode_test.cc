// `belljar run --mode docker`, with the built programs and a real engine.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "docker/world.h"
#include "support/belljar.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Root's guest works as the owner of the folder, who may not be root.
constexpr uid_t kOwner = 23456;

class ModeTest : public ::testing::Test {
 protected:
  ModeTest() {
    if (::geteuid() == 0) (void)!::chown(work_.path().c_str(), kOwner, kOwner);
    std::filesystem::create_directory(state_ / "home");
  }
  ~ModeTest() override { remove_session_containers(); }

  static base::Deadline soon() { return base::Deadline::after(std::chrono::seconds(60)); }
  static const tiers::docker::Engine& engine() { return DockerWorld::get().engine(); }
  static uid_t guest() { return ::geteuid() == 0 ? kOwner : ::geteuid(); }

  Command in_container(const std::string& script, std::vector<std::string> options = {}) {
    options.insert(options.begin(),
                   {"--mode", "docker", "--docker-image", DockerWorld::kImage, "--report", state_ / "end.json"});
    return with_engine(sealed_script(work_.path(), script, options));
  }
  Command with_engine(Command command) {
    command.env["DOCKER_HOST"] = "unix://" + DockerWorld::get().socket();
    command.env["XDG_STATE_HOME"] = state_ / "state";
    command.env["HOME"] = state_ / "home";
    return command;
  }
  Output inside(const std::string& script, const std::vector<std::string>& options = {}) {
    return run(in_container(script, options));
  }
  json settlement() { return json::parse(read_text(state_ / "end.json"), nullptr, false); }

  // Folders by which containers were met.
  std::vector<std::string> meetings() {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(state_ / "state/belljar/containers", none)) {
      out.push_back(entry.path());
    }
    return out;
  }

  const TempDir work_;
  const TempDir state_;
};

TEST_F(ModeTest, RunsTheCommandInTheImageAndLeavesNothing) {
  Command command = in_container("cat; echo err >&2; pwd; cat /etc/passwd | grep -c root; exit 7");
  command.in = Stream::pipe("input\n");
  const Output output = run(command);
  EXPECT_EQ(output.code, 7) << output.err;
  EXPECT_EQ(output.out, "input\n" + work_.path() + "\n1\n");
  EXPECT_THAT(output.err, HasSubstr("err\n"));
  const json end = settlement();
  EXPECT_EQ(end["tier"], "docker");
  EXPECT_EQ(end["exit"]["reason"], "exited");
  EXPECT_THAT(end["unreleased"], IsEmpty());
  EXPECT_FALSE(end["probe"].is_null());
  EXPECT_THAT(session_containers(), IsEmpty());
  EXPECT_THAT(meetings(), IsEmpty());
}

TEST_F(ModeTest, IsTheOwnerOfTheWorkFolderAndSoAreItsFiles) {
  const Output output = inside("id -u; id -g; id -G; echo $HOME; touch made; stat -c %u made");
  const std::string id = std::to_string(guest());
  EXPECT_EQ(output.out, id + "\n" + id + "\n" + id + "\n" + (state_ / "home") + "\n" + id + "\n") << output.err;
  struct stat found{};
  ASSERT_EQ(::stat((work_ / "made").c_str(), &found), 0);
  EXPECT_EQ(found.st_uid, guest());
}

// Judged from the inside.
TEST_F(ModeTest, HasNoPrivilegeAndNothingOfTheHost) {
  const Output output = inside(
      "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; touch /new 2>&1; touch /etc/new 2>&1;"
      "ls /sys/class/net | grep -v lo; test -e /run/docker.sock || test -e /var/run/docker.sock || echo no socket;"
      "ps -o pid | wc -l; echo > /run/new 2>&1; ls $HOME | wc -l; test -d " +
      (state_ / "state") + " && echo state");
  EXPECT_THAT(output.out, AllOf(HasSubstr("CapEff:\t0000000000000000"), HasSubstr("CapBnd:\t0000000000000000"),
                                HasSubstr("NoNewPrivs:\t1"), HasSubstr("Seccomp:\t2"),
                                HasSubstr("/new: Read-only file system"), HasSubstr("/etc/new: Read-only file system"),
                                HasSubstr("no socket"), Not(HasSubstr("eth0")), Not(HasSubstr("state"))));
}

TEST_F(ModeTest, ScratchIsBounded) {
  const Output output = inside(
      "dd if=/dev/zero of=/tmp/big bs=1M count=100 2>&1 | tail -1; stat -c %s /tmp/big;"
      "i=0; while touch /var/tmp/$i 2>/dev/null; do i=$((i+1)); done; echo $i",
      {"--policy", [&] {
         write_file(state_ / "p.toml", "[limits]\nscratch_bytes = \"16MiB\"\nscratch_files = 800\n");
         return state_ / "p.toml";
       }()});
  EXPECT_THAT(output.out, HasSubstr("\n4194304\n")) << output.err;
  EXPECT_THAT(output.out, HasSubstr("\n99\n"));
}

TEST_F(ModeTest, KeepsWhatProgramsObeyReadOnly) {
  must_run({.argv = {"git", "init", "-q", work_.path()}});
  write_file(work_ / ".vscode/tasks.json", "{}");
  if (::geteuid() == 0) must_run({.argv = {"chown", "-R", std::to_string(kOwner), work_.path()}});
  const Output output = inside("echo x > .git/config; echo x > .vscode/tasks.json; echo x > file && echo wrote");
  EXPECT_THAT(output.out, HasSubstr("wrote"));
  EXPECT_THAT(output.err, HasSubstr("Read-only file system"));
  EXPECT_EQ(read_text(work_ / ".vscode/tasks.json"), "{}");
  EXPECT_THAT(session_containers(), IsEmpty());
}

class Server {
 public:
  explicit Server(const std::string& folder)
      : process_({.argv = {"python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"}, .cwd = folder}) {
    const std::string line = process_.read_line().value_or("");
    const size_t at = line.find(" port ");
    if (at != std::string::npos) port_ = std::to_string(std::stoi(line.substr(at + 6)));
  }
  [[nodiscard]] const std::string& port() const { return port_; }

 private:
  Process process_;
  std::string port_;
};

// The one way out is the launcher's proxy, and it knows the rules.
TEST_F(ModeTest, ReachesWhatIsAllowedAndNothingElse) {
  const TempDir served;
  write_file(served / "file", "from the host\n");
  const Server server(served.path());
  ASSERT_FALSE(server.port().empty());
  const std::string script = "wget -q -O - http://host.belljar:" + server.port() + "/file; echo $?;" +
                             "printf 'GET http://denied.example/ HTTP/1.1\\r\\nHost: denied.example\\r\\n\\r\\n' |" +
                             "nc 127.0.0.1 61080 | grep -c '403 '; nc 127.0.0.1 " + server.port() +
                             " </dev/null 2>&1; echo $?";
  const Output allowed = inside(script, {"--host-port", server.port()});
  EXPECT_THAT(allowed.out, StartsWith("from the host\n0\n1\nnc:")) << allowed.err;
  EXPECT_THAT(allowed.err, HasSubstr("refused denied.example:80"));
  EXPECT_EQ(settlement()["denials"][0]["host"], "denied.example");
  const Output denied = inside(script);
  EXPECT_THAT(denied.out, StartsWith("1\n1\nnc:"));
}

TEST_F(ModeTest, HasTheEnginesBridgeWithNetworkAllow) {
  const Output output = inside("ls /sys/class/net", {"--net", "allow"});
  EXPECT_THAT(output.out, HasSubstr("eth0")) << output.err;
  EXPECT_THAT(output.err, HasSubstr("network = allow: the engine's bridge network"));
}

// What the agent gets as a secret goes by the launcher's own channel: the engine has nothing of it to show.
TEST_F(ModeTest, TheEngineIsToldNoSecret) {
  Command command = in_container("echo $TOKEN; sleep 100", {"--env", "TOKEN=hush-hush"});
  Process process(command);
  ASSERT_EQ(process.read_line(), "hush-hush");
  const auto found = session_containers();
  ASSERT_THAT(found, SizeIs(1));
  const auto shown = require(engine().ask("GET", "/containers/" + found.front().id + "/json", soon()), "", "");
  ASSERT_TRUE(shown.has_value());
  EXPECT_THAT(shown->body, Not(HasSubstr("hush")));
  EXPECT_THAT(shown->body, HasSubstr("belljar.session"));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 143);
}

TEST_F(ModeTest, EndsAtItsDeadline) {
  const Output output = inside("trap '' TERM; sleep 1000 & wait; sleep 1000", {"--timeout", "5s"});
  EXPECT_EQ(output.code, 124) << output.err;
  EXPECT_EQ(settlement()["exit"]["reason"], "deadline");
  EXPECT_THAT(session_containers(), IsEmpty());
}

TEST_F(ModeTest, SignalsReachTheCommand) {
  Process process(in_container("trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done"));
  ASSERT_EQ(process.read_line(), "ready");
  process.signal(SIGUSR1);
  EXPECT_EQ(process.read_line(), "got");
  EXPECT_EQ(process.wait().code, 9);
}

// The caller's terminal stays outside: the guest's is one of the container's own, by way of the launcher.
TEST_F(ModeTest, HasATerminalOfItsOwn) {
  Command command = in_container("test -t 0 && test -t 1 && echo a $(readlink /proc/self/fd/0 </dev/null); exit 5");
  command.argv.insert(command.argv.begin(), {"python3", "-c",
                                             "import pty, os, sys\n"
                                             "sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"});
  command.in = Stream::pipe();
  const Output output = run(command);
  EXPECT_EQ(output.code, 5) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("a "));
}

// An agent's own files: what it may read, what it leaves, and what of that the host takes back.
TEST_F(ModeTest, GivesAnAgentItsFilesAndTakesItsLoginBack) {
  write_file(state_ / "home/.claude/settings.json", "{\"from\":\"host\"}");
  write_file(state_ / "home/.claude/.credentials.json", "{\"login\":1}");
  std::filesystem::create_directories(state_ / "home/.claude/todos");
  if (::geteuid() == 0) must_run({.argv = {"chown", "-R", std::to_string(kOwner), state_ / "home"}});
  const Output output = inside(
      "cat ~/.claude/settings.json; echo x > ~/.claude/settings.json; cat ~/.claude/.credentials.json;"
      "echo '{\"login\":2}' > ~/.claude/.credentials.json; echo t > ~/.claude/todos/one; echo n > ~/.claude/new",
      {"--agent", "claude"});
  EXPECT_THAT(output.out, StartsWith("{\"from\":\"host\"}{\"login\":1}")) << output.err;
  EXPECT_THAT(output.err, HasSubstr("Read-only file system"));
  EXPECT_EQ(read_text(state_ / "home/.claude/settings.json"), "{\"from\":\"host\"}");
  EXPECT_EQ(read_text(state_ / "home/.claude/.credentials.json"), "{\"login\":2}\n");
  EXPECT_EQ(read_text(state_ / "home/.claude/todos/one"), "t\n");
  EXPECT_FALSE(std::filesystem::exists(state_ / "home/.claude/new"));
  EXPECT_THAT(settlement()["unreleased"], IsEmpty());
}

// The settler removes the container of a launcher that was killed.
TEST_F(ModeTest, LeavesNothingWhenTheLauncherIsKilled) {
  Process process(in_container("echo ready; sleep 1000"));
  ASSERT_EQ(process.read_line(), "ready");
  ASSERT_THAT(session_containers(), SizeIs(1));
  process.signal(SIGKILL);
  EXPECT_TRUE(eventually([] { return session_containers().empty(); }, std::chrono::seconds(30)));
  EXPECT_TRUE(eventually([&] { return meetings().empty(); }));
}

// And `belljar recover` that of a launcher and a settler that were both killed; only that.
TEST_F(ModeTest, RecoverRemovesWhatKilledProcessesLeft) {
  const std::string image = DockerWorld::get().image_id();
  const auto other = require(
      engine().post("/containers/create",
                    R"({"Image":")" + image + R"(","Cmd":["true"],"Labels":{"belljar.session":"0000000000000000"}})",
                    soon()),
      "create", "");
  ASSERT_TRUE(other.has_value());
  Process process(in_container("echo ready; sleep 1000"));
  ASSERT_EQ(process.read_line(), "ready");
  ASSERT_THAT(session_containers(), SizeIs(2));
  // The settler is the launcher's child.
  const std::string children =
      "/proc/" + std::to_string(process.pid()) + "/task/" + std::to_string(process.pid()) + "/children";
  const std::string settler = read_text(children);
  ASSERT_FALSE(settler.empty());
  ASSERT_EQ(::kill(std::stoi(settler), SIGSTOP), 0);
  process.signal(SIGKILL);
  ASSERT_EQ(::kill(std::stoi(settler), SIGKILL), 0);
  // Once both have really ended: until then the session counts as running, and is left alone.
  EXPECT_TRUE(eventually([&] {
    const Output output = run(with_engine({.argv = {belljar_program(), "recover"}, .cwd = work_.path()}));
    EXPECT_EQ(output.code, 0) << output.err;
    return session_containers().size() == 1;
  }));
  const auto found = session_containers();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.front().labels.at("belljar.session"), "0000000000000000") << "not ours";
  EXPECT_THAT(meetings(), IsEmpty());
  EXPECT_EQ(run(with_engine({.argv = {belljar_program(), "recover"}, .cwd = work_.path()})).code, 0);
}

TEST_F(ModeTest, SaysWhatItCannotDo) {
  const auto refused = [&](Command command) {
    const Output output = run(command);
    EXPECT_EQ(output.code, 125);
    EXPECT_THAT(output.out, Not(HasSubstr("ran")));
    return output.err;
  };
  EXPECT_THAT(refused(with_engine(
                  sealed_script(work_.path(), "echo ran", {"--mode", "docker", "--docker-image", "no-such:image"}))),
              HasSubstr("does not have it, refusing (fetch it first: docker pull)"));
  Command nowhere = in_container("echo ran");
  nowhere.env["DOCKER_HOST"] = "unix:///nonexistent/engine.sock";
  EXPECT_THAT(refused(nowhere), HasSubstr("the container engine was not reached"));
  nowhere.env["DOCKER_HOST"] = "tcp://127.0.0.1:1";
  EXPECT_THAT(refused(nowhere), HasSubstr("DOCKER_HOST 'tcp://127.0.0.1:1': it is no socket of this host"));
  EXPECT_THAT(refused(in_container("echo ran", {"--cpu", "100000%"})), HasSubstr("the container engine refused"));
  write_file(state_ / "p.toml", "[limits]\nprocesses = 10\n");
  EXPECT_THAT(refused(in_container("echo ran", {"--policy", state_ / "p.toml"})), HasSubstr("say limits.pids"));
  write_file(state_ / "p.toml", "[isolation]\ntransparent = \"required\"\n");
  EXPECT_THAT(refused(in_container("echo ran", {"--policy", state_ / "p.toml"})), HasSubstr("transparent"));
  EXPECT_THAT(session_containers(), IsEmpty());
  EXPECT_THAT(meetings(), IsEmpty());
  EXPECT_EQ(inside("no-such-command").code, 127);
  EXPECT_EQ(run(with_engine(sealed(work_.path(), {"no-such-command"},
                                   {"--mode", "docker", "--docker-image", DockerWorld::kImage})))
                .code,
            127);
}

TEST_F(ModeTest, HoldsItsLimits) {
  const Output output = inside("i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done; echo $i", {"--pids", "20"});
  EXPECT_THAT(output.err, HasSubstr("fork")) << output.out;
  // Those that nobody names leave an agent the room that it needs.
  EXPECT_EQ(inside("dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null; echo ended $?").out, "ended 0\n");
  const Output memory = inside("dd if=/dev/zero of=/dev/null bs=200M count=1; echo ended $?", {"--memory", "32MiB"});
  EXPECT_THAT(memory.out, HasSubstr("ended 137")) << memory.err;
}

TEST_F(ModeTest, PlanAndProbeTellOfTheContainer) {
  const std::vector<std::string> mode{"--mode", "docker", "--docker-image", DockerWorld::kImage};
  std::vector<std::string> plan{belljar_program(), "plan", "--json"};
  plan.insert(plan.end(), mode.begin(), mode.end());
  plan.insert(plan.end(), {"--", "id"});
  const Output planned = run(with_engine({.argv = plan, .cwd = work_.path()}));
  const json told = json::parse(planned.out, nullptr, false);
  EXPECT_EQ(told["container"]["image_id"], DockerWorld::get().image_id()) << planned.err;
  std::vector<std::string> probe{belljar_program(), "probe", "--json"};
  probe.insert(probe.end(), mode.begin(), mode.end());
  const Output proved = run(with_engine({.argv = probe, .cwd = work_.path()}));
  EXPECT_EQ(proved.code, 0) << proved.err;
  EXPECT_EQ(json::parse(proved.out, nullptr, false)["tier"], "docker");
  EXPECT_THAT(session_containers(), IsEmpty());
}

}  // namespace
}  // namespace belljar::testing
