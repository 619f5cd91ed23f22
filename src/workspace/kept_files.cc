#include "workspace/kept_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/path.h"
#include "workspace/host_file.h"
#include "workspace/kept_json.h"
#include "workspace/rename_new.h"
#include "workspace/taken_over.h"

namespace belljar::workspace {
namespace {

using Kind = KeptFile::Kind;

constexpr int kTries = 3;  // of replacing a file that others write meanwhile

size_t limit_of(Kind kind) {
  return kind == Kind::kState ? kMostState : kMostLogin;
}

// The time of the last change, which no program can set (inode(7), ctime).
bool is_newer(const FileContent& one, const FileContent& other) {
  const timespec& a = one.info.st_ctim;
  const timespec& b = other.info.st_ctim;
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

// What the host's file is to become, or nothing when it stays.
struct Decision {
  std::optional<std::string> text;
  std::string note;
};

class Settling {
 public:
  Settling(const std::vector<KeptFile>& files, const std::map<std::string, std::string>& copies, int home)
      : files_(files), copies_(copies), home_(home) {}
  Settled run();

 private:
  void take_copy(const KeptFile& file);
  base::Result<Decision> decide(const KeptFile& file, const FileContent& guest,
                                const std::optional<FileContent>& host) const;
  void take_history(const KeptFile& file);
  void move_away(const KeptFile& file);
  [[nodiscard]] std::optional<std::string> copy_of(const KeptFile& file) const {
    const auto found = copies_.find(file.inside);
    return found == copies_.end() ? std::nullopt : std::optional(found->second);
  }
  void refuse(const KeptFile& file, const base::Error& error) {
    out_.add(ConfigFile{file.path, ConfigOutcome::kRefused, error.message()});
  }

  const std::vector<KeptFile>& files_;
  const std::map<std::string, std::string>& copies_;
  int home_;
  CopyBudget budget_{.bytes = kMostHistory, .files = kMostHistoryFiles};
  Settled out_;
};

base::Result<Decision> Settling::decide(const KeptFile& file, const FileContent& guest,
                                        const std::optional<FileContent>& host) const {
  const std::optional<std::string> base = copy_of(file);
  if (guest.text == base || (host && guest.text == host->text)) return Decision{};
  if (file.kind == Kind::kState) {
    const std::optional<std::string> now = host ? std::optional(host->text) : std::nullopt;
    BELLJAR_ASSIGN(MergedState merged, merge_state(base, guest.text, now, file.keys));
    Decision out{std::move(merged.text), {}};
    for (const std::string& key : merged.kept_back) {
      out.note += (out.note.empty() ? "changed on both sides, and the host's stays: " : ", ") + key;
    }
    return out;
  }
  const bool host_changed = base ? !host || host->text != *base : host.has_value();
  if (!host_changed) return Decision{guest.text, {}};
  if (!host) return Decision{{}, "removed on the host meanwhile, and stays so"};
  if (!is_newer(guest, *host)) return Decision{{}, "changed on both sides: the host's is newer and stays"};
  return Decision{guest.text, "changed on both sides: the guest's is newer and was taken"};
}

void Settling::take_copy(const KeptFile& file) {
  auto read = read_below(home_, file.inside, limit_of(file.kind));
  if (!read) return refuse(file, read.error());
  const auto guest = std::move(*read);
  if (!guest) {
    if (copy_of(file)) out_.add(ConfigFile{file.path, ConfigOutcome::kKept, "removed in the guest; the host's stays"});
    return;
  }
  for (int i = 0; i < kTries; ++i) {
    const auto host = read_on_host(file.path, limit_of(file.kind));
    if (!host) return refuse(file, host.error());
    const auto decision = decide(file, *guest, *host);
    if (!decision) return refuse(file, decision.error());
    const std::optional<std::string>& text = decision->text;
    if (!text) {
      out_.add(ConfigFile{file.path, ConfigOutcome::kKept, decision->note});
      return;
    }
    const auto replaced = replace_on_host(file.path, *text, *host);
    if (!replaced) return refuse(file, replaced.error());
    if (*replaced) {
      out_.add(ConfigFile{file.path, ConfigOutcome::kUpdated, decision->note});
      return;
    }
  }
  refuse(file, {"replace", file.path, EAGAIN, "others keep writing to it", {}});
}

void Settling::take_history(const KeptFile& file) {
  const auto forbidden = [this](std::string_view inside) {
    for (const KeptFile& other : files_) {
      if (other.kind == Kind::kForbidden && other.inside == inside) return true;
    }
    return false;
  };
  const auto taken = take_over(home_, file.inside, file.path, budget_, forbidden);
  if (!taken) return refuse(file, taken.error());
  if (*taken) out_.add(ConfigFile{file.path, ConfigOutcome::kUpdated, {}});
}

void Settling::move_away(const KeptFile& file) {
  const auto folder = open_host_folder(base::parent_of(file.path), false);
  if (!folder) return;  // without the folder there is nothing in it
  const std::string name(base::name_of(file.path));
  struct stat found{};
  if (::fstatat(folder->get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (S_ISDIR(found.st_mode) && ::unlinkat(folder->get(), name.c_str(), AT_REMOVEDIR) == 0) return;
  for (int i = 1; i < 1000; ++i) {
    const std::string other = name + ".made-in-a-jail-" + std::to_string(i);
    errno = rename_new(folder->get(), name.c_str(), folder->get(), other.c_str());
    if (errno == 0) {
      out_.add(Quarantined{file.path, base::parent_of(file.path) + "/" + other, {}});
      return;
    }
    if (errno != EEXIST) break;
  }
  out_.add(Quarantined{file.path, {}, base::Error{"move", file.path, errno, {}, {}}.message()});
}

Settled Settling::run() {
  for (const KeptFile& file : files_) {
    switch (file.kind) {
      case Kind::kLogin:
      case Kind::kState:
        take_copy(file);
        break;
      case Kind::kHistory:
        take_history(file);
        break;
      case Kind::kForbidden:
        move_away(file);
        break;
    }
  }
  if (budget_.left_out > 0) {
    out_.add_note(std::to_string(budget_.left_out) +
                  " entries of the agent's history were not taken over: too many, too large, or no plain files");
  }
  return std::move(out_);
}

}  // namespace

base::Result<KeptFiles> KeptFiles::open(std::vector<KeptFile> files) {
  KeptFiles out;
  for (const KeptFile& file : files) {
    if (file.kind != Kind::kLogin && file.kind != Kind::kState) continue;
    BELLJAR_ASSIGN(auto content, read_on_host(file.path, limit_of(file.kind)));
    if (content) out.copies_.emplace(file.inside, std::move(content->text));
  }
  out.files_ = std::move(files);
  return out;
}

Settled KeptFiles::settle(int home) const {
  return Settling(files_, copies_, home).run();
}

}  // namespace belljar::workspace
