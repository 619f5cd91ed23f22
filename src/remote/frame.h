// What the two ends of a link say to each other: small messages over the one byte stream that ssh gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belljar::remote {

enum class FrameType : uint8_t {
  // From the near end, where the person is.
  kLaunch = 1,    // what is to be run (remote/launch_order.h); once, first
  kInput,         // for the command's standard input
  kInputEnd,      // it has ended
  kOutputClosed,  // nobody reads the stream of this number any more
  kSignal,        // its number, for the launcher there
  kWindow,        // rows and columns
  kPause,         // this end is about to stop: its silence means nothing until kGoOn
  kGoOn,
  kAlive,  // both ways
  // From the far end, where the command is.
  kCredit,   // so many more bytes of input may be sent
  kOutput,   // of the command's standard output
  kError,    // of its standard error
  kStopped,  // the launcher there has stopped itself (^Z)
  kReport,   // the settlement
  kEnded,    // the exit code; last
};
inline constexpr auto kLastFrameType = static_cast<uint8_t>(FrameType::kEnded);

struct Frame {
  FrameType type = FrameType::kAlive;
  std::string payload;
};

// Largest payload. Neither end buffers more than a few of these.
inline constexpr size_t kMaxPayload = size_t{1} << 20U;
// Of the settlement, in as many frames as it needs.
inline constexpr size_t kMaxReport = size_t{64} << 20U;
// How much input may be on its way at first, and ever.
inline constexpr uint32_t kInputCredit = uint32_t{256} << 10U;
// What the far end writes when it is ready, before its first frame. A login shell may have printed anything before.
inline constexpr std::string_view kReadyMark = "\nbelljar link 1 ready\n";

[[nodiscard]] std::string frame(FrameType type, std::string_view payload = {});
[[nodiscard]] std::string frame(FrameType type, uint32_t number);
[[nodiscard]] std::string window_frame(uint16_t rows, uint16_t columns);

// The number of a frame that holds one; nothing when it holds something else.
[[nodiscard]] std::optional<uint32_t> number_of(const Frame& frame);
// Rows in the upper, columns in the lower half.
[[nodiscard]] std::optional<uint32_t> window_of(const Frame& frame);

// Takes the stream apart.
class FrameReader {
 public:
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // The next whole one. Nothing when more is needed or the stream is broken.
  [[nodiscard]] std::optional<Frame> next();
  // A type nobody knows or a payload above kMaxPayload: whoever sent it is no end of ours.
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] size_t buffered() const { return buffer_.size(); }

 private:
  std::string buffer_;
  bool broken_ = false;
};

}  // namespace belljar::remote
