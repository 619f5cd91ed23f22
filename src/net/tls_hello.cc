#include "net/tls_hello.h"

#include <algorithm>
#include <optional>

#include "net/tls_record.h"

namespace belljar::net {
namespace {

constexpr size_t kMessageHeader = 4;
constexpr size_t kMaxFragment = size_t{1} << 14U;  // RFC 8446, section 5.1
constexpr uint8_t kClientHello = 1;
constexpr uint16_t kServerName = 0;
constexpr uint8_t kHostName = 0;

uint8_t byte_at(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

// Reads big-endian vectors and never past the end.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }

  std::optional<std::string_view> take(size_t n) {
    if (rest_.size() < n) return std::nullopt;
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }

  std::optional<size_t> number(size_t width) {
    const auto bytes = take(width);
    if (!bytes) return std::nullopt;
    size_t out = 0;
    for (size_t i = 0; i < width; ++i) out = out << 8U | byte_at(*bytes, i);
    return out;
  }

  // A vector with a length prefix of `width` bytes.
  std::optional<std::string_view> vector(size_t width) {
    const auto length = number(width);
    return length ? take(*length) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

struct Parsed {
  std::string_view problem;  // empty when the hello is well formed
  std::optional<std::string_view> host;
};

Parsed parse_server_name(std::string_view extension) {
  Cursor outer(extension);
  const auto list = outer.vector(2);
  if (!list || !outer.empty()) return {"server_name does not add up", {}};
  Cursor names(*list);
  const auto type = names.number(1);
  if (!type) return {"server_name is empty", {}};
  if (*type != kHostName) return {"server_name of an unknown type", {}};
  const auto name = names.vector(2);
  if (!name || name->empty()) return {"server_name holds no name", {}};
  if (!names.empty()) return {"server_name holds more than one name", {}};
  return {{}, name};
}

Parsed parse_client_hello(std::string_view body) {
  Cursor in(body);
  const auto fixed = in.take(2 + 32);  // legacy_version, random
  const auto session = in.vector(1);
  const auto suites = in.vector(2);
  const auto compressions = in.vector(1);
  if (!fixed || !session || !suites || !compressions) return {"the hello is cut short", {}};
  if (byte_at(*fixed, 0) != 3) return {"the hello is of no TLS version", {}};
  if (session->size() > 32 || suites->size() < 2 || suites->size() % 2 != 0 || compressions->empty()) {
    return {"a field of the hello has an impossible length", {}};
  }
  if (in.empty()) return {};  // no extensions: allowed up to TLS 1.2
  const auto block = in.vector(2);
  if (!block || !in.empty()) return {"the extensions do not add up", {}};
  Cursor extensions(*block);
  Parsed out;
  while (!extensions.empty()) {
    const auto type = extensions.number(2);
    const auto data = extensions.vector(2);
    if (!type || !data) return {"an extension is cut short", {}};
    if (*type != kServerName) continue;
    if (out.host) return {"server_name is there twice", {}};
    out = parse_server_name(*data);
    if (!out.problem.empty()) return out;
  }
  return out;
}

}  // namespace

HelloVerdict HelloReader::fail(HelloVerdict verdict, std::string_view problem) {
  verdict_ = verdict;
  problem_ = problem;
  return verdict;
}

// False when the header can be no start of a hello. Judged byte by byte, so that a client that speaks another
// protocol is told at once and not only after five bytes.
bool HelloReader::take_record_header() {
  const bool first = message_.empty();
  const auto bad = first ? HelloVerdict::kNotTls : HelloVerdict::kMalformed;
  if (byte_at(header_, 0) != kHandshake) {
    fail(bad, first ? "the first byte is not that of a TLS handshake" : "another record inside the hello");
    return false;
  }
  if (header_.size() >= 2 && byte_at(header_, 1) != 3) {
    fail(bad, "the record is of no TLS version");
    return false;
  }
  if (header_.size() < kRecordHeader) return true;
  fragment_left_ = static_cast<size_t>(byte_at(header_, 3)) << 8U | byte_at(header_, 4);
  if (fragment_left_ == 0 || fragment_left_ > kMaxFragment) {
    fail(HelloVerdict::kMalformed, "a record of an impossible length");
    return false;
  }
  return true;
}

// The message is longer than its header: judges its type and size, and the whole once it is there.
void HelloReader::take_message() {
  if (byte_at(message_, 0) != kClientHello) {
    fail(HelloVerdict::kMalformed, "the first handshake message is no ClientHello");
    return;
  }
  if (message_.size() < kMessageHeader) return;
  const size_t length = static_cast<size_t>(byte_at(message_, 1)) << 16U |
                        static_cast<size_t>(byte_at(message_, 2)) << 8U | byte_at(message_, 3);
  if (length > kLimit) {
    fail(HelloVerdict::kMalformed, "the hello is larger than 64 KiB");
    return;
  }
  if (message_.size() < kMessageHeader + length) return;
  if (message_.size() > kMessageHeader + length || fragment_left_ != 0) {
    fail(HelloVerdict::kMalformed, "more than the hello in its records");
    return;
  }
  const Parsed parsed = parse_client_hello(std::string_view(message_).substr(kMessageHeader));
  if (!parsed.problem.empty()) {
    fail(HelloVerdict::kMalformed, parsed.problem);
    return;
  }
  verdict_ = parsed.host ? HelloVerdict::kHost : HelloVerdict::kNoSni;
  if (parsed.host) host_ = *parsed.host;
  message_.clear();
  message_.shrink_to_fit();
}

HelloVerdict HelloReader::feed(std::string_view bytes) {
  while (!bytes.empty() && verdict_ == HelloVerdict::kNeedMore) {
    if (taken_ == kLimit) return fail(HelloVerdict::kMalformed, "the hello is larger than 64 KiB");
    size_t n = 1;
    if (fragment_left_ == 0) {
      header_ += bytes.front();
      if (!take_record_header()) return verdict_;
      if (fragment_left_ != 0) header_.clear();
    } else {
      n = std::min({bytes.size(), fragment_left_, kLimit - taken_});
      message_.append(bytes.substr(0, n));
      fragment_left_ -= n;
      take_message();
    }
    taken_ += n;
    bytes.remove_prefix(n);
  }
  return verdict_;
}

}  // namespace belljar::net
