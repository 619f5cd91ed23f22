#include "remote/frame.h"

namespace belljar::remote {
namespace {

constexpr size_t kHead = 5;  // the type, then the length, low byte first

void append_number(std::string& out, uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xffU);
}

uint32_t read_number(std::string_view bytes) {
  uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace

std::string frame(FrameType type, std::string_view payload) {
  std::string out(1, static_cast<char>(type));
  append_number(out, static_cast<uint32_t>(payload.size()));
  return out.append(payload);
}

std::string frame(FrameType type, uint32_t number) {
  std::string payload;
  append_number(payload, number);
  return frame(type, payload);
}

std::string window_frame(uint16_t rows, uint16_t columns) {
  return frame(FrameType::kWindow, uint32_t{rows} << 16U | columns);
}

std::optional<uint32_t> number_of(const Frame& frame) {
  if (frame.payload.size() != 4) return {};
  return read_number(frame.payload);
}

std::optional<uint32_t> window_of(const Frame& frame) {
  return number_of(frame);
}

std::optional<Frame> FrameReader::next() {
  if (broken_ || buffer_.size() < kHead) return {};
  const auto type = static_cast<uint8_t>(buffer_.front());
  const size_t size = read_number(std::string_view(buffer_).substr(1));
  if (type == 0 || type > kLastFrameType || size > kMaxPayload) {
    broken_ = true;
    return {};
  }
  if (buffer_.size() < kHead + size) return {};
  Frame out{static_cast<FrameType>(type), buffer_.substr(kHead, size)};
  buffer_.erase(0, kHead + size);
  return out;
}

}  // namespace belljar::remote
