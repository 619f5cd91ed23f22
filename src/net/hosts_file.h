// A hosts(5) file, read through a descriptor that is kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "net/address.h"

namespace belljar::net {

// The addresses of `host` (without trailing dot, any case) in the text of a hosts file, each once, in its order.
[[nodiscard]] std::vector<IpAddress> find_in_hosts(std::string_view text, std::string_view host);

// Opened once, so that a process which can open nothing any more still sees what is edited in place. A file that is
// replaced by another of its name is not seen.
class HostsFile {
 public:
  // One that is missing or cannot be read is as good as an empty one.
  explicit HostsFile(const std::string& path = "/etc/hosts");

  // Reads the file anew, its first 16 MiB.
  [[nodiscard]] std::vector<IpAddress> find(std::string_view host) const;

 private:
  base::Fd file_;
};

}  // namespace belljar::net
