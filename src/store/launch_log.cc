#include "store/launch_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/pack.h"
#include "base/private_folder.h"

namespace belljar::store {
namespace {

constexpr std::string_view kKeepLaunch = "keep the launch";
constexpr std::string_view kReadLaunch = "read the launch";
constexpr const char* kLaunchFile = "launches";
constexpr const char* kOldLaunchFile = "launches.old";

// A record: these two, then its body, which begins with the id and the version of what follows. Raised when an older
// Belljar would misread it.
constexpr std::string_view kRecordMagic = "\x01launch\n";
constexpr std::string_view kRecordEnd = "\x01kept\n";  // behind the body: a record that was cut short swallows no other
constexpr uint64_t kRecordVersion = 1;

constexpr uint64_t kMostRecord = uint64_t{8} << 20U;  // an argument list is 6 MiB at most (execve(2))
constexpr uint64_t kMostLaunchWords = 1'000'000;
constexpr size_t kMostLaunchFile = size_t{16} << 20U;

void pack_words(std::string& out, const std::vector<std::string>& words) {
  base::pack_number(out, words.size());
  for (const std::string& word : words) base::pack_text(out, word);
}

std::vector<std::string> unpack_words(base::Unpacker& in) {
  std::vector<std::string> out;
  for (uint64_t left = in.number(kMostLaunchWords); left > 0 && in.good(); --left) out.push_back(in.text(kMostRecord));
  return out;
}

std::string record_of(const Launch& launch) {
  std::string body;
  base::pack_text(body, launch.id);
  base::pack_number(body, kRecordVersion);
  base::pack_text(body, launch.folder.path);
  base::pack_number(body, launch.folder.device);
  base::pack_number(body, launch.folder.inode);
  base::pack_text(body, launch.policy);
  base::pack_text(body, launch.chdir);
  base::pack_text(body, launch.target_folder);
  pack_words(body, launch.command);
  pack_words(body, launch.asked_env);
  std::string out(kRecordMagic);
  base::pack_text(out, body);
  out += kRecordEnd;
  return out;
}

// What a newer version wrote is known by its id alone.
struct Record {
  Launch launch;
  bool newer = false;
};

// Nothing when the body is not whole.
std::optional<Record> read_record(std::string_view body) {
  base::Unpacker in(body);
  Record out;
  out.launch.id = in.text(kMostRecord);
  out.newer = in.number() > kRecordVersion;
  if (out.newer) return out;
  out.launch.folder.path = in.text(kMostRecord);
  out.launch.folder.device = in.number();
  out.launch.folder.inode = in.number();
  out.launch.policy = in.text(kMostRecord);
  out.launch.chdir = in.text(kMostRecord);
  out.launch.target_folder = in.text(kMostRecord);
  out.launch.command = unpack_words(in);
  out.launch.asked_env = unpack_words(in);
  if (!in.at_end()) return std::nullopt;
  return out;
}

base::Result<std::optional<Launch>> find_in(const std::string& path, const std::string& id) {
  const auto text = base::read_regular_file(path, kMostLaunchFile, false);
  if (!text && text.error().code == ENOENT) return std::nullopt;
  if (!text) return std::unexpected(text.error());
  const std::string_view all(*text);
  std::optional<Record> out;
  for (size_t at = all.find(kRecordMagic); at != std::string_view::npos;) {
    const std::string_view rest = all.substr(at + kRecordMagic.size());
    base::Unpacker in(rest);
    const std::string body = in.text(kMostRecord);
    const size_t size = sizeof(uint64_t) + body.size();
    auto found = in.good() && rest.substr(size).starts_with(kRecordEnd) ? read_record(body) : std::nullopt;
    // A power cut may have cut one short: the next one may be whole.
    at = all.find(kRecordMagic, at + kRecordMagic.size() + (found ? size : 0));
    if (found && found->launch.id == id) out = std::move(found);
  }
  if (!out) return std::nullopt;
  if (out->newer) return base::refuse(kReadLaunch, id, "a newer belljar kept it, refusing", "use that one");
  return std::move(out->launch);
}

}  // namespace

base::Status keep_launch(const std::string& state_folder, const Launch& launch) {
  BELLJAR_ASSIGN(const base::Fd folder, base::open_private_folder(state_folder, kKeepLaunch));
  const std::string path = state_folder + "/" + kLaunchFile;
  // Whoever writes holds the folder's lock.
  while (::flock(folder.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return base::system_error(kKeepLaunch, state_folder, errno);
  }
  const base::Fd file(
      ::openat(folder.get(), kLaunchFile, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0) return base::system_error(kKeepLaunch, path, errno);
  if (!S_ISREG(found.st_mode))
    return base::refuse(kKeepLaunch, path, "it is not a regular file, refusing", "remove it");
  const std::string record = record_of(launch);
  if (record.size() > kMostRecord) return base::refuse(kKeepLaunch, launch.id, "it is too long");
  if (!base::write_all(file.get(), record)) return base::system_error(kKeepLaunch, path, errno);
  if (found.st_size + static_cast<int64_t>(record.size()) < kKeptLaunchBytes) return {};
  if (::renameat(folder.get(), kLaunchFile, folder.get(), kOldLaunchFile) != 0)
    return base::system_error(kKeepLaunch, path, errno);
  return {};
}

base::Result<std::optional<Launch>> kept_launch(const std::string& state_folder, const std::string& id) {
  for (const char* name : {kLaunchFile, kOldLaunchFile}) {
    BELLJAR_ASSIGN(std::optional<Launch> found, find_in(state_folder + "/" + name, id));
    if (found) return found;
  }
  BELLJAR_ASSIGN(const std::optional<Store> store, Store::open_existing(state_folder));
  if (!store) return std::nullopt;
  return store->launch(id);
}

}  // namespace belljar::store
