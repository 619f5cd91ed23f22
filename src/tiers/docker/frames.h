// The framing of an attached container's output.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/channel.h"

namespace belljar::tiers::docker {

// Takes apart what an engine sends for a container without a terminal: eight bytes (stream 1 or 2, three zeros, the
// length as four bytes, big-endian), then that many of the stream's (Engine API, ContainerAttach).
class FrameReader {
 public:
  enum class Stream : uint8_t { kOut = 1, kErr = 2 };
  using Sink = std::function<void(Stream stream, std::string_view bytes)>;

  // Gives `sink` what `bytes` holds of the streams, in order and without waiting for whole frames. False, from then on
  // always, when it is no such framing.
  [[nodiscard]] bool take(std::string_view bytes, const Sink& sink);
  // Between two frames: a stream that ends elsewhere was cut off.
  [[nodiscard]] bool at_border() const { return good_ && left_ == 0 && head_.empty(); }

 private:
  std::string head_;
  uint32_t left_ = 0;
  Stream stream_ = Stream::kOut;
  bool good_ = true;
};

// Both streams of one attachment, to the end.
struct Output {
  std::string out;
  std::string err;
};

// Writes `input` to the attached container, ends its input, and gathers what it prints until the engine closes the
// stream. More than `most` bytes is an error (EFBIG), and so is an end in the middle of a frame.
[[nodiscard]] base::Result<Output> gather(Hijacked attached, std::string_view input, size_t most,
                                          const base::Deadline& deadline);

}  // namespace belljar::tiers::docker
