// What the command line says, as a layer over the policy file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/layer.h"

namespace belljar::policy {

// The text of each flag as the person typed it. The field says the flag.
struct FlagOverrides {
  std::optional<std::string> agent;            // --agent NAME
  std::optional<std::string> mode;             // --mode none|jail|bwrap|docker
  std::optional<std::string> docker_image;     // --docker-image IMAGE
  std::optional<std::string> net;              // --net allow|deny
  std::optional<std::string> git;              // --git read|write
  std::optional<std::string> clipboard;        // --clipboard deny|allow
  std::optional<std::string> timeout;          // --timeout 2h, or a number of seconds
  std::optional<std::string> memory;           // --memory 2GiB, or a number of bytes
  std::optional<std::string> cpu;              // --cpu 150%
  std::optional<std::string> pids;             // --pids 500
  std::optional<std::string> audit;            // --audit FILE
  std::optional<std::string> hook_url;         // --hook-url URL
  std::optional<std::string> hook_token_env;   // --hook-token-env NAME
  std::optional<std::string> hook_token_file;  // --hook-token-file FILE
  std::optional<std::string> target;           // --target local|ssh:HOST
  std::vector<std::string> allow_hosts;        // --allow-host HOST[:PORT]
  std::vector<std::string> deny_hosts;         // --deny-host HOST[:PORT]
  std::vector<std::string> host_ports;         // --host-port PORT
  std::vector<std::string> expose;             // --expose PORT[:GUESTPORT]
  bool nested = false;                         // --nested
  bool ask = false;                            // --ask
  bool allow_home = false;                     // --allow-home
  std::vector<std::string> read;               // --read PATH
  std::vector<std::string> write;              // --write PATH
  std::vector<std::string> hide;               // --hide PATH
  std::vector<std::string> approve;            // --approve PATH
  std::vector<std::string> env;                // --env NAME passes it, --env NAME=VALUE sets it

  bool operator==(const FlagOverrides&) const = default;
};

// Checked as the same words in a file are; an error reads `--allow-host 'x y': holds a space (…)`. A flag given twice
// with the same text counts once. Values of --env are never quoted in an error.
[[nodiscard]] base::Result<PolicyLayer> flags_layer(const FlagOverrides& flags);

}  // namespace belljar::policy
