// The compiled program against the table it came from: a small interpreter of classic BPF runs the program, and a
// direct reading of the table says what it should answer.
#include "linux/seccomp_compiler.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "linux/seccomp_filter.h"
#include "linux/seccomp_rules.h"

namespace belljar::linux {
namespace {

constexpr uint32_t kBroken = 0xdeadbeef;

// Runs `program` on `data`; kBroken when it leaves its bounds or uses an instruction the compiler never emits.
uint32_t run(std::span<const sock_filter> program, const seccomp_data& data) {
  uint32_t accumulator = 0;
  for (size_t pc = 0; pc < program.size(); ++pc) {
    const sock_filter& op = program[pc];
    switch (op.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (op.k % 4 != 0 || op.k + 4 > sizeof(data)) return kBroken;
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + op.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= op.k;
        break;
      case BPF_JMP | BPF_JA:
        pc += op.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        pc += accumulator == op.k ? op.jt : op.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        pc += accumulator >= op.k ? op.jt : op.jf;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        pc += (accumulator & op.k) != 0 ? op.jt : op.jf;
        break;
      case BPF_RET | BPF_K:
        return op.k;
      default:
        return kBroken;
    }
  }
  return kBroken;
}

uint32_t spell(Answer answer) {
  return answer == kPass ? uint32_t{SECCOMP_RET_ALLOW} : uint32_t{SECCOMP_RET_ERRNO} | answer;
}

bool holds(const Check& check, const seccomp_data& data) {
  const auto low = static_cast<uint32_t>(data.args[check.argument]);
  return check.kind == Check::Kind::kAnyBits ? (low & check.mask) != 0 : (low & check.mask) == check.value;
}

uint32_t expected(std::span<const Group> groups, const FilterOptions& options, const seccomp_data& data) {
  if (data.arch != options.audit_arch) return spell(options.foreign);
  for (const Group& group : groups) {
    for (const Call& call : group.calls) {
      if (call.number != static_cast<uint32_t>(data.nr)) continue;
      for (const Case& rule : group.cases) {
        if (std::all_of(rule.checks.begin(), rule.checks.begin() + rule.count,
                        [&](const Check& check) { return holds(check, data); })) {
          return spell(rule.answer);
        }
      }
      return spell(group.otherwise);
    }
  }
  return spell(options.unknown);
}

// Every value that a check of the table compares with, its neighbours, single bits, and all of them with high bits.
std::vector<uint64_t> interesting_values(std::span<const Group> groups) {
  std::set<uint64_t> values{0, 1, 2, 3, 5, 0xff, 0xffffffff};
  for (const Group& group : groups) {
    for (const Case& rule : group.cases) {
      for (size_t i = 0; i < rule.count; ++i) {
        const Check& check = rule.checks[i];
        if (check.kind == Check::Kind::kEqual) values.insert({check.value, check.value + 1, check.value | 0x800U});
        for (uint32_t bit = 1; check.kind == Check::Kind::kAnyBits && bit != 0; bit <<= 1U) {
          if ((check.mask & bit) != 0) values.insert({bit, bit | 1U, ~bit & 0xffffffffU});
        }
      }
    }
  }
  std::vector<uint64_t> out(values.begin(), values.end());
  for (const uint64_t value : values) out.push_back(value | uint64_t{0x5a5a5a5a} << 32U);
  return out;
}

TEST(SeccompCompiler, AgreesWithTheTableForEveryCallWithoutArguments) {
  for (uint32_t number = 0; number < 2048; ++number) {
    for (const uint32_t high : {0U, 0x40000000U, 0x80000000U}) {
      const seccomp_data data{static_cast<int>(number | high), AUDIT_ARCH_X86_64, 0, {}};
      ASSERT_EQ(run(agent_filter(), data), expected(rules::kGroups, rules::kOptions, data)) << number << " " << high;
    }
  }
  const seccomp_data minus_one{-1, AUDIT_ARCH_X86_64, 0, {}};
  EXPECT_EQ(run(agent_filter(), minus_one), spell(ENOSYS));
}

TEST(SeccompCompiler, AgreesWithTheTableForEveryInterestingArgument) {
  const std::vector<uint64_t> values = interesting_values(rules::kGroups);
  for (const Group& group : rules::kGroups) {
    if (group.cases.empty()) continue;
    for (const Call& call : group.calls) {
      seccomp_data data{static_cast<int>(call.number), AUDIT_ARCH_X86_64, 0, {}};
      // Arguments that any case of the group looks at, in all combinations.
      std::vector<uint8_t> looked_at;
      for (const Case& rule : group.cases) {
        for (size_t i = 0; i < rule.count; ++i) {
          if (std::find(looked_at.begin(), looked_at.end(), rule.checks[i].argument) == looked_at.end()) {
            looked_at.push_back(rule.checks[i].argument);
          }
        }
      }
      size_t combinations = 1;
      for (size_t i = 0; i < looked_at.size(); ++i) combinations *= values.size();
      size_t disagreements = 0;
      for (size_t n = 0; n < combinations; ++n) {
        size_t rest = n;
        for (const uint8_t argument : looked_at) {
          data.args[argument] = values[rest % values.size()];
          rest /= values.size();
        }
        if (run(agent_filter(), data) != expected(rules::kGroups, rules::kOptions, data)) ++disagreements;
      }
      EXPECT_EQ(disagreements, 0U) << call.name;
    }
  }
}

// With nested = true a sandbox's calls pass, whatever their arguments, and nothing else does that did not before. What
// passed before passes, but for attributes.
TEST(SeccompCompiler, TheNestedFilterDiffersInWhatSandboxesNeed) {
  std::set<int> differing;
  const std::set<int> attributes{SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, int{rules::kSetxattrat}};
  const std::vector<uint64_t> values{0, 1, CLONE_NEWUSER, CLONE_NEWNET | CLONE_NEWNS, TIOCSTI, S_ISUID, ~uint64_t{0}};
  for (int number = 0; number < 1024; ++number) {
    for (uint8_t argument = 0; argument < 3; ++argument) {
      for (const uint64_t value : values) {
        seccomp_data data{number, AUDIT_ARCH_X86_64, 0, {}};
        data.args[argument] = value;
        const uint32_t nested = run(nested_filter(), data);
        ASSERT_EQ(nested, expected(rules::kNestedGroups, rules::kOptions, data)) << number;
        if (nested == run(agent_filter(), data)) continue;
        EXPECT_EQ(nested, spell(attributes.contains(number) ? EOPNOTSUPP : kPass)) << number;
        differing.insert(number);
      }
    }
  }
  for (const int number : attributes) EXPECT_EQ(differing.erase(number), 1U) << number;
  EXPECT_EQ(differing,
            (std::set<int>{SYS_clone, SYS_pivot_root, SYS_chroot, SYS_mount, SYS_umount2, SYS_open_tree, SYS_move_mount,
                           SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
                           int{rules::kOpenTreeAttr}, SYS_unshare, SYS_setns, SYS_sethostname, SYS_setdomainname}));
}

TEST(SeccompCompiler, AnswersNothingOfAnotherArchitecture) {
  for (const uint32_t arch : {uint32_t{AUDIT_ARCH_I386}, uint32_t{AUDIT_ARCH_AARCH64}, 0U}) {
    for (int number = 0; number < 500; ++number) {
      EXPECT_EQ(run(agent_filter(), seccomp_data{number, arch, 0, {}}), spell(ENOSYS));
    }
  }
}

// The x86-64 table has no holes up to 334 and from 424 on: each of those calls was judged, none forgotten.
TEST(SeccompCompiler, EveryKnownCallIsInTheTable) {
  std::set<uint32_t> known;
  for (const Group& group : rules::kGroups) {
    EXPECT_FALSE(group.reason.empty()) << group.name;
    for (const Call& call : group.calls) known.insert(call.number);
  }
  for (uint32_t number = 0; number <= SYS_rseq; ++number) EXPECT_TRUE(known.contains(number)) << number;
  for (uint32_t number = SYS_pidfd_send_signal; number <= rules::kListns; ++number) {
    EXPECT_TRUE(known.contains(number)) << number;
  }
}

TEST(SeccompCompiler, NoticesACallInTwoGroups) {
  constexpr std::array<Call, 1> a{Call{"x", 7}};
  constexpr std::array<Call, 2> b{Call{"y", 8}, Call{"x", 7}};
  EXPECT_FALSE(calls_are_unique(std::array<Group, 2>{Group{"a", "", a, {}, kPass}, Group{"b", "", b, {}, kPass}}));
}

// Conditional jumps reach 255 instructions; with hundreds of scattered calls the tree needs far branches.
TEST(SeccompCompiler, FarBranchesAreRight) {
  std::vector<Call> calls;
  for (uint32_t number = 1; number < 2000; number += 3) calls.push_back({"n", number});
  const std::array<Case, 2> cases{when(equal(0, 9), masked_equal(1, 0xf0, 0x30), any_bits(5, 0x6), EPERM),
                                  when(equal(0, 10), EACCES)};
  const std::array<Group, 1> groups{Group{"g", "", calls, cases, EBUSY}};
  const FilterOptions options{AUDIT_ARCH_X86_64, ENOSYS, EBADF};
  const std::vector<sock_filter> program = compile_filter(groups, options);
  ASSERT_GT(program.size(), 4096U);
  for (int number = 0; number < 2100; ++number) {
    for (const uint64_t first : {9U, 10U, 11U}) {
      for (const uint64_t second : {0x3fU, 0x40U}) {
        for (const uint64_t sixth : {1U, 2U, 4U}) {
          const seccomp_data data{number, AUDIT_ARCH_X86_64, 0, {first, second, 0, 0, 0, sixth}};
          ASSERT_EQ(run(program, data), expected(groups, options, data)) << number;
        }
      }
    }
  }
}

}  // namespace
}  // namespace belljar::linux
