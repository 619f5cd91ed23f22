#include "cli/image_builds.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/io.h"
#include "base/path.h"
#include "session/run.h"
#include "tiers/docker/image/build.h"

namespace belljar::cli {
namespace {

namespace image = tiers::docker::image;

constexpr std::string_view kRecord = ".build";
constexpr const char* kFolder = ".packages";
constexpr size_t kMostRecord = 4096;
constexpr auto kRemovalTime = std::chrono::seconds(60);

std::string builds_of(const std::string& state) {
  return state + "/builds";
}

// True when it is finished, and its record may go.
base::Result<bool> recover_one(const std::string& state, const session::StateFolder& builds, const std::string& id,
                               tiers::docker::Reach& reach, std::vector<std::string>& left) {
  auto record = builds.open_file(id + std::string(kRecord), O_RDONLY);
  if (!record) {
    if (record.error().code == ENOENT) return false;
    return std::unexpected(record.error());
  }
  if (::flock(record->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;  // its builder lives
    return base::system_error("lock the record of a build", id, errno);
  }
  struct stat found{};
  if (::fstat(record->get(), &found) != 0 || found.st_nlink == 0) return false;
  BELLJAR_ASSIGN(const std::string engine, base::read_to_end(record->get(), kMostRecord, id));
  if (const auto answers = reach.answers(engine); !answers) {
    left.push_back("build " + id + ": " + answers.error().message());
    return false;
  }
  // Only now: a builder registers before it lets go of the lock.
  BELLJAR_ASSIGN(const image::Registry registry, registry_of(state));
  const std::vector<std::string> here =
      image::discard(engine, id, image::Discard::kEverything, registry, false, base::Deadline::after(kRemovalTime));
  left.insert(left.end(), here.begin(), here.end());
  if (!here.empty()) return false;
  std::error_code error;
  std::filesystem::remove_all(builds.path() + "/" + id + kFolder, error);
  if (error) return base::system_error("remove the packages of a build", id, error.value());
  builds.remove(id + std::string(kRecord));
  return true;
}

}  // namespace

base::Result<ImageBuild> ImageBuild::begin(const std::string& state, const std::string& engine) {
  BELLJAR_ASSIGN(session::StateFolder builds, session::StateFolder::open(builds_of(state)));
  std::string id = session::new_session_id();
  BELLJAR_ASSIGN(base::Fd record, builds.write_locked_file(id + std::string(kRecord), engine));
  return ImageBuild(std::move(builds), std::move(record), std::move(id));
}

ImageBuild::~ImageBuild() {
  if (!state_ || id_.empty()) return;
  std::error_code error;  // what is left of it goes with the record, at the next recovery
  std::filesystem::remove_all(place() + "/" + id_ + kFolder, error);
}

base::Result<std::string> ImageBuild::make_folder() const {
  const std::string name = id_ + kFolder;
  if (::mkdirat(state_.fd(), name.c_str(), 0700) != 0) {
    return base::system_error("make a folder", place() + "/" + name, errno);
  }
  return place() + "/" + name;
}

void ImageBuild::finish() const {
  state_.remove(id_ + std::string(kRecord));
}

base::Result<std::string> own_state_folder() {
  const std::string sessions = session::state_path();
  if (sessions.empty()) {
    return base::refuse("open the state folder", "", "neither XDG_STATE_HOME nor HOME says where it is, refusing",
                        "set HOME");
  }
  return base::parent_of(sessions);
}

base::Result<image::Registry> registry_of(const std::string& state) {
  image::Registry out;
  BELLJAR_ASSIGN(const auto store, store::Store::open_existing(state));
  if (!store) return out;
  BELLJAR_ASSIGN(const std::vector<store::BuiltImage> images, store->built_images());
  for (const store::BuiltImage& one : images) out.emplace(one.id, one.tag);
  return out;
}

base::Result<std::vector<std::string>> recover_builds(const std::string& state, tiers::docker::Reach& reach,
                                                      std::vector<std::string>& done) {
  std::vector<std::string> left;
  const std::string path = builds_of(state);
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return left;
  BELLJAR_ASSIGN(const session::StateFolder builds, session::StateFolder::open(path));
  BELLJAR_ASSIGN(const std::vector<std::string> names, builds.names(kRecord));
  for (const std::string& id : names) {
    BELLJAR_ASSIGN(const bool finished, recover_one(state, builds, id, reach, left));
    if (finished) done.push_back(id);
  }
  return left;
}

}  // namespace belljar::cli
