// What every reader of TLS records needs (RFC 8446, section 5.1).
#pragma once

#include <cstddef>
#include <cstdint>

namespace belljar::net {

inline constexpr size_t kRecordHeader = 5;  // content type, two bytes of version, two of length
inline constexpr uint8_t kHandshake = 22;

}  // namespace belljar::net
