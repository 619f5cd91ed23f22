// The body of an HTTP/1.1 message on its way through: delimited, checked and written anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_head.h"

namespace belljar::net {

// Reads a chunked body (RFC 9112, section 7.1) and writes it with the same chunks in the one canonical spelling, so
// that the next reader cannot see other borders: no extensions, no leading zeros, no blanks.
class ChunkedCopier {
 public:
  enum class Extensions : uint8_t { kRefuse, kDrop };
  enum class Output : uint8_t { kChunked, kPlain };  // kPlain: the data alone, for a reader of HTTP/1.0
  ChunkedCopier(Extensions extensions, Output output) : extensions_(extensions), output_(output) {}

  // Takes bytes from the front of `in` and appends to `out`, until `out` holds `limit` bytes or a little more.
  // Returns how many were taken. Trailer fields that frame a message or concern one connection are dropped.
  HttpResult<size_t> copy(std::string_view in, std::string& out, size_t limit);
  [[nodiscard]] bool done() const { return state_ == State::kDone; }

 private:
  static constexpr size_t kMaxLine = size_t{8} << 10U;  // of a size line, and of all trailers together

  enum class State : uint8_t { kSize, kExtension, kSizeEnd, kData, kDataCr, kDataLf, kTrailer, kDone };
  HttpResult<void> take(char c, std::string& out);
  HttpResult<void> take_size(char c);
  HttpResult<void> take_trailer(char c, std::string& out);
  void end_size_line(std::string& out);

  Extensions extensions_;
  Output output_;
  State state_ = State::kSize;
  uint64_t left_ = 0;  // of this chunk
  size_t digits_ = 0;
  size_t line_bytes_ = 0;
  std::string line_;  // trailer
};

// A body of any framing.
class BodyCopier {
 public:
  BodyCopier(Framing framing, ChunkedCopier::Extensions extensions, ChunkedCopier::Output output)
      : kind_(framing.kind), left_(framing.length), chunked_(extensions, output) {}

  // As ChunkedCopier::copy().
  HttpResult<size_t> copy(std::string_view in, std::string& out, size_t limit);
  [[nodiscard]] bool done() const;
  // The stream ended: true when that is where this body ends, false when it was cut off.
  [[nodiscard]] bool end();

 private:
  Framing::Kind kind_;
  uint64_t left_;
  ChunkedCopier chunked_;
};

}  // namespace belljar::net
