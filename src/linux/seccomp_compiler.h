// Turns a table of system-call rules into a classic BPF program, at compile time. Pure.
//
// libseccomp is not used: it has one action per rule and one default, and cannot compare "the low 32 bits differ from
// x" (SCMP_CMP_NE looks at 64 bits, SCMP_CMP_MASKED_EQ has no opposite), so "every ioctl but two" and "every other
// socket family answers EAFNOSUPPORT" need dozens of complementary rules. Here a call has a list of cases, the first
// that fits decides.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace belljar::linux {

// What the filter answers. 0 lets the call pass, otherwise the call fails with this errno (at most 4095).
using Answer = uint16_t;
inline constexpr Answer kPass = 0;

// One comparison of an argument. Only the low 32 bits count: every argument the rules look at is an int, an unsigned
// int or a umode_t to the kernel, which ignores the upper half of the register. A comparison of all 64 bits would let
// TIOCSTI | 1 << 32 through.
struct Check {
  enum class Kind : uint8_t {
    kEqual,    // (argument & mask) == value
    kAnyBits,  // (argument & mask) != 0
  };
  Kind kind = Kind::kEqual;
  uint8_t argument = 0;  // 0 to 5
  uint32_t mask = ~uint32_t{0};
  uint32_t value = 0;
};

constexpr Check equal(uint8_t argument, uint32_t value) {
  return {Check::Kind::kEqual, argument, ~uint32_t{0}, value};
}
constexpr Check masked_equal(uint8_t argument, uint32_t mask, uint32_t value) {
  return {Check::Kind::kEqual, argument, mask, value};
}
constexpr Check any_bits(uint8_t argument, uint32_t mask) {
  return {Check::Kind::kAnyBits, argument, mask, 0};
}

// When all checks hold the answer is given. A case without checks always holds.
struct Case {
  Answer answer = kPass;
  std::array<Check, 3> checks{};
  uint8_t count = 0;
};

constexpr Case when(Check a, Answer answer) {
  return {answer, {a}, 1};
}
constexpr Case when(Check a, Check b, Answer answer) {
  return {answer, {a, b}, 2};
}
constexpr Case when(Check a, Check b, Check c, Answer answer) {
  return {answer, {a, b, c}, 3};
}

struct Call {
  std::string_view name;
  uint32_t number = 0;
};

// Calls with the same rule. `cases` are tried in order; when none holds (or there is none) `otherwise` is the answer.
struct Group {
  std::string_view name;
  std::string_view reason;
  std::span<const Call> calls;
  std::span<const Case> cases;
  Answer otherwise = kPass;
};

struct FilterOptions {
  uint32_t audit_arch = 0;  // AUDIT_ARCH_*: the only architecture whose calls are looked up
  Answer unknown = 0;       // for a call in no group; x32 calls (bit 30 set) are in none
  Answer foreign = 0;       // for a call of another architecture: `int 0x80` of a 64-bit process, 32-bit programs
};

namespace seccomp_detail {

using Program = std::vector<sock_filter>;

// Calls first .. last inclusive, all answered by `group`; nullptr stands for "in no group".
struct Segment {
  uint32_t first = 0;
  const Group* group = nullptr;
};

constexpr sock_filter statement(uint32_t code, uint32_t k) {
  return {static_cast<uint16_t>(code), 0, 0, k};
}
constexpr sock_filter jump(uint32_t code, uint32_t k, size_t if_true, size_t if_false) {
  return {static_cast<uint16_t>(code), static_cast<uint8_t>(if_true), static_cast<uint8_t>(if_false), k};
}
constexpr sock_filter give(Answer answer) {
  return statement(BPF_RET | BPF_K, answer == kPass ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | answer);
}
constexpr sock_filter load_low(uint8_t argument) {
  // x86-64 and arm64 are little-endian: the low half of an argument comes first.
  return statement(BPF_LD | BPF_W | BPF_ABS,
                   static_cast<uint32_t>(offsetof(seccomp_data, args) + sizeof(uint64_t) * argument));
}

// Every failed check jumps over the rest of its case, so the next case starts from a fresh load.
constexpr void append_case(Program& out, const Case& rule) {
  std::array<size_t, 3> failing{};
  for (size_t i = 0; i < rule.count; ++i) {
    const Check& check = rule.checks[i];
    out.push_back(load_low(check.argument));
    if (check.kind == Check::Kind::kAnyBits) {
      failing[i] = out.size();
      out.push_back(jump(BPF_JMP | BPF_JSET | BPF_K, check.mask, 0, 0));
      continue;
    }
    if (check.mask != ~uint32_t{0}) out.push_back(statement(BPF_ALU | BPF_AND | BPF_K, check.mask));
    failing[i] = out.size();
    out.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, check.value, 0, 0));
  }
  out.push_back(give(rule.answer));
  for (size_t i = 0; i < rule.count; ++i) out[failing[i]].jf = static_cast<uint8_t>(out.size() - failing[i] - 1);
}

constexpr Program group_code(const Group* group, Answer unknown) {
  Program out;
  if (group == nullptr) {
    out.push_back(give(unknown));
    return out;
  }
  for (const Case& rule : group->cases) append_case(out, rule);
  out.push_back(give(group->otherwise));
  return out;
}

// A binary search on the call number, which is in the accumulator. Jump offsets of conditional jumps are 8 bits wide
// (struct sock_filter), so a far branch goes through an unconditional jump.
constexpr Program search(std::span<const Segment> segments, Answer unknown) {
  if (segments.size() == 1) return group_code(segments[0].group, unknown);
  const size_t half = segments.size() / 2;
  const Program low = search(segments.first(half), unknown);
  const Program high = search(segments.subspan(half), unknown);
  Program out;
  if (low.size() <= 255) {
    out.push_back(jump(BPF_JMP | BPF_JGE | BPF_K, segments[half].first, low.size(), 0));
  } else {
    out.push_back(jump(BPF_JMP | BPF_JGE | BPF_K, segments[half].first, 0, 1));
    out.push_back(statement(BPF_JMP | BPF_JA, static_cast<uint32_t>(low.size())));
  }
  out.insert(out.end(), low.begin(), low.end());
  out.insert(out.end(), high.begin(), high.end());
  return out;
}

// Groups that look at no argument and answer alike are one to the search.
constexpr bool same_rule(const Group* a, const Group* b, Answer unknown) {
  if (a == b) return true;
  const bool plain_a = a == nullptr || a->cases.empty();
  const bool plain_b = b == nullptr || b->cases.empty();
  if (!plain_a || !plain_b) return false;
  return (a == nullptr ? unknown : a->otherwise) == (b == nullptr ? unknown : b->otherwise);
}

constexpr std::vector<Segment> segments_of(std::span<const Group> groups, Answer unknown) {
  std::vector<Segment> calls;
  for (const Group& group : groups) {
    for (const Call& call : group.calls) calls.push_back({call.number, &group});
  }
  std::sort(calls.begin(), calls.end(), [](const Segment& a, const Segment& b) { return a.first < b.first; });
  std::vector<Segment> out{{0, nullptr}};
  auto begin_segment = [&](uint32_t first, const Group* group) {
    if (out.back().first == first) {
      out.back().group = group;
    } else if (!same_rule(out.back().group, group, unknown)) {
      out.push_back({first, group});
    }
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    begin_segment(calls[i].first, calls[i].group);
    const uint32_t next = calls[i].first + 1;
    if (i + 1 == calls.size() || calls[i + 1].first != next) begin_segment(next, nullptr);
  }
  return out;
}

}  // namespace seccomp_detail

// True when no call number is in two groups: the table would be ambiguous.
constexpr bool calls_are_unique(std::span<const Group> groups) {
  std::vector<uint32_t> numbers;
  for (const Group& group : groups) {
    for (const Call& call : group.calls) numbers.push_back(call.number);
  }
  std::sort(numbers.begin(), numbers.end());
  return std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
}

// The program for `groups`, which must satisfy calls_are_unique. It inspects the architecture first, so a call number
// is never read in the wrong table (seccomp(2), "seccomp_data.arch"). Conditional cases of one call must fit 255
// instructions.
constexpr std::vector<sock_filter> compile_filter(std::span<const Group> groups, const FilterOptions& options) {
  using namespace seccomp_detail;
  Program out;
  out.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  out.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, options.audit_arch, 1, 0));
  out.push_back(give(options.foreign));
  out.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  const std::vector<Segment> segments = segments_of(groups, options.unknown);
  const Program body = search(segments, options.unknown);
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

}  // namespace belljar::linux
