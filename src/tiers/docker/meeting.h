// The folder by which a launcher and the first process of its container find each other.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"

namespace belljar::tiers::docker {

// Who has come: the container's first process, held by a pidfd, and the conversation with it.
struct Visitor {
  base::Fd control;
  base::Fd pidfd;
  pid_t pid = -1;
};

// On the host, in a folder that is the launcher's alone; bound into the container read-only (guest::kMeetingFolder). It
// holds belljar-guest, a listening socket, and what else the container gets as files of its own. It outlives the
// object: remove_meeting() ends it, also in another process.
class Meeting {
 public:
  // Makes the folder `path`, which must not exist; its parent must (0700, the launcher's). Copies `guest` there.
  [[nodiscard]] static base::Result<Meeting> make(std::string path, const std::string& guest);

  [[nodiscard]] const std::string& path() const { return path_; }
  // A file or an empty folder of the container's own there, nobody's to write; returns its path on the host.
  [[nodiscard]] base::Result<std::string> add_file(const std::string& name, std::string_view text);
  [[nodiscard]] base::Result<std::string> add_folder(const std::string& name);

  // Waits for one visitor and takes no other, ever. It must be `uid`, and a process of the container `id` by its cgroup
  // (cgroups(7)), which the kernel tells and no guest can choose.
  [[nodiscard]] base::Result<Visitor> receive(uid_t uid, std::string_view id, const base::Deadline& deadline);

 private:
  std::string path_;
  base::Fd folder_;
  base::Fd listener_;
};

// Removes the folder and what is in it. Nothing to do when it is not there. `path` must end in a session's name.
[[nodiscard]] base::Status remove_meeting(const std::string& path);

}  // namespace belljar::tiers::docker
