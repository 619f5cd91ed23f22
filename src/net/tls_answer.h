// What a server says first to a TLS hello: whether it speaks TLS, and whether it wants a second hello.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/tls_hello.h"

namespace belljar::net {

enum class TlsAnswer : uint8_t {
  kNeedMore,
  kRetry,   // a HelloRetryRequest: the client sends another hello
  kFinal,   // a ServerHello or an alert that ends the handshake: no other hello is answered
  kNotTls,  // nothing that a TLS server says to a hello
};

// Judges the first bytes of the server's stream. A HelloRetryRequest is a ServerHello with a random value of its own
// (RFC 8446, section 4.1.3). One that is cut into tiny records counts as well, and one behind warnings: of a name that
// the server does not know, say (RFC 6066, section 3).
[[nodiscard]] TlsAnswer judge_tls_answer(std::string_view bytes);
// Of a TLS server's stream, never more than this is needed.
inline constexpr size_t kMostTlsAnswer = 512;

// Reads a client's flight after a HelloRetryRequest: records of change_cipher_spec and of early data, which the server
// skips (RFC 8446, sections 4.2.10 and 5), and then the second hello, judged as the first is.
class SecondHelloReader {
 public:
  static constexpr size_t kMostSkipped = size_t{64} << 10U;

  // As HelloReader::feed().
  HelloVerdict feed(std::string_view bytes);
  [[nodiscard]] const HelloReader& hello() const { return hello_; }
  [[nodiscard]] std::string_view problem() const {
    return skipped_ > kMostSkipped ? "no second hello" : hello_.problem();
  }

 private:
  HelloReader hello_;
  std::string header_;  // of a record that may be skipped, up to five bytes
  size_t left_ = 0;     // of the record that is skipped
  size_t skipped_ = 0;
  bool begun_ = false;  // the hello's first record was reached
};

}  // namespace belljar::net
