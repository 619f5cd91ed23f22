#include "egress/denial.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/text.h"

namespace belljar::egress {
namespace {

struct Words {
  std::string_view code;
  int status;
  std::string_view error;    // the error type of Proxy-Status (RFC 9209, section 2.3)
  std::string_view meaning;  // one sentence without its subject
};

const Words& words_of(Reason reason) {
  static constexpr std::array<Words, 28> kWords = {{
      {"host_not_allowed", 403, "http_request_denied", "no rule of this session allows this host"},
      {"port_not_allowed", 403, "http_request_denied", "the host is allowed, but not on this port"},
      {"address_not_public", 403, "destination_ip_prohibited", "the host's address is not on the public internet"},
      {"sni_mismatch", 403, "http_request_denied", "the TLS hello names another host than CONNECT did"},
      {"no_sni", 403, "http_request_denied", "the TLS hello names no host"},
      {"not_tls", 403, "http_request_denied", "only TLS may pass through CONNECT"},
      {"malformed_hello", 403, "http_request_denied", "the TLS hello is malformed"},
      {"hello_timeout", 408, "http_request_error", "no whole TLS hello came in time"},
      {"head_timeout", 408, "http_request_error", "no whole request head came in time"},
      {"bad_request", 400, "http_request_error", "the request has no single meaning"},
      {"resolve_failed", 502, "dns_error", "the host's name could not be resolved"},
      {"dial_failed", 502, "destination_unavailable", "no connection to the host could be made"},
      {"dial_timeout", 504, "connection_timeout", "the host did not answer in time"},
      {"upstream_failed", 502, "http_protocol_error", "the host broke off or sent no proper answer"},
      {"too_many_connections", 503, "connection_limit_reached", "this session has too many connections open"},
      {"out_of_resources", 503, "proxy_internal_error", "the proxy ran out of descriptors or memory"},
      {"host_denied", 403, "http_request_denied", "a rule of this session denies this host"},
      {"address_denied", 403, "destination_ip_prohibited", "a rule of this session denies the host's address"},
      {"plain_http_only", 403, "http_request_denied", "the rule allows plain HTTP requests to this host, no tunnel"},
      {"tls_required", 403, "http_request_denied", "the rule allows this host by TLS only"},
      {"method_not_allowed", 403, "http_request_denied", "the rule does not allow this method"},
      {"path_not_allowed", 403, "http_request_denied", "the rule does not allow this path"},
      {"rule_connections", 503, "connection_limit_reached", "the rule allows no more connections at a time"},
      {"rule_bytes", 403, "http_request_denied", "the rule's bytes for this session are used up"},
      {"rule_rate", 429, "http_request_denied", "the rule's requests for this minute are used up"},
      {"person_denied", 403, "http_request_denied", "a person was asked and said no"},
      {"nobody_answered", 403, "http_request_denied", "a person was asked and did not answer in time"},
      {"audit_failed", 503, "proxy_internal_error", "the audit file that the policy requires cannot be written"},
  }};
  return kWords[static_cast<size_t>(reason)];
}

std::string_view phrase_of(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Refused";
  }
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : base::escape(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Of printable ASCII only and without what would end a quoted string: fit for a header.
std::string header_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') out += c;
  }
  return out;
}

std::string json_body(const Denial& denial, const Words& words) {
  std::string out = "{\"error\":\"refused_by_belljar\",\"reason\":" + json_string(words.code);
  out += ",\"host\":" + json_string(denial.host) + ",\"port\":" + std::to_string(denial.port);
  out += ",\"rule\":" + json_string(denial.rule) + ",\"remedy\":" + json_string(denial.remedy);
  out += ",\"message\":" + json_string(words.meaning);
  out += ",\"detail\":" + json_string(denial.detail) + "}\n";
  return out;
}

std::string text_body(const Denial& denial, const Words& words) {
  std::string out = "belljar: ";
  if (!denial.host.empty()) out += "'" + denial.host + "' port " + std::to_string(denial.port) + ": ";
  out += std::string(words.meaning) + " (" + std::string(words.code) + ")\n";
  if (!denial.detail.empty()) out += "detail: " + denial.detail + "\n";
  if (!denial.rule.empty()) out += "rule: " + denial.rule + "\n";
  if (!denial.remedy.empty()) {
    out += "to allow it, start the session with: " + denial.remedy + "\n";
    out += "or, while it runs, outside: belljar reload " + denial.remedy + "\n";
    out += "trying again without that gives the same answer\n";
  }
  return out;
}

}  // namespace

std::string_view code_of(Reason reason) {
  return words_of(reason).code;
}
int status_of(Reason reason) {
  return words_of(reason).status;
}

void DenialLog::add(Denial denial) {
  const auto same = std::find_if(denials_.begin(), denials_.end(), [&](const Denial& other) {
    return other.reason == denial.reason && other.port == denial.port && other.host == denial.host;
  });
  if (same != denials_.end()) {
    ++same->count;
  } else if (denials_.size() < kLimit && (!denial.looked_up() || lookups_ < kLookups)) {
    if (denial.looked_up()) ++lookups_;
    denials_.push_back(std::move(denial));
  } else {
    ++unlisted_;
  }
}

std::string refusal_response(const Denial& denial, bool json, bool without_body, int status) {
  const Words& words = words_of(denial.reason);
  if (status == 0) status = words.status;
  const std::string body = json ? json_body(denial, words) : text_body(denial, words);
  const std::string remedy = header_text(denial.remedy);
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + std::string(phrase_of(status));
  out += " (belljar: " + std::string(words.code) + (remedy.empty() ? "" : ", allow with " + remedy) + ")\r\n";
  out += "Content-Type: " + std::string(json ? "application/json" : "text/plain; charset=utf-8") + "\r\n";
  out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  out +=
      "Proxy-Status: belljar; error=" + std::string(words.error) + "; details=\"" + std::string(words.code) + "\"\r\n";
  out += "Cache-Control: no-store\r\nConnection: close\r\n\r\n";
  return without_body ? out : out + body;
}

}  // namespace belljar::egress
