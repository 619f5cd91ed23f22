// The only unit that sees toml++.
#include <algorithm>

#include "base/text.h"
#include "policy/document.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace belljar::policy {
namespace {

// toml++ bounds the nesting of values (256) but not of dotted keys, and frees its tree by recursion: `a.a.a…` of a
// whole file would exhaust the stack. So dots outside strings and comments are counted first. Where the text is no
// valid TOML this count may be wrong from that place on, but there toml++ stops reading too.
constexpr size_t kMaxDots = 1024;

size_t skip_string(std::string_view text, size_t i) {
  const char quote = text[i];
  const std::string triple(3, quote);
  const bool multi = text.substr(i).starts_with(triple);
  i += multi ? 3 : 1;
  while (i < text.size()) {
    if (quote == '"' && text[i] == '\\') {
      i += 2;
    } else if (multi && text.substr(i).starts_with(triple)) {
      i += 3;
      // Up to two quotes right before the closing ones belong to the string.
      for (int extra = 0; extra < 2 && i < text.size() && text[i] == quote; ++extra) ++i;
      return i;
    } else if (!multi && (text[i] == quote || text[i] == '\n')) {
      return i + 1;
    } else {
      ++i;
    }
  }
  return text.size();
}

// The offset of the first dot too many, or npos.
size_t find_dot_flood(std::string_view text) {
  size_t dots = 0;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"' || text[i] == '\'') {
      i = skip_string(text, i);
    } else if (text[i] == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else {
      if (text[i] == '.' && ++dots > kMaxDots) return i;
      ++i;
    }
  }
  return std::string_view::npos;
}

Position position(const toml::source_position& at) {
  return Position{at.line, at.column};
}

// Bounded: toml++ holds at most 256 nested values and find_dot_flood() the rest.
Node convert(const toml::node& from) {
  Node node;
  node.at = position(from.source().begin);
  switch (from.type()) {
    case toml::node_type::table:
      node.kind = Node::Kind::kTable;
      for (const auto& [key, value] : *from.as_table()) {
        node.members.push_back({std::string(key.str()), position(key.source().begin), convert(value)});
      }
      break;
    case toml::node_type::array:
      node.kind = Node::Kind::kList;
      for (const auto& value : *from.as_array()) node.items.push_back(convert(value));
      break;
    case toml::node_type::string:
      node.kind = Node::Kind::kString;
      node.text = from.as_string()->get();
      break;
    case toml::node_type::integer:
      node.kind = Node::Kind::kInteger;
      node.integer = from.as_integer()->get();
      break;
    case toml::node_type::floating_point:
      node.kind = Node::Kind::kFloat;
      break;
    case toml::node_type::boolean:
      node.kind = Node::Kind::kBoolean;
      node.integer = from.as_boolean()->get() ? 1 : 0;
      break;
    default:
      node.kind = Node::Kind::kDate;
      break;
  }
  return node;
}

}  // namespace

base::Result<Node> read_toml(std::string_view text, std::string_view name) {
  if (const size_t flood = find_dot_flood(text); flood != std::string_view::npos) {
    return base::refuse(place(name, position_of(text, flood)), "", "holds too many dotted keys",
                        "no policy needs more than a few");
  }
  const toml::parse_result result = toml::parse(text);
  if (!result) {
    const toml::parse_error& error = result.error();
    return base::refuse(place(name, position(error.source().begin)), "", error.description(), "not valid TOML");
  }
  return convert(result.table());
}

}  // namespace belljar::policy
