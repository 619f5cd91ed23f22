// A user namespace kept by its descriptor alone.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::linux {

// Makes a user namespace in which `inside_uid` and `inside_gid` are the ids `outside_uid` and `outside_gid` of the
// caller's, and nothing else is mapped. The caller needs CAP_SETUID and CAP_SETGID over the outside ids
// (user_namespaces(7), "Defining user and group ID mappings"). No process stays behind.
[[nodiscard]] base::Result<base::Fd> make_user_namespace(uid_t inside_uid, gid_t inside_gid, uid_t outside_uid,
                                                         gid_t outside_gid);

}  // namespace belljar::linux
