// An ssh target: what is known of it, and this Belljar on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "remote/ssh.h"

namespace belljar::remote {

// What a check finds.
struct TargetFacts {
  std::string architecture;  // as uname(1) calls it
  std::string kernel;
  std::string home;
  std::string uid;
  std::string path;                // PATH of a login there, where version managers put theirs; empty: not known
  std::string user_namespaces;     // how many it may have (namespaces(7)); empty: not known
  std::vector<std::string> tools;  // of those asked about, which are there

  bool operator==(const TargetFacts&) const = default;
};

// The script of the check, which only looks.
[[nodiscard]] std::string_view check_script();
// From what it printed, with whatever a login shell printed before. An error when it did not come to its end.
[[nodiscard]] base::Result<TargetFacts> parse_facts(std::string_view output);
// As parse_facts() reads it back.
[[nodiscard]] std::string facts_text(const TargetFacts& facts);
// Refuses a target that cannot run this Belljar, with the reason. `architecture` is this machine's.
[[nodiscard]] base::Status check_facts(std::string_view destination, const TargetFacts& facts,
                                       std::string_view architecture);
[[nodiscard]] std::string own_architecture();

// A program that is copied, by its content.
struct Program {
  std::string path;  // here; empty: it is not copied
  std::string hash;  // SHA-256, in hex; kNoProgram without a path
};
inline constexpr const char* kNoProgram = "none";

struct Programs {
  Program belljar;
  Program guest;
  Program notify;  // without it guests have none (plan::add_notify())
  Program tls;     // only for a https hook: it is half as large as all the others
};
// What an empty path names is not copied.
[[nodiscard]] base::Result<Programs> identify_programs(const std::string& belljar, const std::string& guest,
                                                       const std::string& notify, const std::string& tls);

[[nodiscard]] base::Result<TargetFacts> check_target(std::string_view destination);
// Copies them into Belljar's cache on the target, under a name made of their hashes. Guests never see that folder.
[[nodiscard]] base::Status copy_programs(std::string_view destination, const Programs& programs);
// Starts the far end there. The programs are hashed by the very descriptors that are executed.
[[nodiscard]] base::Result<Ssh> start_far_end(std::string_view destination, const Programs& programs);

// The scripts of both, for tests: like check_script() they hold nothing that login shells read differently.
[[nodiscard]] std::string_view copy_script();
[[nodiscard]] std::string_view start_script();

// What it says in place of being ready.
inline constexpr std::string_view kMissingMark = "\nbelljar programs missing\n";

}  // namespace belljar::remote
