#include "tiers/docker/image/build.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "tiers/docker/image/archive.h"
#include "tiers/docker/image/commit_json.h"
#include "tiers/docker/image/setup.h"
#include "tiers/docker/image/step.h"
#include "tiers/docker/validate_json.h"

namespace belljar::tiers::docker::image {
namespace {

constexpr std::string_view kBuilding = "build the image";
constexpr uint64_t kMemory = uint64_t{2} << 30U;
constexpr uint64_t kPids = 256;
constexpr uint64_t kFiles = 4096;
constexpr uint64_t kShm = uint64_t{1} << 20U;
constexpr uint64_t kTmpBytes = uint64_t{256} << 20U;
constexpr uint64_t kTmpFiles = 10'000;
constexpr const char* kRepository = "belljar-agents";
constexpr const char* kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

class Builder {
 public:
  Builder(const Engine& engine, const Order& order, const base::Deadline& deadline)
      : engine_(engine), order_(order), deadline_(deadline) {}

  base::Result<Built> run(const Register& where);

 private:
  base::Status in_time(std::string_view step) const;
  void tell(std::string_view step) const {
    if (order_.tell) order_.tell(step);
  }
  base::Status find_base();
  base::Result<std::string> import_base();
  base::Status add_labels();
  [[nodiscard]] Profile profile(std::string_view what) const;
  base::Result<std::string> set_up();
  base::Result<std::string> commit(const std::string& container);
  base::Status check(const Image& made);
  base::Status give_tag(const Built& built);
  base::Status write_down(const Built& built, const Register& where);

  const Engine& engine_;
  const Order& order_;
  const base::Deadline& deadline_;
  Image base_;
  std::vector<std::string> env_;
  Labels pins_;
  Labels labels_;  // pins, the base's own, and whose they are
};

base::Status Builder::in_time(std::string_view step) const {
  if (!deadline_.passed()) return {};
  return base::refuse(kBuilding, order_.build, "the time was up: " + std::string(step) + " was done too late, refusing",
                      "give it more by --timeout");
}

base::Result<std::string> Builder::import_base() {
  const std::string& path = order_.base_tar;
  const base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0) return base::system_error("open the base", path, errno);
  if (!S_ISREG(found.st_mode)) return base::refuse("open the base", path, "it is no file, refusing");
  tell("importing the base from '" + base::escape(path) + "'");
  return engine_.import_image(file.get(), static_cast<uint64_t>(found.st_size), "",
                              {std::string("LABEL ") + kImportLabel + "=" + order_.build, std::string("ENV ") + kPath},
                              deadline_);
}

base::Status Builder::find_base() {
  std::string reference = order_.base;
  if (reference.empty()) {
    BELLJAR_ASSIGN(reference, import_base());
    BELLJAR_TRY(in_time("the import of the base"));
  }
  const size_t at = reference.find('@');
  if (!is_content_id(at == std::string::npos ? std::string_view(reference)
                                             : std::string_view(reference).substr(at + 1))) {
    return base::refuse("find the base", reference, "that may mean another image tomorrow, refusing",
                        "name it by its id or as NAME@sha256:DIGEST: docker image inspect");
  }
  BELLJAR_ASSIGN(base_, engine_.image(reference, deadline_));
  if (at == std::string::npos && base_.id != reference) {
    return base::refuse("find the base", reference, "the engine has another image by that id, refusing");
  }
  if (base_.labels.contains(kBuildLabel)) {
    return base::refuse("use the base", reference, "it was built by belljar itself, refusing", "use that one's base");
  }
  if (!base_.volumes.empty()) {
    return base::refuse("use the base", reference,
                        "it makes a volume at '" + base_.volumes.front() + "' that nothing bounds, refusing",
                        "use an image without VOLUME");
  }
  return in_time("the search for the base");
}

// A pin for each thing that went in, so that an image tells what it was made of. Nobody believes them: what counts is
// that the image's id is registered.
base::Status Builder::add_labels() {
  env_ = base_.env;
  if (std::ranges::none_of(env_, [](const std::string& one) { return one.starts_with("PATH="); })) {
    env_.emplace_back(kPath);
  }
  pins_["belljar.pin.base"] = base_.id;
  pins_["belljar.pin.lock"] = order_.lock.digest;
  for (const Package& package : order_.lock.packages) {
    pins_["belljar.pin." + package.place.substr(std::string_view("node_modules/").size())] =
        package.name + "@" + package.version + " " + package.integrity;
  }
  labels_ = base_.labels;
  for (const auto& [name, value] : pins_) {
    if (!labels_.emplace(name, value).second) {
      return base::refuse("use the base", base_.id, "it bears the label '" + name + "' already, refusing");
    }
  }
  labels_[kBuildLabel] = order_.build;
  return {};
}

Profile Builder::profile(std::string_view what) const {
  Profile out;
  out.name = "belljar-image-" + order_.build + "-" + std::string(what);
  out.image_id = base_.id;
  out.hostname = "build";
  out.entrypoint = {"/bin/sh"};
  out.working_folder = "/";
  out.env = env_;
  out.labels = labels_;
  out.ulimits = {{"nofile", kFiles, kFiles}};
  out.memory_bytes = kMemory;
  out.pids = kPids;
  out.shm_bytes = kShm;
  out.seccomp_by_name = knows_builtin_seccomp(engine_.info());
  return out;
}

base::Result<std::string> Builder::set_up() {
  tell("gathering the packages");
  BELLJAR_ASSIGN(const Archive archive,
                 make_archive(order_.lock, setup_script(order_.lock), order_.packages, order_.scratch, deadline_));
  BELLJAR_TRY(in_time("the gathering of the packages"));
  Profile container = profile("setup");
  container.command = {std::string("/") + kBuildFolder + "/setup.sh"};
  container.read_only_root = false;
  tell("unpacking them");
  BELLJAR_ASSIGN(const Step step, run_step(engine_, container, &archive, deadline_));
  BELLJAR_TRY(in_time("the unpacking"));
  return step.container;
}

base::Result<std::string> Builder::commit(const std::string& container) {
  tell("making the image");
  const std::string config = commit_request(env_, labels_);
  BELLJAR_ASSIGN(const Answered answer,
                 require(engine_.post("/commit?pause=0&container=" + percent_encode(container), config, deadline_),
                         "commit the container", container));
  auto id = committed_id(answer.body);
  if (!id || !is_content_id(*id)) return base::refuse(kBuilding, container, "the engine named no image, refusing");
  BELLJAR_TRY(in_time("the making of the image"));
  return std::move(*id);
}

// As a task would have it: its own user, nothing to write on, no network, no capability.
base::Status Builder::check(const Image& made) {
  if (made.labels != labels_ || made.env != env_ || !made.volumes.empty()) {
    return base::refuse("check the image", made.id, "the engine has put other labels or variables there, refusing");
  }
  tell("checking its tools");
  const std::vector<Tool> tools = tools_of(order_.lock);
  Profile container = profile("check");
  container.image_id = made.id;
  container.uid = kAgentUid;
  container.gid = kAgentUid;
  container.command = {"-c", check_script(tools)};
  container.env.emplace_back("HOME=/tmp");
  container.tmpfs = {
      {.target = "/tmp", .bytes = kTmpBytes, .files = kTmpFiles, .mode = 01777, .uid = kAgentUid, .gid = kAgentUid}};
  BELLJAR_ASSIGN(const Step step, run_step(engine_, container, nullptr, deadline_));
  BELLJAR_TRY(check_versions(tools, step.output.out));
  return in_time("the check of the image");
}

// So that an engine's own clean-up (`docker image prune`) takes it for wanted. It is known by its id all the same.
base::Status Builder::give_tag(const Built& built) {
  BELLJAR_TRY(require(
      engine_.ask("POST", "/images/" + percent_encode(built.id) + "/tag?repo=" + kRepository + "&tag=" + order_.build,
                  deadline_),
      "tag the image", built.tag));
  return in_time("the naming of the image");
}

base::Status Builder::write_down(const Built& built, const Register& where) {
  BELLJAR_TRY(where.add(built));
  auto late = in_time("the registration");
  if (late) return {};
  if (auto removed = where.remove(built.id); !removed) {
    late.error().reason += "; and it is still registered: " + removed.error().message();
  }
  return late;
}

base::Result<Built> Builder::run(const Register& where) {
  BELLJAR_TRY(check_engine(engine_.info()));
  BELLJAR_TRY(find_base());
  BELLJAR_TRY(add_labels());
  BELLJAR_ASSIGN(const std::string container, set_up());
  Built out;
  BELLJAR_ASSIGN(out.id, commit(container));
  out.tag = std::string(kRepository) + ":" + order_.build;
  for (const auto& [name, value] : pins_) out.pins += name + "=" + value + "\n";
  BELLJAR_ASSIGN(const Image made, engine_.image(out.id, deadline_));
  BELLJAR_TRY(check(made));
  BELLJAR_TRY(give_tag(out));
  BELLJAR_TRY(write_down(out, where));
  return out;
}

}  // namespace

base::Result<Built> build(const Engine& engine, const Order& order, const Register& where,
                          const base::Deadline& deadline) {
  return Builder(engine, order, deadline).run(where);
}

}  // namespace belljar::tiers::docker::image
