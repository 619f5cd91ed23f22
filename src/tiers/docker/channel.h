// One connection to an engine's socket, for one request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "tiers/docker/outcome.h"

namespace belljar::tiers::docker {

// What a request carries. `content` is the whole body, or else `file` is a descriptor of the caller's, from whose
// present offset exactly `file_bytes` are sent.
struct Body {
  std::string_view type{};  // media type; empty: no body
  std::string_view content{};
  int file = -1;
  uint64_t file_bytes = 0;
};

struct Request {
  std::string_view method;
  std::string target;  // path and query, percent-encoded
  Body body{};
  bool hijack = false;        // asks for the connection itself (101, `Upgrade: tcp`)
  size_t most_answer = 0;     // bytes of the answer's body that are kept; more is Unknown. 0: kMostAnswer
  base::Deadline deadline{};  // on the boot clock, for all of it
  // Is given the body of a good answer as it comes, of any size, and nothing of it is kept; false ends the request.
  std::function<bool(std::string_view)> sink{};
};

inline constexpr size_t kMostAnswer = size_t{16} << 20U;

// A connection that an engine has handed over: raw bytes both ways.
struct Hijacked {
  base::Fd stream;
  std::string early;  // what came right behind the head
};

// Connects (AF_UNIX, SOCK_STREAM), sends, and reads the answer by RFC 9112 without leniencies (net/http_head.h). An
// answer after the deadline counts as none. With `hijack` a 101 fills `taken`, which must not be null.
[[nodiscard]] Outcome carry_out(const std::string& socket, const Request& request, Hijacked* taken = nullptr);

// Connects to a unix socket of any length of path, non-blocking afterwards. The deadline bounds the wait for a backlog.
[[nodiscard]] base::Result<base::Fd> connect_to(const std::string& socket, const base::Deadline& deadline);

// `text` with everything but RFC 3986's unreserved characters percent-encoded.
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace belljar::tiers::docker
