#include "policy/show.h"

#include <array>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "policy/host_rule.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

// One setting of a table: a word that stands as it is, a list of strings, or a table of strings.
struct Setting {
  std::string key;
  std::string literal;
  const std::vector<std::string>* list = nullptr;
  const std::map<std::string, std::string>* table = nullptr;
};

struct Table {
  std::string name;  // "" for the top
  std::vector<Setting> settings;
};

// A string that both TOML (basic string) and JSON (RFC 8259, section 7) read back as `text`.
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

void add_word(Table& table, std::string_view key, std::string_view word) {
  table.settings.push_back({std::string(key), quote(word)});
}

void add_list(Table& table, std::string_view key, const std::vector<std::string>& list) {
  if (!list.empty()) table.settings.push_back({std::string(key), {}, &list});
}

void add_table(Table& table, std::string_view key, const std::map<std::string, std::string>& entries) {
  if (!entries.empty()) table.settings.push_back({std::string(key), {}, nullptr, &entries});
}

// `hosts` keeps the texts that the tables point to.
std::vector<Table> tables_of(const Policy& policy, std::vector<std::string>& hosts) {
  for (const HostRule& rule : policy.isolation.allow_hosts) hosts.push_back(to_text(rule));
  Table top{"", {}};
  add_word(top, "git", name_of_value(policy.git, kGitAccesses));
  Table isolation{"isolation", {}};
  add_word(isolation, "mode", name_of_value(policy.isolation.mode, kModes));
  add_word(isolation, "network", name_of_value(policy.isolation.network, kNetworks));
  if (!policy.isolation.docker_image.empty()) add_word(isolation, "docker_image", policy.isolation.docker_image);
  add_list(isolation, "allow_hosts", hosts);
  Table files{"files", {}};
  add_word(files, "home", name_of_value(policy.files.home, kHomes));
  add_list(files, "read", policy.files.read);
  add_list(files, "write", policy.files.write);
  add_list(files, "hide", policy.files.hide);
  Table limits{"limits", {}};
  for (const LimitSpec& spec : limit_specs()) {
    const auto& value = policy.limits.*spec.field;
    if (!value) continue;
    const std::string text = limit_text(spec, *value);
    limits.settings.push_back({std::string(spec.name), spec.unit == LimitSpec::Unit::kCount ? text : quote(text)});
  }
  Table env{"env", {}};
  add_list(env, "allow", policy.env.allow);
  add_table(env, "set", policy.env.set);
  Table agent{"agent", {}};
  if (!policy.agent.name.empty()) {
    add_word(agent, "name", policy.agent.name);
    add_list(agent, "commands", policy.agent.commands);
    add_list(agent, "config_dirs", policy.agent.config_dirs);
    add_list(agent, "config_files", policy.agent.config_files);
    add_list(agent, "credential_env", policy.agent.credential_env);
    add_list(agent, "hosts", policy.agent.hosts);
    add_list(agent, "registries", policy.agent.registries);
    add_list(agent, "extra_arguments", policy.agent.extra_arguments);
    add_table(agent, "env", policy.agent.env);
  }
  std::vector<Table> out;
  for (Table* table : {&top, &isolation, &files, &limits, &env, &agent}) {
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
      if (setting.list == nullptr) {
        out_ += setting.key + " = " + setting.literal + comment(key) + "\n";
        continue;
      }
      out_ += setting.key + " = [\n";
      for (const std::string& entry : *setting.list) {
        out_ += "  " + quote(entry) + "," + comment(key + " " + entry) + "\n";
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
    if (setting.list != nullptr) {
      open('[');
      for (const std::string& entry : *setting.list) item(quote(entry));
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

std::string show(const Policy& policy) {
  std::vector<std::string> hosts;
  return TomlWriter(policy).write(tables_of(policy, hosts));
}

std::string show_json(const Policy& policy) {
  std::vector<std::string> hosts;
  return JsonWriter().write(tables_of(policy, hosts));
}

}  // namespace belljar::policy
