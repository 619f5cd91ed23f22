// The only unit that reads with nlohmann's parser. Its SAX interface gives no positions, so the parser is fed through
// an iterator that counts: when an event arrives, the token it stands for has just been read, and the token started
// at the first character after the previous one that is neither space nor `,` nor `:`.
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "policy/document.h"

namespace belljar::policy {
namespace {

// Reads `at`, a pointer shared by every copy of the iterator.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char** at, const char* end) : at_(at), end_(end) {}
  reference operator*() const { return **at_; }
  CountingIterator& operator++() {
    ++*at_;
    return *this;
  }
  CountingIterator operator++(int) {
    ++*at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return remaining() == other.remaining(); }
  bool operator!=(const CountingIterator& other) const { return !(*this == other); }

 private:
  [[nodiscard]] std::ptrdiff_t remaining() const { return at_ == nullptr ? 0 : end_ - *at_; }
  const char** at_;  // null: the end
  const char* end_;
};

class Builder {
 public:
  Builder(std::string_view text, std::string_view name) : text_(text), name_(name), at_(text.data()) {}

  const char** cursor() { return &at_; }
  Node take_root() { return std::move(root_); }
  [[nodiscard]] const std::optional<base::Error>& error() const { return error_; }

  bool null() { return scalar(Node::Kind::kNull); }
  bool boolean(bool value) { return scalar(Node::Kind::kBoolean, value ? 1 : 0); }
  bool number_integer(int64_t value) { return scalar(Node::Kind::kInteger, value); }
  bool number_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX))
      return fail(start(), "an integer of more than 64 bits", "no limit is that large");
    return scalar(Node::Kind::kInteger, static_cast<int64_t>(value));
  }
  // An integer too long for 64 bits arrives here as well.
  bool number_float(double /*value*/, const std::string& token) {
    if (token.find_first_of(".eE") == std::string::npos) return number_unsigned(UINT64_MAX);
    return scalar(Node::Kind::kFloat);
  }
  bool string(std::string& value) {
    Node node = make(Node::Kind::kString);
    node.text = std::move(value);
    return add(std::move(node)) != nullptr;
  }
  bool binary(std::vector<uint8_t>& /*value*/) { return false; }  // never in JSON text
  bool start_object(size_t /*size*/) { return open(Node::Kind::kTable); }
  bool start_array(size_t /*size*/) { return open(Node::Kind::kList); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const Position at = start();
    for (const Member& member : stack_.back()->members) {
      if (member.key != name) continue;
      return fail(at, "'" + name + "' is given twice", "first at " + place(name_, member.at));
    }
    stack_.back()->members.push_back({std::move(name), at, {}});
    return true;
  }

  bool parse_error(size_t position, const std::string& /*token*/, const nlohmann::json::exception& exception) {
    // `[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …; last read: '…'`
    std::string_view what = exception.what();
    const size_t colon = what.find(": ");
    if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
    what = what.substr(0, what.find("; last read"));
    // `position` counts the characters read, the offending one included.
    return fail(position_of(text_, position == 0 ? 0 : position - 1), std::string(what), "not valid JSON");
  }

 private:
  Position start() {
    auto offset = static_cast<size_t>(last_ - text_.data());
    offset = std::min(text_.find_first_not_of(" \t\r\n,:", offset), text_.size());
    last_ = at_;
    // Events come in the order of the text, so each count goes on from the last.
    const Position step = position_of(text_.substr(counted_), offset - counted_);
    if (step.line > 1) {
      here_ = {here_.line + step.line - 1, step.column};
    } else {
      here_.column += step.column - 1;
    }
    counted_ = offset;
    return here_;
  }

  bool fail(Position at, std::string reason, std::string hint) {
    error_ = base::Error{place(name_, at), "", 0, std::move(reason), std::move(hint)};
    return false;
  }

  Node make(Node::Kind kind, int64_t integer = 0) {
    Node node;
    node.kind = kind;
    node.at = start();
    node.integer = integer;
    return node;
  }

  // Where the node now lives, or null when it may not stand here. Pointers in `stack_` stay good: only the innermost
  // open node grows.
  Node* add(Node node) {
    if (stack_.empty()) {
      // A program that has nothing to say may write `null`: the same as nothing.
      if (node.kind == Node::Kind::kNull) node.kind = Node::Kind::kTable;
      if (node.kind != Node::Kind::kTable) {
        fail(node.at, "expected an object, found " + std::string(kind_text(node.kind)), "write { … }");
        return nullptr;
      }
      root_ = std::move(node);
      return &root_;
    }
    Node& parent = *stack_.back();
    if (parent.kind == Node::Kind::kList) return &parent.items.emplace_back(std::move(node));
    parent.members.back().value = std::move(node);
    return &parent.members.back().value;
  }

  bool scalar(Node::Kind kind, int64_t integer = 0) { return add(make(kind, integer)) != nullptr; }

  bool open(Node::Kind kind) {
    Node node = make(kind);
    if (stack_.size() >= kMaxDepth) {
      return fail(node.at, "nested more than 8 levels deep", "no part of a policy is that deep");
    }
    Node* added = add(std::move(node));
    if (added != nullptr) stack_.push_back(added);
    return added != nullptr;
  }

  bool close() {
    stack_.pop_back();
    last_ = at_;
    return true;
  }

  std::string_view text_;
  std::string_view name_;
  const char* at_;                   // how far the parser has read
  const char* last_ = text_.data();  // the same at the last event
  size_t counted_ = 0;               // `here_` is the position of this offset
  Position here_;
  Node root_;
  std::vector<Node*> stack_;
  std::optional<base::Error> error_;
};

}  // namespace

// The shape that nlohmann asks of a SAX handler, kept apart so that its types stay out of Builder.
struct JsonEvents : nlohmann::json_sax<nlohmann::json> {
  explicit JsonEvents(Builder& to) : builder(to) {}
  bool null() override { return builder.null(); }
  bool boolean(bool value) override { return builder.boolean(value); }
  bool number_integer(number_integer_t value) override { return builder.number_integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return builder.number_unsigned(value); }
  bool number_float(number_float_t value, const string_t& token) override { return builder.number_float(value, token); }
  bool string(string_t& value) override { return builder.string(value); }
  bool binary(binary_t& value) override { return builder.binary(value); }
  bool start_object(size_t size) override { return builder.start_object(size); }
  bool key(string_t& name) override { return builder.key(name); }
  bool end_object() override { return builder.end_object(); }
  bool start_array(size_t size) override { return builder.start_array(size); }
  bool end_array() override { return builder.end_array(); }
  bool parse_error(size_t position, const std::string& token, const nlohmann::json::exception& exception) override {
    return builder.parse_error(position, token, exception);
  }
  Builder& builder;
};

base::Result<Node> read_json(std::string_view text, std::string_view name) {
  Builder builder(text, name);
  JsonEvents events(builder);
  const char* end = text.data() + text.size();
  const bool good =
      nlohmann::json::sax_parse(CountingIterator(builder.cursor(), end), CountingIterator(nullptr, end), &events);
  if (const auto& error = builder.error()) return std::unexpected(*error);
  if (!good) return base::refuse(base::escape(name), "", "not valid JSON");
  return builder.take_root();
}

}  // namespace belljar::policy
