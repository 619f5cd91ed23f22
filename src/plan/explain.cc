#include "plan/explain.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/text.h"
#include "plan/upstream.h"
#include "policy/host_rule.h"

namespace belljar::plan {
namespace {

using base::escape;

constexpr size_t kNameWidth = 12;

void line(std::string& out, std::string_view name, const std::string& text) {
  out += name;
  if (name.size() < kNameWidth) out.append(kNameWidth - name.size(), ' ');
  out += text + "\n";
}

std::string identity_text(const Identity& identity) {
  const auto pair = [](uint64_t uid, uint64_t gid) { return std::to_string(uid) + ":" + std::to_string(gid); };
  std::string out = "user " + pair(identity.guest_uid, identity.guest_gid);
  if (identity.host_uid != identity.guest_uid || identity.host_gid != identity.guest_gid) {
    out += ", on the host " + pair(identity.host_uid, identity.host_gid);
  }
  if (identity.idmap) out += "; what it writes belongs to " + pair(identity.disk_uid, identity.disk_gid);
  return out;
}

std::string network_text(const Plan& plan) {
  if (plan.network == policy::Network::kAllow) return "allow: the host's";
  if (plan.hosts.empty()) return plan.ask ? "deny: no host is allowed yet" : "deny: no host is allowed";
  return "deny, but for these hosts by way of 127.0.0.1:" + std::to_string(plan.proxy_port);
}

std::string mount_text(const Mount& mount) {
  std::string out = escape(mount.target);
  if (mount.kind == MountKind::kLink) out += " -> " + escape(mount.source);
  if (mount.kind == MountKind::kBind && mount.source != mount.target) out += " = " + escape(mount.source);
  return out;
}

// Mounts of one reason share a line, by name alone after the first of the same folder.
class Lines {
 public:
  void add(const Mount& mount) {
    auto line = std::ranges::find(lines_, mount.reason, &Line::reason);
    if (line == lines_.end()) line = lines_.insert(lines_.end(), Line{mount.reason, {}, {}});
    const std::string folder = base::parent_of(mount.target);
    std::string text = mount_text(mount);
    if (folder != "/" && folder == line->folder) text = text.substr(escape(folder).size() + 1);
    line->folder = folder;
    line->texts.push_back(std::move(text));
  }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const Line& line : lines_) out += "  " + base::join(line.texts, ", ") + "  (" + escape(line.reason) + ")\n";
    return out;
  }

 private:
  struct Line {
    std::string reason;
    std::string folder;
    std::vector<std::string> texts;
  };
  std::vector<Line> lines_;
};

// What of the mounts a person asks about, in the order they ask.
void mounts_text(std::string& out, const Plan& plan) {
  struct Group {
    const char* title;
    bool (*holds)(const Mount&);
  };
  static constexpr std::array<Group, 7> kGroups = {{
      {"writable, on the host:", [](const Mount& m) { return m.kind == MountKind::kBind && m.writable; }},
      {"read-only:",
       [](const Mount& m) { return (m.kind == MountKind::kBind && !m.writable) || m.kind == MountKind::kReadOnly; }},
      {"hidden:", [](const Mount& m) { return m.kind == MountKind::kMask; }},
      {"a private copy, gone at the end:", [](const Mount& m) { return m.kind == MountKind::kPrivate; }},
      {"private, gone at the end:", [](const Mount& m) { return m.kind == MountKind::kScratch; }},
      {"private, taken over at the end:", [](const Mount& m) { return m.kind == MountKind::kCopy; }},
      {"made for the guest:",
       [](const Mount& m) {
         return m.kind == MountKind::kFolder || m.kind == MountKind::kLink || m.kind == MountKind::kFile ||
                m.kind == MountKind::kDevice || m.kind == MountKind::kProc || m.kind == MountKind::kPts;
       }},
  }};
  for (const Group& group : kGroups) {
    Lines lines;
    for (const Mount& mount : plan.mounts) {
      if (group.holds(mount)) lines.add(mount);
    }
    if (const std::string text = lines.text(); !text.empty()) out += std::string("\n") + group.title + "\n" + text;
  }
}

void limits_text(std::string& out, const Plan& plan) {
  const ResourceLimits& limits = plan.limits;
  std::vector<std::string> parts;
  if (limits.processes != 0) parts.push_back(std::to_string(limits.processes) + " processes");
  if (limits.open_files != 0) parts.push_back(std::to_string(limits.open_files) + " open files");
  if (limits.file_bytes) parts.push_back("files of at most " + size_text(*limits.file_bytes));
  std::string text = parts.empty() ? "as in your shell" : base::join(parts, ", ") + " (resource limits)";
  if (plan.mode != policy::Mode::kNone) {
    text += "; " + size_text(limits.scratch_bytes) +
            (limits.scratch_files != 0 ? " and " + std::to_string(limits.scratch_files) + " files" : "") +
            " of scratch (tmpfs)";
  }
  if (limits.wall_seconds) text += "; " + std::to_string(*limits.wall_seconds) + " s (boot clock)";
  line(out, "limits", text);
  const auto by_group = [&](const char* what, const std::string& value, bool limited, const std::string& by) {
    line(out, what,
         limited                            ? value + " (" + escape(by) + ")"
         : plan.mode == policy::Mode::kNone ? "not limited"
                                            : "not limited: " + escape(by));
  };
  by_group("  memory", size_text(limits.memory_bytes.value_or(0)), limits.memory_bytes.has_value(), limits.memory_by);
  by_group("  cpu", std::to_string(limits.cpu_percent.value_or(0)) + "%", limits.cpu_percent.has_value(),
           limits.cpu_by);
  by_group("  pids", std::to_string(limits.pids.value_or(0)) + " processes and threads", limits.pids.has_value(),
           limits.pids_by);
}

void list_text(std::string& out, const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out += std::string("\n") + title + "\n";
  for (const std::string& text : lines) out += "  " + escape(text) + "\n";
}

}  // namespace

std::string size_text(uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + " " + kUnits[unit];
}

const char* to_text(policy::Mode mode) {
  switch (mode) {
    case policy::Mode::kNone:
      return "none";
    case policy::Mode::kJail:
      return "jail";
    case policy::Mode::kBwrap:
      return "bwrap";
    case policy::Mode::kDocker:
      return "docker";
  }
  return "?";
}

const char* to_text(policy::Network network) {
  return network == policy::Network::kAllow ? "allow" : "deny";
}

const char* to_text(MountKind kind) {
  switch (kind) {
    case MountKind::kBind:
      return "bind";
    case MountKind::kScratch:
      return "scratch";
    case MountKind::kFolder:
      return "folder";
    case MountKind::kLink:
      return "link";
    case MountKind::kFile:
      return "file";
    case MountKind::kCopy:
      return "copy";
    case MountKind::kDevice:
      return "device";
    case MountKind::kProc:
      return "proc";
    case MountKind::kPts:
      return "pts";
    case MountKind::kMask:
      return "mask";
    case MountKind::kPrivate:
      return "private";
    case MountKind::kReadOnly:
      return "read-only";
  }
  return "?";
}

const char* to_text(KeptKind kind) {
  switch (kind) {
    case KeptKind::kLogin:
      return "login";
    case KeptKind::kState:
      return "state";
    case KeptKind::kHistory:
      return "history";
    case KeptKind::kForbidden:
      return "forbidden";
  }
  return "?";
}

std::string explain_text(const Plan& plan) {
  std::string out;
  std::vector<std::string> words;
  words.reserve(plan.command.size());
  for (const std::string& word : plan.command) words.push_back(base::shell_quote(word));
  line(out, "command", base::join(words, " "));
  line(out, "program", escape(plan.program));
  if (plan.mode == policy::Mode::kDocker) {
    line(out, "image", escape(plan.container.image) + " = " + escape(plan.container.image_id));
    line(out, "engine", escape(plan.container.engine));
  }
  line(out, "in", escape(plan.chdir));
  line(out, "mode", to_text(plan.mode));
  line(out, "network", network_text(plan));
  if (plan.upstream) {
    line(out, "proxy", to_text(*plan.upstream) + (plan.upstream->authorization.empty() ? "" : ", with credentials"));
  }
  if (plan.network == policy::Network::kDeny && plan.transparent != policy::Transparent::kOff) {
    line(out, "by name",
         plan.transparent == policy::Transparent::kRequired
             ? "allowed hosts are reached without a proxy variable too, or nothing starts"
             : "allowed hosts are reached without a proxy variable too, where nf_tables redirects ('belljar doctor')");
  }
  if (plan.ask) line(out, "ask", "at the terminal, about hosts that no rule decides about");
  for (const policy::ExposedPort& port : plan.expose) {
    line(out, "expose",
         "127.0.0.1:" + std::to_string(port.host) + " and [::1]:" + std::to_string(port.host) +
             " of this host lead to port " + std::to_string(port.guest) + " of the guest");
  }
  if (!plan.agent.empty()) line(out, "agent", escape(plan.agent));
  line(out, "identity", identity_text(plan.identity));
  limits_text(out, plan);
  list_text(out, "weakened:", plan.weakenings);
  list_text(out, "notes:", plan.notes);
  std::vector<std::string> hosts;
  hosts.reserve(plan.hosts.size());
  for (const policy::HostRule& rule : plan.hosts) {
    const std::string options = policy::options_text(rule);
    hosts.push_back((rule.deny ? "not " : "") + policy::to_text(rule) + (options.empty() ? "" : ", " + options) +
                    "  (" + rule.source + ")");
  }
  list_text(out, "hosts:", hosts);
  mounts_text(out, plan);
  std::vector<std::string> variables;
  variables.reserve(plan.env.size());
  for (const EnvVar& variable : plan.env) {
    variables.push_back(variable.name + "=" + (variable.secret ? "***" : base::shell_quote(variable.value)));
  }
  list_text(out, "environment:", variables);
  return out;
}

}  // namespace belljar::plan
