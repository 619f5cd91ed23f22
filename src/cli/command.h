// What every subcommand gets and gives.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "base/error.h"

namespace belljar::cli {

// Belljar's own failure: a wrong argument, a refusal, a host that cannot. The command's own codes are never this one by
// Belljar's doing (they are passed on, so a command that exits with 125 looks the same; the settlement tells).
inline constexpr int kFailed = 125;

struct Context {
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  std::string guest_path;  // of belljar-guest
  uint32_t closed = 0;     // bit n: descriptor n of 0, 1, 2 was closed when the program started
};

// `belljar: MESSAGE` on the error stream. Returns kFailed.
int report(const Context& context, const base::Error& error);

// Writes all of `text` or says that it could not. Returns 0 or kFailed.
int print(const Context& context, const std::string& text);

}  // namespace belljar::cli
