#include "net/http_body.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace belljar::net {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Fields that a trailer section may not set (RFC 9110, section 6.5.1).
bool belongs_in_head(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "host", "trailer", "content-type", "content-encoding", "authorization", "expect"};
  const auto same = [&](std::string_view other) { return same_name(name, other); };
  return std::any_of(kNames.begin(), kNames.end(), same) || is_hop_by_hop({}, name);
}

}  // namespace

HttpResult<size_t> ChunkedCopier::copy(std::string_view in, std::string& out, size_t limit) {
  size_t taken = 0;
  while (taken < in.size() && out.size() < limit && !done()) {
    if (state_ == State::kData) {
      const auto n = static_cast<size_t>(std::min<uint64_t>({left_, in.size() - taken, limit - out.size()}));
      out.append(in.substr(taken, n));
      taken += n;
      left_ -= n;
      if (left_ == 0) state_ = State::kDataCr;
      continue;
    }
    if (const auto fine = take(in[taken], out); !fine) return std::unexpected(fine.error());
    ++taken;
  }
  return taken;
}

HttpResult<void> ChunkedCopier::take(char c, std::string& out) {
  if (state_ != State::kDataCr && state_ != State::kDataLf && ++line_bytes_ > kMaxLine) {
    return bad("a chunk size line or trailer section is too long");
  }
  switch (state_) {
    case State::kSize:
      return take_size(c);
    case State::kExtension:
      if (c == '\r') state_ = State::kSizeEnd;
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\r' && c != '\t') || c == 0x7f) {
        return bad("a control byte in a chunk extension");
      }
      return {};
    case State::kSizeEnd:
      if (c != '\n') return bad("a chunk size line that does not end in CRLF");
      end_size_line(out);
      return {};
    case State::kDataCr:
      if (c != '\r') return bad("a chunk longer than its size");
      state_ = State::kDataLf;
      return {};
    case State::kDataLf:
      if (c != '\n') return bad("a chunk that does not end in CRLF");
      if (output_ == Output::kChunked) out += "\r\n";
      state_ = State::kSize;
      digits_ = line_bytes_ = 0;
      return {};
    case State::kTrailer:
      return take_trailer(c, out);
    case State::kData:
    case State::kDone:
      break;
  }
  return {};
}

HttpResult<void> ChunkedCopier::take_size(char c) {
  if (const int value = hex_value(c); value >= 0) {
    if (++digits_ > 15) return bad("a chunk size too large");
    left_ = left_ << 4U | static_cast<uint64_t>(value);
    return {};
  }
  if (digits_ == 0) return bad("a chunk without a size");
  if (c == '\r') {
    state_ = State::kSizeEnd;
    return {};
  }
  // Some servers pad the size with blanks.
  if (extensions_ == Extensions::kDrop && (c == ';' || c == ' ' || c == '\t')) {
    state_ = State::kExtension;
    return {};
  }
  return bad("a chunk size that is no hexadecimal number, or has an extension");
}

void ChunkedCopier::end_size_line(std::string& out) {
  if (output_ == Output::kChunked) {
    std::array<char, 20> text{};
    const auto end = std::to_chars(text.begin(), text.end(), left_, 16).ptr;
    out.append(text.begin(), end);
    out += "\r\n";
  }
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  line_bytes_ = 0;
}

HttpResult<void> ChunkedCopier::take_trailer(char c, std::string& out) {
  const bool after_cr = line_.ends_with('\r');
  if (c != '\n') {
    const auto byte = static_cast<unsigned char>(c);
    if (after_cr || (byte < 0x20 && c != '\r' && c != '\t') || c == 0x7f) return bad("a control byte in a trailer");
    line_ += c;
    return {};
  }
  if (!after_cr) return bad("a trailer line that ends in LF alone");
  line_.pop_back();
  if (line_.empty()) {
    if (output_ == Output::kChunked) out += "\r\n";
    state_ = State::kDone;
    return {};
  }
  const auto field = parse_field(line_);
  if (!field) return std::unexpected(field.error());
  if (output_ == Output::kChunked && !belongs_in_head(field->name)) {
    out.append(field->name).append(": ").append(field->value).append("\r\n");
  }
  line_.clear();
  return {};
}

HttpResult<size_t> BodyCopier::copy(std::string_view in, std::string& out, size_t limit) {
  if (kind_ == Framing::Kind::kChunked) return chunked_.copy(in, out, limit);
  if (kind_ == Framing::Kind::kNone || out.size() >= limit) return size_t{0};
  size_t n = std::min(in.size(), limit - out.size());
  if (kind_ == Framing::Kind::kLength) {
    n = static_cast<size_t>(std::min<uint64_t>(n, left_));
    left_ -= n;
  }
  out.append(in.substr(0, n));
  return n;
}

bool BodyCopier::done() const {
  switch (kind_) {
    case Framing::Kind::kNone:
      return true;
    case Framing::Kind::kLength:
      return left_ == 0;
    case Framing::Kind::kChunked:
      return chunked_.done();
    case Framing::Kind::kUntilClose:
      return false;
  }
  return true;
}

bool BodyCopier::end() {
  if (kind_ == Framing::Kind::kUntilClose) kind_ = Framing::Kind::kNone;
  return done();
}

}  // namespace belljar::net
