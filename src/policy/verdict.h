// Why a single value is refused, before anyone knows where it stood.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace belljar::policy {

struct Refusal {
  std::string reason;
  std::string hint;  // what to write instead
};

template <class T>
using Verdict = std::expected<T, Refusal>;

[[nodiscard]] inline std::unexpected<Refusal> no(std::string reason, std::string hint = {}) {
  return std::unexpected(Refusal{std::move(reason), std::move(hint)});
}

}  // namespace belljar::policy
