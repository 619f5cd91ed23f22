// The images that `belljar image build` has made: the only ones that a task's containers are made of.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/engine.h"

namespace belljar::tiers::docker::image {

// What the store knows of built images: the content's id ("sha256:…"), and the tag that each was given.
using Registry = std::map<std::string, std::string>;

// An image that was registered, and that this engine has. Made by require_registered() alone.
class RegisteredImage {
 public:
  [[nodiscard]] const std::string& id() const { return image_.id; }
  // As the engine tells of it: environment and labels.
  [[nodiscard]] const Image& image() const { return image_; }

 private:
  friend base::Result<RegisteredImage> require_registered(const Registry& registry, const Engine& engine,
                                                          std::string_view reference, const base::Deadline& deadline);
  explicit RegisteredImage(Image image) : image_(std::move(image)) {}

  Image image_;
};

// `reference` is a registered id, the first twelve or more of its hex digits, or what the engine knows an image by.
// What counts is the id that comes of it: refused when no image of that id is registered, whatever tag or labels it
// bears; when the tag was given to a registered image and means another one by now; and when the engine does not have
// it.
[[nodiscard]] base::Result<RegisteredImage> require_registered(const Registry& registry, const Engine& engine,
                                                               std::string_view reference,
                                                               const base::Deadline& deadline);

// The one registered id that `reference` is, or is the beginning of; empty when there is none or more than one.
[[nodiscard]] std::string registered_id(const Registry& registry, std::string_view reference);

// "sha256:" and 64 lower-case hex digits.
[[nodiscard]] bool is_content_id(std::string_view text);

}  // namespace belljar::tiers::docker::image
