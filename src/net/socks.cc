#include "net/socks.h"

#include <array>

#include "net/address.h"

namespace belljar::net {
namespace {

constexpr uint8_t kNoAuthentication = 0;
constexpr uint8_t kConnect = 1;
constexpr uint8_t kIpv4 = 1;
constexpr uint8_t kName = 3;
constexpr uint8_t kIpv6 = 4;
constexpr size_t kBeforeAddress = 4;  // version, command, reserved, address type

uint8_t byte_at(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

std::unexpected<SocksProblem> bad(SocksReply reply, std::string_view text) {
  return std::unexpected(SocksProblem{reply, text});
}

std::string address_text(std::string_view bytes) {
  if (bytes.size() == 4) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8U | byte_at(bytes, i);
    return IpAddress::v4(value).text();
  }
  std::array<uint8_t, 16> v6{};
  for (size_t i = 0; i < v6.size(); ++i) v6[i] = byte_at(bytes, i);
  return IpAddress::v6(v6).text();
}

}  // namespace

SocksResult<SocksMethods> read_socks_methods(std::string_view buffer) {
  if (!buffer.empty() && byte_at(buffer, 0) != kSocksVersion) {
    return bad(SocksReply::kGeneralFailure, "a SOCKS version other than 5");
  }
  if (buffer.size() < 2) return SocksMethods{};
  const size_t length = size_t{2} + byte_at(buffer, 1);
  if (buffer.size() < length) return SocksMethods{};
  const std::string_view methods = buffer.substr(2, length - 2);
  return SocksMethods{length, methods.find(static_cast<char>(kNoAuthentication)) != std::string_view::npos};
}

SocksResult<SocksRequest> read_socks_request(std::string_view buffer) {
  if (!buffer.empty() && byte_at(buffer, 0) != kSocksVersion) {
    return bad(SocksReply::kGeneralFailure, "a SOCKS request of another version than its greeting");
  }
  if (buffer.size() >= 2 && byte_at(buffer, 1) != kConnect) {
    return bad(SocksReply::kCommandNotSupported, "a SOCKS command other than CONNECT");
  }
  if (buffer.size() >= 3 && byte_at(buffer, 2) != 0) {
    return bad(SocksReply::kGeneralFailure, "the reserved byte of the SOCKS request is not 0");
  }
  if (buffer.size() < kBeforeAddress) return SocksRequest{};
  const uint8_t type = byte_at(buffer, 3);
  size_t at = kBeforeAddress;
  size_t size = type == kIpv4 ? 4 : 16;
  if (type == kName) {
    if (buffer.size() == at) return SocksRequest{};
    size = byte_at(buffer, at++);
    if (size == 0) return bad(SocksReply::kGeneralFailure, "the SOCKS request names no host");
  } else if (type != kIpv4 && type != kIpv6) {
    return bad(SocksReply::kAddressTypeNotSupported, "an unknown type of address in the SOCKS request");
  }
  const size_t length = at + size + 2;
  if (buffer.size() < length) return SocksRequest{};
  const std::string_view address = buffer.substr(at, size);
  const auto port = static_cast<uint16_t>(byte_at(buffer, length - 2) << 8U | byte_at(buffer, length - 1));
  if (port == 0) return bad(SocksReply::kGeneralFailure, "port 0 in the SOCKS request");
  return SocksRequest{length, type == kName ? std::string(address) : address_text(address), port};
}

std::string_view socks_method_reply(bool none) {
  return none ? std::string_view("\x05\x00", 2) : std::string_view("\x05\xff", 2);
}

std::string socks_reply(SocksReply reply) {
  std::string out("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", 10);
  out[1] = static_cast<char>(reply);
  return out;
}

}  // namespace belljar::net
