// What a SOCKS5 client sends before its tunnel (RFC 1928), and the answers to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace belljar::net {

constexpr uint8_t kSocksVersion = 5;

// The reply field of RFC 1928, section 6.
enum class SocksReply : uint8_t {
  kSucceeded = 0,
  kGeneralFailure = 1,
  kNotAllowed = 2,
  kHostUnreachable = 4,
  kConnectionRefused = 5,
  kCommandNotSupported = 7,
  kAddressTypeNotSupported = 8,
};

struct SocksProblem {
  SocksReply reply = SocksReply::kGeneralFailure;
  std::string_view text;  // static
};

template <class T>
using SocksResult = std::expected<T, SocksProblem>;

struct SocksMethods {
  size_t length = 0;  // bytes taken; 0 while more are needed
  bool none = false;  // offers to go on without authentication, the only method known here
};

struct SocksRequest {
  size_t length = 0;  // bytes taken; 0 while more are needed
  std::string host;   // a name as sent (any bytes), or an address in its usual notation; not yet canonical
  uint16_t port = 0;  // never 0
};

// The client's first message. `buffer` starts with it and may hold more. Judged as early as a byte can be.
[[nodiscard]] SocksResult<SocksMethods> read_socks_methods(std::string_view buffer);
// The second one. CONNECT only.
[[nodiscard]] SocksResult<SocksRequest> read_socks_request(std::string_view buffer);

// The answer to the first message: go on without authentication, or nothing fits and the connection ends.
[[nodiscard]] std::string_view socks_method_reply(bool none);
// The answer to the second, with 0.0.0.0:0 as bound address: the real one is nobody's business inside.
[[nodiscard]] std::string socks_reply(SocksReply reply);

}  // namespace belljar::net
