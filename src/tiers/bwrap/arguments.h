// What bubblewrap is told: the plan as its arguments. Pure, so that every agent and network can be asserted directly.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "guest/config.h"
#include "plan/plan.h"

namespace belljar::tiers::bwrap {

// Descriptors that the program is started with, beside 0, 1, 2 of its own. Those of belljar-guest come through.
enum Inherited : int {
  kControl = 3,
  kConfig = 4,
  kGuestStdin = 5,  // the guest's own 0, 1 and 2, since bubblewrap complains on 2
  kGuestStdout = 6,
  kGuestStderr = 7,
  kGuestProgram = 8,
  kInfo = 9,       // where bubblewrap tells the pid of its child
  kFirstData = 10  // one for each text, by its number
};

// What lies on the machine at the paths that the plan covers up, by path: true for a folder. What is missing has
// nothing to be hidden.
struct TargetFacts {
  std::map<std::string, bool, std::less<>> there;
  // Where the binds have been gathered for bubblewrap, each by its number; empty: it finds them at their real paths.
  std::string stage{};
};

// A file that the plan gives the guest.
struct Text {
  std::string content;
};

// A file or folder of the host that bubblewrap binds.
struct Source {
  std::string path;  // real
  bool writable = false;
  bool idmap = false;
  bool optional = false;
  std::string target;
};

struct Arguments {
  std::vector<std::string> words;            // from the program's path on
  std::vector<Text> texts;                   // the data of kFirstData, kFirstData + 1, …
  std::vector<Source> sources;               // every bind, by its number in the stage
  std::vector<std::string> scratch;          // targets; the first is the guest's home, if that is one
  uint64_t scratch_share = 0;                // bytes of each
  std::vector<guest::ExpectedMount> mounts;  // what the guest's mountinfo must hold; the texts lie in `names`
  std::deque<std::string> names;
};

// A folder of the guest's that only Landlock keeps it from writing to, one page large: the probe tries.
inline constexpr const char* kCanary = "/.belljar";

// The paths whose entry in TargetFacts decides an argument of `plan`, as the host names them.
[[nodiscard]] std::vector<std::string> covered_paths(const plan::Plan& plan);

// `copies` are the contents of the plan's copies, by target; one that is not in there is left out.
// Refuses a mount whose target would have to be made in a folder of the host, and one that makes nothing read-only.
[[nodiscard]] base::Result<Arguments> arguments_of(const plan::Plan& plan, const TargetFacts& facts,
                                                   const std::map<std::string, std::string, std::less<>>& copies,
                                                   bool landlock);

}  // namespace belljar::tiers::bwrap
