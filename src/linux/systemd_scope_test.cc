// Against the real dbus-daemon, which closes the connection of who sends what is not well formed, with a systemd on it
// that starts nothing (tests/support/mock_systemd.py).
#include "linux/systemd_scope.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace belljar::linux {
namespace {

using ::testing::HasSubstr;

// A program whose output is read line by line, ended with the object.
class Helper {
 public:
  explicit Helper(const std::vector<std::string>& words) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    out_ = ::fdopen(ends[0], "re");
  }
  ~Helper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::fclose(out_);
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  std::string line() {
    std::array<char, 4096> text{};
    std::string out = std::fgets(text.data(), text.size(), out_) != nullptr ? text.data() : "";
    if (out.ends_with('\n')) out.pop_back();
    return out;
  }

 private:
  pid_t pid_ = -1;
  std::FILE* out_ = nullptr;
};

class SystemdScope : public ::testing::Test {
 protected:
  SystemdScope() {
    std::string name = std::filesystem::temp_directory_path() / "belljar-bus-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::ofstream(folder_ + "/conf") << "<busconfig><type>session</type><listen>unix:path=" << socket()
                                     << "</listen><auth>EXTERNAL</auth><policy context=\"default\"><allow "
                                        "send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow "
                                        "own=\"*\"/></policy></busconfig>";
    bus_ = std::make_unique<Helper>(
        std::vector<std::string>{"dbus-daemon", "--config-file=" + folder_ + "/conf", "--nofork", "--print-address"});
    EXPECT_THAT(bus_->line(), HasSubstr(socket()));
  }
  ~SystemdScope() override {
    bus_.reset();
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] std::string socket() const { return folder_ + "/bus"; }
  [[nodiscard]] std::string ask() const {
    const auto status =
        enter_delegated_scope(socket(), "belljar-test", base::Deadline::after(std::chrono::seconds(20)));
    return status ? "" : status.error().message();
  }

  std::string folder_;
  std::unique_ptr<Helper> bus_;
};

TEST_F(SystemdScope, IsAskedForWithThisProcessInItAndDelegated) {
  Helper systemd({"python3", std::string(BELLJAR_TESTS_DIR) + "/support/mock_systemd.py", socket(), "done"});
  ASSERT_EQ(systemd.line(), "ready");
  EXPECT_EQ(ask(), "");
  EXPECT_EQ(systemd.line(),
            "{\"name\": \"belljar-test.scope\", \"mode\": \"fail\", \"properties\": {\"Description\": \"the guest of a "
            "belljar session\", \"Delegate\": true, \"CollectMode\": \"inactive-or-failed\", \"PIDs\": [" +
                std::to_string(::getpid()) + "]}, \"units\": []}");
}

TEST_F(SystemdScope, WhatGoesWrongIsTold) {
  EXPECT_THAT(ask(), HasSubstr("org.freedesktop.DBus.Error.ServiceUnknown"));
  for (const auto& [result, says] : std::initializer_list<std::pair<const char*, const char*>>{
           {"failed", "its job ended as 'failed'"}, {"refuse", "UnitExists: it is there already"}}) {
    Helper systemd({"python3", std::string(BELLJAR_TESTS_DIR) + "/support/mock_systemd.py", socket(), result});
    ASSERT_EQ(systemd.line(), "ready");
    EXPECT_THAT(ask(), HasSubstr(says));
  }
  EXPECT_THAT(enter_delegated_scope(folder_ + "/none", "x", {}).error().message(), HasSubstr("No such file"));
}

// Whatever listens there: it is not waited for beyond the deadline, and not believed.
TEST_F(SystemdScope, NonsenseEndsIt) {
  const std::string path = folder_ + "/nonsense";
  const base::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  const std::string fixed{"l\2\0\1\xff\xff\xff\x7f\1\0\0\0\0\0\0\0", 16};
  const std::string fields{"l\2\0\1\0\0\0\0\1\0\0\0\x10\0\0\0\5\1u\0\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 32};
  for (const std::string& answer : {std::string("REJECTED\r\n"), std::string("OK x\r\nB\2\0\1"), "OK x\r\n" + fixed,
                                    "OK x\r\n" + fields, std::string("OK x\r\n") + std::string(64, '\xff')}) {
    std::thread server([&] {
      const base::Fd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      (void)!::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      std::array<char, 4096> bytes{};
      while (::recv(peer.get(), bytes.data(), bytes.size(), 0) > 0) {
      }
    });
    EXPECT_FALSE(enter_delegated_scope(path, "x", base::Deadline::after(std::chrono::seconds(5))));
    server.join();
  }
  EXPECT_FALSE(enter_delegated_scope(path, "x", base::Deadline::after(std::chrono::milliseconds(50))));
}

TEST(SystemdBus, IsTheUsersOwn) {
  EXPECT_EQ(systemd_bus(true, "unix:path=/x", "/run/user/1"), "/run/dbus/system_bus_socket");
  EXPECT_EQ(systemd_bus(false, "unix:path=/x,guid=1", "/run/user/1"), "/x");
  EXPECT_EQ(systemd_bus(false, "unix:path=/x;tcp:host=y", ""), "/x");
  EXPECT_EQ(systemd_bus(false, "tcp:host=y", "/run/user/1"), "/run/user/1/bus");
  EXPECT_EQ(systemd_bus(false, "", ""), "");
}

}  // namespace
}  // namespace belljar::linux
