#include "tiers/docker/storage/helpers.h"

#include <utility>

#include "tiers/docker/engine_json.h"
#include "tiers/docker/validate_json.h"

namespace belljar::tiers::docker::storage {
namespace {

constexpr uint64_t kOwnMemory = uint64_t{64} << 20U;  // runc starts in the container's group, too
constexpr uint64_t kNanoCpus = 1'000'000'000;         // of one processor
constexpr uint64_t kPids = 32;                        // runc's threads count until it has become the program
constexpr uint64_t kShm = 65536;
// Of the kernel's memory for one inode with its name and what the group charges for it, generously.
constexpr uint64_t kPerFile = 4096;

Profile common_profile(const TaskStorage& storage, const Image& image, const EngineInfo& info, const char* part) {
  Profile out;
  out.image_id = image.id;
  out.hostname = "belljar";
  out.uid = kTaskUser;
  out.gid = kTaskGroup;
  out.working_folder = "/";
  out.env = image.env;
  out.labels = image.labels;
  out.labels[kTaskLabel] = storage.task;
  out.labels[kAllocationLabel] = storage.allocation;
  out.labels[kPartLabel] = part;
  out.network = ContainerNetwork::kNone;
  out.ulimits = {{"nofile", 256, 256}};
  out.nano_cpus = kNanoCpus;
  out.pids = kPids;
  out.shm_bytes = kShm;
  out.seccomp_by_name = knows_builtin_seccomp(info);
  return out;
}

void add_volumes(const TaskStorage& storage, bool writable, Profile& out) {
  out.volumes = {{storage.work.name, kKeptWork, writable, storage.work.mountpoint},
                 {storage.git.name, kKeptGit, writable, storage.git.mountpoint}};
}

}  // namespace

Profile keeper_profile(const TaskStorage& storage, const Image& image, const EngineInfo& info) {
  Profile out = common_profile(storage, image, info, "keeper");
  out.name = storage.keeper;
  out.entrypoint = {"/bin/sleep"};
  out.command = {"2147483647"};
  add_volumes(storage, false, out);
  out.memory_bytes = kOwnMemory;
  return out;
}

Profile seeder_profile(const TaskStorage& storage, const Image& image, const EngineInfo& info,
                       const std::string& streams) {
  Profile out = common_profile(storage, image, info, "seeder");
  out.name = "belljar-task-" + storage.task + "-seeder";
  // From its input: GNU's tar takes a file by its name for one that gives whole blocks at each read, and ends with
  // "Unaligned block" where a FIFO had less for the moment.
  const auto unpack = [](const char* stream, const char* into) {
    return std::string("tar -x -p -f - -C ") + into + " <" + kStreams + "/" + stream;
  };
  out.entrypoint = {"/bin/sh", "-c"};
  out.command = {unpack(kWorkStream, kKeptWork) + " && " + unpack(kGitStream, kKeptGit)};
  add_volumes(storage, true, out);
  out.binds = {{streams, kStreams, false}};
  out.memory_bytes = page_rounded(bytes_of(storage) + kPerFile * (storage.work.files + storage.git.files) + kOwnMemory);
  return out;
}

base::Result<Image> helper_image(const Engine& engine, const std::string& id, const base::Deadline& deadline) {
  BELLJAR_ASSIGN(Image image, engine.image(id, deadline));
  if (image.id != id) {
    return base::refuse("use the image", id, "it is no content's id, or another one's, refusing",
                        "name it by its id: sha256 and 64 digits");
  }
  if (!image.volumes.empty()) {
    return base::refuse("use the image", id,
                        "it makes a volume at '" + image.volumes.front() + "' that nothing bounds, refusing",
                        "use an image without VOLUME");
  }
  return image;
}

base::Result<std::string> create_checked(const Engine& engine, const Profile& profile, const base::Deadline& deadline) {
  constexpr std::string_view kOperation = "create the container";
  const std::string target = "/containers/create?name=" + percent_encode(profile.name);
  BELLJAR_ASSIGN(const Answered answer,
                 require(engine.post(target, create_request(profile), deadline), kOperation, profile.name));
  const auto id = read_id(answer.body);
  if (!id) return base::refuse(kOperation, profile.name, "the container engine named none, refusing");
  BELLJAR_ASSIGN(const Answered inspected, require(engine.ask("GET", "/containers/" + *id + "/json", deadline),
                                                   "look at the container", profile.name));
  BELLJAR_TRY(validate(profile, inspected.body));
  return *id;
}

}  // namespace belljar::tiers::docker::storage
