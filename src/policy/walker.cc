#include "policy/walker.h"

#include <algorithm>

#include "base/text.h"

namespace belljar::policy {

base::Status Section::check_keys(const Names& known) const {
  const std::string name = path_.substr(0, path_.empty() ? 0 : path_.size() - 1);
  if (node_.kind != Node::Kind::kTable) {
    return base::refuse(place_of(node_.at) + ": " + name, "",
                        "expected a table, found " + std::string(kind_text(node_.kind)),
                        "its keys are " + known_hint("", known).substr(7));
  }
  for (const Member& member : node_.members) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    std::string hint = home_of_key(member.key);
    hint = hint.empty() ? known_hint(member.key, known) : "write it as " + hint;
    return base::refuse(place_of(member.at), "",
                        "unknown key '" + member.key + "'" + (name.empty() ? "" : " in [" + name + "]"), hint);
  }
  return {};
}

const Node* Section::find(std::string_view key) const {
  const auto& members = node_.members;
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

std::unexpected<base::Error> Section::refuse(const Node& node, std::string_view key, std::string_view text,
                                             const Refusal& refusal) const {
  const std::string subject(text.substr(0, 256));
  return base::refuse(place_of(node.at) + ": " + base::escape(path_) + base::escape(key),
                      text.size() > 256 ? subject + "..." : subject, refusal.reason, refusal.hint);
}

std::unexpected<base::Error> Section::wrong_type(const Node& node, std::string_view key,
                                                 std::string_view expected) const {
  return refuse(node, key, "",
                {"expected " + std::string(expected) + ", found " + std::string(kind_text(node.kind)), {}});
}

base::Result<std::string> Section::text(const Node& node, std::string_view key, const TextParser& parse) const {
  if (node.kind != Node::Kind::kString) return wrong_type(node, key, "a string");
  auto value = parse(node.text);
  if (!value) return refuse(node, key, node.text, value.error());
  return std::move(*value);
}

base::Status Section::boolean(std::string_view key, std::optional<Said<bool>>& out) const {
  const Node* node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Node::Kind::kBoolean) return wrong_type(*node, key, "true or false");
  out = {node->integer != 0, place_of(node->at)};
  return {};
}

base::Result<std::vector<Said<std::string>>> Section::list(std::string_view key, const TextParser& parse,
                                                           bool repeats) const {
  std::vector<Said<std::string>> out;
  const Node* node = find(key);
  if (node == nullptr) return out;
  if (node->kind != Node::Kind::kList) return wrong_type(*node, key, "a list of strings");
  std::map<std::string, Position> seen;
  for (const Node& item : node->items) {
    if (item.kind != Node::Kind::kString) return wrong_type(item, key, "a string in this list");
    BELLJAR_ASSIGN(std::string value, text(item, key, parse));
    const auto [first, added] = seen.try_emplace(value, item.at);
    if (!added && !repeats) {
      return refuse(item, key, value, {"given twice", "first at " + place_of(first->second)});
    }
    out.push_back({std::move(value), place_of(item.at)});
  }
  return out;
}

base::Result<std::vector<std::string>> Section::plain_list(std::string_view key, const TextParser& parse,
                                                           bool repeats) const {
  BELLJAR_ASSIGN(auto entries, list(key, parse, repeats));
  std::vector<std::string> out;
  out.reserve(entries.size());
  for (auto& entry : entries) out.push_back(std::move(entry.value));
  return out;
}

base::Result<std::map<std::string, Said<std::string>>> Section::variables(std::string_view key) const {
  std::map<std::string, Said<std::string>> out;
  const Node* node = find(key);
  if (node == nullptr) return out;
  if (node->kind != Node::Kind::kTable) return wrong_type(*node, key, "a table of names and values");
  const Section table = sub(key, *node);
  for (const Member& member : node->members) {
    if (auto name = parse_env_name(member.key); !name) {
      Node there = member.value;
      there.at = member.at;
      return refuse(there, key, member.key, name.error());
    }
    if (member.value.kind != Node::Kind::kString) return table.wrong_type(member.value, member.key, "a string");
    // A value may be a secret, so no message quotes it.
    auto value = parse_env_value(member.value.text);
    if (!value) return table.refuse(member.value, member.key, "", value.error());
    out[member.key] = {std::move(*value), place_of(member.value.at)};
  }
  return out;
}

}  // namespace belljar::policy
