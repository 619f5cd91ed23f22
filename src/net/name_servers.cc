#include "net/name_servers.h"

#include <utility>

#include "base/io.h"
#include "base/text.h"
#include "net/address.h"

namespace belljar::net {

std::string name_servers_of(std::string_view resolv_conf) {
  constexpr std::string_view kKeyword = "nameserver";
  std::string out;
  for (std::string_view line : base::split(resolv_conf, '\n')) {
    if (!line.starts_with(kKeyword)) continue;
    line.remove_prefix(kKeyword.size());
    if (!line.starts_with(' ') && !line.starts_with('\t')) continue;
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin);
    const auto address = IpAddress::parse(line.substr(0, line.find_first_of(" \t\r#;")));
    if (!address) continue;
    if (!out.empty()) out += ',';
    out += address->is_v6() ? "[" + address->text() + "]" : address->text();
  }
  return out;
}

namespace {

std::string name_servers_in(const std::string& path) {
  const auto text = base::read_file(path, size_t{1} << 16U);
  return text ? name_servers_of(*text) : std::string();
}

bool same(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

// Zeros for a file that is not there.
struct stat look(const std::string& path) {
  struct stat out{};
  if (::stat(path.c_str(), &out) != 0) out = {};
  return out;
}

}  // namespace

std::string host_name_servers() {
  return name_servers_in("/etc/resolv.conf");
}

ResolvConf::ResolvConf(std::string path) : path_(std::move(path)), seen_(look(path_)) {}

std::optional<std::string> ResolvConf::changed() {
  const struct stat now = look(path_);
  const struct stat before = std::exchange(seen_, now);
  if (now.st_dev == before.st_dev && now.st_ino == before.st_ino && now.st_size == before.st_size &&
      same(now.st_mtim, before.st_mtim)) {
    return {};
  }
  std::string servers = name_servers_in(path_);
  if (servers.empty()) return {};
  return servers;
}

}  // namespace belljar::net
