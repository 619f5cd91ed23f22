// The fixture of tests that launch on a target.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"
#include "support/test_sshd.h"

namespace belljar::testing {

// In the command line of what these launches start, and of nothing that another test does.
inline const std::string kMarker = "belljar-ssh-test-sleeper-of-" + std::to_string(::getpid());

// The person's machine is the host of TestHosts, the target is its internet side, on the same file system: the home of
// the target's account is hosts.home().
class SshTest : public ::testing::Test {
 protected:
  // `sshd` is appended to the target's sshd_config(5).
  explicit SshTest(const std::string& sshd = {}) : hosts_({"far.test"}, {{"near.test", TestHosts::kHost}}) {
    work_ = hosts_.home() + "/work";
    std::filesystem::create_directories(work_);
    sshd_ = std::make_unique<TestSshd>(hosts_, account_,
                                       "PermitUserEnvironment no\nAllowAgentForwarding yes\nAllowTcpForwarding yes\n"
                                       "PermitTunnel yes\nClientAliveInterval 10\nClientAliveCountMax 2\n" +
                                           sshd);
    prepare_client();
    prepare_programs();
  }

  void prepare_client() const {
    write_file(near_ / "known_hosts", "[45.45.45.2]:2222 " + sshd_->host_key());
    // All that a person's own configuration could turn on by which the target reaches back.
    write_file(
        near_ / "ssh_config",
        "Host there\n  HostName 45.45.45.2\n  Port 2222\n  User " + account_.name + "\n  IdentityFile " + sshd_->key() +
            "\n  UserKnownHostsFile " + (near_ / "known_hosts") +
            "\n  StrictHostKeyChecking yes\n  ForwardAgent yes\n  PermitLocalCommand yes\n  LocalCommand touch " +
            (near_ / "local-command") + "\n  LocalForward 127.0.0.1:9191 127.0.0.1:2222\n  RequestTTY force\n" +
            "  RemoteForward 9292 127.0.0.1:22\n  ExitOnForwardFailure no\n  LogLevel ERROR\n");
    write_file(near_ / "bin/ssh", "#!/bin/sh\nexec /usr/bin/ssh -F '" + (near_ / "ssh_config") + "' \"$@\"\n");
    ::chmod((near_ / "bin/ssh").c_str(), 0755);
    ::mkdir((near_ / "state").c_str(), 0700);
  }

  // As people get them: without what only a debugger reads, which is most of what would be copied and hashed.
  void prepare_programs() const {
    ::mkdir((near_ / "programs").c_str(), 0755);
    const std::string folder = belljar_program().substr(0, belljar_program().rfind('/') + 1);
    for (const char* name : {"belljar", "belljar-guest", "belljar-notify", "belljar-tls"}) {
      must_run({.argv = {"strip", "-o", (near_ / "programs/") + name, folder + name}});
    }
  }

  // `belljar WORDS` as the person here.
  [[nodiscard]] Command belljar(std::vector<std::string> words) const {
    words.insert(words.begin(), near_ / "programs/belljar");
    Command command{.argv = std::move(words), .cwd = work_};
    command.env["PATH"] = (near_ / "bin") + ":/usr/bin:/bin:/usr/sbin:/sbin";
    command.env["HOME"] = hosts_.home();
    command.env["XDG_STATE_HOME"] = near_ / "state";
    return hosts_.as_caller(std::move(command));
  }
  [[nodiscard]] Command there(const std::string& script, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"run", "--target", "ssh:there"});
    options.insert(options.end(), {"--", "sh", "-c", script});
    return belljar(std::move(options));
  }
  [[nodiscard]] Command sleeper(std::vector<std::string> options = {}) const {
    return there("echo started; exec sleep 600 # " + kMarker, std::move(options));
  }
  // The command of the launch and all that belongs to it.
  static std::vector<std::string> left() { return processes_with(kMarker); }

  [[nodiscard]] std::string cache() const { return hosts_.home() + "/.cache/belljar/programs"; }
  [[nodiscard]] std::vector<std::string> copies() const {
    std::vector<std::string> out;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(cache(), error)) out.push_back(entry.path());
    return out;
  }

  Account account_;
  TempDir near_;
  TestHosts hosts_;
  std::string work_;
  std::unique_ptr<TestSshd> sshd_;
};

}  // namespace belljar::testing
