#include "workspace/settled.h"

#include <gtest/gtest.h>

namespace belljar::workspace {
namespace {

Settled example() {
  Settled out;
  out.add(Change{"/work/.claude/settings.json", ChangeKind::kChanged});
  out.add(Change{"/work/.claude/new", ChangeKind::kAdded});
  out.add(Quarantined{"/work/.envrc", "/state/quarantine/1/.envrc", ""});
  out.add(Quarantined{"/work/.husky", "", "it could not be moved"});
  out.add(ConfigFile{"/home/someone/.claude.json", ConfigOutcome::kRefused, "it is a link"});
  out.add_unreleased("a folder");
  out.add_note(std::string("a \0 byte", 8));
  return out;
}

TEST(Settled, ComesBackFromItsBytes) {
  const auto decoded = decode_settled(encode(example()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, example());
  const auto nothing = decode_settled(encode(Settled{}));
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->empty());
}

TEST(Settled, RefusesBytesThatAreNotWhole) {
  const std::string bytes = encode(example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_settled(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_settled(bytes + "x"));
}

TEST(Settled, RefusesAnEnumeratorThatThereIsNot) {
  Settled one;
  one.add(Change{"", ChangeKind::kRemoved});
  std::string bytes = encode(one);
  bytes[16] = 3;  // after the number of changes and the size of the path
  EXPECT_FALSE(decode_settled(bytes));
}

TEST(Settled, CountsWhatDoesNotFit) {
  Settled many;
  for (size_t i = 0; i < Settled::kMostEntries + 7; ++i) many.add(Change{"/work/x", ChangeKind::kAdded});
  EXPECT_EQ(many.changes().size(), Settled::kMostEntries);
  EXPECT_EQ(many.unlisted(), 7U);
  const auto decoded = decode_settled(encode(many));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, many);
}

TEST(Settled, IsBoundedWhateverItIsGiven) {
  Settled out;
  for (size_t i = 0; i < 2000; ++i) {
    const std::string text(100'000, 'x');
    out.add(Quarantined{text, text, text});
    out.add(ConfigFile{text, ConfigOutcome::kKept, text});
    out.add_unreleased(text);
    out.add_note(text);
  }
  EXPECT_LE(encode(out).size(), kMostEncoded);
  EXPECT_GT(out.unlisted(), 0U);
  EXPECT_EQ(out.quarantined().front().path.size(), Settled::kMostText);
  const auto decoded = decode_settled(encode(out));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, out);
}

TEST(Settled, IsBoundedWhenAppended) {
  Settled out = example();
  out.append(example());
  EXPECT_EQ(out.changes().size(), 4U);
  for (int i = 0; i < 12; ++i) out.append(Settled(out));
  EXPECT_LE(encode(out).size(), kMostEncoded);
  EXPECT_GT(out.unlisted(), 0U);
}

}  // namespace
}  // namespace belljar::workspace
