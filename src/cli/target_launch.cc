#include "cli/target_launch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/hook_token.h"
#include "cli/launch.h"
#include "plan/facts.h"
#include "policy/hook_url.h"
#include "policy/show.h"
#include "policy/target.h"
#include "policy/values.h"
#include "remote/far_end.h"
#include "remote/near_end.h"
#include "remote/quote.h"
#include "remote/target.h"
#include "session/facts.h"
#include "session/terminal.h"
#include "store/standing.h"

namespace belljar::cli {
namespace {

using Environment = std::map<std::string, std::string, std::less<>>;

constexpr uint64_t kShortestTimeout = 2;
constexpr uint64_t kLongestTimeout = 3600;
constexpr uint32_t kUsualTimeout = 30;
// What a launch on a target has after its deadline, to be settled there and to tell of it, before it is given up here.
constexpr auto kEnding = std::chrono::minutes(2);
constexpr size_t kMostAuthorities = size_t{1} << 20U;
// By which the launcher there gets the token that was made here.
constexpr const char* kTokenVariable = "BELLJAR_HOOK_TOKEN";

// What of this machine's variables the launcher there gets: how the terminal and the language are, what the policy
// passes, and the hook's token.
std::map<std::string, std::string> forwarded(const policy::Policy& policy, const Environment& environment) {
  std::map<std::string, std::string> out;
  const auto pass = [&](const std::string& name) {
    const auto found = environment.find(name);
    if (found != environment.end()) out[name] = found->second;
  };
  for (const char* name : {"TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE"}) pass(name);
  for (const auto& [name, value] : environment) {
    if (name.starts_with("LC_")) out[name] = value;
  }
  for (const std::string& name : policy.agent.credential_env) pass(name);
  for (const std::string& name : policy.env.allow) pass(name);
  if (!policy.hook.token_env.empty()) pass(policy.hook.token_env);
  return out;
}

base::Result<uint32_t> link_seconds(const std::string& text) {
  if (text.empty()) return kUsualTimeout;
  const auto value = policy::parse_duration(text);
  if (!value) return base::refuse("--link-timeout", text, value.error().reason, value.error().hint);
  if (*value < kShortestTimeout || *value > kLongestTimeout) {
    return base::refuse("--link-timeout", text, "it is not from 2s to 1h");
  }
  return static_cast<uint32_t>(*value);
}

bool has_secure_hook(const policy::Policy& policy) {
  const auto url = policy::parse_hook_url(policy.hook.url);
  return url && url->tls;
}

// What the relay there needs of this machine: the token, and whose certificates the person has named. Where they have
// named none, those of the machine count from which the control host is reached.
base::Status add_hook(const TargetLaunch& launch, const std::string& home, policy::Policy& policy,
                      remote::LaunchOrder& order) {
  std::string file = std::exchange(policy.hook.token_file, {});
  if (!file.empty() && launch.use == remote::Use::kRun) {
    BELLJAR_ASSIGN(file, plan::expand_path(file, home, launch.launch.folder));
    BELLJAR_ASSIGN(order.environment[kTokenVariable], make_hook_token(file));
    policy.hook.token_env = kTokenVariable;
  }
  const auto named = launch.environment.find("SSL_CERT_FILE");
  if (named == launch.environment.end() || !has_secure_hook(policy)) return {};
  BELLJAR_ASSIGN(order.authorities, base::read_regular_file(named->second, kMostAuthorities, true));
  return {};
}

base::Result<remote::LaunchOrder> order_of(const TargetLaunch& launch, bool report) {
  remote::LaunchOrder out;
  policy::Policy policy = launch.launch.policy;
  policy.target.clear();
  out.use = launch.use;
  out.session = launch.session;
  out.json = launch.json;
  out.report = report;
  out.command = launch.launch.request.command;
  out.chdir = launch.launch.request.chdir;
  const auto home = launch.environment.find("HOME");
  const std::string home_here = home == launch.environment.end() ? "" : base::normal_path(home->second);
  out.folder = launch.launch.target_folder.empty() ? remote::portable_path(launch.launch.folder, home_here)
                                                   : launch.launch.target_folder;
  if (!out.folder.starts_with('/') && out.folder != "~" && !out.folder.starts_with("~/")) {
    return base::refuse("--folder", out.folder, "it is neither absolute nor below ~");
  }
  out.environment = forwarded(policy, launch.environment);
  BELLJAR_TRY(add_hook(launch, home_here, policy, out));
  out.policy = policy::show_json(policy);
  const mode_t mask = ::umask(022);
  ::umask(mask);
  out.umask = mask;
  BELLJAR_ASSIGN(out.link_seconds, link_seconds(launch.link_timeout));
  return out;
}

base::Result<remote::TargetFacts> remember(const store::Places& places, const std::string& target) {
  BELLJAR_ASSIGN(remote::TargetFacts facts, remote::check_target(policy::ssh_destination(target)));
  if (!places.state.empty()) {
    BELLJAR_ASSIGN(const store::Store store, store::Store::open(places.state));
    BELLJAR_TRY(store.remember_target(target, remote::facts_text(facts)));
  }
  return facts;
}

base::Result<std::optional<remote::TargetFacts>> remembered(const store::Places& places, const std::string& target) {
  if (places.state.empty()) return std::nullopt;
  BELLJAR_ASSIGN(const std::optional<store::Store> store, store::Store::open_existing(places.state));
  if (!store) return std::nullopt;
  BELLJAR_ASSIGN(const std::optional<std::string> text, store->target(target));
  if (!text) return std::nullopt;
  // Of another version, perhaps: then the target is checked anew.
  auto facts = remote::parse_facts(*text);
  if (!facts) return std::nullopt;
  return std::move(*facts);
}

// Programs of Belljar's that a launch may need beside the two: what guests with a hook get (see plan::add_notify()),
// and what speaks TLS with a control host.
constexpr const char* kNotify = "/belljar-notify";
constexpr const char* kTls = "/belljar-tls";

std::string beside(const std::string& program, const char* name) {
  return base::parent_of(program) + name;
}

bool is_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

// The launch gets the PATH of a login there: ssh's commands have another, without what is in the home.
base::Result<remote::Ssh> connect(const Context& context, const store::Places& places, const std::string& target,
                                  bool with_tls, std::map<std::string, std::string>& environment) {
  const std::string_view destination = policy::ssh_destination(target);
  BELLJAR_ASSIGN(std::optional<remote::TargetFacts> facts, remembered(places, target));
  if (!facts) {
    BELLJAR_ASSIGN(facts, remember(places, target));
  }
  BELLJAR_TRY(remote::check_facts(destination, *facts, remote::own_architecture()));
  if (facts->path.starts_with('/')) environment.emplace("PATH", facts->path);
  BELLJAR_ASSIGN(const std::string self, base::real_path("/proc/self/exe"));
  const std::string notify = beside(self, kNotify);
  BELLJAR_ASSIGN(const remote::Programs programs,
                 remote::identify_programs(self, context.guest_path, is_there(notify) ? notify : std::string(),
                                           with_tls ? beside(self, kTls) : std::string()));
  for (int attempt = 0; attempt < 2; ++attempt) {
    BELLJAR_ASSIGN(remote::Ssh ssh, remote::start_far_end(destination, programs));
    BELLJAR_ASSIGN(const bool ready, remote::await_far_end(ssh, destination));
    if (ready) return ssh;
    if (attempt == 0) BELLJAR_TRY(remote::copy_programs(destination, programs));
  }
  return base::refuse("use the target", destination,
                      "the programs that were copied there are not what was sent, refusing");
}

bool is_open_file(int descriptor, const std::string& path) {
  struct stat hashed{};
  struct stat found{};
  return ::fstat(descriptor, &hashed) == 0 && ::lstat(path.c_str(), &found) == 0 && hashed.st_ino == found.st_ino &&
         hashed.st_dev == found.st_dev;
}

// The programs are what the near end has hashed: this one is executed by that descriptor, 3, and the guest's, 4, must
// be the file that will be bound. So must notify's, 5, and that of TLS, 6, if they are there.
base::Status check_copied(const std::string& guest_path) {
  struct Copied {
    std::string path;
    int descriptor;
    bool needed;
  };
  for (const auto& [path, descriptor, needed] :
       {Copied{guest_path, 4, true}, Copied{beside(guest_path, kNotify), 5, false},
        Copied{beside(guest_path, kTls), 6, false}}) {
    if (is_open_file(descriptor, path) || (!needed && !is_there(path))) continue;
    return base::refuse("serve a link", path, "it is not the file whose hash was checked, refusing",
                        "this command is for belljar itself: belljar run --target ssh:HOST");
  }
  for (const int descriptor : {3, 4, 5, 6}) ::close(descriptor);
  return {};
}

base::Status enter(const std::string& folder) {
  const char* home = ::getenv("HOME");
  BELLJAR_ASSIGN(const std::string path, plan::expand_path(folder, home != nullptr ? home : "", "/"));
  if (::chdir(path.c_str()) != 0) {
    return base::system_error("enter the work folder on the target", path, errno, "name another by --folder");
  }
  return {};
}

std::string describe(const remote::TargetFacts& facts) {
  return "architecture     " + base::escape(facts.architecture) + "\nkernel           " + base::escape(facts.kernel) +
         "\nhome             " + base::escape(facts.home) + "\nuid              " + base::escape(facts.uid) +
         "\nPATH             " + (facts.path.empty() ? "not known" : base::escape(facts.path)) + "\nuser namespaces  " +
         (facts.user_namespaces.empty() ? "not known" : base::escape(facts.user_namespaces)) + "\ntools            " +
         base::escape(base::join(facts.tools, " ")) + "\n";
}

}  // namespace

base::Result<int> launch_on_target(const Context& context, TargetLaunch& launch, bool report) {
  const std::string& target = launch.launch.policy.target;
  BELLJAR_ASSIGN(remote::LaunchOrder order, order_of(launch, report));
  BELLJAR_ASSIGN(remote::Ssh ssh, connect(context, store::places_of(launch.environment), target,
                                          has_secure_hook(launch.launch.policy), order.environment));
  const session::TerminalFilter::Options screen = {
      .clipboard_write = launch.launch.policy.terminal.clipboard == policy::Clipboard::kAllow,
      .utf8 = session::speaks_utf8(::getenv("LC_ALL"), ::getenv("LC_CTYPE"), ::getenv("LANG"))};
  launch.held.emplace();
  const std::optional<uint64_t> wall = launch.launch.policy.limits.wall_seconds;
  const base::Deadline latest = wall ? base::Deadline::after(std::chrono::seconds(*wall) + kEnding) : base::Deadline();
  BELLJAR_ASSIGN(remote::LinkEnd end, remote::serve_near_end(std::move(ssh), policy::ssh_destination(target),
                                                             std::move(order), context.closed, screen, latest));
  launch.report = std::move(end.report);
  return end.code;
}

int target_command(const Context& context, std::span<const std::string> arguments) {
  constexpr const char* kUsage =
      "Usage: belljar target check|show TARGET\n"
      "What is known of an ssh target: found once and remembered; 'check' looks again.\n\nExample:\n"
      "  belljar target check ssh:build\n";
  if (arguments.size() == 1 && arguments[0] == "--help") return print(context, kUsage);
  if (arguments.size() != 2 || (arguments[0] != "check" && arguments[0] != "show")) {
    return report(context, base::refuse("read the arguments", arguments.empty() ? "" : arguments[0],
                                        "expected check or show, and a target", "belljar target check ssh:HOST")
                               .error());
  }
  const auto target = policy::parse_target(arguments[1]);
  if (!target || policy::ssh_destination(*target).empty()) {
    return report(context, base::refuse("read the target", arguments[1],
                                        target ? "this host needs no check" : target.error().reason, "ssh:HOST")
                               .error());
  }
  const auto launcher = session::current_launcher();
  if (!launcher) return report(context, launcher.error());
  const store::Places places = store::places_of(launcher->environment);
  std::optional<remote::TargetFacts> facts;
  if (arguments[0] == "show") {
    auto known = remembered(places, *target);
    if (!known) return report(context, known.error());
    facts = std::move(*known);
    if (!facts) {
      return report(
          context, base::refuse("show the target", *target, "nothing is known of it", "belljar target check " + *target)
                       .error());
    }
  } else {
    auto found = remember(places, *target);
    if (!found) return report(context, found.error());
    facts = std::move(*found);
  }
  const int code = print(context, describe(*facts));
  const auto good = remote::check_facts(policy::ssh_destination(*target), *facts, remote::own_architecture());
  return good ? code : report(context, good.error());
}

int remote_end_command(const Context& context, std::span<const std::string> /*arguments*/) {
  if (const auto good = check_copied(context.guest_path); !good) return report(context, good.error());
  return remote::serve_far_end(STDIN_FILENO, STDOUT_FILENO, [&](const remote::LaunchOrder& order, int report_to) {
    Context there = context;
    there.closed = 0;
    for (unsigned i = 0; i < order.streams.size(); ++i) {
      if (order.streams[i] == remote::StreamKind::kClosed) there.closed |= 1U << i;
    }
    if (const auto entered = enter(order.folder); !entered) return report(there, entered.error());
    return launch_order(there, order, report_to);
  });
}

}  // namespace belljar::cli
