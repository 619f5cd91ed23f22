#include "egress/first_bytes.h"

#include <cstddef>

#include "net/http_head.h"

namespace belljar::egress {
namespace {

constexpr char kHandshakeRecord = 22;
constexpr size_t kLongestMethod = 32;
constexpr size_t kLongestLine = size_t{16} << 10U;  // beyond what a request line may have; the HTTP reader says so

}  // namespace

Speech first_speech(std::string_view bytes) {
  if (bytes.empty()) return Speech::kUnknown;
  if (bytes.front() == kHandshakeRecord) return Speech::kTls;
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const std::string_view method = line.substr(0, line.find(' '));
  // A method is a token (RFC 9110, section 9.1). What is one too, `SSH-2.0-x`, is told from it by the end of its line.
  if (method.size() > kLongestMethod || !net::is_token(method)) return Speech::kOther;
  if (line.size() == bytes.size()) return bytes.size() > kLongestLine ? Speech::kHttp : Speech::kUnknown;
  return line.find(" HTTP/1.") != std::string_view::npos ? Speech::kHttp : Speech::kOther;
}

}  // namespace belljar::egress
