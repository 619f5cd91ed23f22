// The distribution's bubblewrap: where it is, which it is, and whether the bwrap tier can be built on it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace belljar::linux {

struct BubblewrapVersion {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  auto operator<=>(const BubblewrapVersion&) const = default;
};

// The version in what `bwrap --version` prints ("bubblewrap 0.8.0"). False when there is none.
[[nodiscard]] bool parse_bubblewrap_version(std::string_view text, BubblewrapVersion& out);
[[nodiscard]] std::string to_text(const BubblewrapVersion& version);

// The first that the tier can be built on: --disable-userns came with it (bubblewrap's release notes, 0.8.0).
inline constexpr BubblewrapVersion kFirstBubblewrap{0, 8, 0};
// The first that makes no mount point through a link outside of the new root (CVE-2026-87766). Below it, what a mount
// point lies in must not be able to change while bubblewrap sets up.
inline constexpr BubblewrapVersion kFirstWithoutLinks{0, 12, 0};

struct Bubblewrap {
  std::string path;  // absolute; empty: none in PATH
  BubblewrapVersion version;
  std::string fault;   // why the tier cannot be built on it; empty: it can
  std::string remedy;  // for a person; empty without a fault
  [[nodiscard]] bool follows_links() const { return version < kFirstWithoutLinks; }
};

// Looks for `bwrap` in the absolute folders of `path` (a PATH), and runs it to ask for its version. One that somebody
// else than root or the caller could have written is not run.
[[nodiscard]] Bubblewrap find_bubblewrap(std::string_view path);

// What a program prints to its standard output and error, run without an environment and with no input, for at most
// some seconds and 64 KiB.
struct Said {
  int status = -1;  // as of wait(2); -1: it could not be run, or took too long
  std::string out;
  std::string err;
};
[[nodiscard]] Said ask_program(const std::vector<std::string>& words);

// Has `bwrap` make all the namespaces that the tier needs, and run `/bin/true` in them. Empty when it worked, else the
// first line that it said.
[[nodiscard]] std::string try_bubblewrap(const Bubblewrap& bwrap);

// What a person can do about a host where bubblewrap fails with `said`.
[[nodiscard]] std::string bubblewrap_remedy(std::string_view said);

}  // namespace belljar::linux
