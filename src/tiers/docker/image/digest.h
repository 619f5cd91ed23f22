// Digests, in the forms in which npm and container engines write them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace belljar::tiers::docker::image {

// SHA-512 of what is given piece by piece, as `integrity` of a lock file says it (https://www.w3.org/TR/SRI/):
// "sha512-" and base64.
class Integrity {
 public:
  Integrity();
  ~Integrity();
  Integrity(const Integrity&) = delete;
  Integrity& operator=(const Integrity&) = delete;

  void add(std::string_view bytes);
  // Once, at the end.
  [[nodiscard]] std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// True for a text of that form.
[[nodiscard]] bool is_integrity(std::string_view text);

// "sha256:" and hex digits.
[[nodiscard]] std::string sha256_of(std::string_view bytes);

}  // namespace belljar::tiers::docker::image
