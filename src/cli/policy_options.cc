#include "cli/policy_options.h"

namespace belljar::cli {

namespace {

template <class Field>
std::function<base::Status(std::string_view)> keep_in(Field& field) {
  return [&field](std::string_view value) -> base::Status {
    field = std::string(value);
    return {};
  };
}

}  // namespace

std::function<base::Status(std::string_view)> keep(std::optional<std::string>& field) {
  return keep_in(field);
}

std::function<base::Status(std::string_view)> keep(std::string& field) {
  return keep_in(field);
}

std::function<base::Status(std::string_view)> append(std::vector<std::string>& list) {
  return [&list](std::string_view value) -> base::Status {
    list.emplace_back(value);
    return {};
  };
}

std::function<base::Status(std::string_view)> turn_on(bool& field) {
  return [&field](std::string_view) -> base::Status {
    field = true;
    return {};
  };
}

std::vector<Option> policy_options(policy::FlagOverrides& flags, std::optional<std::string>& policy_file) {
  return {
      {"--agent", "NAME", "the agent's preset: claude, codex, gemini or one of the policy", keep(flags.agent)},
      {"--policy", "FILE", "a policy, TOML or JSON", keep(policy_file)},
      {"--mode", "MODE", "the tier: jail, bwrap, docker, or none for no boundary at all", keep(flags.mode)},
      {"--docker-image", "IMAGE", "the image of the container, with --mode docker", keep(flags.docker_image)},
      {"--net", "allow|deny", "deny (standard): only the allowed hosts; allow: the host's network", keep(flags.net)},
      {"--allow-host", "HOST", "one more host: example.com, *.example.com, db.test:5432", append(flags.allow_hosts)},
      {"--deny-host", "HOST", "a host that no rule allows: it wins over all others", append(flags.deny_hosts)},
      {"--host-port", "PORT", "a port of the host's loopback, inside at host.belljar:PORT", append(flags.host_ports)},
      {"--expose", "PORT[:PORT]", "a port of this host's loopback that leads to one of the guest's",
       append(flags.expose)},
      {"--ask", "", "ask at the terminal about each host that no rule decides about", turn_on(flags.ask)},
      {"--nested", "", "let the agent's own sandbox make namespaces and mounts inside", turn_on(flags.nested)},
      {"--audit", "FILE", "append every verdict of the way out there, a JSON object a line", keep(flags.audit)},
      {"--hook-url", "URL", "relay the agent's callbacks to this URL of a control host, and nothing else of it",
       keep(flags.hook_url)},
      {"--hook-token-env", "NAME", "send the value of this variable along; the agent never sees it",
       keep(flags.hook_token_env)},
      {"--hook-token-file", "FILE", "or a fresh token of the session, which is written there and the agent never sees",
       keep(flags.hook_token_file)},
      {"--target", "local|ssh:HOST", "where to run it: here, or on a host that your ssh reaches", keep(flags.target)},
      {"--read", "PATH", "one more path to read", append(flags.read)},
      {"--write", "PATH", "one more path to write", append(flags.write)},
      {"--hide", "PATH", "a path to hide", append(flags.hide)},
      {"--approve", "PATTERN", "let the agent make and change what programs obey: .vscode, 'build/**'",
       append(flags.approve)},
      {"--allow-home", "", "let the work folder be the home, / or a folder around the home", turn_on(flags.allow_home)},
      {"--env", "NAME[=VALUE]", "pass a variable, or set one", append(flags.env)},
      {"--git", "read|write", "what the agent may do to .git", keep(flags.git)},
      {"--clipboard", "deny|allow", "may the agent write the terminal's clipboard", keep(flags.clipboard)},
      {"--timeout", "TIME", "end the command after so long: 90s, 30m, 2h", keep(flags.timeout)},
      {"--memory", "SIZE", "at most so much memory, swap not counted: 512MiB, 4GiB", keep(flags.memory)},
      {"--cpu", "PERCENT", "at most so much processor time; 200% is two cores", keep(flags.cpu)},
      {"--pids", "NUMBER", "at most so many processes and threads", keep(flags.pids)},
  };
}

}  // namespace belljar::cli
