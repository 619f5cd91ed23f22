#include "base/tar.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/text.h"

namespace belljar::base {
namespace {

constexpr size_t kBlock = 512;
constexpr uint64_t kMostExtended = 65536;
constexpr std::string_view kOperation = "read the archive";

// pax(1), "ustar Interchange Format".
struct Field {
  size_t at;
  size_t size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12}, kTime{136, 12},
    kChecksum{148, 8}, kType{156, 1}, kTarget{157, 100}, kMagic{257, 8}, kPrefix{345, 155};

void put(std::string& block, Field field, std::string_view text) {
  std::ranges::copy(text.substr(0, field.size), block.begin() + static_cast<std::ptrdiff_t>(field.at));
}

void put_number(std::string& block, Field field, uint64_t value) {
  for (size_t i = field.size - 1; i-- > 0;) {
    block[field.at + i] = static_cast<char>('0' + (value & 7U));
    value >>= 3U;
  }
}

uint64_t sum_of(std::string_view block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

void append_block(std::string& out, std::string_view name, char type, std::string_view target, const TarEntry& entry,
                  uint64_t size) {
  std::string block(kBlock, '\0');
  put(block, kName, name);
  put_number(block, kMode, entry.mode & 07777U);
  put_number(block, kUid, 0);
  put_number(block, kGid, 0);
  put_number(block, kSize, size);
  put_number(block, kTime, entry.mtime > 0 ? static_cast<uint64_t>(entry.mtime) : 0);
  block[kType.at] = type;
  put(block, kTarget, target);
  put(block, kMagic, std::string_view("ustar  \0", 8));  // GNU's: long names come before
  std::string sum(7, '0');
  uint64_t value = sum_of(block);
  for (size_t i = 6; i-- > 0; value >>= 3U) sum[i] = static_cast<char>('0' + (value & 7U));
  sum[6] = '\0';
  put(block, kChecksum, sum);
  block[kChecksum.at + 7] = ' ';
  out += block;
}

void append_long(std::string& out, char type, std::string_view text) {
  append_block(out, "././@LongLink", type, {}, {.mode = 0644}, text.size() + 1);
  out += text;
  out += '\0';
  out += tar_padding(text.size() + 1);
}

std::string_view text_of(std::string_view block, Field field) {
  const std::string_view whole = block.substr(field.at, field.size);
  return whole.substr(0, whole.find('\0'));
}

// Octal digits, spaces or NULs around them; or GNU's base 256, whose first bit is set. False for anything else.
bool number_of(std::string_view block, Field field, uint64_t& out) {
  std::string_view text = block.substr(field.at, field.size);
  out = 0;
  if ((static_cast<unsigned char>(text[0]) & 0x80U) != 0) {
    if (static_cast<unsigned char>(text[0]) != 0x80U) return false;  // negative, or beyond 64 bits
    for (const char c : text.substr(1)) {
      if (out >> 55U != 0) return false;
      out = out << 8U | static_cast<unsigned char>(c);
    }
    return true;
  }
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.remove_suffix(1);
  for (const char c : text) {
    if (c < '0' || c > '7') return false;
    out = out << 3U | static_cast<uint64_t>(c - '0');
  }
  return true;
}

std::unexpected<Error> bad(std::string_view why) {
  return refuse(kOperation, "", std::string(why) + ", refusing");
}

}  // namespace

void append_tar_header(std::string& out, const TarEntry& entry) {
  std::string path = entry.path;
  if (entry.kind == TarEntry::Kind::kFolder && !path.ends_with('/')) path += '/';
  if (path.size() > kName.size) append_long(out, 'L', path);
  if (entry.target.size() > kTarget.size) append_long(out, 'K', entry.target);
  const char type = entry.kind == TarEntry::Kind::kFolder ? '5' : entry.kind == TarEntry::Kind::kLink ? '2' : '0';
  append_block(out, path, type, entry.target, entry, entry.kind == TarEntry::Kind::kFile ? entry.size : 0);
}

std::string_view tar_padding(uint64_t size) {
  static constexpr std::array<char, kBlock> kZeros{};
  return {kZeros.data(), (kBlock - size % kBlock) % kBlock};
}

void append_tar_end(std::string& out) {
  out.append(2 * kBlock, '\0');
}

Status TarReader::start(TarEntry entry) {
  if (has_path_) entry.path = std::move(next_path_);
  if (has_target_) entry.target = std::move(next_target_);
  if (has_size_ && entry.kind == TarEntry::Kind::kFile) entry.size = next_size_;
  has_path_ = has_target_ = has_size_ = false;
  if (entry.kind == TarEntry::Kind::kFolder && entry.path.size() > 1 && entry.path.ends_with('/'))
    entry.path.pop_back();
  if (entry.path.empty() || entry.path.size() > kMostTarPath || entry.path.contains('\0')) return bad("a name is none");
  if (entry.target.size() > kMostTarPath || entry.target.contains('\0')) return bad("a link's target is none");
  left_ = entry.size;
  padding_ = tar_padding(entry.size).size();
  BELLJAR_TRY(sink_.on_entry(entry));
  if (left_ > 0) {
    state_ = State::kContent;
    return {};
  }
  return sink_.on_end();
}

Status TarReader::take_header() {
  const std::string block = std::move(block_);
  block_.clear();
  if (std::ranges::all_of(block, [](char c) { return c == '\0'; })) {
    if (has_path_ || has_target_ || has_size_) return bad("it ends behind an extended header");
    state_ = State::kEnd;
    return {};
  }
  uint64_t sum = 0;
  uint64_t size = 0;
  uint64_t mode = 0;
  uint64_t time = 0;
  if (!number_of(block, kChecksum, sum) || sum != sum_of(block)) return bad("a checksum is wrong");
  if (!number_of(block, kSize, size) || !number_of(block, kMode, mode)) return bad("a number is none");
  if (size > uint64_t{1} << 50U) return bad("a size is none");
  // Before 1970 is written in a way that is not read here; it says nothing that counts.
  if (!number_of(block, kTime, time)) time = 0;
  const std::string_view magic = std::string_view(block).substr(kMagic.at, kMagic.size);
  if (!magic.starts_with("ustar")) return bad("an entry is of another format");
  TarEntry entry{.mode = static_cast<uint32_t>(mode & 07777U), .mtime = static_cast<int64_t>(time)};
  const std::string_view prefix = magic[5] == '\0' ? text_of(block, kPrefix) : std::string_view();
  entry.path = prefix.empty() ? std::string() : std::string(prefix) + "/";
  entry.path += text_of(block, kName);
  entry.target = text_of(block, kTarget);
  const char type = block[kType.at];
  switch (type) {
    case '\0':
    case '0':
      entry.size = size;
      return start(std::move(entry));
    case '1':
    case '2':
    case '5':
    case '3':
    case '4':
    case '6':
      if (size != 0) return bad("an entry without content has some");
      entry.kind = type == '1'   ? TarEntry::Kind::kHardLink
                   : type == '2' ? TarEntry::Kind::kLink
                   : type == '5' ? TarEntry::Kind::kFolder
                                 : TarEntry::Kind::kOther;
      return start(std::move(entry));
    case 'x':
    case 'L':
    case 'K':
      if (size == 0 || size > kMostExtended) return bad("an extended header is empty or too large");
      extended_type_ = type;
      extended_.clear();
      left_ = size;
      padding_ = tar_padding(size).size();
      state_ = State::kExtended;
      return {};
    default:
      return bad("an entry is of an unknown kind");
  }
}

// "LENGTH key=value\n", where LENGTH counts itself (pax(1), "pax Header Block").
Status TarReader::read_pax(std::string_view text) {
  while (!text.empty()) {
    const size_t space = text.find(' ');
    uint64_t length = 0;
    if (space == std::string_view::npos || !parse_uint(text.substr(0, space), length) || length > text.size() ||
        length < space + 3 || text[length - 1] != '\n') {
      return bad("a record of an extended header is none");
    }
    const std::string_view record = text.substr(space + 1, length - space - 2);
    text.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return bad("a record of an extended header is none");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      next_path_ = value;
      has_path_ = true;
    } else if (key == "linkpath") {
      next_target_ = value;
      has_target_ = true;
    } else if (key == "size") {
      if (!parse_uint(value, next_size_) || next_size_ > uint64_t{1} << 50U) return bad("a size is none");
      has_size_ = true;
    } else if (key.starts_with("GNU.sparse")) {
      return bad("an entry is sparse");
    }
  }
  return {};
}

Status TarReader::take_extended() {
  state_ = State::kPadding;
  left_ = padding_;
  if (extended_type_ == 'x') return read_pax(extended_);
  std::string& text = extended_type_ == 'L' ? next_path_ : next_target_;
  (extended_type_ == 'L' ? has_path_ : has_target_) = true;
  text = extended_.substr(0, extended_.find('\0'));
  return {};
}

Status TarReader::take(std::string_view bytes) {
  while (!bytes.empty() || (state_ == State::kPadding && left_ == 0)) {
    switch (state_) {
      case State::kHeader: {
        const size_t part = std::min(bytes.size(), kBlock - block_.size());
        block_ += bytes.substr(0, part);
        bytes.remove_prefix(part);
        if (block_.size() == kBlock) BELLJAR_TRY(take_header());
        break;
      }
      case State::kExtended: {
        const size_t part = std::min<uint64_t>(bytes.size(), left_);
        extended_ += bytes.substr(0, part);
        bytes.remove_prefix(part);
        left_ -= part;
        if (left_ == 0) BELLJAR_TRY(take_extended());
        break;
      }
      case State::kContent: {
        const size_t part = std::min<uint64_t>(bytes.size(), left_);
        BELLJAR_TRY(sink_.on_bytes(bytes.substr(0, part)));
        bytes.remove_prefix(part);
        left_ -= part;
        if (left_ > 0) break;
        BELLJAR_TRY(sink_.on_end());
        state_ = State::kPadding;
        left_ = padding_;
        break;
      }
      case State::kPadding: {
        const size_t part = std::min<uint64_t>(bytes.size(), left_);
        bytes.remove_prefix(part);
        left_ -= part;
        if (left_ == 0) state_ = State::kHeader;
        break;
      }
      case State::kEnd:
        if (!std::ranges::all_of(bytes, [](char c) { return c == '\0'; })) return bad("something follows its end");
        return {};
    }
  }
  return {};
}

}  // namespace belljar::base
