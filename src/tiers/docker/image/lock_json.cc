#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tiers/docker/image/digest.h"
#include "tiers/docker/image/lock.h"

namespace belljar::tiers::docker::image {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kReading = "read the lock file";
constexpr std::string_view kPlace = "node_modules/";
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

bool consists_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) { return kLetters.contains(c) || others.contains(c); });
}

// Relative, of plain letters, without `.` and `..`, and no part that a program could take for an option.
bool is_plain_path(std::string_view path) {
  if (path.starts_with("./")) path.remove_prefix(2);
  if (!consists_of(path, "@._-/")) return false;
  return std::ranges::none_of(base::split(path, '/'), [](std::string_view part) {
    return part.empty() || part == "." || part == ".." || part.starts_with('-');
  });
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// `os`, `cpu` and `libc` of a package: a list or one word, `!word` for all but that; nothing is anything.
bool suits(const Json& package, const char* key, std::string_view ours) {
  const auto found = package.find(key);
  if (found == package.end()) return true;
  const Json list = found->is_array() ? *found : Json::array({*found});
  bool named = false;
  bool only = false;
  for (const Json& one : list) {
    if (!one.is_string()) return false;
    const std::string word = one.get<std::string>();
    if (word == "!" + std::string(ours)) return false;
    if (word.starts_with('!')) continue;
    only = true;
    named = named || word == ours;
  }
  return named || !only;
}

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  base::Result<Lock> read(std::string_view text);

 private:
  [[nodiscard]] std::unexpected<base::Error> bad(std::string_view what) const {
    return base::refuse(kReading, file_, std::string(what) + ", refusing",
                        "make it by: npm install --package-lock-only");
  }
  base::Result<Package> package(const std::string& place, const Json& json, const Json& wanted) const;
  base::Status programs(const Json& json, Package& out) const;

  std::string_view file_;
};

base::Status Reader::programs(const Json& json, Package& out) const {
  const auto found = json.find("bin");
  if (found == json.end()) return {};
  if (!found->is_object()) return bad("the programs of '" + out.place + "' are no table");
  for (const auto& [name, file] : found->items()) {
    if (!consists_of(name, "._-") || name.starts_with('-') || name.starts_with('.') || !file.is_string() ||
        !is_plain_path(file.get<std::string>())) {
      return bad("'" + out.place + "' names its program '" + base::escape(name) + "' oddly");
    }
    out.programs.emplace(name, file.get<std::string>());
  }
  return {};
}

base::Result<Package> Reader::package(const std::string& place, const Json& json, const Json& wanted) const {
  Package out;
  out.place = place;
  if (!json.is_object() || !place.starts_with(kPlace) || !is_plain_path(place)) {
    return bad("'" + place + "' is no place of a package");
  }
  const std::string alias = place.substr(place.rfind(kPlace) + kPlace.size());
  out.name = text_of(json, "name");
  if (out.name.empty()) out.name = alias;
  out.version = text_of(json, "version");
  out.integrity = text_of(json, "integrity");
  if (!is_plain_path(out.name)) return bad("'" + place + "' has an odd name");
  if (json.value("link", false) || json.value("inBundle", false)) {
    return bad("'" + place + "' does not come from a registry by itself");
  }
  const std::string resolved = text_of(json, "resolved");
  if (!resolved.empty() && !resolved.starts_with("https://") && !resolved.starts_with("http://")) {
    return bad("'" + place + "' does not come from a registry");
  }
  if (!consists_of(out.version, ".+-")) return bad("'" + place + "' has no exact version");
  if (!is_integrity(out.integrity)) return bad("'" + place + "' has no SHA-512 by which to know it");
  // Asked for at the top, and there by that very version: a range could be met by another one another day.
  if (place == std::string(kPlace) + alias && wanted.is_object() && wanted.contains(alias)) {
    const std::string asked = text_of(wanted, alias.c_str());
    if (asked != out.version && asked != "npm:" + out.name + "@" + out.version) {
      return bad("'" + alias + "' is asked for as '" + asked + "', not by its exact version");
    }
    out.asked_for = true;
  }
  BELLJAR_TRY(programs(json, out));
  return out;
}

base::Result<Lock> Reader::read(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad("it is no JSON");
  if (json.value("lockfileVersion", Json()) != 3) return bad("its lockfileVersion is not 3");
  const auto packages = json.find("packages");
  if (packages == json.end() || !packages->is_object()) return bad("it has no packages");
  const Json root = packages->value("", Json::object());
  const Json wanted = root.is_object() ? root.value("dependencies", Json::object()) : Json::object();
  Lock out;
  out.digest = sha256_of(text);
  size_t found = 0;
  for (const auto& [place, one] : packages->items()) {
    if (place.empty()) continue;
    if (one.is_object() && (!suits(one, "os", "linux") || !suits(one, "cpu", "x64") || !suits(one, "libc", "glibc")))
      continue;
    if (one.is_object() && one.value("dev", false)) continue;
    BELLJAR_ASSIGN(Package package, this->package(place, one, wanted));
    found += package.asked_for ? 1 : 0;
    out.packages.push_back(std::move(package));
  }
  if (!wanted.is_object() || found != wanted.size()) return bad("a package that it asks for is not locked");
  const bool node = std::ranges::any_of(
      out.packages, [](const Package& one) { return one.asked_for && one.programs.contains("node"); });
  if (!node) return bad("no package that it asks for has the program node");
  return out;
}

}  // namespace

base::Result<Lock> read_lock(std::string_view text, std::string_view file) {
  return Reader(file).read(text);
}

}  // namespace belljar::tiers::docker::image
