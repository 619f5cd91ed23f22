// A program that tries to get out. Each attempt runs in a process and a folder of its own; it tells whether it got
// through, and how, or what stopped it.
#pragma once

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace hostile {

struct Outcome {
  bool through = false;
  std::string detail;
};

inline Outcome held(std::string detail) {
  return {false, std::move(detail)};
}
inline Outcome through(std::string detail) {
  return {true, std::move(detail)};
}

// Of a call that must fail, whatever the reason: -1 with errno, as libc and syscall(2) return it.
inline Outcome refused(long result) {
  const int code = errno;
  return result >= 0 ? through("it was carried out") : held(strerrorname_np(code));
}
// The same when it must fail for this reason.
inline Outcome refused_with(long result, int wanted) {
  const int code = errno;
  if (result >= 0) return through("it was carried out");
  return code == wanted
             ? held(strerrorname_np(code))
             : through(std::string("stopped by ") + strerrorname_np(code) + ", not " + strerrorname_np(wanted));
}

struct Attempt {
  const char* name;
  Outcome (*run)();
};

// What the caller said as NAME=VALUE on the command line; empty when it did not.
[[nodiscard]] std::string fact(std::string_view name);

[[nodiscard]] std::string read_start(const char* path);  // the first bytes; empty when it cannot be read
bool put_file(const char* path, std::string_view text);
// As system(3), with the exit status; output goes to this program's error output.
int shell(const std::string& script);

std::span<const Attempt> set_id_attempts();
std::span<const Attempt> file_attempts();
std::span<const Attempt> read_only_attempts();
std::span<const Attempt> process_attempts();
std::span<const Attempt> kernel_attempts();
std::span<const Attempt> network_attempts();
std::span<const Attempt> exhaustion_attempts();

}  // namespace hostile
