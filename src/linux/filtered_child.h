// For tests: runs code in a forked child under a filter.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "linux/seal.h"
#include "linux/seccomp_filter.h"
#include "linux/seccomp_rules.h"

namespace belljar::linux::testing {

using Program = std::vector<sock_filter>;

inline Program agent_program() {
  return {agent_filter().begin(), agent_filter().end()};
}

// The agent's filter in which all calls of the group of `number` answer `answer`, whatever their arguments.
inline Program with_rule_replaced(uint32_t number, Answer answer) {
  std::vector<Group> groups(rules::kGroups.begin(), rules::kGroups.end());
  for (Group& group : groups) {
    if (std::none_of(group.calls.begin(), group.calls.end(), [&](const Call& call) { return call.number == number; })) {
      continue;
    }
    group.cases = {};
    group.otherwise = answer;
  }
  return compile_filter(groups, rules::kOptions);
}

inline constexpr int kCannotInstall = 255;
inline constexpr int kKilled = 256;  // plus the signal

// Runs `body` in a forked child under `program` (none when empty) and returns its value, which must be below 255.
inline int in_child(const Program& program, const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (set_no_new_privs() != 0) _exit(kCannotInstall);
    if (!program.empty() && install_filter(program) != 0) _exit(kCannotInstall);
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kKilled + WTERMSIG(status);
}

}  // namespace belljar::linux::testing
