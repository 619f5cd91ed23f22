// A user namespace kept by its descriptor alone.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::linux {

// One id of the caller's namespace, and what it is called inside.
struct IdMap {
  uid_t inside_uid = 0;
  gid_t inside_gid = 0;
  uid_t outside_uid = 0;
  gid_t outside_gid = 0;

  bool operator==(const IdMap&) const = default;
};

// A user namespace in which one id is mapped and nothing else. Making one needs a process in it for a moment; that
// process is told to leave as soon as the descriptor is open, and is collected when the object goes.
class UserNamespace {
 public:
  UserNamespace();
  UserNamespace(UserNamespace&&) noexcept;
  UserNamespace& operator=(UserNamespace&&) noexcept;
  UserNamespace(const UserNamespace&) = delete;
  UserNamespace& operator=(const UserNamespace&) = delete;
  ~UserNamespace();

  // Needs CAP_SETUID and CAP_SETGID over the outside ids (user_namespaces(7), "Defining user and group ID mappings").
  [[nodiscard]] static base::Result<UserNamespace> make(const IdMap& map);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool valid() const { return fd_.valid(); }

 private:
  struct Holder;
  base::Status map_and_open(const IdMap& map);
  void collect();

  std::unique_ptr<Holder> holder_;  // its process runs on memory of it
  pid_t pid_ = -1;
  base::Fd fd_;
};

// A hint for the errno of a clone(2) that should have made a user namespace: which setting may stand in the way.
[[nodiscard]] const char* why_no_user_namespace(int code);

// True when `uid` is an id of the caller's user namespace. Files of ids that are not all show as the overflow id, 65534
// (user_namespaces(7), "Unmapped user and group IDs"). An unreadable map counts as mapped.
[[nodiscard]] bool is_mapped_uid(uid_t uid);

}  // namespace belljar::linux
