// Where things go that a guest made and that programs of the host would obey.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/protected.h"
#include "workspace/settled.h"

namespace belljar::workspace {

// The quarantine of one session. Nothing is made before there is something to put in.
class Quarantine {
 public:
  // `state` is the absolute path of the folder that holds the quarantines of all sessions (made when missing, 0700),
  // `root` the open work folder, `root_path` its path. Both descriptors stay the caller's. Past the deadline no
  // large folder is moved any more.
  Quarantine(std::string state, std::string session, int root, std::string root_path, const base::Deadline& deadline)
      : state_(std::move(state)),
        session_(std::move(session)),
        root_(root),
        root_path_(std::move(root_path)),
        deadline_(deadline) {}

  // Moves `leaf` out of the open folder `folder`; `path` is where it was, relative to the work folder or absolute. It
  // goes, under a number, to `state`/`session`, with its former path in a file beside it. From another file system it
  // goes to a folder in the work folder, `.belljar-quarantine-SESSION`; from one that is mounted below the work folder
  // it stays beside where it was under a name of that kind, which nothing obeys; `state`/`session` then says where that
  // is, in a file of the number's name. Nothing is overwritten, no link followed. What is gone already has neither a
  // new place nor a reason.
  [[nodiscard]] Quarantined put(int folder, const std::string& leaf, const std::string& path);

  // True for the folder in the work folder that put() has made.
  [[nodiscard]] bool is_own(const FileId& id) const { return own_ != FileId{} && id == own_; }

 private:
  // A folder that things are moved to.
  struct Place {
    base::Fd fd;
    std::string path;
    bool tried = false;
  };
  // To `place`, or for null to another name beside where it was. 0 or an errno; on success says where it is.
  int move_to(const Place* place, int folder, const std::string& leaf, const std::string& path, std::string& moved_to);
  void open_state();
  void open_beside();
  [[nodiscard]] std::string number() const;
  [[nodiscard]] std::string whole(const std::string& path) const;
  // EEXIST: something has the number already.
  int write_notes(const Place* place, const std::string& path, const std::string& moved_to) const;
  void remove_notes(const Place* place) const;

  std::string state_;
  std::string session_;
  int root_;
  std::string root_path_;
  base::Deadline deadline_;
  Place in_state_;
  Place beside_;
  FileId own_;
  uint64_t count_ = 0;   // of those put away
  uint64_t number_ = 0;  // of the last one
};

// The ending of the file that holds the former path of what lies beside it.
inline constexpr std::string_view kOriginSuffix = ".path";
// The ending of the file that holds the present path of what could not be moved here.
inline constexpr std::string_view kElsewhereSuffix = ".at";
// What the HEAD of a git folder is called in quarantine, without which it is none, and a `.git` in what lies there; so
// is any other repository, by this ending of its name.
inline constexpr const char* kInertHead = "HEAD.quarantined";
inline constexpr const char* kInertGit = ".git.quarantined";
inline constexpr const char* kInertEnd = ".quarantined";
// Takes these names from all that lies in the folder `leaf` of `parent`, and from it.
void undo_inert(int parent, const char* leaf);

}  // namespace belljar::workspace
