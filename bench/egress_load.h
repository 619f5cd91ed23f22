// What bench_egress does to each way out, as a client in the network namespace that the calling process is in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace belljar::bench {

struct Door {
  std::string address;   // where the client connects to
  uint16_t port = 0;     // 0: the port of the service itself
  bool connect = false;  // asks by CONNECT first
};

struct Rate {
  double per_second = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  uint64_t failures = 0;
};

// Seconds that one GET of `size` bytes from port `service` takes, or a negative number.
double get_bytes(const Door& door, uint16_t service, size_t size);

// New connections to port `service` for `seconds`, `at_once` at a time, each with a TLS hello that is answered by a few
// bytes and the end.
Rate connect_often(const Door& door, uint16_t service, double seconds, size_t at_once);

// Opens `count` connections to port `service`, each with a hello, and keeps them. Returns their descriptors.
std::vector<int> hold(const Door& door, uint16_t service, size_t count);

}  // namespace belljar::bench
