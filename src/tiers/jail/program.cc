#include "tiers/jail/program.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>

#include "base/path.h"
#include "policy/hook_url.h"

namespace belljar::tiers::jail {
namespace {

// Not when it is one of Belljar's own there.
uint16_t hook_port_of(uint16_t proxy_port, const policy::Hook& hook) {
  const uint16_t port = proxy_port == 0 ? uint16_t{0} : policy::loopback_port(hook);
  return port == proxy_port || port == kRedirectPort || port == kResolverPort ? uint16_t{0} : port;
}

constexpr uint32_t kSticky = 01777;

class Compiler {
 public:
  Compiler(const plan::Plan& plan, const Copies& copies, Program& program)
      : plan_(plan), copies_(copies), program_(program) {}
  base::Status run();

 private:
  // What already lies at a path of the new root.
  enum class There : uint8_t { kFolder, kOther, kHost };

  const char* keep(std::string text) {
    program_.text.push_back(std::move(text));
    return program_.text.back().c_str();
  }
  const char* relative(const std::string& target) { return keep(target.substr(1)); }
  Step& add(Op op, const std::string& target, const std::string& source = {}) {
    Step step;
    step.op = op;
    step.target = relative(target);
    step.source = keep(source);
    step.size = source.size();
    step.own_way = leads_there(base::parent_of(target));
    program_.steps.push_back(step);
    return program_.steps.back();
  }
  // True when the deepest mount that holds `path` is one whose content is the host's or the kernel's.
  [[nodiscard]] bool inside_foreign(const std::string& path) const;
  // True when nothing of the host's can be a link on the way to `folder`: the steps make all of it, the last component
  // perhaps by a mount.
  [[nodiscard]] bool leads_there(const std::string& folder) const;
  [[nodiscard]] bool inside_scratch(const std::string& path) const;
  base::Status folders_to(const std::string& folder);
  base::Status mount_point(const plan::Mount& mount, bool folder);
  base::Status add_mount(const plan::Mount& mount);
  base::Status add_bind(const plan::Mount& mount);
  base::Status add_file(const plan::Mount& mount);
  base::Status add_copy(const plan::Mount& mount);

  const plan::Plan& plan_;
  const Copies& copies_;
  Program& program_;
  std::map<std::string, There> made_{{"/", There::kFolder}};  // what a step has put at a path
  std::map<std::string, plan::MountKind> mounted_;
};

bool Compiler::inside_foreign(const std::string& path) const {
  for (std::string at = path; at != "/"; at = base::parent_of(at)) {
    const auto found = mounted_.find(at);
    if (found != mounted_.end()) return found->second != plan::MountKind::kScratch;
  }
  return false;
}

bool Compiler::leads_there(const std::string& folder) const {
  return !inside_foreign(folder) || (mounted_.contains(folder) && !inside_foreign(base::parent_of(folder)));
}

bool Compiler::inside_scratch(const std::string& path) const {
  for (std::string at = path; at != "/"; at = base::parent_of(at)) {
    const auto found = mounted_.find(at);
    if (found != mounted_.end()) return found->second == plan::MountKind::kScratch;
  }
  return false;
}

base::Status Compiler::folders_to(const std::string& folder) {
  if (folder == "/" || inside_foreign(folder)) return {};
  const auto found = made_.find(folder);
  if (found != made_.end()) {
    if (found->second == There::kOther) return base::refuse("plan a mount below", folder, "it is not a folder");
    return {};
  }
  BELLJAR_TRY(folders_to(base::parent_of(folder)));
  Step& step = add(Op::kFolder, folder);
  step.mode = 0755;
  step.owned = inside_scratch(folder);
  made_[folder] = There::kFolder;
  return {};
}

// Sees to it that there is something to mount on. Never inside a folder of the host: a launch leaves no ghosts there.
base::Status Compiler::mount_point(const plan::Mount& mount, bool folder) {
  if (!mounted_.emplace(mount.target, mount.kind).second) {
    return base::refuse("plan a mount", mount.target, "two mounts claim it");
  }
  const std::string parent = base::parent_of(mount.target);
  if (inside_foreign(parent)) return {};
  BELLJAR_TRY(folders_to(parent));
  if (made_.emplace(mount.target, folder ? There::kFolder : There::kOther).second) {
    Step& step = folder ? add(Op::kFolder, mount.target) : add(Op::kFile, mount.target);
    step.mode = folder ? 0755 : 0644;
    step.owned = inside_scratch(parent);
  }
  return {};
}

base::Status Compiler::add_bind(const plan::Mount& mount) {
  struct stat found{};
  if (::lstat(mount.source.c_str(), &found) != 0) {
    if ((errno == ENOENT || errno == EACCES) && mount.optional) return {};
    return base::system_error("bind", mount.source, errno);
  }
  if (S_ISLNK(found.st_mode)) return base::refuse("bind", mount.source, "it is a symbolic link");
  BELLJAR_TRY(mount_point(mount, S_ISDIR(found.st_mode)));
  Step& step = add(mount.kind == plan::MountKind::kDevice ? Op::kDevice : Op::kBind, mount.target, mount.source);
  step.writable = mount.writable;
  step.idmap = mount.idmap && program_.privileged && plan_.identity.idmap;
  step.optional = mount.optional;
  return {};
}

base::Status Compiler::add_file(const plan::Mount& mount) {
  const std::string parent = base::parent_of(mount.target);
  if (inside_foreign(parent)) {
    mounted_.emplace(mount.target, mount.kind);
    add(Op::kFileOver, mount.target, mount.source).optional = mount.optional;
    return {};
  }
  BELLJAR_TRY(folders_to(parent));
  made_[mount.target] = There::kOther;
  add(Op::kFile, mount.target, mount.source).mode = 0644;
  return {};
}

base::Status Compiler::add_copy(const plan::Mount& mount) {
  const std::string parent = base::parent_of(mount.target);
  const auto content = copies_.find(mount.target);
  // Gone since the plan was made; or the policy gives the folder around it, and with it the file itself.
  if (content == copies_.end() || inside_foreign(parent)) return {};
  BELLJAR_TRY(folders_to(parent));
  made_[mount.target] = There::kOther;
  Step& step = add(Op::kFile, mount.target, content->second);
  step.mode = 0600;
  step.owned = true;
  return {};
}

base::Status Compiler::add_mount(const plan::Mount& mount) {
  using plan::MountKind;
  switch (mount.kind) {
    case MountKind::kBind:
    case MountKind::kDevice:
      return add_bind(mount);
    case MountKind::kFolder:
      return folders_to(mount.target);
    case MountKind::kLink:
      BELLJAR_TRY(folders_to(base::parent_of(mount.target)));
      made_[mount.target] = There::kOther;
      add(Op::kLink, mount.target, mount.source);
      return {};
    case MountKind::kFile:
      return add_file(mount);
    case MountKind::kCopy:
      return add_copy(mount);
    case MountKind::kScratch: {
      BELLJAR_TRY(mount_point(mount, true));
      Step& step = add(Op::kScratch, mount.target);
      const bool shared = mount.target == "/tmp" || mount.target == "/var/tmp" || mount.target == "/dev/shm";
      step.mode = shared ? kSticky : 0755;
      step.owned = true;
      step.writable = true;
      return {};
    }
    case MountKind::kProc:
    case MountKind::kPts:
      BELLJAR_TRY(mount_point(mount, true));
      add(mount.kind == MountKind::kProc ? Op::kProc : Op::kPts, mount.target).writable = true;
      return {};
    case MountKind::kMask:
    case MountKind::kReadOnly: {
      mounted_.emplace(mount.target, mount.kind);
      Step& step = add(mount.kind == MountKind::kMask ? Op::kMask : Op::kReadOnly, mount.target);
      step.optional = mount.optional;
      step.link = mount.link;
      return {};
    }
    case MountKind::kPrivate:
      mounted_.emplace(mount.target, mount.kind);
      add(Op::kPrivate, mount.target);
      return {};
  }
  return base::refuse("plan a mount", mount.target, "its kind is unknown");
}

base::Status Compiler::run() {
  for (const plan::Mount& mount : plan_.mounts) {
    if (base::normal_path(mount.target) != mount.target || mount.target == "/") {
      return base::refuse("plan a mount", mount.target, "the target is not an absolute path in normal form");
    }
    BELLJAR_TRY(add_mount(mount));
  }
  return {};
}

}  // namespace

const uint64_t kBindAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

std::string scratch_folder(const Program& program, std::string_view target) {
  for (const Step& step : program.steps) {
    if (step.op == Op::kScratch && target.starts_with('/') && target.substr(1) == step.target) {
      return std::to_string(number_of(program, step));
    }
  }
  return {};
}

std::vector<PrivateCopy> private_copies(const Program& program) {
  std::vector<PrivateCopy> out;
  for (const Step& step : program.steps) {
    if (step.op != Op::kPrivate) continue;
    out.push_back({std::string("/") + step.target, std::to_string(number_of(program, step)) + "/" + kPrivateUpper});
  }
  return out;
}

std::vector<std::string> refused_copies(const Program& program) {
  std::vector<std::string> out;
  for (const Step& step : program.steps) {
    if (step.op == Op::kPrivate && step.refused != 0) out.push_back(std::string("/") + step.target);
  }
  return out;
}

Foundation foundation_of(const Program& program) {
  const Protections& on = program.protections;
  return {.namespaces = on.namespaces,
          .proxy_port = program.proxy_port,
          .privileged = program.privileged,
          .death_signal = on.death_signal,
          .close_descriptors = on.close_descriptors,
          .loopback = on.loopback,
          .listener = on.listener,
          .transparent = program.proxy_port != 0 && on.listener && program.transparent != policy::Transparent::kOff,
          .synthetic_routes = on.synthetic_routes,
          .redirect = on.redirect,
          .resolver = on.resolver,
          .hook_port = program.hook_port};
}

Foundation foundation_of(uint16_t proxy_port, policy::Transparent transparent, bool privileged,
                         const policy::Hook& hook) {
  Program program;
  program.transparent = transparent;
  program.proxy_port = proxy_port;
  program.hook_port = hook_port_of(proxy_port, hook);
  program.privileged = privileged;
  if (proxy_port == 0) program.protections.namespaces &= ~uint64_t{CLONE_NEWNET};
  return foundation_of(program);
}

base::Result<Program> compile(const plan::Plan& plan, bool privileged, const Copies& copies) {
  Program program;
  program.identity = plan.identity;
  program.privileged = privileged;
  program.hostname = plan.hostname;
  program.nested = plan.nested;
  program.proxy_port = plan.proxy_port;
  program.hook_port = hook_port_of(plan.proxy_port, plan.hook);
  program.transparent = plan.transparent;
  program.scratch_bytes = plan.limits.scratch_bytes;
  program.scratch_files = plan.limits.scratch_files;
  program.protections.bind_attributes = kBindAttributes;
  if (plan.network == policy::Network::kAllow) program.protections.namespaces &= ~uint64_t{CLONE_NEWNET};
  BELLJAR_TRY(Compiler(plan, copies, program).run());
  return program;
}

}  // namespace belljar::tiers::jail
