#include "plan/identity.h"

#include <algorithm>

#include "base/text.h"

namespace belljar::plan {
namespace {

// Ids from 0x6a000000 up are given out by nobody: above the ranges of systemd, containers and subordinate ids
// (systemd's UIDS-GIDS document lists those), below 2^31. The launcher's pid keeps two launches apart.
constexpr uid_t kFirstGuestId = 0x6a000000;
constexpr uid_t kGuestIdMask = 0x3fffff;  // pid_max is at most 2^22 (proc(5))

// Where an owner that the guest may not be called by is renamed to.
constexpr uid_t kFirstUserId = 1000;
constexpr uid_t kLastUserId = 60000;

bool mapped(const Facts& facts, uid_t id) {
  return std::ranges::any_of(facts.id_ranges,
                             [&](const IdRange& range) { return id >= range.first && id - range.first < range.count; });
}

template <class T>
bool parse_id(std::string_view text, T& out) {
  uint64_t value = 0;
  if (!base::parse_uint(text, value) || value > UINT32_MAX) return false;
  out = static_cast<T>(value);
  return true;
}

const User* user_with(const std::vector<User>& users, uid_t uid) {
  const auto found = std::ranges::find(users, uid, &User::uid);
  return found == users.end() ? nullptr : &*found;
}

// The first id from 1000 up that is neither a user's nor a group's.
uid_t free_id(const Facts& facts) {
  const std::vector<User> users = users_of(facts.passwd);
  const std::vector<gid_t> groups = groups_of(facts.group);
  for (uid_t id = kFirstUserId; id < kLastUserId; ++id) {
    if (user_with(users, id) == nullptr && std::ranges::find(groups, id) == groups.end()) return id;
  }
  return kLastUserId;
}

base::Result<Identity> without_id_map(const Facts& facts, const PathFact& work) {
  if (work.uid == 0) {
    const std::string why =
        work.idmap_possible
            ? "it belongs to root, and the ids a guest of root's needs are not in this user namespace"
            : "it belongs to root, and its file system (" + facts.file_system + ") cannot map that to another id";
    return base::refuse("seal work folder", facts.work_folder, why + ", refusing",
                        "give the folder to an ordinary user: chown -R USER " + base::shell_quote(facts.work_folder));
  }
  Identity out;
  out.guest_uid = out.host_uid = out.disk_uid = work.uid;
  gid_t group = work.gid;
  if (group == 0) {
    const std::vector<User> users = users_of(facts.passwd);
    const User* owner = user_with(users, work.uid);
    group = owner != nullptr && owner->gid != 0 ? owner->gid : work.uid;
  }
  out.guest_gid = out.host_gid = out.disk_gid = group;
  return out;
}

}  // namespace

std::vector<User> users_of(std::string_view passwd) {
  std::vector<User> out;
  for (const std::string_view line : base::split(passwd, '\n')) {
    const auto fields = base::split(line, ':');
    User user;
    if (fields.size() < 7 || fields[0].empty() || !parse_id(fields[2], user.uid) || !parse_id(fields[3], user.gid)) {
      continue;
    }
    user.name = fields[0];
    user.home = fields[5];
    out.push_back(std::move(user));
  }
  return out;
}

std::vector<gid_t> groups_of(std::string_view group) {
  std::vector<gid_t> out;
  for (const std::string_view line : base::split(group, '\n')) {
    const auto fields = base::split(line, ':');
    gid_t gid = 0;
    if (fields.size() >= 4 && parse_id(fields[2], gid)) out.push_back(gid);
  }
  return out;
}

base::Result<Identity> make_identity(const Facts& facts) {
  const auto found = facts.paths.find(facts.work_folder);
  if (found == facts.paths.end()) return base::refuse("seal work folder", facts.work_folder, "its owner is not known");
  const PathFact& work = found->second;
  Identity out;
  if (!facts.root) {
    out.guest_uid = out.host_uid = out.disk_uid = facts.uid;
    out.guest_gid = out.host_gid = out.disk_gid = facts.gid;
    return out;
  }
  const uid_t guest = kFirstGuestId + (static_cast<uid_t>(facts.launcher) & kGuestIdMask);
  if (!work.idmap_possible || !mapped(facts, guest)) return without_id_map(facts, work);
  out.idmap = true;
  out.host_uid = guest;
  out.host_gid = guest;
  out.disk_uid = work.uid;
  out.disk_gid = work.gid;
  const uid_t spare = work.uid == 0 || work.gid == 0 ? free_id(facts) : 0;
  out.guest_uid = work.uid == 0 ? spare : work.uid;
  out.guest_gid = work.gid == 0 ? spare : work.gid;
  return out;
}

std::string user_name(const Facts& facts, const Identity& identity) {
  const std::vector<User> users = users_of(facts.passwd);
  if (const User* user = user_with(users, identity.guest_uid)) return user->name;
  std::string name = "agent";
  while (std::ranges::find(users, name, &User::name) != users.end()) name += '_';
  return name;
}

void add_accounts(MountTable& table, const Facts& facts, const Identity& identity, const std::string& home,
                  const std::string& shell) {
  const auto with_line = [](std::string text, const std::string& line) {
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    return text + line + '\n';
  };
  const std::string name = user_name(facts, identity);
  const std::string gid = std::to_string(identity.guest_gid);
  // A home with a colon or a line end in it cannot be written in passwd(5), and would forge fields.
  const bool writable_home = home.find_first_of(":\n") == std::string::npos;
  const std::vector<User> users = users_of(facts.passwd);
  const auto plain = [&](const char* path) { return table.shows(path) && table.at(path) == nullptr; };
  if (!facts.passwd.empty() && plain("/etc/passwd") && user_with(users, identity.guest_uid) == nullptr) {
    table.add({.kind = MountKind::kFile,
               .target = "/etc/passwd",
               .source = with_line(facts.passwd, name + ":x:" + std::to_string(identity.guest_uid) + ":" + gid +
                                                     "::" + (writable_home ? home : "/") + ":" + shell),
               .reason = "the host's, with the guest's own user"});
  }
  const std::vector<gid_t> groups = groups_of(facts.group);
  if (!facts.group.empty() && plain("/etc/group") && std::ranges::find(groups, identity.guest_gid) == groups.end()) {
    table.add({.kind = MountKind::kFile,
               .target = "/etc/group",
               .source = with_line(facts.group, name + ":x:" + gid + ":"),
               .reason = "the host's, with the guest's own group"});
  }
}

}  // namespace belljar::plan
