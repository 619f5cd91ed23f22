// How the two listeners of a session take what waits at them.
#pragma once

#include <chrono>

namespace belljar::egress {

// Accepts in a row before the connections at hand have their turn.
inline constexpr int kAcceptBurst = 32;
// Until the next try when descriptors or memory are short.
inline constexpr std::chrono::milliseconds kShortagePause{100};

}  // namespace belljar::egress
