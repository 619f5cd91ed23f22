// A policy file as a small neutral tree, the same for TOML and JSON, in which every key and value knows its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belljar::policy {

// Both from 1; the column counts characters, not bytes.
struct Position {
  uint32_t line = 1;
  uint32_t column = 1;
};

struct Member;

struct Node {
  enum class Kind : uint8_t { kString, kInteger, kFloat, kBoolean, kNull, kDate, kList, kTable };
  Kind kind = Kind::kTable;
  Position at;
  std::string text;             // kString
  int64_t integer = 0;          // kInteger; kBoolean: 0 or 1
  std::vector<Node> items;      // kList
  std::vector<Member> members;  // kTable, in the order of the file (TOML: of the names); no name twice
};

struct Member {
  std::string key;
  Position at;
  Node value;
};

// `a string`, `an integer`, `a table`: for messages.
[[nodiscard]] std::string_view kind_text(Node::Kind kind);

enum class Format : uint8_t { kToml, kJson };

struct Document {
  std::string name;  // as the person wrote it
  Format format = Format::kToml;
  Node root;  // always a table
};

constexpr size_t kMaxDocument = size_t{256} * 1024;  // bytes
constexpr int kMaxDepth = 8;                         // tables and lists inside each other; a policy needs 4

// Reads `text` as the format that the ending of `name` says: `.json`, `.toml`, or for any other name JSON when the
// first character is `{`. Refuses, with `NAME:line:column`, what neither format should hold (a byte order mark, NUL
// bytes, invalid UTF-8, more than kMaxDocument bytes, more than kMaxDepth levels), syntax errors and duplicate names.
[[nodiscard]] base::Result<Document> read_document(std::string_view text, std::string_view name);

// `NAME:line:column`, safe to print.
[[nodiscard]] std::string place(std::string_view name, Position at);

// The position of byte `offset` of `text`, counting UTF-8 sequences as one character.
[[nodiscard]] Position position_of(std::string_view text, size_t offset);

// The two readers behind read_document(); `text` is valid UTF-8 without NUL.
[[nodiscard]] base::Result<Node> read_toml(std::string_view text, std::string_view name);
[[nodiscard]] base::Result<Node> read_json(std::string_view text, std::string_view name);

}  // namespace belljar::policy
