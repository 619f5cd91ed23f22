// What the benchmarks share.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace bench {

[[nodiscard]] double now_ms();

// posix_spawn(3), which is a vfork in glibc, so the parent's size adds nothing; 0, 1 and 2 are /dev/null. -1 when it
// cannot be started.
pid_t start(const std::vector<std::string>& argv);
// Exit status, or -1.
int wait_for(pid_t pid);
int launch(const std::vector<std::string>& argv);

[[nodiscard]] double quantile(std::vector<double> values, double which);

// Every namespace, an own network, the system read-only, a home of its own, the work folder: what a careful person
// writes. No proxy, no system-call filter, no check from the inside: those bwrap does not bring.
[[nodiscard]] std::vector<std::string> bubblewrap(const std::string& folder, const std::vector<std::string>& command);

// Why `argv` takes no part: "not installed", or its status; empty when it works.
[[nodiscard]] std::string fault_of(const std::vector<std::string>& argv);

// The program beside this one.
[[nodiscard]] std::string beside(const std::string& name);

// `"kernel":"6.18","cores":2,"uid":0`
[[nodiscard]] std::string machine_json();

// A new folder under /var/tmp, entered and gone with the object. Exits when it cannot be made.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace bench
