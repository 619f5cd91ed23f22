#include "egress/rule_feed.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "base/pack.h"

namespace belljar::egress {
namespace {

constexpr uint64_t kMagic = 0x31736c726a62;
constexpr uint64_t kMostRules = 4096;
constexpr uint64_t kMostText = 65536;

void pack_texts(std::string& out, const std::vector<std::string>& texts) {
  base::pack_number(out, texts.size());
  for (const std::string& text : texts) base::pack_text(out, text);
}

std::vector<std::string> unpack_texts(base::Unpacker& in) {
  std::vector<std::string> out(in.number(kMostRules));
  for (std::string& text : out) text = in.text(kMostText);
  return out;
}

void pack_optional(std::string& out, const std::optional<uint64_t>& value) {
  base::pack_number(out, value ? 1 : 0);
  base::pack_number(out, value.value_or(0));
}

std::optional<uint64_t> unpack_optional(base::Unpacker& in) {
  const bool there = in.number(1) != 0;
  const uint64_t value = in.number();
  return there ? std::optional(value) : std::nullopt;
}

void pack_rule(std::string& out, const policy::HostRule& rule) {
  base::pack_text(out, rule.pattern);
  base::pack_number(out, rule.port.value_or(0));
  base::pack_text(out, rule.source);
  base::pack_text(out, rule.id);
  base::pack_number(out, static_cast<uint64_t>(rule.tls));
  for (const bool flag : {rule.any_port, rule.deny, rule.host_port, rule.hook}) base::pack_number(out, flag ? 1 : 0);
  base::pack_number(out, rule.ports.size());
  for (const uint16_t port : rule.ports) base::pack_number(out, port);
  pack_texts(out, rule.methods);
  pack_texts(out, rule.paths);
  for (const auto& most : {rule.max_connections, rule.max_bytes, rule.requests_per_minute}) pack_optional(out, most);
}

policy::HostRule unpack_rule(base::Unpacker& in) {
  policy::HostRule rule;
  rule.pattern = in.text(kMostText);
  if (const uint64_t port = in.number(UINT16_MAX)) rule.port = static_cast<uint16_t>(port);
  rule.source = in.text(kMostText);
  rule.id = in.text(kMostText);
  rule.tls = static_cast<policy::Tls>(in.number(static_cast<uint64_t>(policy::Tls::kAny)));
  for (bool* flag : {&rule.any_port, &rule.deny, &rule.host_port, &rule.hook}) *flag = in.number(1) != 0;
  rule.ports.resize(in.number(UINT16_MAX));
  for (uint16_t& port : rule.ports) port = static_cast<uint16_t>(in.number(UINT16_MAX));
  rule.methods = unpack_texts(in);
  rule.paths = unpack_texts(in);
  for (auto* most : {&rule.max_connections, &rule.max_bytes, &rule.requests_per_minute}) *most = unpack_optional(in);
  return rule;
}

base::Result<std::string> read_whole(int file) {
  std::string out;
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t n = ::pread(file, chunk.data(), chunk.size(), static_cast<off_t>(out.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::system_error("read the rules", "", errno);
    if (n == 0) return out;
    out.append(chunk.data(), static_cast<size_t>(n));
    if (out.size() > kMostUpdate) return base::refuse("read the rules", "", "they are larger than 4 MiB");
  }
}

}  // namespace

std::string encode(const RuleUpdate& update) {
  std::string out;
  base::pack_number(out, kMagic);
  base::pack_text(out, update.name_servers);
  base::pack_number(out, update.rules.size());
  for (const policy::HostRule& rule : update.rules) pack_rule(out, rule);
  return out;
}

base::Result<RuleUpdate> decode_rules(std::string_view bytes) {
  base::Unpacker in(bytes);
  RuleUpdate out;
  if (in.number() == kMagic) {
    out.name_servers = in.text(kMostText);
    out.rules.resize(in.number(kMostRules));
    for (policy::HostRule& rule : out.rules) {
      if (in.good()) rule = unpack_rule(in);
    }
    if (in.at_end()) return out;
  }
  return base::refuse("read the rules", "", "they are not whole, or another version wrote them");
}

void RuleFeed::on_events(uint32_t /*events*/) {
  // How often it was rung is of no interest: the file says all.
  std::array<char, 4096> rung;
  while (::read(bell_.get(), rung.data(), rung.size()) > 0) {
  }
  const auto bytes = read_whole(file_.get());
  // Empty, or the answer to the update before: nobody has written one.
  if (bytes && (bytes->empty() || bytes->starts_with("taken") || bytes->starts_with("refused"))) return;
  const auto update = bytes ? decode_rules(*bytes) : base::Result<RuleUpdate>(std::unexpected(bytes.error()));
  const auto outcome = update ? take_(*update) : base::Result<UpdateOutcome>(std::unexpected(update.error()));
  answer(outcome ? "taken " + std::to_string(outcome->cut) : "refused " + outcome.error().message());
}

void RuleFeed::answer(const std::string& line) const {
  const std::string text = line + "\n";
  // What cannot be written is no answer: the sender waits for one and tells so.
  if (::ftruncate(file_.get(), 0) != 0) return;
  [[maybe_unused]] const ssize_t n = ::pwrite(file_.get(), text.data(), text.size(), 0);
}

}  // namespace belljar::egress
