#include "net/hosts_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace belljar::net {
namespace {

constexpr size_t kMost = size_t{16} << 20U;
constexpr size_t kChunk = 65536;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The next word of `line`, which is left without it.
std::string_view take_word(std::string_view& line) {
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  const auto end = std::ranges::find_if(line, is_space);
  const std::string_view word = line.substr(0, static_cast<size_t>(end - line.begin()));
  line.remove_prefix(word.size());
  return word;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view one, std::string_view other) {
  if (one.ends_with('.')) one.remove_suffix(1);
  return std::ranges::equal(one, other, {}, lower, lower);
}

void find_in_line(std::string_view line, std::string_view host, std::vector<IpAddress>& out) {
  line = line.substr(0, line.find('#'));
  const std::string_view first = take_word(line);
  for (std::string_view name = take_word(line); !name.empty(); name = take_word(line)) {
    if (!same_name(name, host)) continue;
    const auto address = IpAddress::parse(first);
    if (address && std::ranges::find(out, *address) == out.end()) out.push_back(*address);
    return;
  }
}

}  // namespace

std::vector<IpAddress> find_in_hosts(std::string_view text, std::string_view host) {
  std::vector<IpAddress> out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    find_in_line(line, host, out);
  }
  return out;
}

HostsFile::HostsFile(const std::string& path)
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {}

std::vector<IpAddress> HostsFile::find(std::string_view host) const {
  std::string text;
  size_t size = 0;
  while (file_ && size < kMost) {
    text.resize(size + kChunk);
    const ssize_t n = ::pread(file_.get(), text.data() + size, kChunk, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  return find_in_hosts(std::string_view(text).substr(0, size), host);
}

}  // namespace belljar::net
