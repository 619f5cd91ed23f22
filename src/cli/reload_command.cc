#include "cli/reload_command.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/launch_record.h"
#include "cli/policy_options.h"
#include "egress/rule_feed.h"
#include "net/name_servers.h"
#include "policy/merge.h"
#include "session/facts.h"
#include "session/live_rules.h"
#include "session/state_folder.h"

namespace belljar::cli {
namespace {

constexpr std::string_view kOperation = "reload";
constexpr size_t kMostRecord = size_t{4} << 20U;

constexpr const char* kReloadHelp =
    "Usage: belljar reload [OPTION]... [SESSION]\n"
    "Reads the policy of a running session anew and gives it the rules for hosts: what is still allowed lives on, "
    "what\n"
    "no longer is is cut. The policy is what a launch would read now: the defaults, the same file, the same flags, "
    "and\n"
    "the options given here, which stay. All other settings wait for the next session. The host's name servers are\n"
    "read anew as well. Without SESSION: the one that runs in the current folder, or the only one.\n\n"
    "Examples:\n"
    "  belljar reload\n"
    "  belljar reload --allow-host example.com\n"
    "  belljar reload --deny-host ads.example.com 3f2a\n\nOptions:\n";

struct ReloadOptions {
  policy::FlagOverrides flags;
  bool list = false;
  bool help = false;
};

std::vector<Option> reload_options(ReloadOptions& asked) {
  return {{"--allow-host", "HOST", "one more host, from now on", append(asked.flags.allow_hosts)},
          {"--deny-host", "HOST", "a host that no rule allows, from now on", append(asked.flags.deny_hosts)},
          {"--host-port", "PORT", "a port of the host's loopback, from now on", append(asked.flags.host_ports)},
          {"--list", "", "print the sessions that run, and their folders", turn_on(asked.list)},
          {"--help", "", "this page", turn_on(asked.help)}};
}

struct Running {
  std::string session;
  LaunchRecord record;
};

base::Result<LaunchRecord> read_record(const session::StateFolder& state, const std::string& session) {
  const std::string name = session + std::string(session::kLaunchRecord);
  BELLJAR_ASSIGN(const base::Fd file, state.open_file(name, O_RDONLY));
  BELLJAR_ASSIGN(const std::string bytes, base::read_to_end(file.get(), kMostRecord, name));
  return decode_launch_record(bytes);
}

base::Result<std::vector<Running>> running(const session::StateFolder& state) {
  BELLJAR_ASSIGN(const std::vector<std::string> names, session::live_sessions(state));
  std::vector<Running> out;
  for (const std::string& name : names) {
    // One that ends just now has none any more.
    if (auto record = read_record(state, name)) out.push_back({name, std::move(*record)});
  }
  return out;
}

base::Result<Running> choose(std::vector<Running> all, const std::string& wanted, const std::string& folder) {
  const auto keep = [&](auto fits) { std::erase_if(all, [&](const Running& one) { return !fits(one); }); };
  if (!wanted.empty()) {
    keep([&](const Running& one) { return one.session.starts_with(wanted); });
  } else if (all.size() > 1) {
    keep([&](const Running& one) { return one.record.folder == folder; });
  }
  if (all.size() == 1) return std::move(all.front());
  return base::refuse(
      kOperation, wanted,
      all.empty() ? "no such session runs, or it takes no other rules" : "more than one session is meant",
      "see 'belljar reload --list'");
}

void add(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& text : from) {
    if (std::ranges::find(to, text) == to.end()) to.push_back(text);
  }
}

base::Result<std::string> reload(const Context& context, const ReloadOptions& asked, const std::string& wanted) {
  BELLJAR_ASSIGN(const session::Launcher launcher, session::current_launcher());
  BELLJAR_ASSIGN(const session::StateFolder state, session::StateFolder::open(session::state_path()));
  if (!asked.list) BELLJAR_TRY(session::lock_rules(state));
  BELLJAR_ASSIGN(std::vector<Running> all, running(state));
  if (asked.list) {
    std::string out;
    for (const Running& one : all) out += one.session + "  " + base::escape(one.record.folder) + "\n";
    return out;
  }
  BELLJAR_ASSIGN(Running chosen, choose(std::move(all), wanted, launcher.folder));
  LaunchRecord& record = chosen.record;
  add(record.flags.allow_hosts, asked.flags.allow_hosts);
  add(record.flags.deny_hosts, asked.flags.deny_hosts);
  add(record.flags.host_ports, asked.flags.host_ports);
  BELLJAR_ASSIGN(const policy::Policy policy, load_policy(context, launcher, record));
  if (policy.isolation.network != policy::Network::kDeny) {
    return base::refuse(kOperation, chosen.session, "the policy says network = allow now, refusing",
                        "a session's network stays as it was: end it, and start another");
  }
  const egress::RuleUpdate update{policy::session_rules(policy), net::host_name_servers()};
  BELLJAR_ASSIGN(const std::string taken, session::send_rules(state, chosen.session, update));
  BELLJAR_TRY(state.write_file(chosen.session + std::string(session::kLaunchRecord), encode(record)));
  const std::string cut = taken.substr(taken.find(' ') + 1);
  return "session " + chosen.session + ": " + std::to_string(update.rules.size()) + " rules, " + cut +
         (cut == "1" ? " connection" : " connections") + " cut\n";
}

}  // namespace

std::vector<Option> reload_options_of() {
  ReloadOptions asked;
  std::vector<Option> out = reload_options(asked);
  for (Option& option : out) option.take = nullptr;  // they refer to what ends here
  return out;
}

int reload_command(const Context& context, std::span<const std::string> arguments) {
  ReloadOptions asked;
  const std::vector<Option> options = reload_options(asked);
  const auto words = parse_options(arguments, options);
  if (!words) return report(context, words.error());
  if (asked.help) return print(context, kReloadHelp + options_help(options));
  if (words->size() > 1) {
    return report(context, base::refuse("read the arguments", (*words)[1], "one session at a time is expected",
                                        "see 'belljar reload --help'")
                               .error());
  }
  const auto text = reload(context, asked, words->empty() ? "" : words->front());
  return text ? print(context, *text) : report(context, text.error());
}

}  // namespace belljar::cli
