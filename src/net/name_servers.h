// The name servers of the host, as its resolv.conf says now.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

namespace belljar::net {

// `192.0.2.1,[2001:db8::1]` for AresOptions::servers: the `nameserver` lines of a resolv.conf(5). One with a zone is
// left out: no link of this host's is for a guest's lookups. Empty when there are none.
[[nodiscard]] std::string name_servers_of(std::string_view resolv_conf);
// Those of /etc/resolv.conf; empty when there is no such file.
[[nodiscard]] std::string host_name_servers();

// A resolv.conf and how it was when this was made. For a process that may open files; nothing tells of a change, who
// wants to know asks.
class ResolvConf {
 public:
  explicit ResolvConf(std::string path = "/etc/resolv.conf");
  // The name servers, when the file has become another since it was last looked at, by device, inode, size or time of
  // change, links followed. Nothing when it is the same, is gone or names none.
  [[nodiscard]] std::optional<std::string> changed();

 private:
  std::string path_;
  struct stat seen_{};
};

}  // namespace belljar::net
