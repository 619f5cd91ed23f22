// Numbers and texts as bytes, for files and pipes between programs of one build on one machine.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace belljar::base {

// 64 bits in the machine's own byte order.
inline void pack_number(std::string& out, uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The length, then the bytes, which may be any.
inline void pack_text(std::string& out, std::string_view text) {
  pack_number(out, text.size());
  out += text;
}

// Reads back what was packed, in the same order. After the first value that is not whole or above its bound all
// further ones are 0 or empty and good() is false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}

  uint64_t number(uint64_t most = UINT64_MAX) {
    uint64_t value = 0;
    if (!good_ || left_.size() < sizeof value) return fail();
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value <= most ? value : fail();
  }
  std::string text(uint64_t most) {
    const uint64_t size = number(most);
    if (left_.size() < size) fail();
    if (!good_) return {};
    std::string out(left_.substr(0, size));
    left_.remove_prefix(size);
    return out;
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return good_ && left_.empty(); }

 private:
  uint64_t fail() {
    good_ = false;
    return 0;
  }
  std::string_view left_;
  bool good_ = true;
};

}  // namespace belljar::base
