// DNS messages as bytes, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "net/hello_bytes.h"

namespace belljar::net::testing {

inline std::string dns_name(std::string_view host) {
  std::string out;
  if (!host.empty()) {
    for (const std::string_view label : base::split(host, '.')) out += vector(label, 1);
  }
  return out + '\0';
}

inline std::string dns_header(uint16_t flags, uint16_t questions, uint16_t additional = 0, uint16_t id = 0x1234) {
  return number(id, 2) + number(flags, 2) + number(questions, 2) + number(0, 4) + number(additional, 2);
}

inline std::string dns_question(std::string_view host, uint16_t type, uint16_t net_class = 1) {
  return dns_name(host) + number(type, 2) + number(net_class, 2);
}

// An OPT record with these options.
inline std::string dns_opt(std::string_view options = "", uint8_t version = 0) {
  return std::string(1, '\0') + number(41, 2) + number(1232, 2) + number(version, 2) + number(0, 2) +
         vector(options, 2);
}

// What a stub resolver sends.
inline std::string dns_query(std::string_view host, uint16_t type) {
  return dns_header(0x0100, 1) + dns_question(host, type);
}
inline std::string edns_query(std::string_view host, uint16_t type) {
  return dns_header(0x0100, 1, 1) + dns_question(host, type) + dns_opt();
}

inline int dns_code(std::string_view answer) {
  return answer.size() < 12 ? -1 : answer[3] & 0xf;
}
inline int dns_answers(std::string_view answer) {
  return answer.size() < 12 ? -1 : static_cast<uint8_t>(answer[6]) << 8 | static_cast<uint8_t>(answer[7]);
}
// The data of the only record of an answer without EDNS.
inline std::string dns_data(std::string_view answer, size_t size) {
  return std::string(answer.substr(answer.size() - size));
}

}  // namespace belljar::net::testing
