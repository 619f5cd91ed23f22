#include "tiers/jail/jail_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/io.h"
#include "base/path.h"
#include "linux/landlock_domain.h"
#include "plan/make_plan.h"

namespace belljar::tiers::jail {
namespace {

namespace fs = std::filesystem;

void must(bool good, const std::string& what) {
  if (good) return;
  std::perror(what.c_str());
  std::abort();
}

plan::PathFact look_at(const std::string& path) {
  plan::PathFact out;
  out.real = path;
  auto real = base::real_path(path);
  struct stat found{};
  if (!real || ::stat(real->c_str(), &found) != 0) return out;
  out.real = *real;
  out.kind = S_ISDIR(found.st_mode)   ? plan::FileKind::kFolder
             : S_ISREG(found.st_mode) ? plan::FileKind::kFile
                                      : plan::FileKind::kOther;
  out.uid = found.st_uid;
  out.gid = found.st_gid;
  out.mode = found.st_mode & 07777U;
  out.idmap_possible = ::geteuid() == 0;
  return out;
}

std::string text_of(const char* path) {
  return base::read_file(path).value_or("");
}

void gather_root(plan::Facts& facts) {
  for (const std::string_view name : plan::root_entry_names()) {
    plan::RootEntry entry;
    const fs::path path(name);
    if (fs::is_symlink(path)) {
      entry = {plan::RootEntry::Kind::kLink, fs::read_symlink(path).string()};
    } else if (fs::is_directory(path)) {
      entry.kind = plan::RootEntry::Kind::kFolder;
    }
    facts.root_entries.emplace(name, entry);
  }
  for (const std::string_view name : plan::etc_secret_names()) {
    if (fs::exists(name)) facts.etc_secrets.emplace_back(name);
  }
  for (const std::string_view name : plan::device_names()) {
    const std::string path = "/dev/" + std::string(name);
    if (fs::is_character_file(path)) facts.devices.emplace_back(name);
  }
}

uint64_t hard_limit(__rlimit_resource resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return limit.rlim_max;
}

plan::Facts gather(const Scene& scene, const std::string& command) {
  plan::Facts facts;
  facts.root = scene.root;
  facts.uid = ::geteuid();
  facts.gid = ::getegid();
  facts.launcher = ::getpid();
  facts.id_ranges = {{0, UINT32_MAX}};
  facts.home = scene.folder + "/home";
  facts.environment = {{"PATH", "/usr/bin"}, {"HOME", facts.home}};
  facts.work_folder = scene.work();
  facts.passwd = text_of("/etc/passwd");
  facts.group = text_of("/etc/group");
  facts.hosts = text_of("/etc/hosts");
  facts.resolver = look_at("/etc/resolv.conf");
  facts.git.kind = plan::GitFact::Kind::kFolder;
  using plan::ProtectedPath;
  facts.protected_paths = {{.path = scene.work() + "/.claude",
                            .kind = ProtectedPath::Kind::kFolder,
                            .treatment = ProtectedPath::Treatment::kPrivate},
                           {.path = scene.work() + "/.gemini", .kind = ProtectedPath::Kind::kLink}};
  facts.landlock_abi = linux::landlock_abi();
  facts.hard_open_files = hard_limit(RLIMIT_NOFILE);
  facts.hard_processes = hard_limit(RLIMIT_NPROC);
  gather_root(facts);
  plan::ProgramFile program;
  program.path = "/usr/bin/" + command;
  program.file = look_at(program.path);
  facts.program.state = plan::ProgramFact::State::kFound;
  facts.program.files = {program};
  return facts;
}

}  // namespace

const char* guest_program() {
  return BELLJAR_GUEST;
}

Step& Scene::step(Op op, const std::string& target) {
  const auto found = std::ranges::find_if(
      prepared.program.steps, [&](const Step& each) { return each.op == op && target.substr(1) == each.target; });
  must(found != prepared.program.steps.end(), "no step for " + target);
  return *found;
}

void Scene::remove_step(Op op, const std::string& target) {
  auto& steps = prepared.program.steps;
  steps.erase(steps.begin() + (&step(op, target) - steps.data()));
}

void Scene::add_step(Op op, const std::string& target, const std::string& source, const std::string& after) {
  Program& program = prepared.program;
  const auto keep = [&](const std::string& text) {
    program.text.push_back(text);
    return program.text.back().c_str();
  };
  Step made;
  made.op = op;
  made.target = keep(target.substr(1));
  made.source = keep(source);
  made.mode = 0755;
  auto at = program.steps.end();
  for (auto each = program.steps.begin(); each != program.steps.end() && !after.empty(); ++each) {
    if (after.substr(1) == each->target) at = each + 1;
  }
  program.steps.insert(at, made);
}

TestFolder::TestFolder() {
  std::string pattern = fs::canonical(fs::temp_directory_path()) / "belljar-jail-XXXXXX";
  must(::mkdtemp(pattern.data()) != nullptr && ::chmod(pattern.c_str(), 0755) == 0, pattern);
  path_ = pattern;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Scene empty_scene(const std::string& folder) {
  Scene scene;
  scene.root = ::geteuid() == 0;
  scene.folder = folder;
  if (scene.root) {
    must(::unshare(CLONE_NEWNS) == 0, "unshare");
    must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make / private");
    must(::mount("tmpfs", folder.c_str(), "tmpfs", 0, "mode=755,size=16m") == 0, "mount a tmpfs");
  }
  for (const char* name :
       {"work/.git/hooks", "work/.claude", "reading/.git", "reading/.claude", "reading/inner", "other", "home"}) {
    fs::create_directories(scene.folder + "/" + name);
  }
  for (const std::string& parent : {scene.work(), scene.reading()}) fs::create_symlink("nowhere", parent + "/.gemini");
  return scene;
}

// The distribution's, or that of another suite of Debian's, as tests/support/belljar.h says.
std::string bubblewrap() {
  const char* mode = std::getenv("BELLJAR_TEST_MODE");
  const char* all = std::getenv("BELLJAR_TEST_BUBBLEWRAPS");
  constexpr std::string_view kOther = "bwrap-";
  if (mode == nullptr || !std::string_view(mode).starts_with(kOther)) return "/usr/bin/bwrap";
  return std::string(all != nullptr ? all : "/no/BELLJAR_TEST_BUBBLEWRAPS") + "/" + (mode + kOther.size()) + "/bwrap";
}

base::Result<plan::Plan> plan_for(const Scene& scene, const Wish& wish) {
  policy::Policy policy;
  policy.files.read = {scene.reading()};
  policy.isolation.nested = wish.nested;
  policy.limits.file_bytes = uint64_t{64} << 20U;
  policy.limits.scratch_bytes = uint64_t{32} << 20U;
  policy.limits.scratch_files = 4096;
  const plan::Request request{.command = wish.command};
  plan::Facts facts = gather(scene, wish.command.front());
  if (wish.bwrap) {
    policy.isolation.mode = policy::Mode::kBwrap;
    policy.limits.scratch_files.reset();
    facts.bwrap.path = bubblewrap();
    std::erase_if(facts.protected_paths,
                  [](const plan::ProtectedPath& path) { return path.kind == plan::ProtectedPath::Kind::kLink; });
  }
  BELLJAR_ASSIGN(const std::vector<std::string> paths, plan::needed_paths(policy, facts, request));
  for (const std::string& path : paths) facts.paths.emplace(path, look_at(path));
  return plan::make_plan(policy, facts, request);
}

void set_scene(Scene& scene, const Wish& wish) {
  if (scene.root) {
    must(::chown(scene.work().c_str(), wish.owner, wish.owner) == 0, "chown");
  }
  auto plan = plan_for(scene, wish);
  if (!plan) std::fprintf(stderr, "%s\n", plan.error().message().c_str());
  must(plan.has_value(), "plan");
  scene.plan = std::move(*plan);
  auto prepared = prepare(scene.plan, guest_program());
  if (!prepared) std::fprintf(stderr, "%s\n", prepared.error().message().c_str());
  must(prepared.has_value(), "prepare");
  scene.prepared = std::move(*prepared);
  // Said here, since the launch would work it out from the protections that are left. Held open as long as the launcher
  // lives: the number of a namespace that is gone would be given to the next.
  for (const char* name : guest::kNamespaceNames) {
    const int held = ::open((std::string("/proc/self/ns/") + name).c_str(), O_RDONLY | O_CLOEXEC);
    struct stat found{};
    must(held >= 0 && ::fstat(held, &found) == 0, name);
    scene.prepared.config.host_namespaces.push_back(found.st_ino);
  }
}

std::string in_launcher(const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  must(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
  const pid_t pid = ::fork();
  must(pid >= 0, "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    const std::string text = body();
    ::_exit(base::write_all(ends[1], text) ? 0 : 1);
  }
  ::close(ends[1]);
  const base::Fd read_end(ends[0]);
  std::string text = base::read_to_end(read_end.get(), size_t{1} << 20U, "report").value_or("");
  int status = 0;
  must(::waitpid(pid, &status, 0) == pid, "waitpid");
  if (WIFSIGNALED(status)) return "launcher: signal " + std::to_string(WTERMSIG(status));
  return text;
}

namespace {

// In the proxy's place: answers the one question of the probe, on the guest's thread.
class Responder {
 public:
  Responder(Guest& guest, bool refuse) : sockets_(guest.take_transparent()), keeper_(guest.keeper()) {
    std::array<int, 2> ends{};
    must(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
    end_.reset(ends[0]);
    stop_.reset(ends[1]);
    keeper_.run([this, refuse] { answer(refuse); });
  }
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  ~Responder() {
    stop_.reset();
    keeper_.wait_for_job();
  }

 private:
  void answer(bool refuse) {
    std::array<pollfd, 2> wait{pollfd{sockets_.datagrams.get(), POLLIN, 0}, pollfd{end_.get(), POLLIN, 0}};
    if (::poll(wait.data(), wait.size(), -1) < 0 || (wait[0].revents & POLLIN) == 0) return;
    std::array<char, 512> question;
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const ssize_t n = ::recvfrom(sockets_.datagrams.get(), question.data(), question.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &length);
    if (n < 12) return;
    std::string reply(question.data(), static_cast<size_t>(n));
    reply[2] = '\x81';
    reply[3] = refuse ? '\x85' : '\x80';
    if (!refuse) {
      reply[7] = 1;  // one answer: 127.0.0.1 for the name at byte 12
      reply += std::string("\xc0\x0c\0\1\0\1\0\0\0\5\0\4\x7f\0\0\1", 16);
    }
    ::sendto(sockets_.datagrams.get(), reply.data(), reply.size(), 0, reinterpret_cast<const sockaddr*>(&from), length);
  }

  Transparent sockets_;
  Keeper& keeper_;
  base::Fd end_;
  base::Fd stop_;
};

}  // namespace

base::Result<guest::ProbeRecord> prove(Guest& guest, bool refuse) {
  const Responder responder(guest, refuse);
  return guest.prove(base::Deadline::after(std::chrono::seconds(20)));
}

std::string launch(Scene& scene) {
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const Stdio stdio{{null.get(), null.get(), null.get()}};
  auto guest = start(scene.prepared, stdio);
  if (!guest) return guest.error().message();
  const auto record = prove(*guest, scene.confuse_resolver);
  return record ? "proved" : record.error().message();
}

}  // namespace belljar::tiers::jail
