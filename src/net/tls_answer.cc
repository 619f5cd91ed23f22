#include "net/tls_answer.h"

#include <algorithm>
#include <array>

#include "net/tls_record.h"

namespace belljar::net {
namespace {

constexpr uint8_t kChangeCipherSpec = 20;
constexpr uint8_t kAlert = 21;
constexpr uint8_t kApplicationData = 23;
constexpr uint8_t kMajorVersion = 3;  // of each version since SSL 3.0
// An alert is two bytes, its level and what it says (RFC 5246, section 7.2). Nobody cuts it in two.
constexpr size_t kAlertLength = 2;
constexpr uint8_t kWarning = 1;
constexpr uint8_t kFatal = 2;
constexpr uint8_t kServerHello = 2;
constexpr size_t kRandomAt = 6;  // in the message: type, three bytes of length, two of version

// SHA-256 of "HelloRetryRequest" (RFC 8446, section 4.1.3).
constexpr std::array<uint8_t, 32> kRetryRandom = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                                                  0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                                                  0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

uint8_t at(std::string_view bytes, size_t index) {
  return static_cast<uint8_t>(bytes[index]);
}

size_t record_length(std::string_view header) {
  return static_cast<size_t>(at(header, 3)) << 8U | at(header, 4);
}

}  // namespace

TlsAnswer judge_tls_answer(std::string_view bytes) {
  std::string message;
  constexpr size_t kEnough = kRandomAt + kRetryRandom.size();
  while (message.size() < kEnough) {
    if (bytes.empty()) return TlsAnswer::kNeedMore;
    const uint8_t type = at(bytes, 0);
    if (type != kHandshake && type != kAlert) return TlsAnswer::kNotTls;
    if (bytes.size() < kRecordHeader) return TlsAnswer::kNeedMore;
    const size_t length = record_length(bytes);
    if (at(bytes, 1) != kMajorVersion || length == 0) return TlsAnswer::kNotTls;
    bytes.remove_prefix(kRecordHeader);
    const std::string_view payload = bytes.substr(0, length);
    bytes.remove_prefix(payload.size());
    if (type == kAlert) {
      if (length != kAlertLength) return TlsAnswer::kNotTls;
      if (payload.size() < length) return TlsAnswer::kNeedMore;
      if (at(payload, 0) == kWarning) continue;
      return at(payload, 0) == kFatal ? TlsAnswer::kFinal : TlsAnswer::kNotTls;
    }
    message += payload;
    if (!message.empty() && at(message, 0) != kServerHello) return TlsAnswer::kNotTls;
    if (payload.size() < length && message.size() < kEnough) return TlsAnswer::kNeedMore;
  }
  const bool retry = std::equal(kRetryRandom.begin(), kRetryRandom.end(), message.begin() + kRandomAt,
                                [](uint8_t wanted, char is) { return wanted == static_cast<uint8_t>(is); });
  return retry ? TlsAnswer::kRetry : TlsAnswer::kFinal;
}

HelloVerdict SecondHelloReader::feed(std::string_view bytes) {
  while (!begun_ && !bytes.empty()) {
    if (left_ > 0) {
      const size_t taken = std::min(left_, bytes.size());
      left_ -= taken;
      skipped_ += taken;
      if (skipped_ > kMostSkipped) return HelloVerdict::kMalformed;
      bytes.remove_prefix(taken);
      continue;
    }
    if (header_.empty() && at(bytes, 0) != kChangeCipherSpec && at(bytes, 0) != kApplicationData) {
      begun_ = true;
      break;
    }
    const size_t taken = std::min(kRecordHeader - header_.size(), bytes.size());
    header_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (header_.size() < kRecordHeader) break;
    left_ = record_length(header_);
    skipped_ += kRecordHeader;
    if (skipped_ > kMostSkipped) return HelloVerdict::kMalformed;
    header_.clear();
  }
  return begun_ ? hello_.feed(bytes) : HelloVerdict::kNeedMore;
}

}  // namespace belljar::net
