// `belljar image build`: an image of agents, made of things that are named by their content.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/image/lock.h"
#include "tiers/docker/image/registered.h"

namespace belljar::tiers::docker::image {

inline constexpr const char* kBuildLabel = "belljar.build";    // of all that a build makes: BUILD
inline constexpr const char* kImportLabel = "belljar.import";  // of a base that it imported: BUILD

struct Order {
  std::string build{};     // random, 16 hex digits
  std::string base{};      // an id ("sha256:…") or NAME@sha256:DIGEST that the engine has; or empty, and then
  std::string base_tar{};  // the file of a root file system to import
  std::string packages{};  // the folder with the packages' archives
  std::string scratch{};   // a folder on the disk for what is under way
  Lock lock{};
  std::function<void(std::string_view)> tell{};  // is told each step; may be empty
};

struct Built {
  std::string id;  // the content's
  std::string tag;
  std::string pins;  // `NAME=VALUE`, a line each: the labels that say what went in
};

// Where built images are written down.
struct Register {
  std::function<base::Status(const Built&)> add;
  std::function<base::Status(const std::string& id)> remove;
};

// Makes, checks and registers an image. No container of it has a network, a capability or more than the engine's
// builtin system calls; nothing is asked of a registry. The deadline is looked at after every step, the last one too:
// what is done too late is an error, and nothing is registered then. On an error something may be left: discard() is
// for every build.
[[nodiscard]] base::Result<Built> build(const Engine& engine, const Order& order, const Register& where,
                                        const base::Deadline& deadline);

// Which pieces of a build go: what it used, or all of it.
enum class Discard : uint8_t { kContainers, kEverything };

// Removes what bears the build's label, by its id, and looks again until it is gone; `registered` images and what they
// are made of stay. With `settle` it waits for what a request without an answer may yet make. Returns what is, or may
// be, left.
[[nodiscard]] std::vector<std::string> discard(const std::string& socket, std::string_view build, Discard what,
                                               const Registry& registered, bool settle, const base::Deadline& deadline);

// Removes a registered image and, of its base, what nothing else uses. Nothing to do when the engine does not have it.
[[nodiscard]] base::Status remove_image(const Engine& engine, const std::string& id, const base::Deadline& deadline);

}  // namespace belljar::tiers::docker::image
