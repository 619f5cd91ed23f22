#include "tiers/docker/image/registered.h"

#include <algorithm>
#include <cstddef>

namespace belljar::tiers::docker::image {
namespace {

constexpr std::string_view kUsing = "use the image";
constexpr std::string_view kHint = "'belljar image ls' names what may be used, 'belljar image build' makes one";
constexpr std::string_view kDigestScheme = "sha256:";
constexpr size_t kDigits = 64;
constexpr size_t kFewestDigits = 12;  // as docker(1) shows an id

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string registered_id(const Registry& registry, std::string_view reference) {
  if (reference.starts_with(kDigestScheme)) reference.remove_prefix(kDigestScheme.size());
  if (reference.size() < kFewestDigits || !is_hex(reference)) return {};
  std::string out;
  for (const auto& [id, tag] : registry) {
    if (!std::string_view(id).substr(kDigestScheme.size()).starts_with(reference)) continue;
    if (!out.empty()) return {};
    out = id;
  }
  return out;
}

bool is_content_id(std::string_view text) {
  return text.starts_with(kDigestScheme) && text.size() == kDigestScheme.size() + kDigits &&
         is_hex(text.substr(kDigestScheme.size()));
}

base::Result<RegisteredImage> require_registered(const Registry& registry, const Engine& engine,
                                                 std::string_view reference, const base::Deadline& deadline) {
  if (std::ranges::any_of(registry, [](const auto& entry) { return !is_content_id(entry.first); })) {
    return base::refuse(kUsing, reference, "the register of built images holds what is no id, refusing");
  }
  std::string id = registered_id(registry, reference);
  if (id.empty() && is_content_id(reference)) {
    return base::refuse(kUsing, reference, "belljar has not built it, refusing", kHint);
  }
  // From here on by its id: what a tag means may change at any time.
  BELLJAR_ASSIGN(Image image, engine.image(id.empty() ? reference : std::string_view(id), deadline));
  if (deadline.passed()) return base::refuse(kUsing, reference, "the time was up, refusing");
  if (!id.empty() && image.id != id) {
    return base::refuse(kUsing, reference, "the engine has another image by that id, refusing");
  }
  const auto given = std::ranges::find(registry, reference, [](const auto& entry) { return entry.second; });
  if (given != registry.end() && !reference.empty() && given->first != image.id) {
    return base::refuse(
        kUsing, reference,
        "the tag has moved: it was given to " + given->first + " and means " + image.id + " by now, refusing",
        "name the image by its id");
  }
  if (!registry.contains(image.id)) {
    return base::refuse(kUsing, reference, "belljar has not built " + image.id + ", refusing", kHint);
  }
  return RegisteredImage(std::move(image));
}

}  // namespace belljar::tiers::docker::image
