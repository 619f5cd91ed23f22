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
  // The launch form states a whole isolation: what lower layers said of hosts and image does not add to it.
  bool whole_isolation = false;

  std::vector<std::string> files{};        // that it was read from, as they were named
  std::vector<Said<std::string>> extends;  // names of presets and paths of files as written, not yet read

  std::optional<Said<Mode>> mode;
  std::optional<Said<Network>> network;
  std::optional<Said<std::string>> docker_image;
  std::optional<Said<Transparent>> transparent;
  std::vector<HostRule> allow_hosts;
  std::vector<HostRule> deny_hosts;
  std::vector<HostRule> host_ports;
  std::vector<Said<ExposedPort>> expose;
  std::optional<Said<bool>> nested;
  std::optional<Said<bool>> ask;
  std::optional<Said<uint64_t>> ask_seconds;
  std::optional<Said<std::string>> upstream_proxy;

  std::vector<Said<std::string>> read;
  std::vector<Said<std::string>> write;
  std::vector<Said<std::string>> hide;
  std::vector<Said<std::string>> approve;
  std::optional<Said<Home>> home;
  std::optional<Said<Toolchains>> toolchains;
  std::optional<Said<bool>> allow_home;

  std::optional<Said<GitAccess>> git;
  std::map<std::string, Said<uint64_t>> limits;  // by the names of limit_specs()

  std::vector<Said<std::string>> env_allow;
  std::map<std::string, Said<std::string>> env_set;

  std::optional<Said<Clipboard>> clipboard;
  std::optional<Said<std::string>> audit_file;
  std::optional<Said<bool>> audit_chain;
  std::optional<Said<bool>> audit_required;

  std::optional<Said<std::string>> hook_url;
  std::optional<Said<std::string>> hook_token_env;
  std::optional<Said<std::string>> hook_token_file;
  std::optional<Said<std::string>> target;

  std::optional<Said<Agent>> agent;
};

}  // namespace belljar::policy
