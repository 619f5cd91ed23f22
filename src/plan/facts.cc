#include "plan/facts.h"

#include <algorithm>
#include <array>

#include "base/path.h"
#include "base/text.h"
#include "plan/agent_files.h"
#include "plan/toolchains.h"

namespace belljar::plan {

const std::vector<std::string_view>& etc_secret_names() {
  static const std::vector<std::string_view> names = {
      "/etc/shadow",
      "/etc/shadow-",
      "/etc/gshadow",
      "/etc/gshadow-",
      "/etc/master.passwd",
      "/etc/security/opasswd",
      "/etc/sudoers",
      "/etc/sudoers.d",
      "/etc/doas.conf",
      "/etc/ssl/private",
      "/etc/pki/tls/private",
      "/etc/letsencrypt/archive",
      "/etc/letsencrypt/accounts",
      "/etc/krb5.keytab",
      "/etc/docker",
      "/etc/containers/auth.json",
      "/etc/kubernetes",
      "/etc/rancher",
      "/etc/wireguard",
      "/etc/openvpn",
      "/etc/ipsec.secrets",
      "/etc/ipsec.d/private",
      "/etc/swanctl/private",
      "/etc/ppp/chap-secrets",
      "/etc/ppp/pap-secrets",
      "/etc/wpa_supplicant",
      "/etc/NetworkManager/system-connections",
      "/etc/apt/auth.conf",
      "/etc/apt/auth.conf.d",
      "/etc/cifs-credentials",
      "/etc/crypttab",
      "/etc/luks",
      "/etc/samba/private",
      "/etc/mysql/debian.cnf",
      "/etc/ldap.secret",
      "/etc/pam_ldap.secret",
      "/etc/libnss-ldap.secret",
      "/etc/machine-id",
  };
  return names;
}

const std::vector<std::string_view>& root_entry_names() {
  static const std::vector<std::string_view> names = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                                      "/lib64", "/libx32", "/etc",  "/opt", "/nix"};
  return names;
}

const std::vector<std::string_view>& device_names() {
  static const std::vector<std::string_view> names = {"null", "zero", "full", "random", "urandom", "tty"};
  return names;
}

const std::vector<std::string_view>& ca_variables() {
  static const std::vector<std::string_view> names = {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
                                                      "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"};
  return names;
}

std::vector<std::string> command_of(const policy::Policy& policy, const Request& request) {
  if (!request.command.empty()) return request.command;
  if (!policy.agent.commands.empty()) return {policy.agent.commands.front()};
  return {};
}

base::Result<std::string> expand_path(std::string_view text, std::string_view home, std::string_view work_folder) {
  if (text.empty()) return base::refuse("resolve path", text, "it is empty");
  std::string whole;
  if (text.front() == '~') {
    if (text.size() > 1 && text[1] != '/') {
      return base::refuse("resolve path", text, "homes of other users are not looked up", "write the absolute path");
    }
    if (home.empty()) return base::refuse("resolve path", text, "the home is not known", "set HOME");
    whole = std::string(home) + "/" + std::string(text.substr(1));
  } else if (text.front() == '/') {
    whole = text;
  } else {
    whole = std::string(work_folder) + "/" + std::string(text);
  }
  std::string path = base::normal_path(whole);
  if (path.empty()) return base::refuse("resolve path", text, "it holds a NUL byte or climbs above '/'");
  return path;
}

std::vector<std::string> path_folders(std::string_view path) {
  std::vector<std::string> out;
  for (const std::string_view entry : base::split(path, ':')) {
    std::string folder = base::normal_path(entry);
    if (folder.empty() || std::ranges::find(out, folder) != out.end()) continue;
    out.push_back(std::move(folder));
  }
  return out;
}

base::Result<std::vector<std::string>> needed_paths(const policy::Policy& policy, const Facts& facts,
                                                    const Request& request) {
  std::vector<std::string> out{facts.work_folder};
  if (!facts.home.empty()) out.push_back(facts.home);
  const std::array lists{&policy.files.read, &policy.files.write, &policy.files.hide};
  for (const auto* list : lists) {
    for (const std::string& text : *list) {
      BELLJAR_ASSIGN(std::string path, expand_path(text, facts.home, facts.work_folder));
      out.push_back(std::move(path));
    }
  }
  if (!facts.home.empty()) {
    for (const std::string_view text : toolchain_folders()) out.push_back(facts.home + std::string(text.substr(1)));
  }
  const policy::Agent& agent = policy.agent;
  const std::vector<std::string> state{agent.state_file};
  for (const auto* list : {&agent.config_dirs, &agent.config_files, &agent.obeyed, &agent.history, &state}) {
    if (list->empty() || list->front().empty()) continue;
    BELLJAR_ASSIGN(std::vector<AgentPath> asked, agent_paths(*list, facts, request));
    for (AgentPath& path : asked) out.push_back(std::move(path.path));
  }
  if (!request.chdir.empty()) {
    BELLJAR_ASSIGN(std::string path, expand_path(request.chdir, facts.home, facts.work_folder));
    out.push_back(std::move(path));
  }
  const auto value_of = [&](std::string_view name) {
    const auto found = facts.environment.find(name);
    return found == facts.environment.end() ? std::string() : found->second;
  };
  for (std::string& folder : path_folders(value_of("PATH"))) out.push_back(std::move(folder));
  out.push_back(base::normal_path(value_of("SHELL")));
  for (const std::string_view name : ca_variables()) out.push_back(base::normal_path(value_of(name)));
  out.insert(out.end(), facts.own_folders.begin(), facts.own_folders.end());
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  std::erase_if(out, [](const std::string& path) { return path.empty(); });
  return out;
}

}  // namespace belljar::plan
