// Addresses written in tests.
#pragma once

#include <cstdlib>
#include <string>

#include "net/address.h"

namespace belljar::net::testing {

// The address that `text` spells. Aborts when it spells none: a mistake in the test.
inline IpAddress ip(const std::string& text) {
  const auto address = IpAddress::parse(text);
  if (!address) std::abort();
  return *address;
}

}  // namespace belljar::net::testing
