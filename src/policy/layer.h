// What one source said, with the place of every word; not yet a policy (policy/merge.h makes one of several).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace belljar::policy {

template <class T>
struct Said {
  T value{};
  std::string source;  // "FILE:12:3", "--read", "preset claude", "built-in policy"; safe to print
};

// Absent means: not said here. Values are valid and canonical; entries of one list are distinct.
struct PolicyLayer {
  std::vector<Said<std::string>> extends;  // names of presets and paths of files as written, not yet read

  std::optional<Said<Mode>> mode;
  std::optional<Said<Network>> network;
  std::optional<Said<std::string>> docker_image;
  std::vector<HostRule> allow_hosts;

  std::vector<Said<std::string>> read;
  std::vector<Said<std::string>> write;
  std::vector<Said<std::string>> hide;
  std::optional<Said<Home>> home;

  std::optional<Said<GitAccess>> git;
  std::map<std::string, Said<uint64_t>> limits;  // by the names of limit_specs()

  std::vector<Said<std::string>> env_allow;
  std::map<std::string, Said<std::string>> env_set;

  std::optional<Said<Agent>> agent;
};

}  // namespace belljar::policy
