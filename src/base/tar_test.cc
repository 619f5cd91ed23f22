#include "base/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace belljar::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Listing : public TarReader::Sink {
 public:
  Status on_entry(const TarEntry& entry) override {
    lines.push_back(std::string(1, "fdlho"[static_cast<size_t>(entry.kind)]) + " " + entry.path + " " +
                    std::to_string(entry.mode) + " " + entry.target);
    return {};
  }
  Status on_bytes(std::string_view bytes) override {
    content += bytes;
    return {};
  }
  Status on_end() override {
    content += "|";
    return {};
  }
  std::vector<std::string> lines;
  std::string content;
};

std::string sample() {
  std::string out;
  append_tar_header(out, {.kind = TarEntry::Kind::kFolder, .path = "a", .mode = 0755});
  append_tar_header(out, {.path = "a/" + std::string(300, 'n'), .mode = 0644, .size = 5, .mtime = 1});
  out += "hello";
  out += tar_padding(5);
  append_tar_header(out, {.kind = TarEntry::Kind::kLink, .path = "l", .mode = 0777, .target = std::string(200, 't')});
  append_tar_header(out, {.path = "empty", .mode = 0644});
  append_tar_end(out);
  return out;
}

TEST(TarTest, ReadsBackWhatItWroteInPiecesOfAnySize) {
  const std::string archive = sample();
  ASSERT_EQ(archive.size() % 512, 0U);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{512}, size_t{513}, archive.size()}) {
    Listing listing;
    TarReader reader(listing);
    for (size_t at = 0; at < archive.size(); at += piece) {
      const auto status = reader.take(std::string_view(archive).substr(at, piece));
      ASSERT_TRUE(status.has_value()) << status.error().message();
    }
    EXPECT_TRUE(reader.finished());
    EXPECT_THAT(listing.lines, ElementsAre("d a 493 ", "f a/" + std::string(300, 'n') + " 420 ",
                                           "l l 511 " + std::string(200, 't'), "f empty 420 "));
    EXPECT_EQ(listing.content, "|hello|||");
  }
}

TEST(TarTest, RefusesWhatIsChangedAnywhereInAHeader) {
  const std::string archive = sample();
  for (size_t at = 0; at < 512; ++at) {
    std::string changed = archive;
    changed[at] = static_cast<char>(changed[at] + 1);
    Listing listing;
    TarReader reader(listing);
    const bool in_checksum = at >= 148 && at < 156;
    // A checksum's own last bytes may be spaces or zeros.
    if (in_checksum) continue;
    EXPECT_FALSE(reader.take(changed).has_value()) << at;
  }
}

TEST(TarTest, KnowsACutStream) {
  const std::string archive = sample();
  for (size_t size = 0; size < archive.size() - 1024; size += 100) {
    Listing listing;
    TarReader reader(listing);
    ASSERT_TRUE(reader.take(std::string_view(archive).substr(0, size)).has_value());
    EXPECT_FALSE(reader.finished()) << size;
  }
}

std::string with_pax(std::string_view records) {
  std::string out;
  append_tar_header(out, {.path = "x", .mode = 0644, .size = records.size()});
  out[156] = 'x';
  // The checksum counts the type.
  uint64_t sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(out[i]);
  for (size_t i = 6; i-- > 0; sum >>= 3U) out[148 + i] = static_cast<char>('0' + (sum & 7U));
  out += records;
  out += tar_padding(records.size());
  append_tar_header(out, {.path = "short", .mode = 0644});
  append_tar_end(out);
  return out;
}

TEST(TarTest, ReadsExtendedHeadersAndRefusesBadOnes) {
  Listing good;
  TarReader good_reader(good);
  const auto status = good_reader.take(with_pax("18 path=long/name\n"));
  ASSERT_TRUE(status.has_value()) << status.error().message();
  EXPECT_THAT(good.lines, ElementsAre("f long/name 420 "));
  for (const char* records : {"17 path=long/name\n", "99 path=long/name\n", "x path=long/name\n", "18 path:long/name\n",
                              "18 path=long/namex", "22 GNU.sparse.major=1\n", "10 size=-1\n", "3 \n"}) {
    Listing none;
    TarReader bad_reader(none);
    EXPECT_FALSE(bad_reader.take(with_pax(records)).has_value()) << records;
  }
}

TEST(TarTest, RefusesWhatFollowsTheEnd) {
  Listing listing;
  TarReader reader(listing);
  const auto status = reader.take(sample() + "more");
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message(), HasSubstr("something follows its end, refusing"));
}

}  // namespace
}  // namespace belljar::base
