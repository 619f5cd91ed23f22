#include "cli/image_command.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/image_builds.h"
#include "cli/options.h"
#include "cli/policy_options.h"
#include "policy/values.h"
#include "store/store.h"
#include "tiers/docker/image/build.h"
#include "tiers/docker/image/fetch.h"

namespace belljar::cli {
namespace {

namespace docker = tiers::docker;
namespace image = tiers::docker::image;

constexpr const char* kImageHelp =
    "Usage: belljar image build (--base IMAGE | --base-tar FILE) [OPTION]...\n"
    "       belljar image ls\n"
    "       belljar image rm ID...\n"
    "Builds an image with Node and the agents' programs, each by exact version and digest, on a base that is named by\n"
    "its content; checks it, and prints its id. Tasks are made of images that were built here and of no other.\n\n"
    "Examples:\n"
    "  belljar image build --base debian@sha256:DIGEST\n"
    "  belljar image build --base-tar root.tar --packages ~/packages\n"
    "  belljar run --mode docker --docker-image ID -- claude\n\n"
    "Options of build:\n";
constexpr auto kDefaultTime = std::chrono::minutes(20);
constexpr auto kCleanTime = std::chrono::seconds(60);
constexpr size_t kShortId = 7 + 12;
constexpr auto kRecoveryPatience = std::chrono::seconds(5);  // with an engine of another build

struct ImageOptions {
  std::string base;
  std::string base_tar;
  std::optional<std::string> lock;
  std::optional<std::string> packages;
  std::optional<std::string> timeout;
  bool help = false;
  std::vector<std::string> words;
};

base::Result<docker::Engine> open_engine(const base::Deadline& deadline) {
  const char* const host = std::getenv("DOCKER_HOST");
  BELLJAR_ASSIGN(std::string socket, docker::engine_socket(host != nullptr ? host : ""));
  return docker::Engine::open(std::move(socket), deadline);
}

base::Result<base::Deadline> deadline_of(const ImageOptions& asked) {
  if (!asked.timeout) return base::Deadline::after(kDefaultTime);
  const auto seconds = policy::parse_duration(*asked.timeout);
  if (!seconds) return base::refuse("--timeout", *asked.timeout, seconds.error().reason, seconds.error().hint);
  return base::Deadline::after(std::chrono::seconds(*seconds));
}

base::Result<image::Lock> lock_of(const ImageOptions& asked) {
  if (!asked.lock) return image::read_lock(image::own_lock(), "of this belljar");
  BELLJAR_ASSIGN(const std::string text, base::read_regular_file(*asked.lock, size_t{8} << 20U, true));
  return image::read_lock(text, *asked.lock);
}

// In the store of the state folder.
image::Register register_in(const std::string& state, const std::string& engine) {
  return {[state, engine](const image::Built& built) -> base::Status {
            BELLJAR_ASSIGN(const store::Store store, store::Store::open(state));
            return store.register_image({built.id, built.tag, engine, built.pins, std::time(nullptr)});
          },
          [state](const std::string& id) -> base::Status {
            BELLJAR_ASSIGN(const store::Store store, store::Store::open(state));
            BELLJAR_TRY(store.unregister_image(id));
            return {};
          }};
}

base::Result<image::Built> make(const Context& context, const ImageOptions& asked, const ImageBuild& build,
                                const std::string& state, const docker::Engine& engine,
                                const base::Deadline& deadline) {
  image::Order order{.build = build.id(), .base = asked.base, .base_tar = asked.base_tar, .scratch = build.place()};
  order.tell = [&](std::string_view step) {
    std::fputs(("belljar: " + std::string(step) + "\n").c_str(), context.err);
  };
  BELLJAR_ASSIGN(order.lock, lock_of(asked));
  if (asked.packages) {
    order.packages = *asked.packages;
  } else {
    BELLJAR_ASSIGN(order.packages, build.make_folder());
    order.tell("fetching the packages by npm");
    BELLJAR_TRY(image::fetch_packages(order.lock, order.packages, deadline));
  }
  return image::build(engine, order, register_in(state, engine.socket()), deadline);
}

// True when there is nothing.
bool say_what_is_left(const Context& context, const std::vector<std::string>& left) {
  for (const std::string& text : left) {
    std::fputs(("belljar: not removed: " + base::escape(text) + " ('belljar recover' tries again)\n").c_str(),
               context.err);
  }
  return left.empty();
}

base::Result<std::string> build(const Context& context, const ImageOptions& asked) {
  if (asked.words.size() > 1) return base::refuse("read the arguments", asked.words[1], "build takes options only");
  if (asked.base.empty() == asked.base_tar.empty()) {
    return base::refuse("read the arguments", "build", "it takes one base", "--base IMAGE or --base-tar FILE");
  }
  BELLJAR_ASSIGN(const base::Deadline deadline, deadline_of(asked));
  BELLJAR_ASSIGN(const std::string state, own_state_folder());
  std::vector<std::string> recovered;
  docker::Reach reach(kRecoveryPatience);
  BELLJAR_ASSIGN(const std::vector<std::string> left_before, recover_builds(state, reach, recovered));
  (void)say_what_is_left(context, left_before);  // it has waited before
  BELLJAR_ASSIGN(const docker::Engine engine, open_engine(deadline));
  BELLJAR_ASSIGN(const ImageBuild under_way, ImageBuild::begin(state, engine.socket()));
  const auto built = make(context, asked, under_way, state, engine, deadline);
  BELLJAR_ASSIGN(const image::Registry registry, registry_of(state));
  const auto what = built ? image::Discard::kContainers : image::Discard::kEverything;
  // Of a request without an answer nobody knows when it is over: what it makes is waited for, and the record stays for
  // a later look.
  const bool open = !built && built.error().code != 0;
  const std::vector<std::string> left =
      image::discard(engine.socket(), under_way.id(), what, registry, open, base::Deadline::after(kCleanTime));
  const bool clean = say_what_is_left(context, left);
  if (clean && !open) under_way.finish();
  if (!built) return std::unexpected(built.error());
  return built->id + "\n";
}

std::string lines_of(const store::BuiltImage& one) {
  tm parts{};
  const auto made = static_cast<time_t>(one.made);
  ::localtime_r(&made, &parts);
  std::array<char, 32> when{};
  std::strftime(when.data(), when.size(), "%Y-%m-%d %H:%M", &parts);
  std::string out = one.id.substr(0, kShortId) + "  " + when.data() + "  " + base::escape(one.tag) + "  in " +
                    base::escape(one.engine) + "\n";
  constexpr std::string_view kPin = "belljar.pin.";
  for (std::string_view line : base::split(one.pins, '\n')) {
    if (line.starts_with(kPin)) line.remove_prefix(kPin.size());
    if (!line.empty()) out += "  " + base::escape(line) + "\n";
  }
  return out;
}

base::Result<std::string> list(const ImageOptions& asked) {
  if (asked.words.size() > 1) return base::refuse("read the arguments", asked.words[1], "ls takes nothing");
  BELLJAR_ASSIGN(const std::string state, own_state_folder());
  BELLJAR_ASSIGN(const auto store, store::Store::open_existing(state));
  std::string out;
  if (!store) return out;
  BELLJAR_ASSIGN(const std::vector<store::BuiltImage> images, store->built_images());
  for (const store::BuiltImage& one : images) out += lines_of(one);
  return out;
}

base::Result<std::string> remove(const ImageOptions& asked) {
  if (asked.words.size() < 2) return base::refuse("read the arguments", "rm", "no ID is given", "see ls");
  const auto deadline = base::Deadline::after(kCleanTime);
  BELLJAR_ASSIGN(const std::string state, own_state_folder());
  BELLJAR_ASSIGN(const store::Store store, store::Store::open(state));
  BELLJAR_ASSIGN(const image::Registry registry, registry_of(state));
  std::string out;
  for (size_t i = 1; i < asked.words.size(); ++i) {
    const std::string id = image::registered_id(registry, asked.words[i]);
    if (id.empty()) {
      return base::refuse("remove the image", asked.words[i], "it is no image that was built here, or more than one",
                          "see ls");
    }
    BELLJAR_ASSIGN(const docker::Engine engine, open_engine(deadline));
    BELLJAR_TRY(image::remove_image(engine, id, deadline));
    BELLJAR_TRY(store.unregister_image(id));
    out += "removed " + id + "\n";
  }
  return out;
}

base::Result<std::string> carry_out(const Context& context, const ImageOptions& asked) {
  const std::string word = asked.words.empty() ? "ls" : asked.words.front();
  const bool for_build =
      !asked.base.empty() || !asked.base_tar.empty() || asked.lock || asked.packages || asked.timeout;
  if (word == "build") return build(context, asked);
  if (for_build) return base::refuse("read the arguments", word, "these options are those of build");
  if (word == "ls") return list(asked);
  if (word == "rm") return remove(asked);
  return base::refuse("read the arguments", word, "build, ls or rm is expected", "belljar image --help");
}

}  // namespace

int image_command(const Context& context, std::span<const std::string> arguments) {
  ImageOptions asked;
  const std::vector<Option> options{
      {"--base", "IMAGE", "an image that the engine has: its id, or NAME@sha256:DIGEST", keep(asked.base)},
      {"--base-tar", "FILE", "a root file system to import as the base", keep(asked.base_tar)},
      {"--lock", "FILE", "a package-lock.json, not the one that belongs to belljar", keep(asked.lock)},
      {"--packages", "FOLDER", "the packages as 'npm pack' leaves them; else npm fetches them", keep(asked.packages)},
      {"--timeout", "TIME", "for all of it (20m)", keep(asked.timeout)},
      {"--help", "", "this page", turn_on(asked.help)}};
  auto words = parse_word_and_options(arguments, options);
  if (!words) return report(context, words.error());
  asked.words = std::move(*words);
  if (asked.help) return print(context, kImageHelp + options_help(options));
  const auto text = carry_out(context, asked);
  return text ? print(context, *text) : report(context, text.error());
}

}  // namespace belljar::cli
