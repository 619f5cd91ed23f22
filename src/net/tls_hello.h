// Which host a TLS client names, read from its first flight without taking part in the handshake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar::net {

enum class HelloVerdict : uint8_t {
  kNeedMore,   // so far a ClientHello, not yet whole
  kHost,       // whole; host() is the one name of its server_name extension, as sent
  kNoSni,      // whole, and names no host
  kNotTls,     // the first bytes are not a TLS handshake record (an SSLv2 hello is not either)
  kMalformed,  // TLS, but not one well-formed ClientHello within the limit
};

// Reads the plaintext records (RFC 8446, section 5.1) that carry the ClientHello (section 4.1.2; RFC 5246, section
// 7.4.1.2), whichever way it is cut into records and segments. Anything that two servers could read in two ways is
// kMalformed: a server_name extension given twice, more than one name in it (RFC 6066, section 3), lengths that do
// not add up, empty fragments, bytes of another message before or after the hello in its records.
//
// What a hello can hide: with Encrypted Client Hello the name here is the outer one; after a HelloRetryRequest a
// client might name another host in its second hello, against RFC 8446, section 4.1.2.
class HelloReader {
 public:
  static constexpr size_t kLimit = size_t{64} << 10U;  // bytes on the wire, record headers included

  // Takes the next bytes of the stream and says what is known. After a verdict other than kNeedMore further bytes
  // are ignored and the verdict stays. Never keeps a reference to `bytes`.
  HelloVerdict feed(std::string_view bytes);

  // Bytes taken so far: with a verdict of a whole hello, its length on the wire.
  [[nodiscard]] size_t taken() const { return taken_; }
  [[nodiscard]] HelloVerdict verdict() const { return verdict_; }
  [[nodiscard]] const std::string& host() const { return host_; }      // untrusted text of any bytes
  [[nodiscard]] std::string_view problem() const { return problem_; }  // for kMalformed and kNotTls

 private:
  HelloVerdict fail(HelloVerdict verdict, std::string_view problem);
  bool take_record_header();
  void take_message();

  HelloVerdict verdict_ = HelloVerdict::kNeedMore;
  size_t taken_ = 0;          // wire bytes so far
  std::string header_;        // of the record, up to five bytes
  size_t fragment_left_ = 0;  // payload bytes still to come in this record
  std::string message_;       // handshake message so far
  std::string host_;
  std::string_view problem_;
};

}  // namespace belljar::net
