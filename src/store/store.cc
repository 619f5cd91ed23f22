#include "store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/path.h"
#include "base/private_folder.h"

namespace belljar::store {
namespace {

constexpr std::string_view kOperation = "open the store";
constexpr const char* kFile = "/belljar.db";

// Each entry brings a store of the version of its place to the next one. Only ever added to: stores of every earlier
// version exist. `user_version` of the file says which it is (https://sqlite.org/pragma.html#pragma_user_version).
constexpr std::array kSteps = {
    "CREATE TABLE project (folder BLOB PRIMARY KEY, policy BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE trust (folder BLOB PRIMARY KEY, device INTEGER NOT NULL, inode INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE trusted_file (folder BLOB NOT NULL, place INTEGER NOT NULL, path BLOB NOT NULL, text BLOB NOT NULL,"
    "  PRIMARY KEY (folder, place)) WITHOUT ROWID;",
    "CREATE TABLE launch (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, schema INTEGER NOT NULL,"
    "  folder BLOB NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, policy BLOB NOT NULL,"
    "  chdir BLOB NOT NULL);"
    "CREATE TABLE launch_word (launch INTEGER NOT NULL REFERENCES launch (number), kind INTEGER NOT NULL,"
    "  place INTEGER NOT NULL, text BLOB NOT NULL, PRIMARY KEY (launch, kind, place)) WITHOUT ROWID;"
    "CREATE TABLE target (name BLOB PRIMARY KEY, facts BLOB NOT NULL) WITHOUT ROWID;",
    "ALTER TABLE launch ADD COLUMN target_folder BLOB NOT NULL DEFAULT x'';",
    "CREATE TABLE built_image (id BLOB PRIMARY KEY, tag BLOB NOT NULL, engine BLOB NOT NULL, pins BLOB NOT NULL,"
    "  made INTEGER NOT NULL) WITHOUT ROWID;",
    "CREATE TABLE attempt (id BLOB PRIMARY KEY, request BLOB NOT NULL) WITHOUT ROWID;",
    "CREATE TABLE task (id BLOB PRIMARY KEY, state INTEGER NOT NULL, project BLOB NOT NULL, engine BLOB NOT NULL,"
    "  bytes INTEGER NOT NULL, clone BLOB NOT NULL, storage BLOB NOT NULL, made INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE task_pool (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL);",
};

base::Result<int64_t> version_of(const Database& database) {
  BELLJAR_ASSIGN(Statement statement, database.prepare("PRAGMA user_version"));
  BELLJAR_ASSIGN(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

base::Status check_version(const std::string& path, int64_t version) {
  if (version <= static_cast<int64_t>(kSteps.size())) return {};
  return base::refuse(kOperation, path, "a newer belljar made it, refusing", "use that one, or move the file away");
}

base::Status bring_up(const Database& database, const std::string& path) {
  BELLJAR_TRY(database.execute("BEGIN IMMEDIATE"));
  BELLJAR_ASSIGN(const int64_t version, version_of(database));
  BELLJAR_TRY(check_version(path, version));
  for (auto step = static_cast<size_t>(version); step < kSteps.size(); ++step)
    BELLJAR_TRY(database.execute(kSteps[step]));
  BELLJAR_TRY(database.execute("PRAGMA user_version = " + std::to_string(kSteps.size())));
  return database.execute("COMMIT");
}

}  // namespace

base::Result<FolderId> identify(const std::string& folder) {
  const base::Fd open(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat found{};
  if (!open || ::fstat(open.get(), &found) != 0) return base::system_error("open the folder", folder, errno);
  BELLJAR_ASSIGN(std::string real, base::real_path(open.get()));
  return FolderId{std::move(real), found.st_dev, found.st_ino};
}

base::Result<Store> Store::open(const std::string& state_folder) {
  BELLJAR_TRY(base::open_private_folder(state_folder, kOperation));
  const std::string path = state_folder + kFile;
  const base::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file) return base::system_error(kOperation, path, errno);
  BELLJAR_ASSIGN(Database database, Database::open(path, Database::Access::kWrite));
  BELLJAR_TRY(bring_up(database, path));
  return Store(std::move(database));
}

base::Result<std::optional<Store>> Store::open_existing(const std::string& state_folder) {
  const std::string path = state_folder + kFile;
  if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
  BELLJAR_TRY(base::open_private_folder(state_folder, kOperation));
  BELLJAR_ASSIGN(Database database, Database::open(path, Database::Access::kRead));
  BELLJAR_ASSIGN(const int64_t version, version_of(database));
  BELLJAR_TRY(check_version(path, version));
  // Made, and its maker died before the tables were there.
  if (version == 0) return std::nullopt;
  // An earlier version is brought up before it is read, which needs the right to write.
  if (version < static_cast<int64_t>(kSteps.size())) {
    BELLJAR_ASSIGN(Store store, open(state_folder));
    return store;
  }
  return Store(std::move(database));
}

base::Status Store::set_project(const Project& project) const {
  BELLJAR_ASSIGN(Statement statement, database_.prepare("INSERT OR REPLACE INTO project VALUES (?, ?)"));
  return statement.bind(1, project.folder).bind(2, project.policy).run();
}

base::Result<std::optional<Project>> Store::project_of(const std::string& folder) const {
  for (std::string at = folder;; at = base::parent_of(at)) {
    BELLJAR_ASSIGN(Statement statement, database_.prepare("SELECT policy FROM project WHERE folder = ?"));
    statement.bind(1, at);
    BELLJAR_ASSIGN(const bool row, statement.step());
    if (row) return Project{at, statement.text(0)};
    if (at == "/" || at.empty()) return std::nullopt;
  }
}

base::Result<std::vector<Project>> Store::projects() const {
  BELLJAR_ASSIGN(Statement statement, database_.prepare("SELECT folder, policy FROM project ORDER BY folder"));
  std::vector<Project> out;
  for (;;) {
    BELLJAR_ASSIGN(const bool row, statement.step());
    if (!row) return out;
    out.push_back({statement.text(0), statement.text(1)});
  }
}

base::Result<bool> Store::remove_project(const std::string& folder) const {
  BELLJAR_ASSIGN(Statement statement, database_.prepare("DELETE FROM project WHERE folder = ? RETURNING 1"));
  return statement.bind(1, folder).step();
}

base::Status Store::remember_target(const std::string& name, const std::string& facts) const {
  BELLJAR_ASSIGN(Statement statement, database_.prepare("INSERT OR REPLACE INTO target VALUES (?, ?)"));
  return statement.bind(1, name).bind(2, facts).run();
}

base::Result<std::optional<std::string>> Store::target(const std::string& name) const {
  BELLJAR_ASSIGN(Statement statement, database_.prepare("SELECT facts FROM target WHERE name = ?"));
  statement.bind(1, name);
  BELLJAR_ASSIGN(const bool row, statement.step());
  if (!row) return std::nullopt;
  return statement.text(0);
}

base::Status Store::claim_attempt(const std::string& id, const std::string& request) const {
  BELLJAR_ASSIGN(Statement statement,
                 database_.prepare("INSERT INTO attempt VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1"));
  BELLJAR_ASSIGN(const bool taken, statement.bind(1, id).bind(2, request).step());
  if (taken) return {};
  return base::refuse("capture the request", id, "this attempt was captured before, refusing",
                      "each attempt has an id of its own");
}

base::Result<std::optional<std::string>> Store::attempt(const std::string& id) const {
  BELLJAR_ASSIGN(Statement statement, database_.prepare("SELECT request FROM attempt WHERE id = ?"));
  statement.bind(1, id);
  BELLJAR_ASSIGN(const bool row, statement.step());
  if (!row) return std::nullopt;
  return statement.text(0);
}

base::Status Store::trust(const FolderId& folder, const std::vector<PolicyFile>& files) const {
  BELLJAR_TRY(database_.execute("BEGIN IMMEDIATE"));
  BELLJAR_ASSIGN(Statement old, database_.prepare("DELETE FROM trusted_file WHERE folder = ?"));
  BELLJAR_TRY(old.bind(1, folder.path).run());
  BELLJAR_ASSIGN(Statement record, database_.prepare("INSERT OR REPLACE INTO trust VALUES (?, ?, ?)"));
  BELLJAR_TRY(record.bind(1, folder.path)
                  .bind(2, static_cast<int64_t>(folder.device))
                  .bind(3, static_cast<int64_t>(folder.inode))
                  .run());
  int64_t place = 0;
  for (const PolicyFile& file : files) {
    BELLJAR_ASSIGN(Statement entry, database_.prepare("INSERT INTO trusted_file VALUES (?, ?, ?, ?)"));
    BELLJAR_TRY(entry.bind(1, folder.path).bind(2, place++).bind(3, file.path).bind(4, file.text).run());
  }
  return database_.execute("COMMIT");
}

base::Result<Trust> Store::judge(const FolderId& folder, const std::vector<PolicyFile>& files) const {
  BELLJAR_ASSIGN(Statement record, database_.prepare("SELECT device, inode FROM trust WHERE folder = ?"));
  record.bind(1, folder.path);
  BELLJAR_ASSIGN(const bool known, record.step());
  if (!known) return Trust::kNever;
  if (static_cast<uint64_t>(record.integer(0)) != folder.device ||
      static_cast<uint64_t>(record.integer(1)) != folder.inode) {
    return Trust::kOtherFolder;
  }
  BELLJAR_ASSIGN(Statement entries,
                 database_.prepare("SELECT path, text FROM trusted_file WHERE folder = ? ORDER BY place"));
  entries.bind(1, folder.path);
  std::vector<PolicyFile> trusted;
  for (;;) {
    BELLJAR_ASSIGN(const bool row, entries.step());
    if (!row) break;
    trusted.push_back({entries.text(0), entries.text(1)});
  }
  return trusted == files ? Trust::kTrusted : Trust::kOtherContent;
}

base::Result<std::vector<std::string>> Store::trusted_folders() const {
  BELLJAR_ASSIGN(Statement statement, database_.prepare("SELECT folder FROM trust ORDER BY folder"));
  std::vector<std::string> out;
  for (;;) {
    BELLJAR_ASSIGN(const bool row, statement.step());
    if (!row) return out;
    out.push_back(statement.text(0));
  }
}

base::Result<bool> Store::distrust(const std::string& folder) const {
  BELLJAR_ASSIGN(Statement files, database_.prepare("DELETE FROM trusted_file WHERE folder = ?"));
  BELLJAR_TRY(files.bind(1, folder).run());
  BELLJAR_ASSIGN(Statement statement, database_.prepare("DELETE FROM trust WHERE folder = ? RETURNING 1"));
  return statement.bind(1, folder).step();
}

}  // namespace belljar::store
