// The tar format (POSIX ustar and pax, and GNU's long names): written plainly, and read as if somebody hostile had
// written it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace belljar::base {

struct TarEntry {
  enum class Kind : uint8_t { kFile, kFolder, kLink, kHardLink, kOther };
  Kind kind = Kind::kFile;
  std::string path{};    // read of a folder: without the slash that an archive puts at its end
  uint32_t mode = 0;     // the permission bits, 07777
  uint64_t size = 0;     // of kFile
  int64_t mtime = 0;     // whole seconds
  std::string target{};  // of kLink and kHardLink
};

// Appends an entry's header: ustar, with GNU's long-name blocks before it where a name needs them. Owner and group are
// 0 and nameless. Of a kFile, `size` bytes of content and tar_padding() must follow.
void append_tar_header(std::string& out, const TarEntry& entry);
// The zeros that fill the last block of `size` bytes of content.
[[nodiscard]] std::string_view tar_padding(uint64_t size);
void append_tar_end(std::string& out);

inline constexpr size_t kMostTarPath = 4096;  // PATH_MAX: what a kernel can be told

// Takes an archive apart as it comes in. Nothing of it is believed: numbers, checksums, lengths and names are checked,
// extended headers are bounded, and what is not understood is an error and never skipped.
class TarReader {
 public:
  class Sink {
   public:
    Sink() = default;
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;
    virtual ~Sink() = default;
    virtual Status on_entry(const TarEntry& entry) = 0;
    virtual Status on_bytes(std::string_view bytes) = 0;  // content of the last entry, a kFile
    virtual Status on_end() = 0;                          // of the last entry, whatever its kind
  };

  explicit TarReader(Sink& sink) : sink_(sink) {}

  // An error of the sink's ends it, and so does whatever is no archive. Not to be called again then.
  [[nodiscard]] Status take(std::string_view bytes);
  // The archive's own end has been seen: a stream that ends before was cut off.
  [[nodiscard]] bool finished() const { return state_ == State::kEnd; }

 private:
  enum class State : uint8_t { kHeader, kExtended, kContent, kPadding, kEnd };
  Status take_header();
  Status take_extended();
  Status read_pax(std::string_view text);
  Status start(TarEntry entry);

  Sink& sink_;
  State state_ = State::kHeader;
  std::string block_;     // a header that is not whole yet
  std::string extended_;  // content of an extended header
  char extended_type_ = 0;
  uint64_t left_ = 0;  // of content or padding
  uint64_t padding_ = 0;
  // What extended headers said of the entry that comes next.
  std::string next_path_, next_target_;
  uint64_t next_size_ = 0;
  bool has_path_ = false, has_target_ = false, has_size_ = false;
};

}  // namespace belljar::base
