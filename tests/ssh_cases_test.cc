// What users of sandboxes really hit (shared/cases/host.md), on a target. The numbers are that page's.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/belljar.h"
#include "support/everything.h"
#include "support/git_repository.h"
#include "support/seat.h"
#include "support/ssh_target.h"
#include "support/tls_host.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SshCase : public SshTest {
 protected:
  // A script of the person's shell, here, as they would type it; `belljar` is the program.
  [[nodiscard]] Command shell(const std::string& script) const {
    Command command = belljar({"true"});
    command.argv = {"/bin/bash", "--norc", "--noprofile", "-c",
                    "belljar() { " + (near_ / "programs/belljar") + " \"$@\"; }\n" + script};
    return command;
  }
  [[nodiscard]] nlohmann::json report() const {
    return nlohmann::json::parse(read_text(near_ / "end.json"), nullptr, false);
  }
};

// ---- H2, H7 ----

TEST_F(SshCase, TheLoopbackIsUp) {
  const Output output = run(
      there("python3 -c \"import socket\nfor family, ip in ((2, '127.0.0.1'), (10, '::1')):\n"
            "  s = socket.create_server((ip, 0), family=family); c = socket.create_connection(s.getsockname()[:2]); "
            "print(ip)\"; cat /etc/resolv.conf"));
  EXPECT_THAT(output.out, ::testing::StartsWith("127.0.0.1\n::1\n")) << output.err;
  EXPECT_THAT(output.out, HasSubstr("nameserver 127.0.0.1"));
}

// ---- H9, H10, H11, H12 ----

TEST_F(SshCase, ARepositoryIsAsItWasAlsoWhenTheLinkIsKilled) {
  repository(work_);
  fs::create_directory(work_ + "/shared");
  fs::remove_all(work_ + "/.git/hooks");
  fs::create_directory_symlink("../shared", work_ + "/.git/hooks");
  fs::create_symlink("nowhere", work_ + "/.envrc");
  git(work_, {"add", "."});
  git(work_, {"commit", "-q", "-m", "links"});
  const std::string evil =
      "git status --porcelain; echo evil >.git/hooks/pre-commit; echo evil >shared/pre-commit; echo evil >.envrc; "
      "echo evil >nowhere; rm -f nowhere; mkdir -p .vscode && echo evil >.vscode/tasks.json; true";
  const Output output = run(there(evil));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "");
  EXPECT_EQ(git(work_, {"status", "--porcelain"}), "");
  EXPECT_TRUE(fs::is_empty(work_ + "/shared"));
  Process running(there(evil + "; echo started; exec sleep 600 # " + kMarker));
  ASSERT_EQ(running.read_line(), "started");
  running.signal(SIGKILL);
  (void)running.wait();
  EXPECT_TRUE(eventually([&] { return left().empty() && !fs::exists(work_ + "/.vscode"); }, std::chrono::seconds(20)));
  EXPECT_EQ(git(work_, {"status", "--porcelain"}), "");
  EXPECT_TRUE(fs::is_empty(work_ + "/shared"));
}

TEST_F(SshCase, GitWorksInAWorktreeASubmoduleAndAShallowClone) {
  const std::string home = hosts_.home();
  repository(home + "/main");
  git(home + "/main", {"worktree", "add", "-q", home + "/linked"});
  git(home, {"clone", "-q", "--depth", "1", "file://" + home + "/main", "shallow"});
  repository(home + "/outer");
  git(home + "/outer", {"submodule", "add", "-q", home + "/main", "sub"});
  for (const char* folder : {"/linked", "/shallow", "/outer", "/outer/sub"}) {
    const std::string script = "git status --short --branch && git log --oneline";
    const Output output = run(there(script, {"--folder", home + folder}));
    EXPECT_EQ(output.code, 0) << folder << output.err;
    EXPECT_EQ(output.out, must_run({.argv = {"sh", "-c", script}, .cwd = home + folder})) << folder;
  }
  const Output commit = run(there("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m by-the-agent",
                                  {"--folder", home + "/linked", "--git", "write"}));
  EXPECT_EQ(commit.code, 0) << commit.err;
  EXPECT_THAT(git(home + "/linked", {"log", "--oneline"}), HasSubstr("by-the-agent"));
}

// ---- H13 ----

TEST_F(SshCase, DatabasesLocksAndLinksWorkInTheWorkFolder) {
  const Output output =
      run(there("set -e; python3 -c \"import sqlite3; c = sqlite3.connect('db'); c.execute('pragma journal_mode=wal'); "
                "c.execute('create table t(x)'); c.execute('insert into t values (1)'); c.commit(); "
                "print(c.execute('select count(*) from t').fetchone()[0])\"; "
                "flock lock true; mkdir a b; echo x >a/f; mv a/f b/g; ln b/g a/h; mv b c; cat a/h"));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "1\nx\n");
}

// ---- H14 ----

TEST_F(SshCase, SuspendsAndContinuesUnderAShell) {
  Seat seat;
  Command person = belljar({"true"});
  person.argv = {"/bin/bash", "--norc", "--noprofile", "-i"};
  person.env["PS1"] = "prompt> ";
  person.env["HISTFILE"] = "/dev/null";
  seat.start(person);
  ASSERT_TRUE(seat.shows("prompt> "));
  const termios before = seat.modes();
  seat.type((near_ / "programs/belljar") + " run --target ssh:there -- sh -c 'echo rea\"\"dy; exec cat'\r");
  ASSERT_TRUE(seat.shows("ready\r\n"));
  seat.type("hello\r");
  ASSERT_TRUE(seat.shows("hello\r\nhello"));
  for (const char* word : {"again", "once more"}) {
    seat.type("\x1a");
    ASSERT_TRUE(seat.shows("Stopped"));
    ASSERT_TRUE(seat.shows("prompt> "));
    // The shell's own modes, not those of the session.
    EXPECT_EQ(seat.modes().c_oflag, before.c_oflag);
    seat.type("fg\r");
    ASSERT_TRUE(seat.shows("exec cat"));
    seat.type(std::string(word) + "\r");
    ASSERT_TRUE(seat.shows(std::string(word) + "\r\n" + word));
  }
  seat.type("\x04");
  ASSERT_TRUE(seat.shows("prompt> "));
  seat.type("exit 3\r");
  EXPECT_EQ(seat.process().wait().code, 3);
}

TEST_F(SshCase, KeysReachTheCommandAndNothingIsTypedForIt) {
  {
    Seat seat;
    seat.start(there("trap 'echo interrupted; exit 7' INT; echo ready; sleep 30; sleep 30"));
    ASSERT_TRUE(seat.shows("ready"));
    seat.type("\x03");
    EXPECT_TRUE(seat.shows("interrupted"));
    EXPECT_EQ(seat.process().wait().code, 7);
  }
  {
    Seat seat;
    seat.start(there("echo ready; exec sleep 30"));
    ASSERT_TRUE(seat.shows("ready"));
    seat.type("\x1c");
    EXPECT_EQ(seat.process().wait().code, 128 + SIGQUIT);
  }
  Seat seat;
  // 0x5412 is TIOCSTI; 1 is EPERM.
  seat.start(there("exec perl -e '$c = q(x); print ioctl(STDIN, 0x5412, $c) ? q(typed) : q(refused ) . ($! + 0)'"));
  EXPECT_TRUE(seat.shows("refused 1"));
  EXPECT_EQ(seat.process().wait().code, 0);
}

TEST_F(SshCase, TheTerminalIsAsItWasWhenBelljarIsKilled) {
  Seat seat;
  const termios before = seat.modes();
  seat.start(there("printf '\\033[?1000h'; echo ready; exec sleep 600 # " + kMarker));
  ASSERT_TRUE(seat.shows("ready"));
  ASSERT_NE(seat.modes().c_lflag, before.c_lflag) << "raw while it runs, else this test shows nothing";
  seat.process().signal(SIGKILL);
  (void)seat.process().wait();
  EXPECT_TRUE(eventually([&] { return seat.modes().c_lflag == before.c_lflag; }));
  EXPECT_TRUE(eventually([] { return left().empty(); }, std::chrono::seconds(20)));
}

// ---- H15 ----

TEST_F(SshCase, WhatTheCommandLeavesEndsWithIt) {
  const std::string sleep = "sleep 600 # " + kMarker;
  const Output output = run(there("(setsid sh -c \"trap '' TERM HUP; while :; do sleep 1; done # " + kMarker +
                                  "\" &) ; sh -c '" + sleep + "; :' & kill -STOP $!; exit 9"));
  EXPECT_EQ(output.code, 9) << output.err;
  EXPECT_THAT(left(), IsEmpty());
}

// ---- H16 ----

TEST_F(SshCase, StreamsAreAsWithoutBelljar) {
  std::string bytes;
  for (int i = 0; i < 256 * 1024; ++i) bytes.push_back(static_cast<char>((i * 131 + i / 257) % 256));
  Command command = there("cat >copy; cat copy; cat copy >&2");
  command.in = Stream::pipe(bytes);
  const Output both = run(command);
  EXPECT_TRUE(both.out == bytes);
  EXPECT_TRUE(both.err == bytes);
  // Closed ones are closed there too.
  command = there("for f in 0 1 2; do test -e /proc/$$/fd/$f; printf %s $? >>told; done");
  command.in = command.out = Stream::closed();
  EXPECT_EQ(run(command).code, 0);
  EXPECT_EQ(read_text(work_ + "/told"), "110");
  // Into one pipe, in order.
  EXPECT_EQ(
      run(shell("belljar run --target ssh:there -- sh -c 'for i in 1 2 3; do echo o$i; echo e$i >&2; done' 2>&1")).out,
      "o1\ne1\no2\ne2\no3\ne3\n");
  // A reader that goes ends the writer.
  const Output gone = run(shell("belljar run --target ssh:there -- sh -c 'while :; do echo y; done' | head -n 1"));
  EXPECT_EQ(gone.out, "y\n");
}

// ---- H17, H18 ----

TEST_F(SshCase, LanguageTerminalAndMaskTravelAndLongWordsArrive) {
  Command command = there("umask; echo \"$LANG $LC_TIME $TERM $COLORTERM\"");
  command.env["LANG"] = "de_DE.UTF-8";
  command.env["LC_TIME"] = "C";
  command.env["TERM"] = "xterm-kitty";
  command.env["COLORTERM"] = "truecolor";
  command.env["LC_ALL"] = std::nullopt;
  command.before_exec = [then = command.before_exec] {
    ::umask(027);
    return !then || then();
  };
  EXPECT_EQ(run(command).out, "0027\nde_DE.UTF-8 C xterm-kitty truecolor\n");
  std::vector<std::string> words{"run", "--target", "ssh:there", "--", "sh", "-c", "echo $#; echo ${#1}", "sh"};
  words.resize(words.size() + 8000, std::string(100, 'x'));
  EXPECT_EQ(run(belljar(words)).out, "8000\n100\n");
  words.resize(words.size() + 8000, std::string(100, 'x'));
  EXPECT_THAT(run(belljar(words)).err, HasSubstr("command, policy and variables are larger than 1 MiB"));
  const std::string policy = [] {
    std::string out = "[env.set]\n";
    for (int i = 0; i < 10000; ++i) out += "MANY_" + std::to_string(i) + " = \"v\"\n";
    return out;
  }();
  write_file(near_ / "policy.toml", policy);
  EXPECT_EQ(run(there("env | grep -c ^MANY_", {"--policy", near_ / "policy.toml"})).out, "10000\n");
  std::string deep = work_;
  for (int i = 0; i < 300; ++i) deep += "/deep-folder";
  fs::create_directories(deep);
  EXPECT_EQ(run(there("pwd", {"--folder", deep})).out, deep + "\n");
}

// ---- H20 ----

// Among the first ones there, too: each of them finds no programs and copies them.
TEST_F(SshCase, LaunchesInOneFolderAreIndependent) {
  ASSERT_EQ(run(belljar({"target", "check", "ssh:there"})).code, 0);
  std::vector<std::unique_ptr<Process>> all;
  std::vector<base::Fd> inputs;
  for (int i = 0; i < 8; ++i) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const base::Fd input(ends[0]);
    inputs.emplace_back(ends[1]);
    const std::string number = std::to_string(i);
    Command command = there("echo " + number + " >made-" + number + "; echo started; cat; exit " + number);
    command.in = Stream::from(input.get());
    all.push_back(std::make_unique<Process>(command));
  }
  for (const auto& process : all) ASSERT_EQ(process->read_line(), "started");
  inputs.clear();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(all[static_cast<size_t>(i)]->wait().code, i);
    EXPECT_EQ(read_text(work_ + "/made-" + std::to_string(i)), std::to_string(i) + "\n");
  }
}

// ---- H21, H23 ----

TEST_F(SshCase, LimitsAndDeadlineHoldThereAndAreTold) {
  write_file(near_ / "policy.toml", "[limits]\nscratch_bytes = \"4MiB\"\n");
  const Output full = run(there("head -c 8000000 /dev/zero >/tmp/x; ulimit -n; echo on",
                                {"--policy", near_ / "policy.toml", "--report", near_ / "end.json"}));
  EXPECT_THAT(full.err, HasSubstr("No space left"));
  EXPECT_THAT(full.out, HasSubstr("on\n"));
  EXPECT_EQ(report()["limits_hit"][0]["reason"], "no_space") << report().dump();
  const Output late = run(sleeper({"--timeout", "1s", "--report", near_ / "end.json"}));
  EXPECT_EQ(late.code, 124);
  EXPECT_EQ(report()["exit"]["reason"], "deadline");
  EXPECT_THAT(left(), IsEmpty());
}

// ---- H24, H25 ----

TEST_F(SshCase, AnAgentInTheHomeThereIsFoundAndCannotUpdateItself) {
  const std::string home = hosts_.home();
  write_file(home + "/.local/share/claude/versions/1/claude",
             "#!/bin/sh\ncase \"$*\" in *--version*) echo 1.2.3;; *) echo newer >\"$0\" || exit 4;; esac\n");
  fs::permissions(home + "/.local/share/claude/versions/1/claude", fs::perms(0755));
  fs::create_directories(home + "/.local/bin");
  fs::create_symlink("../share/claude/versions/1/claude", home + "/.local/bin/claude");
  write_file(home + "/.ssh/id_ed25519", "secret");
  // As Debian's does; no shell that ssh starts for a command reads it.
  write_file(home + "/.profile", "echo Welcome; PATH=\"$HOME/.local/bin:$PATH\"\n");
  const Output version =
      run(belljar({"run", "--target", "ssh:there", "--agent", "claude", "--", "claude", "--version"}));
  EXPECT_EQ(version.out, "1.2.3\n") << version.code << version.err;
  // Kept here, where it can be started again, and not there too.
  EXPECT_EQ(version.err.find("another like it"), version.err.rfind("another like it")) << version.err;
  const Output update = run(belljar({"run", "--target", "ssh:there", "--agent", "claude", "--", "claude", "update"}));
  EXPECT_EQ(update.code, 4) << update.err;
  EXPECT_THAT(read_text(home + "/.local/share/claude/versions/1/claude"), HasSubstr("1.2.3"));
  EXPECT_EQ(run(there("cat ~/.ssh/id_ed25519 2>/dev/null; ls -A ~ | grep -c ssh")).out, "0\n");
}

// ---- H26 ----

TEST_F(SshCase, APolicyThatTheAgentLeavesCountsForNothing) {
  const std::string wide = "printf '[isolation]\\nnetwork = \"allow\"\\n[env]\\nset = { COLOUR = \"green\" }\\n' ";
  (void)run(there(wide + ">.belljar.toml; mkdir -p ~/.config/belljar; " + wide + ">~/.config/belljar/policy.toml"));
  const Output output = run(there("echo \"[$COLOUR]\"; wc -l </proc/net/dev"));
  EXPECT_EQ(output.out, "[]\n3\n") << output.err;
  EXPECT_THAT(output.err, Not(HasSubstr("weaker")));
}

// ---- TLS in a tunnel ----

TEST_F(SshCase, AHelloMustNameTheHostThatWasAskedFor) {
  const TempDir tls;
  make_certificates(tls.path(), {"near.test"});
  Process server(tls_server(tls.path(), TestHosts::kHost));
  ASSERT_EQ(server.read_line(), "ready");
  const Output output =
      run(there(hellos("near.test", "far.test", true), {"--allow-host", "near.test", "--allow-host", "far.test"}));
  EXPECT_EQ(output.out,
            "connect near.test 200\nsocks near.test 200\ndirect near.test 200\nopenssl 1\n"
            "connect far.test 000\nsocks far.test 000\ndirect far.test 000\nopenssl 0\nopenssl 0\nplain 000\n")
      << output.err;
  EXPECT_THAT(output.err, HasSubstr("refused near.test:443: sni_mismatch"));
  const std::string heard = read_text(tls / "heard");
  EXPECT_THAT(heard, HasSubstr("near.test\n"));
  for (const char* word : {"far", "something", "None"}) EXPECT_THAT(heard, Not(HasSubstr(word)));
}

// ---- hooks ----

// A control host at the person's machine, which speaks TLS as near.test or not at all and says each callback.
class SshHook : public SshCase {
 protected:
  void serve(bool secure) {
    make_certificates(files_.path(), {"near.test"});
    Command service{.argv = {"python3", "-u", "-c",
                             "import http.server as h, ssl, sys\n"
                             "class S(h.BaseHTTPRequestHandler):\n"
                             "  def do_POST(s):\n"
                             "    body = s.rfile.read(int(s.headers['Content-Length'])).decode()\n"
                             "    print(s.client_address[0], s.path, s.headers['Authorization'], body)\n"
                             "    s.send_response(200); s.send_header('Content-Length','2'); s.end_headers()\n"
                             "    s.wfile.write(b'ok')\n"
                             "  def log_message(s, *a): pass\n"
                             "x = h.ThreadingHTTPServer(('45.45.45.1', 443 if sys.argv[1] == '1' else 80), S)\n"
                             "if sys.argv[1] == '1':\n"
                             "  c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('cert.pem', 'key.pem')\n"
                             "  x.socket = c.wrap_socket(x.socket, server_side=True)\n"
                             "print('ready'); x.serve_forever()",
                             secure ? "1" : "0"},
                    .cwd = files_.path()};
    service.err = Stream::null();
    server_ = std::make_unique<Process>(service);
    ASSERT_EQ(server_->read_line(), "ready");
  }
  // The launch's callbacks go to near.test in TLS; `authorities`: what the person's SSL_CERT_FILE is, if anything.
  [[nodiscard]] Command secure(const std::string& script, const std::string& authorities) const {
    Command command = there(script, {"--hook-url", "https://near.test/hook", "--hook-token-env", "CONTROL_TOKEN"});
    command.env["CONTROL_TOKEN"] = kToken;
    command.env["SSL_CERT_FILE"] = authorities.empty() ? std::nullopt : std::optional(authorities);
    return command;
  }
  static constexpr const char* kToken = "tok3n-tok3n-tok3n";
  static constexpr const char* kPost = "curl -s --max-time 20 -w ' %{http_code}\\n' -d event \"$BELLJAR_HOOK_URL\"";
  TempDir files_;
  std::unique_ptr<Process> server_;
};

TEST_F(SshHook, InTlsIsCheckedByTheAuthoritiesThatThePersonNames) {
  serve(true);
  const Output output =
      run(secure(std::string(kPost) + "; env | grep -c -e tok3n -e SSL_CERT; curl -sk -o /dev/null -w '%{http_code}' "
                                      "--max-time 20 -p -d x https://near.test/hook; true",
                 files_ / "ca.pem"));
  EXPECT_EQ(output.out, "ok 200\n0\n000") << output.err;
  EXPECT_EQ(server_->read_line(), "45.45.45.2 /hook Bearer " + std::string(kToken) + " event") << "from the target";
  // They count alone: another authority's certificate is none, whatever the target trusts.
  make_certificates(near_.path(), {"near.test"});
  const Output other = run(secure(kPost, near_ / "ca.pem"));
  EXPECT_THAT(other.out, ::testing::AllOf(HasSubstr("no TLS with the control host"), HasSubstr(" 502\n"))) << other.err;
  const Output missing = run(secure("echo started", near_ / "no-such.pem"));
  EXPECT_EQ(missing.code, 125);
  EXPECT_THAT(missing.err, HasSubstr("no-such.pem"));
  EXPECT_EQ(missing.out, "");
}

TEST_F(SshHook, InTlsIsCheckedByTheTargetsOwnAuthoritiesElse) {
  serve(true);
  EXPECT_THAT(run(secure(kPost, "")).out, HasSubstr(" 502\n"));
  // What the target's ca-certificates are from here on.
  ASSERT_EQ(::mount((files_ / "ca.pem").c_str(), "/etc/ssl/certs/ca-certificates.crt", nullptr, MS_BIND, nullptr), 0);
  const Output output = run(secure(kPost, ""));
  ::umount2("/etc/ssl/certs/ca-certificates.crt", MNT_DETACH);
  EXPECT_EQ(output.out, "ok 200\n") << output.err;
}

TEST_F(SshHook, TheProgramForTlsTravelsWhenItIsNeededAndIsExecutedOnlyAsItWasSent) {
  serve(true);
  ASSERT_EQ(run(there("true")).code, 0);
  ASSERT_EQ(copies().size(), 1U);
  EXPECT_FALSE(fs::exists(copies().front() + "/belljar-tls"));
  ASSERT_EQ(run(secure(kPost, files_ / "ca.pem")).out, "ok 200\n");
  ASSERT_EQ(copies().size(), 2U);
  const std::string with = fs::exists(copies()[0] + "/belljar-tls") ? copies()[0] : copies()[1];
  fs::remove(with + "/belljar-tls");
  write_file(with + "/belljar-tls", "#!/bin/sh\ntouch " + (near_ / "pwned") + "\n");
  fs::permissions(with + "/belljar-tls", fs::perms(0755));
  EXPECT_EQ(run(secure(kPost, files_ / "ca.pem")).out, "ok 200\n");
  EXPECT_FALSE(fs::exists(near_ / "pwned"));
}

TEST_F(SshHook, TheTokenOfASessionIsWrittenHereAndSentFromThere) {
  serve(false);
  const std::string file = near_ / "token";
  write_file(work_ + "/before", "");
  const Output output =
      run(there("belljar notify Stop </dev/null; cat " + file + " 2>&1; " + everything_since("before"),
                {"--hook-url", "http://near.test/hook", "--hook-token-file", file, "--report", near_ / "end.json"}));
  const std::string token = read_text(file).substr(0, 64);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(server_->read_line(), "45.45.45.2 /hook Bearer " + token + " {\"event\":\"Stop\"}") << output.err;
  for (const char* text : {"BELLJAR_HOOK_URL=", "No such file", kFoundEverywhere}) {
    EXPECT_TRUE(output.out.contains(text)) << text << output.err;
  }
  for (const std::string& text : {output.out, output.err, read_text(near_ / "end.json")}) {
    EXPECT_FALSE(text.contains(token));
  }
  EXPECT_EQ(run(belljar({"plan", "--target", "ssh:there", "--hook-url", "http://near.test/hook", "--hook-token-file",
                         file, "--", "true"}))
                .code,
            0);
  EXPECT_EQ(read_text(file), token + "\n") << "a plan makes none";
}

TEST_F(SshHook, AndItsNotifyWorkThere) {
  serve(false);
  Command command = there("belljar notify Stop </dev/null; echo; env | grep -c tok3n",
                          {"--hook-url", "http://near.test/hook", "--hook-token-env", "CONTROL_TOKEN"});
  command.env["CONTROL_TOKEN"] = kToken;
  const Output output = run(command);
  EXPECT_EQ(output.out, "ok\n0\n") << output.err;
  EXPECT_EQ(server_->read_line(), "45.45.45.2 /hook Bearer " + std::string(kToken) + " {\"event\":\"Stop\"}");
  // Another file in its place is noticed, like the other programs.
  ASSERT_EQ(copies().size(), 1U);
  const std::string notify = copies().front() + "/belljar-notify";
  fs::remove(notify);
  write_file(notify, "#!/bin/sh\necho evil\n");
  fs::permissions(notify, fs::perms(0755));
  EXPECT_EQ(run(command).out, "ok\n0\n");
}

}  // namespace
}  // namespace belljar::testing
