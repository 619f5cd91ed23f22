#include "guest/config.h"

#include <cstring>
#include <type_traits>

namespace belljar::guest {
namespace {

// One description of the layout for both directions: an archive visits every field in order.
template <class Archive, class Value>
void visit_fields(Archive& archive, Value& config) {
  archive.number(config.steps);
  archive.number(config.terminal);
  archive.number(config.terminal_stderr);
  archive.number(config.isolated_network);
  archive.number(config.nested);
  archive.number(config.proxy_port);
  archive.number(config.transparent);
  archive.number(config.transparent_v6);
  archive.number(config.uid);
  archive.number(config.gid);
  archive.number(config.landlock_abi);
  archive.number(config.processes);
  archive.number(config.open_files);
  archive.number(config.file_bytes);
  archive.number(config.scratch_bytes);
  archive.number(config.scratch_files);
  archive.number(config.work_device);
  archive.number(config.work_inode);
  archive.number(config.made_by_other);
  archive.text(config.canary);
  archive.list(config.scratch, [&](auto& item) { archive.text(item); });
  archive.number(config.umask);
  archive.number(config.closed);
  archive.number(config.launched_by_root);
  archive.number(config.host_keyring);
  archive.list(config.host_namespaces, [&](auto& item) { archive.number(item); });
  archive.text(config.hostname);
  archive.text(config.work_folder);
  archive.text(config.chdir);
  archive.text(config.program);
  archive.list(config.arguments, [&](auto& item) { archive.text(item); });
  archive.list(config.environment, [&](auto& item) { archive.text(item); });
  archive.list(config.writable, [&](auto& item) { archive.text(item); });
  archive.list(config.mounts, [&](auto& item) {
    archive.text(item.path);
    archive.number(item.writable);
    archive.number(item.device);
    archive.number(item.below);
    archive.number(item.optional);
    archive.number(item.private_copy);
    archive.number(item.lies_on);
    archive.number(item.inode);
    archive.number(item.plain);
    archive.number(item.tmpfs);
    archive.number(item.bytes);
    archive.number(item.files);
  });
  archive.number(config.container);
  archive.text(config.home);
  archive.list(config.home_entries, [&](auto& item) {
    archive.text(item.path);
    archive.text(item.content);
    archive.number(item.link);
  });
  archive.list(config.files, [&](auto& item) {
    archive.text(item.path);
    archive.number(item.absent);
    archive.number(item.device);
    archive.number(item.inode);
    archive.text(item.holds);
  });
  archive.text(config.metadata);
  archive.list(config.engine_environment, [&](auto& item) { archive.text(item); });
}

class Writer {
 public:
  std::string out;
  template <class T>
  void number(const T& value) {
    const auto wide = static_cast<uint64_t>(value);
    out.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  }
  void text(std::string_view value) {
    number(value.size());
    out.append(value);
    out.push_back('\0');
  }
  template <class List, class Each>
  void list(List& items, Each each) {
    number(items.size());
    for (auto& item : items) each(item);
  }
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool good() const { return good_ && bytes_.empty(); }

  template <class T>
  void number(T& value) {
    uint64_t wide = 0;
    if (bytes_.size() < sizeof wide) return fail();
    std::memcpy(&wide, bytes_.data(), sizeof wide);
    bytes_.remove_prefix(sizeof wide);
    value = static_cast<T>(wide);
  }
  void text(std::string_view& value) {
    uint64_t size = 0;
    number(size);
    if (!good_ || bytes_.size() <= size || bytes_[size] != '\0') return fail();
    value = bytes_.substr(0, size);
    bytes_.remove_prefix(size + 1);
  }
  template <class List, class Each>
  void list(List& items, Each each) {
    uint64_t count = 0;
    number(count);
    if (count > bytes_.size()) return fail();
    items.resize(count);
    for (auto& item : items) {
      if (!good_) return;
      each(item);
    }
  }

 private:
  void fail() {
    good_ = false;
    bytes_ = {};
  }
  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace

std::string encode(const Config& config) {
  Writer writer;
  visit_fields(writer, config);
  return std::move(writer.out);
}

bool decode(std::string_view bytes, Config& config) {
  Reader reader(bytes);
  visit_fields(reader, config);
  return reader.good();
}

}  // namespace belljar::guest
