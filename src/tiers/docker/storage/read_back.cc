#include "tiers/docker/storage/read_back.h"

#include <optional>
#include <string>
#include <utility>

#include "base/path.h"
#include "base/text.h"
#include "tiers/docker/storage/helpers.h"

namespace belljar::tiers::docker::storage {
namespace {

constexpr std::string_view kReadingBack = "read the task's storage";

// Between the engine's archive, whose first component is the folder's own name, and who wants the volume's entries.
class Inner : public base::TarReader::Sink {
 public:
  Inner(base::TarReader::Sink& sink, const Volume& volume, std::string top)
      : sink_(sink), volume_(volume), top_(std::move(top)) {}

  base::Status on_entry(const base::TarEntry& entry) override;
  base::Status on_bytes(std::string_view bytes) override { return sink_.on_bytes(bytes); }
  base::Status on_end() override { return is_root_ ? base::Status{} : sink_.on_end(); }

 private:
  [[nodiscard]] std::unexpected<base::Error> no(const std::string& path, std::string_view why) const {
    return base::refuse(kReadingBack, path, std::string(why) + ", refusing");
  }
  base::TarReader::Sink& sink_;
  const Volume& volume_;
  std::string top_;
  bool is_root_ = false;
  uint64_t bytes_ = 0;
  uint64_t files_ = 0;
};

base::Status Inner::on_entry(const base::TarEntry& entry) {
  std::string path = entry.path;
  is_root_ = path == top_;
  if (is_root_) {
    return entry.kind == base::TarEntry::Kind::kFolder ? base::Status{} : no(path, "the volume is no folder");
  }
  if (!path.starts_with(top_ + "/")) return no(path, "it lies outside the volume");
  path.erase(0, top_.size() + 1);
  if (base::normal_path("/" + path) != "/" + path) return no(path, "the path is not normal");
  bytes_ += entry.size;
  if (entry.size > volume_.bytes || bytes_ > volume_.bytes) {
    return no(path, "the files are larger than their volume: one has holes");
  }
  // Names of one file are no inodes of their own, so there may be more; each is an entry all the same.
  if (++files_ > volume_.files) return no(path, "there are more entries than the volume has inodes: names of one file");
  base::TarEntry inner = entry;
  inner.path = std::move(path);
  return sink_.on_entry(inner);
}

}  // namespace

base::Status read_volume(const Engine& engine, const TaskStorage& storage, Part part, base::TarReader::Sink& sink,
                         const base::Deadline& deadline) {
  const std::string place = part == Part::kWork ? kKeptWork : kKeptGit;
  Inner inner(sink, volume_of(storage, part), std::string(base::name_of(place)));
  base::TarReader reader(inner);
  std::optional<base::Error> failed;
  const auto take = [&](std::string_view bytes) {
    const auto status = reader.take(bytes);
    if (!status) failed = status.error();
    return !failed;
  };
  Outcome outcome =
      engine.fetch("/containers/" + storage.keeper_id + "/archive?path=" + percent_encode(place), take, deadline);
  if (failed) return std::unexpected(std::move(*failed));
  BELLJAR_TRY(require(std::move(outcome), kReadingBack, storage.task));
  if (!reader.finished()) return base::refuse(kReadingBack, storage.task, "the archive was cut off, refusing");
  return {};
}

}  // namespace belljar::tiers::docker::storage
