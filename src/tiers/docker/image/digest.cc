#include "tiers/docker/image/digest.h"

#include <sha2.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace belljar::tiers::docker::image {
namespace {

constexpr std::string_view kScheme = "sha512-";
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kLength = 88;  // of 64 bytes in base64, two `=` among them

}  // namespace

struct Integrity::State {
  SHA2_CTX context{};
};

Integrity::Integrity() : state_(std::make_unique<State>()) {
  ::SHA512Init(&state_->context);
}

Integrity::~Integrity() = default;

void Integrity::add(std::string_view bytes) {
  ::SHA512Update(&state_->context, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string Integrity::finish() {
  std::array<uint8_t, SHA512_DIGEST_LENGTH> digest{};
  ::SHA512Final(digest.data(), &state_->context);
  std::string out(kScheme);
  for (size_t i = 0; i < digest.size(); i += 3) {
    const auto byte = [&](size_t at) -> uint32_t { return at < digest.size() ? digest.at(at) : 0U; };
    const uint32_t bits = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    for (size_t j = 0; j < 4; ++j) {
      // 64 bytes are one more than a multiple of three: the last group holds two letters.
      out += i + j <= digest.size() ? kBase64.at(bits >> (18U - 6U * j) & 63U) : '=';
    }
  }
  return out;
}

bool is_integrity(std::string_view text) {
  if (!text.starts_with(kScheme)) return false;
  text.remove_prefix(kScheme.size());
  if (text.size() != kLength || !text.ends_with("==")) return false;
  text.remove_suffix(2);
  return text.find_first_not_of(kBase64) == std::string_view::npos;
}

std::string sha256_of(std::string_view bytes) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> text{};
  ::SHA256Data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), text.data());
  return std::string("sha256:") + text.data();
}

}  // namespace belljar::tiers::docker::image
