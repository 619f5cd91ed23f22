// A proxy as a process of its own, for tests that look at its memory or end it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "egress/test_world.h"

namespace belljar::egress::testing {

class ProxyProcess {
 public:
  // Forks, so no thread of the test may be at work. The process waits for begin().
  ProxyProcess(const World& world, const base::Fd& listener) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    base::Fd wait(ends[0]);
    begin_ = base::Fd(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    begin_.reset();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char byte = 0;
    if (::read(wait.get(), &byte, 1) < 0) ::_exit(1);
    auto proxy = Proxy::create(base::Fd(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 0)), world.options);
    ::_exit(proxy && (*proxy)->run() ? 0 : 1);
  }
  ProxyProcess(const ProxyProcess&) = delete;
  ProxyProcess& operator=(const ProxyProcess&) = delete;
  ~ProxyProcess() { kill(); }

  // A byte, since a process that was forked later holds the pipe open too.
  void begin() { EXPECT_EQ(::write(begin_.get(), "", 1), 1); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Bytes of anonymous memory.
  [[nodiscard]] size_t memory() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("RssAnon:")) return std::stoul(line.substr(8)) << 10U;
    }
    ADD_FAILURE() << "no memory of a process that is gone";
    return 0;
  }
  [[nodiscard]] size_t descriptors(std::string_view kind) const {
    size_t out = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(each.path(), gone).string().starts_with(kind)) ++out;
    }
    return out;
  }

 private:
  pid_t pid_ = -1;
  base::Fd begin_;
};

}  // namespace belljar::egress::testing
