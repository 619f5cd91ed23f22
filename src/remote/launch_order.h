// What the near end has the far end launch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace belljar::remote {

enum class Use : uint8_t { kRun, kPlan, kProbe };

// What one of the command's standard descriptors is on the near side.
enum class StreamKind : uint8_t { kPipe, kTerminal, kClosed };

struct LaunchOrder {
  Use use = Use::kRun;
  std::string session;  // its id, as the person has been told
  std::string policy;   // text that policy::parse_policy() reads: the whole policy, whatever the target's own files say
  std::vector<std::string> command;
  std::string folder;  // the work folder: absolute, or below `~`
  std::string chdir;
  std::map<std::string, std::string> environment;  // what the launcher there gets beside its own
  // Certificates in PEM that a https hook's is checked against in place of the target's own; empty: those.
  std::string authorities{};
  std::array<StreamKind, 3> streams{};
  bool one_stream = false;  // 2 is the same as 1
  uint32_t umask = 022;
  uint32_t link_seconds = 30;  // so long a silence is the end of the link
  uint16_t rows = 0;
  uint16_t columns = 0;
  bool report = false;  // the settlement is wanted
  bool json = false;

  bool operator==(const LaunchOrder&) const = default;
};

[[nodiscard]] std::string pack(const LaunchOrder& order);
// An error when the bytes are not exactly those of one order.
[[nodiscard]] base::Result<LaunchOrder> unpack_order(std::string_view bytes);

}  // namespace belljar::remote
