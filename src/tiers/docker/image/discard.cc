#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "tiers/docker/image/build.h"

namespace belljar::tiers::docker::image {
namespace {

constexpr auto kSettleTime = std::chrono::seconds(5);
constexpr int kPauseMilliseconds = 100;

struct Found {
  std::vector<std::string> containers;
  std::vector<std::string> images;  // in the order in which they can go: what was made of a base before the base

  [[nodiscard]] bool none() const { return containers.empty() && images.empty(); }
};

std::string label_of(const char* name, std::string_view build) {
  return std::string(name) + "=" + std::string(build);
}

base::Result<Found> look(const Engine& engine, std::string_view build, Discard what, const Registry& registered,
                         const base::Deadline& deadline) {
  Found out;
  BELLJAR_ASSIGN(const std::vector<Owned> containers, engine.containers_with(label_of(kBuildLabel, build), deadline));
  for (const Owned& one : containers) out.containers.push_back(one.id);
  if (what == Discard::kContainers) return out;
  BELLJAR_ASSIGN(const std::vector<std::string> images, engine.images_with(label_of(kBuildLabel, build), deadline));
  for (const std::string& id : images) {
    // It was registered, and the builder died before it could say so: it stays, and what it is made of with it.
    if (registered.contains(id)) {
      out.images.clear();
      return out;
    }
    out.images.push_back(id);
  }
  BELLJAR_ASSIGN(const std::vector<std::string> bases, engine.images_with(label_of(kImportLabel, build), deadline));
  for (const std::string& id : bases) {
    if (std::ranges::find(out.images, id) == out.images.end() && !registered.contains(id)) out.images.push_back(id);
  }
  return out;
}

}  // namespace

std::vector<std::string> discard(const std::string& socket, std::string_view build, Discard what,
                                 const Registry& registered, bool settle, const base::Deadline& deadline) {
  const base::Deadline settled = base::Deadline::after(settle ? kSettleTime : std::chrono::seconds(0));
  std::optional<Engine> engine;
  for (;;) {
    const auto found = ask_until_answered(engine, socket, deadline, [&](const Engine& opened) {
      return look(opened, build, what, registered, deadline);
    });
    if (!found) return {"build " + std::string(build) + " (label " + kBuildLabel + "): " + found.error().message()};
    if (found->none() && settled.passed()) return {};
    std::vector<std::string> left;
    for (const std::string& id : found->containers) left.push_back("container " + id + ": it is still there");
    for (const std::string& id : found->images) left.push_back("image " + id + ": it is still there");
    if (!engine || deadline.passed()) return left;
    const Engine& there = *engine;
    // By id. What did not go is seen by the next look.
    for (const std::string& id : found->containers) {
      (void)there.ask("DELETE", "/containers/" + percent_encode(id) + "?force=1&v=1", deadline);
    }
    for (const std::string& id : found->images) {
      (void)there.ask("DELETE", "/images/" + percent_encode(id) + "?force=1", deadline);
    }
    (void)::poll(nullptr, 0, kPauseMilliseconds);
  }
}

base::Status remove_image(const Engine& engine, const std::string& id, const base::Deadline& deadline) {
  constexpr std::string_view kOperation = "remove the image";
  Outcome outcome = engine.ask("DELETE", "/images/" + percent_encode(id) + "?force=1", deadline);
  if (const auto* refused = std::get_if<Refused>(&outcome); refused != nullptr && refused->absent()) return {};
  BELLJAR_TRY(require(std::move(outcome), kOperation, id));
  return {};
}

}  // namespace belljar::tiers::docker::image
