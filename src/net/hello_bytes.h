// TLS hellos as bytes, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar::net::testing {

inline std::string number(size_t value, size_t width) {
  std::string out;
  for (size_t i = width; i-- > 0;) out += static_cast<char>(value >> (8 * i) & 0xffU);
  return out;
}

inline std::string vector(std::string_view content, size_t width) {
  return number(content.size(), width) + std::string(content);
}

inline std::string extension(uint16_t type, std::string_view content) {
  return number(type, 2) + vector(content, 2);
}

inline std::string server_name(std::string_view host) {
  return extension(0, vector(std::string(1, '\0') + vector(host, 2), 2));
}

// A ClientHello message with these extensions; no extension block at all when `block` is false.
inline std::string hello_message(std::string_view extensions, bool block = true) {
  std::string body = number(0x0303, 2) + std::string(32, 'r') + vector(std::string(32, 's'), 1) +
                     vector(number(0x1301, 2), 2) + vector(std::string(1, '\0'), 1);
  if (block) body += vector(extensions, 2);
  return std::string(1, '\1') + vector(body, 3);
}

// `message` in handshake records of at most `fragment` bytes.
inline std::string records(std::string_view message, size_t fragment = 16384, uint8_t type = 22) {
  std::string out;
  while (!message.empty()) {
    const std::string_view part = message.substr(0, fragment);
    out += static_cast<char>(type) + number(0x0301, 2) + vector(part, 2);
    message.remove_prefix(part.size());
  }
  return out;
}

inline std::string hello_for(std::string_view host) {
  return records(hello_message(server_name(host)));
}

// A ServerHello as the beginning of a server's answer; `random` has 32 bytes.
inline std::string server_hello(std::string_view random = "a random value that has 32 bytes") {
  return records(std::string(1, '\2') + vector(number(0x0303, 2) + std::string(random) + std::string(6, '\0'), 3));
}

}  // namespace belljar::net::testing
