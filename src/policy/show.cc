#include "policy/show.h"

#include <array>
#include <cstdio>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/host_rule.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

// An entry of a list, as each format writes it.
struct Item {
  std::string toml;
  std::string json;
  std::string source;
};

// One setting of a table: a word that stands as it is, a list of strings, or a table of strings.
struct Setting {
  std::string key;
  std::string literal;
  std::vector<Item> items;                                    // of a list; none: this is no list
  const std::map<std::string, std::string>* table = nullptr;  // of names and values
};

struct Table {
  std::string name;  // "" for the top
  std::vector<Setting> settings;
};

void add_word(Table& table, std::string_view key, std::string_view word) {
  table.settings.push_back({std::string(key), quote(word), {}});
}

void add_items(Table& table, std::string_view key, std::vector<Item> items) {
  if (!items.empty()) table.settings.push_back({std::string(key), {}, std::move(items)});
}

// Entries of `sources` are found by the path of the list and the entry.
void add_list(Table& table, std::string_view key, const std::vector<std::string>& list,
              const std::map<std::string, std::string>& sources) {
  std::vector<Item> items;
  for (const std::string& entry : list) {
    const auto source = sources.find(table.name + "." + std::string(key) + " " + entry);
    items.push_back({quote(entry), quote(entry), source == sources.end() ? "" : source->second});
  }
  add_items(table, key, std::move(items));
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) out.push_back(quote(text));
  return "[" + base::join(out, ", ") + "]";
}

// A host rule: as text where that says it all, else as a table on one line.
Item rule_item(const HostRule& rule) {
  if (rule.host_port) {
    const std::string port = std::to_string(rule.port.value_or(0));
    return {port, port, rule.source};
  }
  const std::string text = quote(to_text(rule));
  if (!rule.has_options() && rule.ports.empty()) return {text, text, rule.source};
  std::vector<std::pair<std::string_view, std::string>> entries;
  if (rule.ports.empty()) {
    entries.emplace_back("host", text);
  } else {
    std::vector<std::string> ports;
    for (const uint16_t port : rule.ports) ports.push_back(std::to_string(port));
    entries.emplace_back("host", quote(rule.pattern));
    entries.emplace_back("ports", "[" + base::join(ports, ", ") + "]");
  }
  if (!rule.methods.empty()) entries.emplace_back("methods", quoted_list(rule.methods));
  if (!rule.paths.empty()) entries.emplace_back("paths", quoted_list(rule.paths));
  if (rule.tls != Tls::kTunnels) entries.emplace_back("tls", quote(name_of_value(rule.tls, kTlsUses)));
  if (rule.max_connections) entries.emplace_back("max_connections", std::to_string(*rule.max_connections));
  if (rule.max_bytes) entries.emplace_back("max_bytes", quote(size_text(*rule.max_bytes)));
  if (rule.requests_per_minute) entries.emplace_back("requests_per_minute", std::to_string(*rule.requests_per_minute));
  std::vector<std::string> toml;
  std::vector<std::string> json;
  for (const auto& [key, value] : entries) {
    toml.push_back(std::string(key) + " = " + value);
    json.push_back(quote(key) + ": " + value);
  }
  return {"{ " + base::join(toml, ", ") + " }", "{" + base::join(json, ", ") + "}", rule.source};
}

void add_rules(Table& table, std::string_view key, const std::vector<HostRule>& rules) {
  std::vector<Item> items;
  for (const HostRule& rule : rules) items.push_back(rule_item(rule));
  add_items(table, key, std::move(items));
}

void add_table(Table& table, std::string_view key, const std::map<std::string, std::string>& entries) {
  if (!entries.empty()) table.settings.push_back({std::string(key), {}, {}, &entries});
}

void add_ports(Table& table, const Policy& policy) {
  std::vector<std::string> ports;
  for (const ExposedPort& port : policy.isolation.expose) ports.push_back(to_text(port));
  add_list(table, "expose", ports, policy.sources);
}

Table isolation_table(const Policy& policy) {
  Table isolation{"isolation", {}};
  add_word(isolation, "mode", name_of_value(policy.isolation.mode, kModes));
  add_word(isolation, "network", name_of_value(policy.isolation.network, kNetworks));
  if (policy.isolation.transparent != Transparent::kAuto) {
    add_word(isolation, "transparent", name_of_value(policy.isolation.transparent, kTransparents));
  }
  if (!policy.isolation.docker_image.empty()) add_word(isolation, "docker_image", policy.isolation.docker_image);
  add_rules(isolation, "allow_hosts", policy.isolation.allow_hosts);
  add_rules(isolation, "deny_hosts", policy.isolation.deny_hosts);
  add_rules(isolation, "host_ports", policy.isolation.host_ports);
  add_ports(isolation, policy);
  if (policy.isolation.nested) isolation.settings.push_back({"nested", "true", {}});
  if (policy.isolation.ask) isolation.settings.push_back({"ask", "true", {}});
  if (policy.isolation.ask_seconds != Isolation().ask_seconds) {
    add_word(isolation, "ask_timeout", duration_text(policy.isolation.ask_seconds));
  }
  if (!policy.isolation.upstream_proxy.empty()) {
    add_word(isolation, "upstream_proxy", policy.isolation.upstream_proxy);
  }
  return isolation;
}

Table agent_table(const Policy& policy) {
  const auto& sources = policy.sources;
  Table agent{"agent", {}};
  if (!policy.agent.name.empty()) {
    add_word(agent, "name", policy.agent.name);
    add_list(agent, "commands", policy.agent.commands, sources);
    add_list(agent, "config_dirs", policy.agent.config_dirs, sources);
    add_list(agent, "config_files", policy.agent.config_files, sources);
    add_list(agent, "obeyed", policy.agent.obeyed, sources);
    add_list(agent, "history", policy.agent.history, sources);
    if (!policy.agent.state_file.empty()) add_word(agent, "state_file", policy.agent.state_file);
    add_list(agent, "state_keys", policy.agent.state_keys, sources);
    add_list(agent, "credential_env", policy.agent.credential_env, sources);
    add_list(agent, "hosts", policy.agent.hosts, sources);
    add_list(agent, "registries", policy.agent.registries, sources);
    add_list(agent, "extra_arguments", policy.agent.extra_arguments, sources);
    add_table(agent, "env", policy.agent.env);
  }
  return agent;
}

std::vector<Table> tables_of(const Policy& policy) {
  const auto& sources = policy.sources;
  Table top{"", {}};
  add_word(top, "git", name_of_value(policy.git, kGitAccesses));
  if (!policy.target.empty()) add_word(top, "target", policy.target);
  Table isolation = isolation_table(policy);
  Table files{"files", {}};
  add_word(files, "home", name_of_value(policy.files.home, kHomes));
  add_word(files, "toolchains", name_of_value(policy.files.toolchains, kToolchains));
  if (policy.files.allow_home) files.settings.push_back({"allow_home", "true", {}});
  add_list(files, "read", policy.files.read, sources);
  add_list(files, "write", policy.files.write, sources);
  add_list(files, "hide", policy.files.hide, sources);
  add_list(files, "approve", policy.files.approve, sources);
  Table limits{"limits", {}};
  for (const LimitSpec& spec : limit_specs()) {
    const auto& value = policy.limits.*spec.field;
    if (!value) continue;
    const std::string text = limit_text(spec, *value);
    limits.settings.push_back({std::string(spec.name), spec.unit == LimitSpec::Unit::kCount ? text : quote(text), {}});
  }
  Table env{"env", {}};
  add_list(env, "allow", policy.env.allow, sources);
  add_table(env, "set", policy.env.set);
  Table terminal{"terminal", {}};
  add_word(terminal, "clipboard", name_of_value(policy.terminal.clipboard, kClipboards));
  Table audit{"audit", {}};
  if (!policy.audit.file.empty()) {
    add_word(audit, "file", policy.audit.file);
    audit.settings.push_back({"chain", policy.audit.chain ? "true" : "false", {}});
    audit.settings.push_back({"required", policy.audit.required ? "true" : "false", {}});
  }
  Table hook{"hook", {}};
  if (!policy.hook.url.empty()) add_word(hook, "url", policy.hook.url);
  if (!policy.hook.token_env.empty()) add_word(hook, "token_env", policy.hook.token_env);
  if (!policy.hook.token_file.empty()) add_word(hook, "token_file", policy.hook.token_file);
  Table agent = agent_table(policy);
  std::vector<Table> out;
  for (Table* table : {&top, &isolation, &files, &limits, &env, &terminal, &audit, &hook, &agent}) {
    if (!table->settings.empty()) out.push_back(std::move(*table));
  }
  return out;
}

class TomlWriter {
 public:
  explicit TomlWriter(const Policy& policy) : policy_(policy) {}

  std::string write(const std::vector<Table>& tables) {
    for (const Table& table : tables) write(table);
    return std::move(out_);
  }

 private:
  // The sources are printable by the contract of Said.
  [[nodiscard]] std::string comment(const std::string& key) const {
    const auto found = policy_.sources.find(key);
    return found == policy_.sources.end() ? "" : "  # " + found->second;
  }

  void write(const Table& table) {
    const std::string path = table.name.empty() ? "" : table.name + ".";
    // `agent` has one source for the whole table.
    if (!table.name.empty()) out_ += "\n[" + table.name + "]" + comment(table.name) + "\n";
    for (const Setting& setting : table.settings) {
      if (setting.table != nullptr) continue;
      const std::string key = path + setting.key;
      if (setting.items.empty()) {
        out_ += setting.key + " = " + setting.literal + comment(key) + "\n";
        continue;
      }
      out_ += setting.key + " = [\n";
      for (const Item& item : setting.items) {
        out_ += "  " + item.toml + "," + (item.source.empty() ? "" : "  # " + item.source) + "\n";
      }
      out_ += "]\n";
    }
    for (const Setting& setting : table.settings) {
      if (setting.table == nullptr) continue;
      const std::string key = path + setting.key;
      out_ += "\n[" + key + "]\n";
      for (const auto& [name, value] : *setting.table) {
        out_ += name + " = " + quote(value) + comment(key + "." + name) + "\n";
      }
    }
  }

  const Policy& policy_;
  std::string out_;
};

class JsonWriter {
 public:
  std::string write(const std::vector<Table>& tables) {
    open('{');
    for (const Table& table : tables) {
      if (!table.name.empty()) {
        key(table.name);
        open('{');
      }
      for (const Setting& setting : table.settings) write(setting);
      if (!table.name.empty()) close('}');
    }
    close('}');
    return std::move(out_) + "\n";
  }

 private:
  void write(const Setting& setting) {
    key(setting.key);
    if (!setting.items.empty()) {
      open('[');
      for (const Item& entry : setting.items) item(entry.json);
      close(']');
    } else if (setting.table != nullptr) {
      open('{');
      for (const auto& [name, value] : *setting.table) {
        key(name);
        out_ += quote(value);
      }
      close('}');
    } else {
      out_ += setting.literal;
    }
  }

  void next() {
    if (!first_) out_ += ',';
    first_ = false;
    if (depth_ > 0) out_ += '\n';
    out_.append(2 * depth_, ' ');
  }
  void key(std::string_view name) {
    next();
    out_ += quote(name) + ": ";
  }
  void item(const std::string& text) {
    next();
    out_ += text;
  }
  void open(char bracket) {
    out_ += bracket;
    ++depth_;
    first_ = true;
  }
  void close(char bracket) {
    --depth_;
    out_ += '\n';
    out_.append(2 * depth_, ' ');
    out_ += bracket;
    first_ = false;
  }

  std::string out_;
  size_t depth_ = 0;
  bool first_ = true;
};

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      std::array<char, 8> buffer{};
      std::snprintf(buffer.data(), buffer.size(), "\\u%04X", static_cast<unsigned>(byte));
      out += buffer.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string show_said_json(const Policy& policy) {
  std::vector<Table> tables = tables_of(policy);
  // A list or table of which anything was said was said whole: what is not said is not in a Policy.
  const auto was_said = [&](const Table& table, const Setting& setting) {
    if (!setting.items.empty() || setting.table != nullptr) return true;
    const std::string key = table.name.empty() ? setting.key : table.name + "." + setting.key;
    return policy.sources.contains(key) || policy.sources.contains(table.name);
  };
  for (Table& table : tables) std::erase_if(table.settings, [&](const Setting& s) { return !was_said(table, s); });
  std::erase_if(tables, [](const Table& table) { return table.settings.empty(); });
  return JsonWriter().write(tables);
}

std::vector<std::string> settings_of(const Policy& policy) {
  std::vector<std::string> out;
  for (const Table& table : tables_of(policy)) {
    for (const Setting& setting : table.settings) {
      const std::string key = table.name.empty() ? setting.key : table.name + "." + setting.key;
      if (!setting.items.empty()) {
        for (const Item& item : setting.items) out.push_back(key + " = " + item.toml);
      } else if (setting.table != nullptr) {
        for (const auto& [name, value] : *setting.table) out.push_back(key + "." + name + " = " + quote(value));
      } else {
        out.push_back(key + " = " + setting.literal);
      }
    }
  }
  return out;
}

std::string show(const Policy& policy) {
  return TomlWriter(policy).write(tables_of(policy));
}

std::string show_json(const Policy& policy) {
  return JsonWriter().write(tables_of(policy));
}

}  // namespace belljar::policy
