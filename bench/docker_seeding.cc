#include "docker_seeding.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "docker/world.h"
#include "support.h"
#include "support/git_repository.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "tiers/docker/storage/allocate.h"
#include "tiers/docker/storage/seed.h"
#include "workspace/clone.h"

namespace bench {
namespace {

namespace docker = belljar::tiers::docker;
namespace storage = docker::storage;
namespace workspace = belljar::workspace;
using belljar::base::Deadline;
using belljar::testing::DockerWorld;
using belljar::testing::TempDir;

constexpr int kFolders = 100;
constexpr int kFilesOfEach = 200;
constexpr uint64_t kMegabyte = 1 << 20;
constexpr const char* kBase = "belljar-test:debian";

Deadline soon() {
  return Deadline::after(std::chrono::minutes(5));
}

// 20,000 files which, with the metadata, are some 480 MB in whole pages: text that packs to two thirds.
void make_project(const std::string& path) {
  belljar::testing::repository(path);
  std::mt19937_64 random(7);  // NOLINT(bugprone-random-generator-seed): the same files each time
  for (int folder = 0; folder < kFolders; ++folder) {
    const std::string place = path + "/folder-" + std::to_string(folder);
    ::mkdir(place.c_str(), 0755);
    for (int file = 0; file < kFilesOfEach; ++file) {
      // A few large ones among many small.
      const size_t size = file == 0 ? size_t{700} << 10U : 4000 + random() % 11'000;
      std::string text;
      while (text.size() < size) {
        for (uint64_t value = random(); value != 0; value >>= 6U) text += static_cast<char>(' ' + (value & 63U));
      }
      std::ofstream(place + "/file-" + std::to_string(file)) << text;
    }
  }
  belljar::testing::git(path, {"add", "--all"});
  belljar::testing::git(path, {"commit", "--quiet", "--message=files"});
}

// The id of an image with the tar that people's have, Debian's: the tests' own has busybox's, which takes half as long
// again for the same files. Empty when there is none.
std::string import_base(const docker::Engine& engine) {
  const char* const parts = std::getenv("BELLJAR_TEST_IMAGE");
  if (parts == nullptr) {
    std::fprintf(stderr, "bench_docker: no base for the seeder (BELLJAR_TEST_IMAGE; ./dev test makes it)\n");
    return {};
  }
  const auto id =
      belljar::testing::import_root(engine, std::string(parts) + "/base.tar", kBase, {"ENV PATH=/usr/bin:/bin"});
  if (!id) std::fprintf(stderr, "%s\n", id.error().message().c_str());
  return id ? *id : std::string();
}

// In ms; negative when it failed.
double copy_plainly(const std::string& from, const std::string& place) {
  if (::mount("tmpfs", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=1g,nr_inodes=100000") != 0) return -1;
  const double begun = now_ms();
  const auto copied = belljar::testing::run(
      {.argv = {"sh", "-c", "tar -C \"$0\" -cf - . | tar -C \"$1\" -xpf -", from, place}}, std::chrono::seconds(120));
  const double taken = now_ms() - begun;
  ::umount(place.c_str());
  return copied.code == 0 ? taken : -1;
}

struct Seeding {
  double allocation = -1;
  double seeding = -1;
};

Seeding seed_once(const workspace::Clone& clone, const std::string& image_id, const std::string& streams) {
  const docker::Engine& engine = DockerWorld::get().engine();
  Seeding out;
  const auto image = docker::image::require_registered({{image_id, kBase}}, engine, kBase, soon());
  if (!image) return out;
  const auto planned = storage::plan_storage("00000000000000e1", belljar::base::random_hex(16), clone.record().token,
                                             image->id(), {1024 * kMegabyte, 100'000, 1024 * kMegabyte, 1000});
  double begun = now_ms();
  const auto made = storage::allocate(
      engine, *image, planned, [](const storage::TaskStorage&) -> belljar::base::Status { return {}; }, soon());
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message().c_str());
    return out;
  }
  out.allocation = now_ms() - begun;
  auto seeder = storage::Seeder::start(engine, *image, *made, clone, streams, soon());
  if (seeder) {
    begun = now_ms();
    const auto status = seeder->run(engine, clone, soon());
    if (status) out.seeding = now_ms() - begun;
    if (!status) std::fprintf(stderr, "%s\n", status.error().message().c_str());
  }
  (void)belljar::testing::run({.argv = {"rm", "-r", streams}});
  (void)storage::release(engine.socket(), *made, false, soon());
  return out;
}

}  // namespace

bool measure_seeding(int rounds) {
  const TempDir root;
  ::chmod(root.path().c_str(), 0700);
  ::mkdir((root / "memory").c_str(), 0755);
  make_project(root / "project");
  const auto clone = workspace::Clone::make(root / "project", root / "clone", soon());
  if (!clone) {
    std::fprintf(stderr, "%s\n", clone.error().message().c_str());
    return false;
  }
  const auto work = clone->measure(workspace::TreeKind::kWork, soon());
  const auto git = clone->measure(workspace::TreeKind::kMetadata, soon());
  if (!work || !git) return false;
  const std::string image = import_base(DockerWorld::get().engine());
  if (image.empty()) return false;
  std::vector<double> plain;
  std::vector<double> ours;
  std::vector<double> allocations;
  bool good = true;
  for (int i = 0; i <= rounds; ++i) {
    const double copied = copy_plainly(root / "clone", root / "memory");
    const Seeding seeded = seed_once(*clone, image, root / "streams");
    good = good && copied > 0 && seeded.seeding > 0;
    if (i == 0) continue;  // once, so that all is in memory
    plain.push_back(copied);
    ours.push_back(seeded.seeding);
    allocations.push_back(seeded.allocation);
  }
  const double tar = quantile(plain, 0.5);
  const double seeding = quantile(ours, 0.5);
  std::printf("\n%llu files, %llu MB of checkout and %llu MB of metadata, ms, median\n",
              static_cast<unsigned long long>(work->files), static_cast<unsigned long long>(work->bytes / kMegabyte),
              static_cast<unsigned long long>(git->bytes / kMegabyte));
  std::printf("%-20s %12.0f\n%-20s %12.0f\n%-20s %12.0f %10.2f%s\n", "allocation", quantile(allocations, 0.5),
              "tar to tar", tar, "seeding", seeding, seeding / tar, good ? "" : "  FAILED");
  std::printf("{\"bench\":\"seeding\",\"unit\":\"ms\",%s,\"allocation\":%.0f,\"tar\":%.0f,\"seeding\":%.0f}\n",
              machine_json().c_str(), quantile(allocations, 0.5), tar, seeding);
  return good;
}

}  // namespace bench
