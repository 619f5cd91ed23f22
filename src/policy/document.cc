#include "policy/document.h"

#include <algorithm>

#include "base/text.h"

namespace belljar::policy {
namespace {

// The length of the well-formed UTF-8 sequence at `i`, or 0 (RFC 3629, section 4).
size_t sequence_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U; };
  const auto tail = [&](size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) >= 0x90;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

base::Status check_bytes(std::string_view text, std::string_view name) {
  if (text.size() > kMaxDocument) {
    return base::refuse(base::escape(name), "", "larger than 256 KiB",
                        "a policy is a short file: is this the right one?");
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    return base::refuse(place(name, {}), "", "starts with a byte order mark", "save it as UTF-8 without one");
  }
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\0') {
      return base::refuse(place(name, position_of(text, i)), "", "holds a NUL byte", "a policy is a text file");
    }
    const size_t length = sequence_length(text, i);
    if (length == 0) {
      return base::refuse(place(name, position_of(text, i)), "", "is not valid UTF-8", "save the file as UTF-8");
    }
    i += length;
  }
  return {};
}

// The first value deeper than `left` levels, or null. Recursion is bounded by `left`.
const Node* too_deep(const Node& node, int left) {
  if (node.kind != Node::Kind::kList && node.kind != Node::Kind::kTable) return nullptr;
  if (left == 0) return &node;
  for (const Node& item : node.items) {
    if (const Node* found = too_deep(item, left - 1)) return found;
  }
  for (const Member& member : node.members) {
    if (const Node* found = too_deep(member.value, left - 1)) return found;
  }
  return nullptr;
}

Format format_of(std::string_view text, std::string_view name) {
  if (name.ends_with(".json")) return Format::kJson;
  if (name.ends_with(".toml")) return Format::kToml;
  // No TOML document can start with a brace.
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' ? Format::kJson : Format::kToml;
}

}  // namespace

std::string_view kind_text(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kString:
      return "a string";
    case Node::Kind::kInteger:
      return "an integer";
    case Node::Kind::kFloat:
      return "a number with a fraction";
    case Node::Kind::kBoolean:
      return "true or false";
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kDate:
      return "a date";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kTable:
      break;
  }
  return "a table";
}

std::string place(std::string_view name, Position at) {
  return base::escape(name) + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

Position position_of(std::string_view text, size_t offset) {
  Position at;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++at.line;
      at.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      ++at.column;
    }
  }
  return at;
}

base::Result<Document> read_document(std::string_view text, std::string_view name) {
  BELLJAR_TRY(check_bytes(text, name));
  const Format format = format_of(text, name);
  BELLJAR_ASSIGN(Node root, format == Format::kJson ? read_json(text, name) : read_toml(text, name));
  if (const Node* deep = too_deep(root, kMaxDepth)) {
    return base::refuse(place(name, deep->at), "", "nested more than 8 levels deep",
                        "no part of a policy is that deep");
  }
  return Document{std::string(name), format, std::move(root)};
}

}  // namespace belljar::policy
