// What the proxy and the one who asks the person say to each other: one message each way for one question, over a
// SOCK_SEQPACKET pair. Both are one program, so there are no versions.
#pragma once

#include <array>
#include <cstdint>

namespace belljar::egress {

enum class Answer : uint8_t {
  kDeny,     // the person says no
  kOnce,     // yes, to what is waiting now
  kSession,  // yes, as long as the session lives
  kAlways,   // yes, and kept in Belljar's store for the project
  kTimeout,  // nobody answered in time
  kNobody,   // there is nobody to ask
};

struct QuestionMessage {
  static constexpr uint32_t kMagic = 0x626a6173;
  uint32_t magic = kMagic;
  uint16_t port = 0;
  uint64_t number = 0;
  std::array<char, 256> host{};  // canonical, A-labels, ends with NUL
};

struct AnswerMessage {
  uint32_t magic = QuestionMessage::kMagic;
  Answer answer = Answer::kNobody;
  uint64_t number = 0;  // that of the question
};

}  // namespace belljar::egress
