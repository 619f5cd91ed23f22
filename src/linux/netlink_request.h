// Requests to the kernel's netlink families, built in a buffer of fixed size: no heap, for the guest's side of a
// launch.
#pragma once

#include <linux/netlink.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace belljar::linux {

// One or more netlink messages (netlink(7)), back to back. What does not fit, or a message begun but not ended, makes
// the whole request invalid: netlink_talk() then answers EMSGSIZE and sends nothing.
class NetlinkRequest {
 public:
  // Begins a message of `type` with the family's fixed header `header` behind nlmsghdr. NLM_F_REQUEST is added.
  template <class Header>
  void begin(uint16_t type, uint16_t flags, const Header& header) {
    static_assert(std::is_trivially_copyable_v<Header>);
    message_ = size_;
    const nlmsghdr start{0, type, static_cast<uint16_t>(flags | NLM_F_REQUEST), ++sequence_, 0};
    put(&start, sizeof start);
    put(&header, sizeof header);
  }
  void end() { patch_length<uint32_t>(message_); }

  void attribute(uint16_t type, const void* data, size_t size) {
    const nlattr start{static_cast<uint16_t>(sizeof(nlattr) + size), type};
    put(&start, sizeof start);
    put(data, size);
  }
  // With the NUL at its end, as the kernel wants names.
  void attribute(uint16_t type, const char* text) { attribute(type, text, std::strlen(text) + 1); }
  // In network byte order, as nf_tables wants numbers.
  void attribute_be32(uint16_t type, uint32_t value) {
    const std::array<uint8_t, 4> bytes{static_cast<uint8_t>(value >> 24U), static_cast<uint8_t>(value >> 16U),
                                       static_cast<uint8_t>(value >> 8U), static_cast<uint8_t>(value)};
    attribute(type, bytes.data(), bytes.size());
  }
  // Returns what close() takes.
  [[nodiscard]] size_t open(uint16_t type) {
    const size_t at = size_;
    const nlattr start{0, static_cast<uint16_t>(type | NLA_F_NESTED)};
    put(&start, sizeof start);
    return at;
  }
  void close(size_t at) { patch_length<uint16_t>(at); }

  [[nodiscard]] bool valid() const { return !overflow_; }
  [[nodiscard]] const char* data() const { return buffer_.data(); }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  // Every header and attribute begins at a multiple of four (netlink(3), NLMSG_ALIGN).
  void put(const void* data, size_t size) {
    const size_t padded = (size + 3) & ~size_t{3};
    if (padded > buffer_.size() - size_) {
      overflow_ = true;
      return;
    }
    std::memcpy(buffer_.data() + size_, data, size);
    std::memset(buffer_.data() + size_ + size, 0, padded - size);
    size_ += padded;
  }
  // Both nlmsghdr and nlattr begin with their length.
  template <class Length>
  void patch_length(size_t at) {
    if (overflow_) return;
    const auto length = static_cast<Length>(size_ - at);
    std::memcpy(buffer_.data() + at, &length, sizeof length);
  }

  alignas(8) std::array<char, 4096> buffer_;
  size_t size_ = 0;
  size_t message_ = 0;
  uint32_t sequence_ = 0;
  bool overflow_ = false;
};

// Sends `request` to netlink family `protocol` (NETLINK_ROUTE ...) and reads `answers` acknowledgements, which are in
// the socket when the send returns: the kernel does the work in the caller's call. 0, or the errno of the first message
// that was refused.
[[nodiscard]] int netlink_talk(int protocol, const NetlinkRequest& request, size_t answers);

}  // namespace belljar::linux
