#include "docker/world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace belljar::testing {
namespace {

std::unique_ptr<DockerWorld>& the_world() {
  static std::unique_ptr<DockerWorld> world;
  return world;
}

}  // namespace

std::vector<tiers::docker::Owned> session_containers() {
  const auto found =
      DockerWorld::get().engine().containers_with("belljar.session", base::Deadline::after(std::chrono::seconds(60)));
  if (found) return *found;
  ADD_FAILURE() << found.error().message();
  return {};
}

void remove_session_containers() {
  for (const tiers::docker::Owned& one : session_containers()) {
    (void)DockerWorld::get().engine().ask("DELETE", "/containers/" + one.id + "?force=1&v=1",
                                          base::Deadline::after(std::chrono::seconds(60)));
  }
}

DockerWorld& DockerWorld::get() {
  if (!the_world()) the_world().reset(new DockerWorld);
  return *the_world();
}

void DockerWorld::end() {
  the_world().reset();
}

DockerWorld::DockerWorld() {
  const auto die = [](const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::abort();
  };
  if (!test_engine_.there()) die("no container engine: run as root, or set BELLJAR_TEST_ENGINE to a socket");
  const auto deadline = base::Deadline::after(std::chrono::seconds(60));
  auto engine = tiers::docker::Engine::open(test_engine_.socket(), deadline);
  if (!engine) die(engine.error().message());
  engine_ = std::make_unique<tiers::docker::Engine>(std::move(*engine));
  // The one that is meant, so that no run says that it used another than it did.
  const char* const wanted = std::getenv("BELLJAR_TEST_ENGINE_VERSION");
  if (wanted != nullptr && *wanted != '\0' && engine_->info().version != wanted) {
    die("the engine is " + engine_->info().version + ", not " + wanted);
  }
  const TempDir temp;
  make_busybox_root(temp / "root.tar");
  for (const char* tag : {"belljar-test:other", kImage}) {
    const std::string other = tag == std::string(kImage) ? "" : "other-";
    const auto id = import_root(*engine_, temp / "root.tar", tag,
                                {"ENV PATH=/usr/local/bin:/bin", "LABEL made-by=" + other + "tests"});
    if (!id) die(id.error().message());
    image_id_ = *id;
  }
}

base::Result<std::string> import_root(const tiers::docker::Engine& engine, const std::string& path,
                                      std::string_view tag, const std::vector<std::string>& changes) {
  const base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0) return base::system_error("open", path, errno);
  return engine.import_image(file.get(), static_cast<uint64_t>(found.st_size), tag, changes,
                             base::Deadline::after(std::chrono::minutes(5)));
}

}  // namespace belljar::testing
