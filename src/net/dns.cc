#include "net/dns.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace belljar::net {
namespace {

constexpr size_t kHeader = 12;
constexpr size_t kMaxLabel = 63;
constexpr size_t kMaxName = 255;  // with the length bytes (RFC 1035, section 2.3.4)
constexpr uint16_t kResponse = 0x8000;
constexpr uint16_t kOpcode = 0x7800;
constexpr uint16_t kRecursionDesired = 0x0100;
constexpr uint16_t kRecursionAvailable = 0x0080;
constexpr uint16_t kCheckingDisabled = 0x0010;  // copied into the answer (RFC 4035, section 3.2.2)
constexpr uint16_t kInternet = 1;

// Big-endian numbers and bytes of a message, front to back.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool number(size_t width, uint32_t& out) {
    if (bytes_.size() - at_ < width) return false;
    out = 0;
    for (size_t i = 0; i < width; ++i) out = out << 8U | static_cast<uint8_t>(bytes_[at_++]);
    return true;
  }
  bool number(uint16_t& out) {
    uint32_t wide = 0;
    if (!number(2, wide)) return false;
    out = static_cast<uint16_t>(wide);
    return true;
  }
  bool bytes(size_t size, std::string_view& out) {
    if (bytes_.size() - at_ < size) return false;
    out = bytes_.substr(at_, size);
    at_ += size;
    return true;
  }
  [[nodiscard]] size_t at() const { return at_; }
  [[nodiscard]] bool ended() const { return at_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

void put(std::string& out, size_t width, uint32_t value) {
  while (width-- > 0) out += static_cast<char>(value >> (8 * width) & 0xffU);
}

bool is_host_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// A name without compression: a pointer has nothing before it to point at, and would be a length above 63.
bool read_name(Reader& reader, std::optional<std::string>& name) {
  std::string text;
  bool plain = true;
  size_t total = 1;
  for (;;) {
    uint32_t length = 0;
    if (!reader.number(1, length)) return false;
    if (length == 0) break;
    total += length + 1;
    std::string_view label;
    if (length > kMaxLabel || total > kMaxName || !reader.bytes(length, label)) return false;
    plain = plain && std::all_of(label.begin(), label.end(), is_host_byte);
    if (!text.empty()) text += '.';
    text += label;
  }
  if (plain) name = std::move(text);
  return true;
}

// The one additional record there may be; its options are not looked at, but must add up.
DnsCode read_opt(Reader& reader, DnsQuery& query) {
  uint32_t root = 0;
  uint16_t type = 0;
  uint16_t payload = 0;
  uint32_t version = 0;
  uint16_t length = 0;
  std::string_view data;
  if (!reader.number(1, root) || root != 0 || !reader.number(type) || type != static_cast<uint16_t>(DnsType::kOpt) ||
      !reader.number(payload) || !reader.number(4, version) || !reader.number(length) || !reader.bytes(length, data)) {
    return DnsCode::kFormErr;
  }
  Reader options(data);
  while (!options.ended()) {
    uint16_t code = 0;
    uint16_t size = 0;
    std::string_view value;
    if (!options.number(code) || !options.number(size) || !options.bytes(size, value)) return DnsCode::kFormErr;
  }
  query.edns = true;
  return (version >> 16U & 0xffU) == 0 ? DnsCode::kNoError : DnsCode::kBadVers;
}

struct Counts {
  uint16_t questions = 0;
  uint16_t answers = 0;
  uint16_t authorities = 0;
  uint16_t additional = 0;
};

DnsCode read_body(Reader& reader, std::string_view message, const Counts& counts, DnsQuery& query) {
  if ((query.flags & kOpcode) != 0) return DnsCode::kNotImp;
  if (counts.questions != 1 || counts.answers != 0 || counts.authorities != 0 || counts.additional > 1) {
    return DnsCode::kFormErr;
  }
  std::optional<std::string> name;
  if (!read_name(reader, name) || !reader.number(query.type) || !reader.number(query.net_class)) {
    return DnsCode::kFormErr;
  }
  const std::string_view question = message.substr(kHeader, reader.at() - kHeader);
  const DnsCode code = counts.additional == 1 ? read_opt(reader, query) : DnsCode::kNoError;
  if (code == DnsCode::kFormErr || !reader.ended()) return DnsCode::kFormErr;
  query.question = question;
  query.name = std::move(name);
  return code;
}

std::string begin_answer(const DnsQuery& query, DnsCode code, uint16_t records) {
  constexpr uint16_t kCopied = kOpcode | kRecursionDesired | kCheckingDisabled;
  const auto number = static_cast<unsigned>(code);
  std::string out;
  put(out, 2, query.id);
  put(out, 2, kResponse | (query.flags & kCopied) | kRecursionAvailable | (number & 0xfU));
  put(out, 2, query.question.empty() ? 0 : 1);
  put(out, 2, records);
  put(out, 2, 0);
  put(out, 2, query.edns ? 1 : 0);
  return out + query.question;
}

std::string end_answer(std::string out, const DnsQuery& query, DnsCode code) {
  if (!query.edns) return out;
  put(out, 1, 0);
  put(out, 2, static_cast<uint16_t>(DnsType::kOpt));
  put(out, 2, kMaxDnsQuery);
  put(out, 4, static_cast<uint32_t>(code) >> 4U << 24U);
  put(out, 2, 0);
  return out;
}

// One record for the name asked: its name is a pointer to the question's, behind the header.
std::string with_record(const DnsQuery& query, DnsType type, uint32_t ttl, std::string_view data) {
  std::string out = begin_answer(query, DnsCode::kNoError, 1);
  put(out, 2, 0xc000U | kHeader);
  put(out, 2, static_cast<uint16_t>(type));
  put(out, 2, kInternet);
  put(out, 4, ttl);
  put(out, 2, static_cast<uint32_t>(data.size()));
  out += data;
  return end_answer(std::move(out), query, DnsCode::kNoError);
}

int hex_digit(std::string_view label) {
  if (label.size() != 1) return -1;
  const char c = label.front();
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::optional<DnsQuery> parse_dns_query(std::string_view message) {
  Reader reader(message);
  DnsQuery query;
  Counts counts;
  if (!reader.number(query.id) || !reader.number(query.flags) || !reader.number(counts.questions) ||
      !reader.number(counts.answers) || !reader.number(counts.authorities) || !reader.number(counts.additional) ||
      (query.flags & kResponse) != 0) {
    return {};
  }
  query.problem = message.size() > kMaxDnsQuery ? DnsCode::kFormErr : read_body(reader, message, counts, query);
  return query;
}

std::string dns_answer(const DnsQuery& query, DnsCode code) {
  return end_answer(begin_answer(query, code, 0), query, code);
}

std::string dns_answer(const DnsQuery& query, const IpAddress& address, uint32_t ttl) {
  std::string data;
  if (!address.is_v6()) {
    put(data, 4, address.v4_value());
    return with_record(query, DnsType::kA, ttl, data);
  }
  for (const uint8_t byte : address.v6_bytes()) data += static_cast<char>(byte);
  return with_record(query, DnsType::kAaaa, ttl, data);
}

std::string dns_pointer_answer(const DnsQuery& query, std::string_view host, uint32_t ttl) {
  std::string data;
  for (const std::string_view label : base::split(host, '.')) {
    put(data, 1, static_cast<uint32_t>(label.size()));
    data += label;
  }
  put(data, 1, 0);
  return with_record(query, DnsType::kPtr, ttl, data);
}

std::optional<IpAddress> address_of_reverse_name(std::string_view name) {
  constexpr std::string_view kV4 = ".in-addr.arpa";
  constexpr std::string_view kV6 = ".ip6.arpa";
  if (name.ends_with(kV4)) {
    auto labels = base::split(name.substr(0, name.size() - kV4.size()), '.');
    if (labels.size() != 4) return {};
    std::string text;
    for (size_t i = labels.size(); i-- > 0;) text += std::string(labels[i]) + (i > 0 ? "." : "");
    return IpAddress::parse(text);
  }
  if (!name.ends_with(kV6)) return {};
  const auto labels = base::split(name.substr(0, name.size() - kV6.size()), '.');
  if (labels.size() != 32) return {};
  std::array<uint8_t, 16> bytes{};
  for (size_t i = 0; i < 32; ++i) {
    const int digit = hex_digit(labels[31 - i]);
    if (digit < 0) return {};
    bytes[i / 2] = static_cast<uint8_t>(bytes[i / 2] << 4U | digit);
  }
  return IpAddress::v6(bytes);
}

}  // namespace belljar::net
