// Where Belljar keeps what outlives a launch: $XDG_STATE_HOME/belljar/sessions.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::session {

// The path by the XDG base directory specification, from $XDG_STATE_HOME and $HOME: the first that is absolute counts.
// Empty when neither is.
[[nodiscard]] std::string state_path(std::string_view xdg_state_home, std::string_view home);
// The same from this process's environment.
[[nodiscard]] std::string state_path();

// Where what was put away lies: beside the state folder `sessions`.
[[nodiscard]] std::string quarantine_path(const std::string& sessions);

// A folder that is this user's alone. What lies in it is obeyed by later launches, so no guest may write there.
class StateFolder {
 public:
  // None yet.
  StateFolder() = default;
  explicit operator bool() const { return static_cast<bool>(fd_); }

  static constexpr std::string_view kUnnamed = ".new";

  // Makes what is missing of `path` (0700). A refusal when the folder belongs to somebody else or others may write it.
  [[nodiscard]] static base::Result<StateFolder> open(const std::string& path);

  // The real path.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Names of the files that end in `suffix`, without it; at most 10,000.
  [[nodiscard]] base::Result<std::vector<std::string>> names(std::string_view suffix) const;
  // Opens a regular file of this user's with one name. ENOENT when there is none.
  [[nodiscard]] base::Result<base::Fd> open_file(const std::string& name, int flags) const;
  // A new file (0600) with these bytes, under `name` at once and whole, or not at all.
  // Whoever is killed meanwhile leaves what it has written under `name` with kUnnamed behind it.
  [[nodiscard]] base::Status write_file(const std::string& name, std::string_view bytes) const;
  // As write_file(), and the returned descriptor holds a shared lock of the file (flock(2)) from before it
  // had its name.
  [[nodiscard]] base::Result<base::Fd> write_locked_file(const std::string& name, std::string_view bytes) const;
  // A bell: a new FIFO (0600), open for both ends so that it never hangs up, non-blocking. Readable once it was rung.
  [[nodiscard]] base::Result<base::Fd> make_bell(const std::string& name) const;
  // Rings it. ENXIO when nobody has it open.
  [[nodiscard]] base::Status ring(const std::string& name) const;
  void remove(const std::string& name) const;
  // Only what nobody has changed for `age`, by the system clock.
  void remove_older(const std::string& name, std::chrono::seconds age) const;

 private:
  [[nodiscard]] base::Result<base::Fd> open_bell(const std::string& name, int flags) const;
  StateFolder(base::Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  base::Fd fd_;
  std::string path_;
};

}  // namespace belljar::session
