// Who the guest is, for itself and for the host.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "plan/facts.h"
#include "plan/mount_table.h"
#include "plan/plan.h"

namespace belljar::plan {

struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
};

// The entries of a passwd(5) text; lines that are not well formed are passed over.
[[nodiscard]] std::vector<User> users_of(std::string_view passwd);

// The ids of a group(5) text.
[[nodiscard]] std::vector<gid_t> groups_of(std::string_view group);

// An ordinary user stays who they are. Root's guest gets a host id that owns nothing and sees the work folder through
// an id map; without one it becomes the folder's owner, and a folder of root's is refused: the guest is never uid or
// gid 0 of the host.
[[nodiscard]] base::Result<Identity> make_identity(const Facts& facts);

// The guest's login name: its entry in passwd, else one that nobody has.
[[nodiscard]] std::string user_name(const Facts& facts, const Identity& identity);

// Gives the guest's ids an entry in its /etc/passwd and /etc/group where the host has the files and they have none.
void add_accounts(MountTable& table, const Facts& facts, const Identity& identity, const std::string& home,
                  const std::string& shell);

}  // namespace belljar::plan
