#include "policy/values.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "policy/host_rule.h"

namespace belljar::policy {
namespace {

constexpr uint64_t kKi = 1024;
constexpr uint64_t kMi = kKi * 1024;
constexpr uint64_t kGi = kMi * 1024;
constexpr uint64_t kTi = kGi * 1024;
constexpr size_t kMaxPath = 4095;  // PATH_MAX of limits.h counts the NUL
constexpr size_t kMaxEnvValue = 128 * 1024 - 1;

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr std::array kSizes = {Unit{"TiB", kTi}, Unit{"GiB", kGi}, Unit{"MiB", kMi}, Unit{"KiB", kKi}, Unit{"B", 1}};
constexpr std::array kTimes = {Unit{"d", 86400}, Unit{"h", 3600}, Unit{"m", 60}, Unit{"s", 1}};

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_control);
}

// The digits at the front of `text`, taken off; nullopt when there are none or too many.
std::optional<uint64_t> take_number(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), base::is_digit);
  const auto length = static_cast<size_t>(end - text.begin());
  uint64_t value = 0;
  if (!base::parse_uint(text.substr(0, length), value)) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

bool multiply_add(uint64_t& sum, uint64_t value, uint64_t factor) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(value, factor, &product) && !__builtin_add_overflow(sum, product, &sum);
}

// The components of a path without what means nothing: empty ones and `.`.
std::vector<std::string_view> components(std::string_view path) {
  auto parts = base::split(path, '/');
  std::erase_if(parts, [](std::string_view part) { return part.empty() || part == "."; });
  return parts;
}

std::string joined(std::string_view prefix, const std::vector<std::string_view>& parts) {
  std::string out(prefix);
  for (const std::string_view part : parts) {
    if (!out.empty() && !out.ends_with('/')) out += '/';
    out += part;
  }
  return out;
}

Verdict<void> check_pattern_text(std::string_view text) {
  if (text.empty()) return no("empty", "name a file or folder, such as ./data");
  if (text.size() > kMaxPath) return no("longer than any path", "Linux takes at most 4095 bytes");
  if (has_control(text)) return no("holds a control character", "such a path cannot be named in a policy");
  return {};
}

Verdict<void> check_path_text(std::string_view text) {
  if (auto good = check_pattern_text(text); !good) return good;
  if (text.find_first_of("*?") != std::string_view::npos) {
    return no("looks like a pattern, and paths are taken as they are", "name each file or the folder that holds them");
  }
  if (text.front() == '$') return no("variables are not expanded", "write ~/… for the home, or the absolute path");
  return {};
}

}  // namespace

std::string known_hint(std::string_view word, const std::vector<std::string_view>& known) {
  std::string out;
  const std::string_view near = base::nearest(word, known);
  if (!near.empty()) out = "did you mean '" + std::string(near) + "'? ";
  out += "one of ";
  for (size_t i = 0; i < known.size(); ++i) {
    if (i != 0) out += ", ";
    out += known[i];
  }
  return out;
}

Verdict<uint64_t> parse_size(std::string_view text) {
  std::string_view rest = text;
  const auto number = take_number(rest);
  const auto unit = std::find_if(kSizes.begin(), kSizes.end(), [&](const Unit& u) { return u.name == rest; });
  uint64_t bytes = 0;
  if (!number || unit == kSizes.end() || !multiply_add(bytes, *number, unit->factor)) {
    return no("not a size", "write a whole number and B, KiB, MiB, GiB or TiB, such as 2GiB");
  }
  return bytes;
}

Verdict<uint64_t> parse_duration(std::string_view text) {
  const auto bad = [] { return no("not a duration", "write whole numbers and d, h, m or s, such as 2h or 1h30m"); };
  if (text.empty()) return bad();
  uint64_t seconds = 0;
  const auto* next = kTimes.begin();
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number || text.empty()) return bad();
    const auto* unit = std::find_if(next, kTimes.end(), [&](const Unit& u) { return u.name == text.substr(0, 1); });
    if (unit == kTimes.end() || !multiply_add(seconds, *number, unit->factor)) return bad();
    next = unit + 1;
    text.remove_prefix(1);
  }
  return seconds;
}

Verdict<uint64_t> parse_percent(std::string_view text) {
  std::string_view rest = text;
  const auto number = take_number(rest);
  if (!number || rest != "%") return no("not a share of a core", "write per cent, such as 200% for two cores");
  return *number;
}

std::string size_text(uint64_t bytes) {
  for (const Unit& unit : kSizes) {
    if (bytes % unit.factor == 0 && bytes >= unit.factor)
      return std::to_string(bytes / unit.factor) + std::string(unit.name);
  }
  return "0B";
}

std::string duration_text(uint64_t seconds) {
  if (seconds == 0) return "0s";
  std::string out;
  for (const Unit& unit : kTimes) {
    if (seconds >= unit.factor) out += std::to_string(seconds / unit.factor) + std::string(unit.name);
    seconds %= unit.factor;
  }
  return out;
}

Verdict<std::string> parse_path(std::string_view text) {
  if (auto good = check_path_text(text); !good) return std::unexpected(good.error());
  if (text.front() == '~' && text != "~" && !text.starts_with("~/")) {
    return no("the home of another user", "write the absolute path");
  }
  const bool absolute = text.front() == '/';
  const bool home = text.front() == '~';
  const auto parts = components(home ? text.substr(1) : text);
  // A relative path may climb first; after a name `..` depends on what the name links to.
  auto part = parts.begin();
  if (!absolute && !home) part = std::find_if(parts.begin(), parts.end(), [](auto p) { return p != ".."; });
  if (std::find(part, parts.end(), "..") != parts.end()) {
    return no("holds '..'", "write where it leads: behind a link '..' is not what it seems");
  }
  if (absolute && parts.empty()) return no("the whole machine", "name the folders that are needed");
  if (home && parts.empty()) return no("the whole home", "name the folders in it that are needed");
  if (absolute) return joined("/", parts);
  if (home) return joined("~", parts);
  if (parts.empty()) return std::string(".");
  return parts.front() == ".." ? joined("", parts) : joined(".", parts);
}

Verdict<std::string> parse_pattern(std::string_view text) {
  if (auto good = check_pattern_text(text); !good) return std::unexpected(good.error());
  const auto parts = components(text);
  if (text.front() == '/' || text.front() == '~')
    return no("not in the work folder", "write it relative to that folder");
  if (std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    return no("holds '..'", "only what lies in the work folder is protected there");
  }
  if (parts.empty() || (parts.size() == 1 && parts.front() == "**")) {
    return no("the whole work folder", "name what may be there, such as 'build/**' or '**/.vscode'");
  }
  std::string out;
  for (const std::string_view part : parts) {
    if (part.find("**") != std::string_view::npos && part != "**") return no("holds '**' in a name", "write one '*'");
    out += (out.empty() ? "" : "/") + std::string(part);
  }
  return out;
}

Verdict<std::string> parse_home_path(std::string_view text) {
  auto path = parse_path(text);
  if (path && !path->starts_with("~/")) return no("not below the home", "write ~/…; other paths go under [files]");
  return path;
}

Verdict<std::string> parse_env_name(std::string_view text) {
  if (text.empty()) return no("empty", "name a variable, such as EDITOR");
  if (text.size() > 255) return no("longer than 255 characters", "no program reads such a name");
  if (text.find('*') != std::string_view::npos) {
    return no("a pattern", "write each name: some variables run code or hold secrets");
  }
  const bool good = !base::is_digit(text.front()) && std::all_of(text.begin(), text.end(), [](char c) {
    return base::is_letter(c) || base::is_digit(c) || c == '_';
  });
  if (!good) return no("not a name of a variable", "letters, digits and '_', not a digit first");
  return std::string(text);
}

Verdict<std::string> parse_env_value(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return no("its value holds a NUL byte", "no variable can");
  if (text.size() > kMaxEnvValue) return no("its value is longer than 128 KiB", "the kernel takes no longer one");
  return std::string(text);
}

bool is_guarded_env(std::string_view name) {
  constexpr std::array kPrefixes = {std::string_view("LD_"), std::string_view("GIT_"), std::string_view("PYTHON"),
                                    std::string_view("PERL5"), std::string_view("RUBY")};
  constexpr std::array kNames = {std::string_view("BASH_ENV"),          std::string_view("ENV"),
                                 std::string_view("NODE_OPTIONS"),      std::string_view("NODE_PATH"),
                                 std::string_view("JAVA_TOOL_OPTIONS"), std::string_view("_JAVA_OPTIONS"),
                                 std::string_view("DOCKER_HOST"),       std::string_view("DBUS_SESSION_BUS_ADDRESS")};
  return name.ends_with("_SOCK") || std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

Verdict<std::string> parse_agent_name(std::string_view text) {
  const auto lower = [](char c) { return (c >= 'a' && c <= 'z') || base::is_digit(c); };
  const bool good =
      !text.empty() && text.size() <= 64 && lower(text.front()) &&
      std::all_of(text.begin(), text.end(), [&](char c) { return lower(c) || c == '-' || c == '_' || c == '.'; });
  if (!good) return no("not a name of an agent", "lower case letters, digits, '-', '_' and '.', at most 64");
  return std::string(text);
}

Verdict<std::string> parse_command_name(std::string_view text) {
  if (text.empty() || text.size() > 255 || has_control(text) || text.find('/') != std::string_view::npos ||
      text == "." || text == "..") {
    return no("not a name of a program", "write it without a folder, such as claude");
  }
  return std::string(text);
}

Verdict<std::string> parse_argument(std::string_view text) {
  if (text.empty()) return no("empty", "leave it out");
  if (has_control(text)) return no("holds a control character", "write plain text");
  if (text.size() > kMaxPath) return no("longer than 4095 bytes", "no argument of a policy is that long");
  return std::string(text);
}

Verdict<ExposedPort> parse_exposed_port(std::string_view text) {
  const size_t colon = text.find(':');
  const auto read = [](std::string_view part, uint16_t& port) {
    uint64_t value = 0;
    if (!base::parse_uint(part, value) || value == 0 || value > UINT16_MAX) return false;
    port = static_cast<uint16_t>(value);
    return true;
  };
  ExposedPort out;
  const std::string_view guest = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (!read(text.substr(0, colon), out.host) || !read(guest, out.guest)) {
    return no("not a port", "write PORT or PORT:GUESTPORT, each 1 to 65535");
  }
  return out;
}

std::string to_text(const ExposedPort& port) {
  std::string out = std::to_string(port.host);
  if (port.guest != port.host) out += ":" + std::to_string(port.guest);
  return out;
}

Verdict<std::string> parse_upstream_proxy(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  constexpr std::string_view kHint = "write http://HOST:PORT, or \"environment\"";
  if (text == kUpstreamOfEnvironment) return std::string(text);
  if (!text.starts_with(kScheme)) return no("not the URL of an HTTP proxy", std::string(kHint));
  std::string_view rest = text.substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.contains('@')) {
    return no("holds a user name", "say \"environment\" and leave the credentials to HTTPS_PROXY");
  }
  const size_t colon = rest.rfind(':');
  uint64_t port = 0;
  if (colon == std::string_view::npos || !base::parse_uint(rest.substr(colon + 1), port) || port == 0 ||
      port > UINT16_MAX) {
    return no("no port", std::string(kHint));
  }
  const auto host = canonical_host(rest.substr(0, colon));
  if (!host) return no(host.error().reason, std::string(kHint));
  const bool v6 = host->contains(':');
  return std::string(kScheme) + (v6 ? "[" : "") + *host + (v6 ? "]" : "") + ":" + std::to_string(port);
}

Verdict<std::string> parse_image(std::string_view text) {
  if (text.empty()) return no("empty", "name an image such as debian:bookworm-slim, or leave it out");
  const bool good =
      text.size() <= 512 && (base::is_letter(text.front()) || base::is_digit(text.front())) &&
      std::all_of(text.begin(), text.end(), [](char c) {
        return base::is_letter(c) || base::is_digit(c) || std::string_view("-_.:/@").find(c) != std::string_view::npos;
      });
  if (!good) return no("not a name of an image", "such as debian:bookworm-slim or NAME@sha256:…");
  return std::string(text);
}

const std::vector<LimitSpec>& limit_specs() {
  using U = LimitSpec::Unit;
  constexpr uint64_t kMaxPid = 4194304;  // PID_MAX_LIMIT of linux/threads.h
  static const std::vector<LimitSpec> specs = {
      {"memory", U::kBytes, 16 * kMi, 1024 * kTi, &Limits::memory_bytes},
      {"cpu", U::kPercent, 1, 1'000'000, &Limits::cpu_percent},
      {"pids", U::kCount, 8, kMaxPid, &Limits::pids},
      {"processes", U::kCount, 8, kMaxPid, &Limits::processes},
      {"scratch_bytes", U::kBytes, kMi, 1024 * kTi, &Limits::scratch_bytes},
      {"scratch_files", U::kCount, 64, uint64_t{1} << 32U, &Limits::scratch_files},
      {"open_files", U::kCount, 64, 1'048'576, &Limits::open_files},  // fs.nr_open starts at 1048576 (proc(5))
      {"file_bytes", U::kBytes, 4 * kKi, 1024 * kTi, &Limits::file_bytes},
      {"wall", U::kSeconds, 1, uint64_t{366} * 86400, &Limits::wall_seconds},
  };
  return specs;
}

const LimitSpec* find_limit(std::string_view name) {
  const auto& specs = limit_specs();
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const LimitSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

std::string_view expected_text(LimitSpec::Unit unit) {
  switch (unit) {
    case LimitSpec::Unit::kBytes:
      return "a size such as \"2GiB\" or a number of bytes";
    case LimitSpec::Unit::kPercent:
      return "a share such as \"200%\" for two cores";
    case LimitSpec::Unit::kSeconds:
      return "a duration such as \"2h\" or a number of seconds";
    case LimitSpec::Unit::kCount:
      break;
  }
  return "a whole number";
}

std::string limit_text(const LimitSpec& spec, uint64_t value) {
  switch (spec.unit) {
    case LimitSpec::Unit::kBytes:
      return size_text(value);
    case LimitSpec::Unit::kPercent:
      return std::to_string(value) + "%";
    case LimitSpec::Unit::kSeconds:
      return duration_text(value);
    case LimitSpec::Unit::kCount:
      break;
  }
  return std::to_string(value);
}

Verdict<uint64_t> check_limit(const LimitSpec& spec, uint64_t value) {
  if (value >= spec.min && value <= spec.max) return value;
  return no("out of range", "from " + limit_text(spec, spec.min) + " to " + limit_text(spec, spec.max));
}

Verdict<uint64_t> parse_limit(const LimitSpec& spec, std::string_view text) {
  Verdict<uint64_t> value = 0;
  switch (spec.unit) {
    case LimitSpec::Unit::kBytes:
      value = parse_size(text);
      break;
    case LimitSpec::Unit::kPercent:
      value = parse_percent(text);
      break;
    case LimitSpec::Unit::kSeconds:
      value = parse_duration(text);
      break;
    case LimitSpec::Unit::kCount:
      if (!base::parse_uint(text, *value)) return no("not a whole number", "write digits only");
      break;
  }
  if (!value) return value;
  return check_limit(spec, *value);
}

}  // namespace belljar::policy
