// Any bytes as an archive, cut anywhere: the same entries and contents, no more bytes than were given, and never a name
// that no file could have.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/tar.h"

namespace {

using belljar::base::Status;
using belljar::base::TarEntry;
using belljar::base::TarReader;

class Listing : public TarReader::Sink {
 public:
  Status on_entry(const TarEntry& entry) override {
    if (entry.path.empty() || entry.path.contains('\0') || entry.path.size() > belljar::base::kMostTarPath)
      std::abort();
    if (entry.kind != TarEntry::Kind::kFile && entry.size != 0) std::abort();
    text += std::to_string(static_cast<int>(entry.kind)) + entry.path + "\n" + entry.target + "\n" +
            std::to_string(entry.mode) + " " + std::to_string(entry.size) + "\n";
    left_ = entry.size;
    return {};
  }
  Status on_bytes(std::string_view bytes) override {
    if (bytes.size() > left_) std::abort();
    left_ -= bytes.size();
    text += bytes;
    return {};
  }
  Status on_end() override {
    if (left_ != 0) std::abort();
    text += "|";
    return {};
  }
  std::string text;

 private:
  uint64_t left_ = 0;
};

std::string read(std::string_view bytes, size_t cut) {
  Listing listing;
  TarReader reader(listing);
  for (size_t at = 0; at < bytes.size(); at += cut) {
    if (!reader.take(bytes.substr(at, cut))) return listing.text + "!";
  }
  return listing.text + (reader.finished() ? "." : "");
}

// What a fuzzer would never guess.
void correct_checksums(std::string& bytes) {
  constexpr size_t kBlock = 512;
  for (size_t block = 0; block + kBlock <= bytes.size(); block += kBlock) {
    if (std::string_view(bytes).substr(block + 257, 5) != "ustar") continue;
    uint64_t sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(bytes[block + i]);
    for (size_t i = 7; i-- > 0; sum >>= 3U) bytes[block + 148 + i] = static_cast<char>('0' + (sum & 7U));
    bytes[block + 155] = '\0';
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  correct_checksums(bytes);
  const std::string whole = read(bytes, size + 1);
  if (read(bytes, 1) != whole || read(bytes, 513) != whole) std::abort();
  return 0;
}
