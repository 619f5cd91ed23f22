#include "tiers/docker/image/archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/io.h"
#include "base/tar.h"
#include "tiers/docker/image/digest.h"

namespace belljar::tiers::docker::image {
namespace {

constexpr std::string_view kGathering = "gather the packages";
constexpr uint64_t kMostBytes = uint64_t{1} << 32U;  // of one package
constexpr size_t kMostFiles = 10'000;

class Writer {
 public:
  Writer(base::Fd file, const base::Deadline& deadline) : file_(std::move(file)), deadline_(deadline) {}

  base::Status add_folder();
  base::Status add_text(const std::string& name, std::string_view text);
  // Puts the file in when it is the archive of one of the packages, and says in `got` of which.
  base::Status add_wanted(const base::Fd& file, const std::string& path, const Lock& wanted, std::vector<bool>& got);
  base::Result<Archive> finish();

 private:
  base::Status put(std::string_view bytes);
  base::Result<std::string> copy(const base::Fd& file, const std::string& path, uint64_t bytes);

  base::Fd file_;
  const base::Deadline& deadline_;
  uint64_t at_ = 0;
};

// One block long: the names are short.
std::string header_of(const std::string& name, uint64_t bytes) {
  std::string out;
  base::append_tar_header(out, {.path = std::string(kBuildFolder) + "/" + name, .mode = 0600, .size = bytes});
  return out;
}

base::Status Writer::put(std::string_view bytes) {
  if (!base::write_all(file_.get(), bytes)) return base::system_error(kGathering, "", errno);
  at_ += bytes.size();
  return {};
}

base::Status Writer::add_folder() {
  std::string header;
  base::append_tar_header(header, {.kind = base::TarEntry::Kind::kFolder, .path = kBuildFolder, .mode = 0700});
  return put(header);
}

base::Status Writer::add_text(const std::string& name, std::string_view text) {
  BELLJAR_TRY(put(header_of(name, text.size())));
  BELLJAR_TRY(put(text));
  return put(base::tar_padding(text.size()));
}

base::Result<std::string> Writer::copy(const base::Fd& file, const std::string& path, uint64_t bytes) {
  Integrity integrity;
  std::vector<char> buffer(size_t{1} << 20U);
  for (uint64_t left = bytes; left > 0;) {
    if (deadline_.passed()) return base::system_error(kGathering, path, ETIMEDOUT);
    const ssize_t n = ::read(file.get(), buffer.data(), std::min<uint64_t>(buffer.size(), left));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::system_error(kGathering, path, errno);
    if (n == 0) return base::refuse(kGathering, path, "it shrank while it was read, refusing");
    integrity.add({buffer.data(), static_cast<size_t>(n)});
    BELLJAR_TRY(put({buffer.data(), static_cast<size_t>(n)}));
    left -= static_cast<uint64_t>(n);
  }
  return integrity.finish();
}

base::Status Writer::add_wanted(const base::Fd& file, const std::string& path, const Lock& wanted,
                                std::vector<bool>& got) {
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return base::system_error(kGathering, path, errno);
  const auto bytes = static_cast<uint64_t>(found.st_size);
  if (!S_ISREG(found.st_mode) || bytes > kMostBytes) {
    return base::refuse(kGathering, path, "it is no file of a sensible size, refusing");
  }
  const uint64_t start = at_;
  BELLJAR_TRY(put(header_of("", bytes)));  // named below, once it is known what it is
  BELLJAR_ASSIGN(std::string digest, copy(file, path, bytes));
  BELLJAR_TRY(put(base::tar_padding(bytes)));
  const auto package = std::ranges::find(wanted.packages, digest, &Package::integrity);
  const auto number = static_cast<size_t>(package - wanted.packages.begin());
  if (package != wanted.packages.end() && !got[number]) {
    got[number] = true;
    const std::string block = header_of(std::to_string(number) + ".tgz", bytes);
    if (::pwrite(file_.get(), block.data(), block.size(), static_cast<off_t>(start)) !=
        static_cast<ssize_t>(block.size())) {
      return base::system_error(kGathering, path, errno);
    }
    return {};
  }
  if (::lseek(file_.get(), static_cast<off_t>(start), SEEK_SET) < 0 ||
      ::ftruncate(file_.get(), static_cast<off_t>(start)) != 0) {
    return base::system_error(kGathering, path, errno);
  }
  at_ = start;
  return {};
}

base::Result<Archive> Writer::finish() {
  std::string end;
  base::append_tar_end(end);
  BELLJAR_TRY(put(end));
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) return base::system_error(kGathering, "", errno);
  return Archive{std::move(file_), at_};
}

base::Result<std::vector<std::string>> archives_in(int folder, const std::string& path) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy), &::closedir);
  if (!listing) {
    const int code = errno;
    if (copy >= 0) ::close(copy);
    return base::system_error(kGathering, path, code);
  }
  std::vector<std::string> out;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (std::string_view(&entry->d_name[0]).ends_with(".tgz")) out.emplace_back(&entry->d_name[0]);
    if (out.size() > kMostFiles) return base::refuse(kGathering, path, "it holds too many files, refusing");
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

size_t archive_number(const Lock& lock, size_t package) {
  const auto first = std::ranges::find(lock.packages, lock.packages[package].integrity, &Package::integrity);
  return static_cast<size_t>(first - lock.packages.begin());
}

base::Result<Archive> make_archive(const Lock& lock, std::string_view script, const std::string& folder,
                                   const std::string& scratch, const base::Deadline& deadline) {
  base::Fd file(::open(scratch.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return base::system_error(kGathering, scratch, errno);
  Writer writer(std::move(file), deadline);
  BELLJAR_TRY(writer.add_folder());
  BELLJAR_TRY(writer.add_text("setup.sh", script));
  const base::Fd from(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!from) return base::system_error(kGathering, folder, errno);
  BELLJAR_ASSIGN(const std::vector<std::string> names, archives_in(from.get(), folder));
  std::vector<bool> got(lock.packages.size());
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    const base::Fd one(::openat(from.get(), name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!one) return base::system_error(kGathering, path, errno);
    BELLJAR_TRY(writer.add_wanted(one, path, lock, got));
  }
  for (size_t i = 0; i < lock.packages.size(); ++i) {
    if (got[archive_number(lock, i)]) continue;
    const Package& package = lock.packages[i];
    return base::refuse(kGathering, folder,
                        "nothing there is " + package.name + " " + package.version + " by its digest, refusing",
                        "npm pack " + package.name + "@" + package.version);
  }
  return writer.finish();
}

}  // namespace belljar::tiers::docker::image
