#include "cli/launch_record.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/pack.h"
#include "base/text.h"
#include "policy/load.h"
#include "policy/parse.h"
#include "policy/preset.h"
#include "store/standing.h"

namespace belljar::cli {
namespace {

constexpr uint64_t kMagic = 0x3168636e616c6a62;
constexpr uint64_t kMostText = 65536;
constexpr uint64_t kMostPolicy = uint64_t{1} << 20U;
constexpr uint64_t kMostWords = 4096;

using Text = std::optional<std::string> policy::FlagOverrides::*;
using List = std::vector<std::string> policy::FlagOverrides::*;

constexpr Text kTexts[] = {&policy::FlagOverrides::agent, &policy::FlagOverrides::mode, &policy::FlagOverrides::net,
                           &policy::FlagOverrides::hook_url, &policy::FlagOverrides::hook_token_env};
constexpr List kLists[] = {&policy::FlagOverrides::allow_hosts, &policy::FlagOverrides::deny_hosts,
                           &policy::FlagOverrides::host_ports};

void pack_optional(std::string& out, const std::optional<std::string>& text) {
  base::pack_number(out, text ? 1 : 0);
  base::pack_text(out, text.value_or(""));
}

std::optional<std::string> unpack_optional(base::Unpacker& in) {
  const bool there = in.number(1) != 0;
  std::string text = in.text(kMostText);
  return there ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace

std::string encode(const LaunchRecord& record) {
  std::string out;
  base::pack_number(out, kMagic);
  base::pack_text(out, record.folder);
  pack_optional(out, record.policy_file);
  base::pack_text(out, record.command);
  base::pack_text(out, record.policy);
  for (const Text text : kTexts) pack_optional(out, record.flags.*text);
  for (const List list : kLists) {
    base::pack_number(out, (record.flags.*list).size());
    for (const std::string& word : record.flags.*list) base::pack_text(out, word);
  }
  return out;
}

base::Result<LaunchRecord> decode_launch_record(std::string_view bytes) {
  base::Unpacker in(bytes);
  LaunchRecord out;
  const bool known = in.number() == kMagic;
  out.folder = in.text(kMostText);
  out.policy_file = unpack_optional(in);
  out.command = in.text(kMostText);
  out.policy = in.text(kMostPolicy);
  for (const Text text : kTexts) out.flags.*text = unpack_optional(in);
  for (const List list : kLists) {
    (out.flags.*list).resize(in.number(kMostWords));
    for (std::string& word : out.flags.*list) word = in.text(kMostText);
  }
  if (known && in.at_end()) return out;
  return base::refuse("read what is known of the launch", "", "it is not whole, or another version wrote it");
}

base::Result<policy::Policy> load_policy(const Context& context, const session::Launcher& launcher,
                                         const LaunchRecord& record) {
  if (!record.policy.empty()) {
    BELLJAR_ASSIGN(policy::PolicyLayer layer, policy::parse_policy(record.policy, "launch"));
    return policy::load({std::move(layer)}, std::nullopt, record.flags);
  }
  BELLJAR_ASSIGN(const store::Standing standing,
                 store::gather_standing(store::places_of(launcher.environment), record.folder));
  for (const std::string& note : standing.notes) {
    std::fprintf(context.err, "belljar: %s\n", base::escape(note).c_str());
  }
  policy::FlagOverrides flags = record.flags;
  const bool named = record.policy_file || std::ranges::any_of(standing.layers, [](const policy::PolicyLayer& layer) {
                       return layer.agent.has_value();
                     });
  // `belljar run -- claude` means that agent. A path may be a program of the work folder's that only has the name.
  if (!flags.agent && !named && !record.command.empty() && record.command.find('/') == std::string::npos) {
    const policy::Agent* agent = policy::find_agent_of_command(record.command);
    if (agent != nullptr) flags.agent = agent->name;
  }
  return policy::load(standing.layers, record.policy_file, flags);
}

}  // namespace belljar::cli
