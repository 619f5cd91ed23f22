// Single values of a policy, the same whether a file or a flag says them. All pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "policy/verdict.h"

namespace belljar::policy {

// A name of an enumeration and the value it stands for.
template <class E>
struct Named {
  std::string_view name;
  E value;
};

inline constexpr Named<Mode> kModes[] = {
    {"none", Mode::kNone}, {"jail", Mode::kJail}, {"bwrap", Mode::kBwrap}, {"docker", Mode::kDocker}};
inline constexpr Named<Network> kNetworks[] = {{"allow", Network::kAllow}, {"deny", Network::kDeny}};
inline constexpr Named<Tls> kTlsUses[] = {{"required", Tls::kRequired}, {"any", Tls::kAny}};
inline constexpr Named<Transparent> kTransparents[] = {
    {"auto", Transparent::kAuto}, {"required", Transparent::kRequired}, {"off", Transparent::kOff}};
inline constexpr Named<GitAccess> kGitAccesses[] = {{"read", GitAccess::kRead}, {"write", GitAccess::kWrite}};
inline constexpr Named<Clipboard> kClipboards[] = {{"deny", Clipboard::kDeny}, {"allow", Clipboard::kAllow}};
inline constexpr Named<Toolchains> kToolchains[] = {{"auto", Toolchains::kAuto}, {"none", Toolchains::kNone}};
inline constexpr Named<Home> kHomes[] = {{"agent", Home::kAgent}, {"empty", Home::kEmpty}};

// `one of a, b, c`, with `did you mean 'b'?` in front when one is near `word`.
[[nodiscard]] std::string known_hint(std::string_view word, const std::vector<std::string_view>& known);

template <class E, size_t n>
[[nodiscard]] Verdict<E> parse_named(std::string_view text, const Named<E> (&names)[n]) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    known.push_back(name);
  }
  return no("unknown value", known_hint(text, known));
}

template <class E, size_t n>
[[nodiscard]] std::string_view name_of_value(E value, const Named<E> (&names)[n]) {
  for (const auto& named : names) {
    if (named.value == value) return named.name;
  }
  return {};
}

// `2GiB`, `512MiB`, `64KiB`, `100B`: binary units only, so that no one has to guess what a `G` is.
[[nodiscard]] Verdict<uint64_t> parse_size(std::string_view text);
// `2h`, `1h30m`, `45s`, `7d`: each unit once, the largest first. Seconds.
[[nodiscard]] Verdict<uint64_t> parse_duration(std::string_view text);
// `150%`: per cent of one core.
[[nodiscard]] Verdict<uint64_t> parse_percent(std::string_view text);

// The largest unit that divides it: parse_size(size_text(x)) == x, and so on.
[[nodiscard]] std::string size_text(uint64_t bytes);
[[nodiscard]] std::string duration_text(uint64_t seconds);

// A path of files.*: absolute, `~/…`, or relative to the work folder (canonical: `.`, `./…` or `../…`). Doubled and
// trailing slashes and `.` components go; what a link could give another meaning (`..` after a name), what looks like
// a pattern or a variable, control characters, `~user` and `/` itself are refused.
[[nodiscard]] Verdict<std::string> parse_path(std::string_view text);
// A path relative to the work folder, in which `*` is any run of characters of one name and the name `**` any number of
// names: workspace::matches().
[[nodiscard]] Verdict<std::string> parse_pattern(std::string_view text);
// A path of an agent's own: as parse_path(), and below `~/`.
[[nodiscard]] Verdict<std::string> parse_home_path(std::string_view text);

// A name of an environment variable: `[A-Za-z_][A-Za-z0-9_]*` (POSIX.1-2017, XBD 8.1). There are no patterns, so what
// can run code or holds a secret (LD_PRELOAD, NODE_OPTIONS, SSH_AUTH_SOCK, …_TOKEN) passes only when spelled out.
[[nodiscard]] Verdict<std::string> parse_env_name(std::string_view text);
// Any text without NUL, up to 128 KiB (MAX_ARG_STRLEN of execve(2)).
[[nodiscard]] Verdict<std::string> parse_env_value(std::string_view text);

// True for variables that make programs load code or reach a socket of the host: LD_*, BASH_ENV, ENV, NODE_OPTIONS,
// GIT_*, PYTHON*, PERL5*, RUBY*, JAVA_TOOL_OPTIONS, *_SOCK. Naming one is allowed, and worth showing to a person.
[[nodiscard]] bool is_guarded_env(std::string_view name);

// A name of an agent: lower case letters, digits, `-`, `_` and `.`, at most 64 characters, starting with a letter or
// digit.
[[nodiscard]] Verdict<std::string> parse_agent_name(std::string_view text);
// A program name without a slash.
[[nodiscard]] Verdict<std::string> parse_command_name(std::string_view text);
// Any non-empty text without control characters.
[[nodiscard]] Verdict<std::string> parse_argument(std::string_view text);
// `3000`, or `8080:3000`: this host's port and the guest's. Digits only, 1 to 65535.
[[nodiscard]] Verdict<ExposedPort> parse_exposed_port(std::string_view text);
// As parse_exposed_port() reads it back.
[[nodiscard]] std::string to_text(const ExposedPort& port);
// `environment`, or `http://HOST:PORT`, canonical. No user name: credentials have no place in a policy.
[[nodiscard]] Verdict<std::string> parse_upstream_proxy(std::string_view text);
// An image reference as `docker run` takes it, checked for its characters only.
[[nodiscard]] Verdict<std::string> parse_image(std::string_view text);

// One limit: its key, how it is written, its bounds and its place in Limits.
struct LimitSpec {
  enum class Unit : uint8_t { kCount, kBytes, kPercent, kSeconds };
  std::string_view name;
  Unit unit;
  uint64_t min;
  uint64_t max;
  std::optional<uint64_t> Limits::* field;
};
[[nodiscard]] const std::vector<LimitSpec>& limit_specs();
[[nodiscard]] const LimitSpec* find_limit(std::string_view name);
// What a limit of that unit is written as: "a size such as \"2GiB\" or a number of bytes".
[[nodiscard]] std::string_view expected_text(LimitSpec::Unit unit);
[[nodiscard]] Verdict<uint64_t> parse_limit(const LimitSpec& spec, std::string_view text);
[[nodiscard]] Verdict<uint64_t> check_limit(const LimitSpec& spec, uint64_t value);
// As parse_limit() reads it back.
[[nodiscard]] std::string limit_text(const LimitSpec& spec, uint64_t value);

}  // namespace belljar::policy
