#include "policy/target.h"

#include <algorithm>

namespace belljar::policy {
namespace {

constexpr size_t kLongest = 512;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_.:@[]%/").find(c) != std::string_view::npos;
}

}  // namespace

Verdict<std::string> parse_target(std::string_view text) {
  if (text == kLocalTarget) return std::string(text);
  if (!text.starts_with(kSshTarget)) return no("not a target", "local, or ssh:HOST");
  std::string_view host = text.substr(kSshTarget.size());
  if (host.empty()) return no("names no host", "ssh:HOST, as ssh itself takes it");
  if (host.size() > kLongest) return no("longer than 512 characters");
  if (!std::ranges::all_of(host, is_plain))
    return no("holds a character that no host has", "ssh:HOST or ssh:USER@HOST");
  if (host.starts_with("ssh://")) {
    host.remove_prefix(6);
  } else if (host.contains('/')) {
    return no("holds a '/'", "name the folder by --folder");
  }
  const size_t at = host.rfind('@');
  const std::string_view name = at == std::string_view::npos ? host : host.substr(at + 1);
  // ssh(1) would take the first for an option; the second is a trap for whoever reads it later.
  if (host.starts_with('-') || name.starts_with('-')) return no("a host that begins with '-'");
  if (name.empty() || at == 0) return no("names no host", "ssh:HOST or ssh:USER@HOST");
  return std::string(text);
}

std::string_view ssh_destination(std::string_view target) {
  return target.starts_with(kSshTarget) ? target.substr(kSshTarget.size()) : std::string_view();
}

}  // namespace belljar::policy
