// How every section of a policy file takes its keys; shared by the parser's units only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "policy/document.h"
#include "policy/layer.h"
#include "policy/values.h"

namespace belljar::policy {

using Names = std::vector<std::string_view>;
using TextParser = std::function<Verdict<std::string>(std::string_view)>;

// One table of the file. `path` is how its keys are called in messages: "isolation.", or "" for the top.
class Section {
 public:
  Section(const Document& document, const Node& node, std::string path)
      : document_(document), node_(node), path_(std::move(path)) {}

  // Refuses when the node is no table or holds a key that is not in `known`.
  [[nodiscard]] base::Status check_keys(const Names& known) const;

  // The value of `key`, or null when the file does not say it.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] const std::vector<Member>& members() const { return node_.members; }
  [[nodiscard]] Section sub(std::string_view key, const Node& node) const {
    return {document_, node, path_ + std::string(key) + "."};
  }

  [[nodiscard]] std::string place_of(Position at) const { return place(document_.name, at); }

  // An error at `node`: `FILE:line:column: KEY: reason (hint)`, with the value quoted when `text` is not empty.
  [[nodiscard]] std::unexpected<base::Error> refuse(const Node& node, std::string_view key, std::string_view text,
                                                    const Refusal& refusal) const;
  [[nodiscard]] std::unexpected<base::Error> wrong_type(const Node& node, std::string_view key,
                                                        std::string_view expected) const;

  // The text of a string value, as `parse` makes it canonical.
  [[nodiscard]] base::Result<std::string> text(const Node& node, std::string_view key, const TextParser& parse) const;

  // The entries of a list of strings, in order. A repeated one is refused unless `repeats`.
  [[nodiscard]] base::Result<std::vector<Said<std::string>>> list(std::string_view key, const TextParser& parse,
                                                                  bool repeats = false) const;
  // The same without places.
  [[nodiscard]] base::Result<std::vector<std::string>> plain_list(std::string_view key, const TextParser& parse,
                                                                  bool repeats = false) const;
  // A table of variables and their values.
  [[nodiscard]] base::Result<std::map<std::string, Said<std::string>>> variables(std::string_view key) const;

  // True or false, when said.
  [[nodiscard]] base::Status boolean(std::string_view key, std::optional<Said<bool>>& out) const;

  // One of `names`, when said.
  template <class E, size_t n>
  [[nodiscard]] base::Status named(std::string_view key, const Named<E> (&names)[n],
                                   std::optional<Said<E>>& out) const {
    const Node* node = find(key);
    if (node == nullptr) return {};
    if (node->kind != Node::Kind::kString) return wrong_type(*node, key, "a string");
    const Verdict<E> value = parse_named(node->text, names);
    if (!value) return refuse(*node, key, node->text, value.error());
    out = {*value, place_of(node->at)};
    return {};
  }

 private:
  const Document& document_;
  const Node& node_;
  std::string path_;
};

// The value of the top-level key `agent`: a name, or a definition of one.
[[nodiscard]] base::Result<Agent> parse_agent(const Section& top, const Node& node);

// Where a key that stands in the wrong section belongs: "isolation.mode" for `mode`; empty when nowhere.
[[nodiscard]] std::string home_of_key(std::string_view key);

}  // namespace belljar::policy
