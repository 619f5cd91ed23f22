// What a client speaks, where it could be TLS or plain HTTP.
#pragma once

#include <cstdint>
#include <string_view>

namespace belljar::egress {

enum class Speech : uint8_t {
  kUnknown,  // more bytes are needed
  kTls,      // a handshake record; whether it is a good hello is not said
  kHttp,     // a first line that ends in an HTTP/1 version; whether it is a good one is not said
  kOther,
};

// Judged on the first bytes of a stream, as soon as they tell.
[[nodiscard]] Speech first_speech(std::string_view bytes);

}  // namespace belljar::egress
