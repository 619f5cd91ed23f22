// The head of an HTTP/1.1 message, read by RFC 9112 without any of its leniencies: what two programs could read in
// two ways is an error here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::net {

// Why a message is refused and with which status a server says so (RFC 9110, section 15.5).
struct HttpProblem {
  int status = 400;
  std::string_view text;  // static
};

template <class T>
using HttpResult = std::expected<T, HttpProblem>;

[[nodiscard]] inline std::unexpected<HttpProblem> bad(std::string_view text, int status = 400) {
  return std::unexpected(HttpProblem{status, text});
}

struct HeadLimits {
  size_t start_line = size_t{8} << 10U;  // bytes; a longer one is 414
  size_t total = size_t{64} << 10U;      // bytes up to and with the empty line; more is 431
  size_t fields = 128;                   // more is 431
};

// Finds the end of a head in a growing buffer, each byte looked at once. Refuses, as soon as the byte is there, what
// no head may hold: a CR or LF outside CRLF, NUL and other control bytes, an empty first line.
class HeadScanner {
 public:
  explicit HeadScanner(HeadLimits limits = {}) : limits_(limits) {}

  // `buffer` starts with the head's first byte and holds what earlier calls were given. Returns the head's length,
  // 0 while more is needed.
  HttpResult<size_t> scan(std::string_view buffer);
  void restart() { at_ = line_start_ = lines_ = 0; }

 private:
  HeadLimits limits_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  size_t lines_ = 0;
};

struct Field {
  std::string_view name;   // as sent
  std::string_view value;  // without the blanks around it
};

// The views point into the text that was parsed.
struct RequestHead {
  std::string_view method;
  std::string_view target;
  int minor = 1;  // HTTP/1.minor, 0 or 1
  std::vector<Field> fields;
};

struct ResponseHead {
  int minor = 1;
  int status = 0;
  std::string_view reason;
  std::vector<Field> fields;
};

// `head` is what HeadScanner delimited, its empty line included.
[[nodiscard]] HttpResult<RequestHead> parse_request_head(std::string_view head);
[[nodiscard]] HttpResult<ResponseHead> parse_response_head(std::string_view head);
// One field line without its CRLF; also for the trailer fields of a chunked body.
[[nodiscard]] HttpResult<Field> parse_field(std::string_view line);

// Letters compared without case, as field names are (RFC 9110, section 5.1).
[[nodiscard]] bool same_name(std::string_view a, std::string_view b);
[[nodiscard]] bool is_token(std::string_view text);  // RFC 9110, section 5.6.2
// How many fields have this name, and the value of the first.
[[nodiscard]] size_t count_fields(const std::vector<Field>& fields, std::string_view name, std::string_view* first);
// True when the comma-separated values of all fields `name` hold `token`.
[[nodiscard]] bool lists_token(const std::vector<Field>& fields, std::string_view name, std::string_view token);

struct Framing {
  enum class Kind : uint8_t { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;
};

// RFC 9112, section 6.3, where any conflict is an error: both Content-Length and Transfer-Encoding, either of them
// twice, a list, a transfer coding other than exactly `chunked`, Transfer-Encoding in HTTP/1.0.
[[nodiscard]] HttpResult<Framing> request_framing(const RequestHead& head);
[[nodiscard]] HttpResult<Framing> response_framing(const ResponseHead& head, std::string_view request_method);

// Fields that concern one connection only (RFC 9110, section 7.6.1), those named by Connection included, and every
// `Proxy-` field. Framing fields count as well: the one who forwards writes its own.
[[nodiscard]] bool is_hop_by_hop(const std::vector<Field>& fields, std::string_view name);
// Connection may not name a field without which the message would mean something else.
[[nodiscard]] HttpResult<void> check_connection_options(const std::vector<Field>& fields);

}  // namespace belljar::net
