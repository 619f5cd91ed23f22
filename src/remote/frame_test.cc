#include "remote/frame.h"

#include <gtest/gtest.h>

#include <string>

#include "remote/launch_order.h"

namespace belljar::remote {
namespace {

TEST(Frames, ComeThroughWholeHoweverTheStreamIsCut) {
  std::string stream = frame(FrameType::kInput, "abc") + frame(FrameType::kInputEnd) + frame(FrameType::kSignal, 15) +
                       window_frame(24, 80) + frame(FrameType::kOutput, std::string(70000, '\xff'));
  for (const size_t cut : {size_t{1}, size_t{3}, size_t{5}, size_t{4096}, stream.size()}) {
    FrameReader reader;
    std::string seen;
    for (size_t at = 0; at < stream.size(); at += cut) {
      reader.feed(std::string_view(stream).substr(at, cut));
      while (const auto next = reader.next()) {
        seen += std::to_string(static_cast<int>(next->type)) + ":" + std::to_string(next->payload.size()) + " ";
        if (next->type == FrameType::kSignal) {
          EXPECT_EQ(number_of(*next), 15U);
        }
        if (next->type == FrameType::kWindow) {
          EXPECT_EQ(window_of(*next), (uint32_t{24} << 16U) + 80U);
        }
      }
    }
    EXPECT_EQ(seen, "2:3 3:0 5:4 6:4 11:70000 ");
    EXPECT_EQ(reader.buffered(), 0U);
  }
}

TEST(Frames, ARogueStreamIsBroken) {
  for (const std::string& bytes :
       {std::string(5, '\0'), std::string("\x7f\0\0\0\0", 5), std::string("\x02\xff\xff\xff\xff", 5)}) {
    FrameReader reader;
    reader.feed(bytes);
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.broken());
  }
  EXPECT_FALSE(number_of({FrameType::kSignal, "abc"}));
}

TEST(LaunchOrder, ComesThroughAndOnlyWhole) {
  LaunchOrder order;
  order.use = Use::kPlan;
  order.session = "0123456789abcdef";
  order.policy = "{}";
  order.command = {"sh", "", std::string("a\nb\xff", 4)};
  order.folder = "~/work";
  order.environment = {{"KEY", "value"}, {"EMPTY", ""}};
  order.streams = {StreamKind::kTerminal, StreamKind::kPipe, StreamKind::kClosed};
  order.one_stream = order.report = true;
  order.rows = 24;
  const std::string bytes = pack(order);
  const auto back = unpack_order(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, order);
  EXPECT_FALSE(unpack_order(bytes + "x"));
  order.session = "../../../../etc/x";
  EXPECT_FALSE(unpack_order(pack(order)));
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(unpack_order(bytes.substr(0, size)));
}

}  // namespace
}  // namespace belljar::remote
