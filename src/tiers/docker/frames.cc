#include "tiers/docker/frames.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace belljar::tiers::docker {
namespace {

constexpr size_t kHead = 8;
constexpr const char* kReading = "read what the container prints";

}  // namespace

bool FrameReader::take(std::string_view bytes, const Sink& sink) {
  while (good_ && !bytes.empty()) {
    if (left_ > 0) {
      const std::string_view part = bytes.substr(0, left_);
      sink(stream_, part);
      left_ -= static_cast<uint32_t>(part.size());
      bytes.remove_prefix(part.size());
      continue;
    }
    const std::string_view part = bytes.substr(0, kHead - head_.size());
    head_ += part;
    bytes.remove_prefix(part.size());
    if (head_.size() < kHead) break;
    good_ = (head_[0] == 1 || head_[0] == 2) && head_[1] == 0 && head_[2] == 0 && head_[3] == 0;
    if (!good_) break;
    stream_ = static_cast<Stream>(head_[0]);
    for (size_t i = 4; i < kHead; ++i) left_ = left_ << 8U | static_cast<unsigned char>(head_[i]);
    head_.clear();
  }
  return good_;
}

base::Result<Output> gather(Hijacked attached, std::string_view input, size_t most, const base::Deadline& deadline) {
  Output out;
  FrameReader reader;
  bool too_much = false;
  const auto sink = [&](FrameReader::Stream stream, std::string_view bytes) {
    std::string& to = stream == FrameReader::Stream::kOut ? out.out : out.err;
    const size_t room = most - std::min(most, out.out.size() + out.err.size());
    too_much = too_much || bytes.size() > room;
    to += bytes.substr(0, room);
  };
  const int fd = attached.stream.get();
  bool sending = true;
  bool fine = reader.take(attached.early, sink);
  for (;;) {
    if (!fine) return base::refuse(kReading, "", "the engine's framing is broken, refusing");
    if (too_much) return base::system_error(kReading, "", EFBIG);
    if (sending && input.empty()) {
      ::shutdown(fd, SHUT_WR);
      sending = false;
    }
    pollfd wait{fd, static_cast<short>(POLLIN | (sending ? POLLOUT : 0)), 0};
    const int ready = ::poll(&wait, 1, deadline.poll_timeout());
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return base::system_error(kReading, "", errno);
    if (deadline.passed()) return base::system_error(kReading, "", ETIMEDOUT);
    if (sending && (wait.revents & POLLOUT) != 0) {
      const ssize_t n = ::send(fd, input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      // A container that does not read its input may have ended; what it said is still to be read.
      if (n < 0 && errno != EAGAIN && errno != EINTR) input = {};
      if (n > 0) input.remove_prefix(static_cast<size_t>(n));
    }
    if ((wait.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    std::array<char, 16384> buffer{};
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return base::system_error(kReading, "", errno);
    if (n == 0) break;
    fine = reader.take({buffer.data(), static_cast<size_t>(n)}, sink);
  }
  if (!reader.at_border()) return base::refuse(kReading, "", "it was cut off");
  return out;
}

}  // namespace belljar::tiers::docker
