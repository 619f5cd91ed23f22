#include "net/http_head.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace belljar::net {
namespace {

bool is_token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The next line of `rest` without its CRLF. The scanner has made sure that CR and LF come in pairs only.
std::string_view take_line(std::string_view& rest) {
  const size_t end = rest.find("\r\n");
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  return line;
}

HttpResult<std::vector<Field>> parse_fields(std::string_view rest) {
  std::vector<Field> out;
  for (;;) {
    const std::string_view line = take_line(rest);
    if (line.empty()) return out;
    auto field = parse_field(line);
    if (!field) return std::unexpected(field.error());
    out.push_back(*field);
  }
}

// `HTTP/1.0` or `HTTP/1.1`.
HttpResult<int> parse_version(std::string_view text) {
  if (text == "HTTP/1.1") return 1;
  if (text == "HTTP/1.0") return 0;
  const bool shaped = text.size() == 8 && text.starts_with("HTTP/") && text[5] >= '0' && text[5] <= '9' &&
                      text[6] == '.' && text[7] >= '0' && text[7] <= '9';
  return shaped ? bad("a version of HTTP other than 1.0 and 1.1", 505) : bad("no HTTP version where one belongs");
}

HttpResult<uint64_t> parse_length(std::string_view text) {
  uint64_t value = 0;
  // Half the range is left free so that sums cannot wrap.
  if (!base::parse_uint(text, value) || value > (uint64_t{1} << 62U)) {
    return bad("Content-Length is not one decimal number");
  }
  return value;
}

// What the framing fields alone say.
HttpResult<Framing> field_framing(const std::vector<Field>& fields, int minor) {
  std::string_view length;
  std::string_view coding;
  const size_t lengths = count_fields(fields, "content-length", &length);
  const size_t codings = count_fields(fields, "transfer-encoding", &coding);
  if (lengths > 0 && codings > 0) return bad("both Content-Length and Transfer-Encoding");
  if (lengths > 1) return bad("Content-Length twice");
  if (codings > 1) return bad("Transfer-Encoding twice");
  if (codings == 1) {
    if (minor == 0) return bad("Transfer-Encoding in HTTP/1.0");
    if (!same_name(coding, "chunked")) return bad("a transfer coding other than chunked");
    return Framing{Framing::Kind::kChunked, 0};
  }
  if (lengths == 0) return Framing{};
  const auto value = parse_length(length);
  if (!value) return std::unexpected(value.error());
  return Framing{Framing::Kind::kLength, *value};
}

}  // namespace

HttpResult<size_t> HeadScanner::scan(std::string_view buffer) {
  for (; at_ < buffer.size(); ++at_) {
    const auto c = static_cast<unsigned char>(buffer[at_]);
    if (at_ >= limits_.total) return bad("the head is too large", 431);
    if (lines_ == 0 && at_ >= limits_.start_line) return bad("the first line is too long", 414);
    if (c == '\n') {
      if (at_ == 0 || buffer[at_ - 1] != '\r') return bad("a line that ends in LF alone");
      const bool empty = at_ - line_start_ == 1;
      if (empty && lines_ == 0) return bad("an empty line where a message belongs");
      if (empty) return ++at_;
      if (++lines_ > limits_.fields + 1) return bad("too many header fields", 431);
      line_start_ = at_ + 1;
      continue;
    }
    if (at_ > 0 && buffer[at_ - 1] == '\r') return bad("a CR that no LF follows");
    if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) return bad("a control byte in the head");
  }
  return size_t{0};
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

HttpResult<Field> parse_field(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') return bad("a folded header line");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad("a header line without a colon");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return bad("a header name that is no token");  // also a blank before the colon
  return Field{name, trim(line.substr(colon + 1))};
}

HttpResult<RequestHead> parse_request_head(std::string_view head) {
  RequestHead out;
  const std::string_view line = take_line(head);
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return bad("the request line has not three parts");
  out.method = line.substr(0, first);
  out.target = line.substr(first + 1, last - first - 1);
  if (!is_token(out.method)) return bad("the method is no token");
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (out.target.empty() || !std::all_of(out.target.begin(), out.target.end(), visible)) {
    return bad("the request target is empty or holds a blank or a byte outside ASCII");
  }
  const auto minor = parse_version(line.substr(last + 1));
  if (!minor) return std::unexpected(minor.error());
  out.minor = *minor;
  auto fields = parse_fields(head);
  if (!fields) return std::unexpected(fields.error());
  out.fields = std::move(*fields);
  return out;
}

HttpResult<ResponseHead> parse_response_head(std::string_view head) {
  ResponseHead out;
  const std::string_view line = take_line(head);
  const auto minor = parse_version(line.substr(0, 8));
  if (!minor) return std::unexpected(minor.error());
  out.minor = *minor;
  uint64_t status = 0;
  // The reason may be missing, and with it the blank before it: many servers leave it out.
  if (line.size() < 12 || line[8] != ' ' || !base::parse_uint(line.substr(9, 3), status) || status < 100 ||
      (line.size() > 12 && line[12] != ' ')) {
    return bad("the status line is malformed");
  }
  out.status = static_cast<int>(status);
  out.reason = line.size() > 13 ? line.substr(13) : std::string_view();
  auto fields = parse_fields(head);
  if (!fields) return std::unexpected(fields.error());
  out.fields = std::move(*fields);
  return out;
}

size_t count_fields(const std::vector<Field>& fields, std::string_view name, std::string_view* first) {
  size_t n = 0;
  for (const Field& field : fields) {
    if (!same_name(field.name, name)) continue;
    if (n++ == 0 && first != nullptr) *first = field.value;
  }
  return n;
}

bool lists_token(const std::vector<Field>& fields, std::string_view name, std::string_view token) {
  for (const Field& field : fields) {
    if (!same_name(field.name, name)) continue;
    for (const std::string_view part : base::split(field.value, ',')) {
      if (same_name(trim(part), token)) return true;
    }
  }
  return false;
}

HttpResult<Framing> request_framing(const RequestHead& head) {
  return field_framing(head.fields, head.minor);
}

HttpResult<Framing> response_framing(const ResponseHead& head, std::string_view request_method) {
  const auto framing = field_framing(head.fields, head.minor);
  if (!framing) return framing;
  // These have no body whatever the fields say; theirs describe the answer that GET would get.
  const bool bodiless = request_method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304;
  if (bodiless) return Framing{};
  if (framing->kind == Framing::Kind::kNone) return Framing{Framing::Kind::kUntilClose, 0};
  return framing;
}

bool is_hop_by_hop(const std::vector<Field>& fields, std::string_view name) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "connection", "keep-alive", "te", "upgrade", "transfer-encoding", "content-length", "http2-settings"};
  const auto same = [&](std::string_view other) { return same_name(name, other); };
  if (std::any_of(kNames.begin(), kNames.end(), same)) return true;
  if (name.size() >= 6 && same_name(name.substr(0, 6), "proxy-")) return true;
  return lists_token(fields, "connection", name);
}

HttpResult<void> check_connection_options(const std::vector<Field>& fields) {
  static constexpr std::array<std::string_view, 4> kEssential = {"host", "content-length", "transfer-encoding",
                                                                 "trailer"};
  for (const std::string_view name : kEssential) {
    if (lists_token(fields, "connection", name)) return bad("Connection names a field that may not be dropped");
  }
  return {};
}

}  // namespace belljar::net
