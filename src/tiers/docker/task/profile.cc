#include "tiers/docker/task/profile.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/path.h"
#include "plan/make_plan.h"
#include "policy/merge.h"
#include "policy/preset.h"
#include "policy/proxy_env.h"
#include "tiers/docker/image/setup.h"
#include "tiers/docker/storage/task_storage.h"
#include "tiers/docker/validate_json.h"

namespace belljar::tiers::docker::task {
namespace {

constexpr uint64_t kNanosPerPercent = 10'000'000;
constexpr uint64_t kStandardCpuPercent = 200;
constexpr uint64_t kRunBytes = 65536;  // of /run: mount points and nothing else
constexpr uint64_t kRunFiles = 1000;
constexpr const char* kHostname = "belljar";
constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string image_path(const Image& image) {
  for (const std::string& one : image.env) {
    if (one.starts_with("PATH=")) return one.substr(5);
  }
  return std::string(kDefaultPath);
}

// All that an agent of a task is told; a token comes later, by another way. Nothing of the caller's environment.
std::vector<plan::EnvVar> environment_of(const Adapter* adapter, const Image& image, bool certificates) {
  std::vector<plan::EnvVar> out = {{"HOME", kHome},
                                   {"LANG", "C.UTF-8"},
                                   {"LOGNAME", "agent"},
                                   {"PATH", image_path(image)},
                                   {"PWD", kWork},
                                   {"SHELL", "/bin/sh"},
                                   {"TMPDIR", "/tmp"},
                                   {"USER", "agent"},
                                   {"XDG_CACHE_HOME", "/tmp/xdg-cache"},
                                   {"npm_config_cache", "/tmp/npm-cache"}};
  for (auto& [name, value] : policy::proxy_environment(plan::kProxyPort)) out.push_back({name, std::move(value)});
  if (adapter != nullptr) {
    out.push_back({std::string(adapter->state_variable), std::string(adapter->state_folder)});
    for (const auto& [name, value] : policy::find_agent(adapter->agent)->env) out.push_back({name, value});
    if (adapter->agent == "claude") out.push_back({"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"});
  }
  if (certificates) {
    for (const std::string_view name : {"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"}) {
      out.push_back({std::string(name), kCertificates});
    }
  }
  std::ranges::sort(out, {}, &plan::EnvVar::name);
  return out;
}

// The model API and login hosts of the one vendor: no registry, no other host.
std::vector<policy::HostRule> hosts_of(const Adapter* adapter) {
  policy::Policy policy;
  if (adapter != nullptr) policy.agent = *policy::find_agent(adapter->agent);
  policy.agent.registries.clear();
  return policy::session_rules(policy);
}

void add_tmpfs(Profile& out, const char* target, uint64_t bytes, uint64_t files, mode_t mode, bool exec = true) {
  out.tmpfs.push_back(
      {.target = target, .bytes = bytes, .files = files, .mode = mode, .uid = kUser, .gid = kGroup, .exec = exec});
}

// What the engine is told of the environment: all that is no secret, for it is compared. A name of the image's that is
// not on the list has the image's value for init, and the agent does not get it.
std::vector<std::string> engine_environment(const plan::Plan& plan, const Image& image) {
  std::vector<std::string> out;
  for (const plan::EnvVar& one : plan.env) out.push_back(one.name + "=" + one.value);
  for (const std::string& one : image.env) {
    const std::string name = one.substr(0, one.find('='));
    if (std::ranges::find(plan.env, name, &plan::EnvVar::name) == plan.env.end()) out.push_back(one);
  }
  return out;
}

Profile profile_of(const Launch& launch, const EngineInfo& info) {
  const plan::Plan& plan = launch.plan;
  Profile out;
  out.name = container_name(launch.session);
  out.image_id = launch.image.id;
  out.hostname = plan.hostname;
  out.uid = kUser;
  out.gid = kGroup;
  out.entrypoint = {std::string(guest::kMeetingFolder) + "/belljar-guest"};
  out.command = {"container"};
  out.working_folder = "/";
  out.env = engine_environment(plan, launch.image);
  out.labels = launch.image.labels;
  out.labels[kSessionLabel] = launch.session;
  out.labels[storage::kTaskLabel] = launch.invocation.request().task;
  out.volumes = {launch.volumes.work, launch.volumes.metadata};
  out.volumes[0].target = kWork;
  out.volumes[0].writable = may_write(launch.invocation.request().phase);
  out.volumes[1].target = kMetadata;
  out.volumes[1].writable = false;
  const Ceilings& ceilings = launch.invocation.request().ceilings;
  add_tmpfs(out, guest::kMeetingParent, kRunBytes, kRunFiles, 0755);
  add_tmpfs(out, kHome, ceilings.home_bytes, ceilings.home_files, 0700);
  add_tmpfs(out, "/tmp", ceilings.temporary_bytes, ceilings.temporary_files, 01777);
  out.ulimits = {{"core", 1, 1}, {"nofile", plan.limits.open_files, plan.limits.open_files}};
  out.memory_bytes = ceilings.memory_bytes;
  out.nano_cpus = plan.limits.cpu_percent.value_or(0) * kNanosPerPercent;
  out.pids = ceilings.pids;
  out.shm_bytes = ceilings.shared_bytes;
  out.seccomp_by_name = knows_builtin_seccomp(info);
  return out;
}

class Preparation {
 public:
  Preparation(const Launch& launch, Meeting& meeting, Prepared& out) : launch_(launch), meeting_(meeting), out_(out) {}

  base::Status add_files();
  base::Status add_expected();

 private:
  void bind(std::string source, std::string target) {
    out_.profile.binds.push_back({std::move(source), std::move(target), false});
  }
  base::Status add_accounts();
  base::Status add_agent();
  base::Status add_input(SealedInput* input, const char* target);
  void expect_logins();
  void expect_versions();
  std::string_view keep(std::string text) { return out_.text.emplace_back(std::move(text)); }

  const Launch& launch_;
  Meeting& meeting_;
  Prepared& out_;
};

base::Status Preparation::add_accounts() {
  const std::string ids = std::to_string(kUser) + ":" + std::to_string(kGroup);
  BELLJAR_ASSIGN(std::string users,
                 meeting_.add_file("passwd", "root:x:0:0:root:/root:/bin/sh\nagent:x:" + ids + "::" + kHome +
                                                 ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"));
  BELLJAR_ASSIGN(std::string groups,
                 meeting_.add_file("group", "root:x:0:\nagent:x:" + std::to_string(kGroup) + ":\nnogroup:x:65534:\n"));
  bind(std::move(users), "/etc/passwd");
  bind(std::move(groups), "/etc/group");
  return {};
}

// A tmpfs for the state of its own, and on it the login, read-only: what the agent renews of it ends with the launch.
base::Status Preparation::add_agent() {
  const Adapter* adapter = find_adapter(launch_.invocation.request().agent);
  if (adapter == nullptr) return {};
  const std::string folder(adapter->state_folder);
  const Ceilings& ceilings = launch_.invocation.request().ceilings;
  add_tmpfs(out_.profile, folder.c_str(), ceilings.state_bytes, ceilings.state_files, 0700);
  if (!launch_.login.empty()) bind(launch_.login, folder + "/" + std::string(adapter->login));
  return {};
}

base::Status Preparation::add_input(SealedInput* input, const char* target) {
  if (input == nullptr) return {};
  BELLJAR_ASSIGN(std::string path, input->publish(meeting_, std::string(base::name_of(target))));
  bind(std::move(path), target);
  const struct stat& found = input->identity();
  out_.config.files.push_back({.path = target, .device = found.st_dev, .inode = found.st_ino});
  return {};
}

// What an image says of its packages (image/build.cc: `belljar.pin.PLACE` is `NAME@VERSION INTEGRITY`), each package
// itself has to say, too.
void Preparation::expect_versions() {
  constexpr std::string_view kPin = "belljar.pin.";
  for (const auto& [label, value] : launch_.image.labels) {
    const std::string_view pin(value);
    const std::string_view package = pin.substr(0, pin.find(' '));
    const size_t at = package.rfind('@');
    if (!label.starts_with(kPin) || at == std::string_view::npos || at == 0) continue;
    out_.config.files.push_back({.path = keep(std::string(image::kAgentsFolder) + "/node_modules/" +
                                              label.substr(kPin.size()) + "/package.json"),
                                 .holds = keep('"' + std::string(package.substr(at + 1)) + '"')});
  }
}

// The one login that comes along is there, and it is that file; every other agent's is not.
void Preparation::expect_logins() {
  struct stat staged{};
  const bool there = !launch_.login.empty() && ::lstat(launch_.login.c_str(), &staged) == 0;
  const std::string& agent = launch_.invocation.request().agent;
  for (const Adapter& one : adapters()) {
    const std::string folder(one.state_folder);
    const std::string_view login = keep(folder + "/" + std::string(one.login));
    if (one.agent == agent && there) {
      out_.config.files.push_back({.path = login, .device = staged.st_dev, .inode = staged.st_ino});
    } else {
      out_.config.files.push_back({.path = one.agent == agent ? login : one.state_folder, .absent = true});
    }
  }
}

base::Status Preparation::add_files() {
  out_.profile.binds.push_back({meeting_.path(), guest::kMeetingFolder, false});
  BELLJAR_TRY(add_accounts());
  BELLJAR_TRY(add_agent());
  BELLJAR_TRY(add_input(launch_.schema, kSchema));
  BELLJAR_TRY(add_input(launch_.certificates, kCertificates));
  expect_logins();
  expect_versions();
  return {};
}

base::Status Preparation::add_expected() {
  guest::Config& config = out_.config;
  BELLJAR_TRY(expect_mounts(out_));
  config.metadata = kMetadata;
  for (const std::string& one : out_.profile.env) config.engine_environment.push_back(keep(one));
  for (const plan::EnvVar& one : launch_.plan.env) config.environment.push_back(keep(one.name + "=" + one.value));
  config.writable = {kHome, "/tmp", "/dev/shm"};
  if (may_write(launch_.invocation.request().phase)) config.writable.emplace_back(kWork);
  if (const Adapter* adapter = find_adapter(launch_.invocation.request().agent)) {
    config.writable.push_back(adapter->state_folder);
  }
  return {};
}

}  // namespace

plan::Plan plan_of(const Invocation& invocation, const Image& image, const std::string& engine) {
  const Request& request = invocation.request();
  const Ceilings& ceilings = request.ceilings;
  const Adapter* adapter = find_adapter(request.agent);
  plan::Plan out;
  out.mode = policy::Mode::kDocker;
  out.network = policy::Network::kDeny;
  out.work_folder = out.chdir = kWork;
  out.home = out.private_home = kHome;
  out.agent = request.agent;
  out.command = request.command;
  out.program = request.command.front();
  out.identity = {.guest_uid = kUser,
                  .guest_gid = kGroup,
                  .host_uid = kUser,
                  .host_gid = kGroup,
                  .disk_uid = kUser,
                  .disk_gid = kGroup};
  out.env = environment_of(adapter, image, !request.certificates.empty());
  out.hosts = hosts_of(adapter);
  out.proxy_port = plan::kProxyPort;
  out.hostname = kHostname;
  const auto processors = static_cast<uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  out.limits.memory_bytes = ceilings.memory_bytes;
  out.limits.cpu_percent =
      ceilings.cpu_percent != 0 ? ceilings.cpu_percent : std::min(kStandardCpuPercent, processors * 100);
  out.limits.pids = ceilings.pids;
  out.limits.open_files = ceilings.open_files;
  out.limits.scratch_bytes = ceilings.home_bytes;
  out.limits.scratch_files = ceilings.home_files;
  out.limits.wall_seconds = request.seconds;
  out.container = {engine, image.id, image.id, image.env};
  return out;
}

base::Result<Prepared> prepare(const Launch& launch, Meeting& meeting, const Engine& engine) {
  constexpr std::string_view kOperation = "prepare the task";
  BELLJAR_TRY(launch.invocation.authenticate());
  BELLJAR_TRY(check_engine(engine.info()));
  const Request& request = launch.invocation.request();
  if (launch.image.id != request.image_id) {
    return base::refuse(kOperation, launch.image.id, "it is another image than was captured, refusing");
  }
  if (!launch.image.volumes.empty()) {
    return base::refuse(kOperation, launch.image.volumes.front(),
                        "the image makes a volume that nothing bounds, refusing");
  }
  if (request.login == launch.login.empty() || request.schema.empty() != (launch.schema == nullptr) ||
      request.certificates.empty() != (launch.certificates == nullptr)) {
    return base::refuse(kOperation, request.attempt, "its inputs are not those that were captured, refusing");
  }
  Prepared out;
  out.profile = profile_of(launch, engine.info());
  out.config = config_of(launch.plan);
  Preparation preparation(launch, meeting, out);
  BELLJAR_TRY(preparation.add_files());
  BELLJAR_TRY(preparation.add_expected());
  BELLJAR_ASSIGN(out.config.host_namespaces, namespaces_to_leave());
  out.request = create_request(out.profile);
  out.unchanged = [&invocation = launch.invocation,
                   inputs = std::array{launch.schema, launch.certificates}]() -> base::Status {
    BELLJAR_TRY(invocation.authenticate());
    for (const SealedInput* input : inputs) {
      if (input != nullptr) BELLJAR_TRY(input->check());
    }
    return {};
  };
  return out;
}

void add_token(const Credential& credential, Prepared& prepared) {
  if (credential.token().empty()) return;
  prepared.config.environment.push_back(prepared.text.emplace_back(credential.token()));
}

}  // namespace belljar::tiers::docker::task
