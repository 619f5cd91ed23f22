#include "workspace/kept_json.h"

#include <nlohmann/json.hpp>

namespace belljar::workspace {
namespace {

using Json = nlohmann::ordered_json;

// Before the library sees the text: what it does with a value takes stack for each level.
bool is_shallow(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostStateDepth) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

base::Result<Json> object_of(std::string_view text, std::string_view whose) {
  const std::string operation = "read the state file of " + std::string(whose);
  if (!is_shallow(text)) return base::refuse(operation, "", "it is nested too deeply");
  Json out = Json::parse(text, nullptr, false);
  if (!out.is_object()) return base::refuse(operation, "", "it is not a JSON object");
  return out;
}

base::Result<Json> object_of(const std::optional<std::string>& text, std::string_view whose) {
  if (!text) return Json::object();
  return object_of(std::string_view(*text), whose);
}

// The value of `key`, or null when there is none; JSON's own null is a value of its own.
const Json* find(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool same(const Json* one, const Json* other) {
  if (one == nullptr || other == nullptr) return one == other;
  return *one == *other;
}

MergedState merge(const Json& base, const Json& guest, Json host, const std::vector<std::string>& keys) {
  MergedState out;
  bool changed = false;
  for (const std::string& key : keys) {
    const Json* was = find(base, key);
    const Json* asked = find(guest, key);
    const Json* now = find(host, key);
    if (same(asked, was) || same(asked, now)) continue;
    if (!same(now, was)) {
      out.kept_back.push_back(key);
      continue;
    }
    changed = true;
    if (asked == nullptr) {
      host.erase(key);
    } else {
      host[key] = *asked;
    }
  }
  if (changed) out.text = host.dump(2) + "\n";
  return out;
}

}  // namespace

base::Result<MergedState> merge_state(const std::optional<std::string>& base, std::string_view guest,
                                      const std::optional<std::string>& host, const std::vector<std::string>& keys) {
  // The library throws on text that is not UTF-8 (type_error 316) and when memory is short.
  try {
    BELLJAR_ASSIGN(const Json before, object_of(base, "the host"));
    BELLJAR_ASSIGN(const Json asked, object_of(guest, "the guest"));
    BELLJAR_ASSIGN(Json now, object_of(host, "the host"));
    return merge(before, asked, std::move(now), keys);
  } catch (const std::exception& problem) {
    return base::refuse("merge the state file", "", problem.what());
  }
}

}  // namespace belljar::workspace
