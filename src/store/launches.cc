// The launches of a store.
#include <utility>

#include "store/store.h"

namespace belljar::store {
namespace {

// Of a record as a whole: what its columns and its policy mean. Raised when an older Belljar would misread it.
constexpr int64_t kSchema = 1;

// Of launch_word.
enum class Word : uint8_t { kCommand, kAskedEnv };

base::Status put_words(const Database& database, int64_t launch, Word kind, const std::vector<std::string>& words) {
  int64_t place = 0;
  for (const std::string& word : words) {
    BELLJAR_ASSIGN(Statement entry, database.prepare("INSERT INTO launch_word VALUES (?, ?, ?, ?)"));
    entry.bind(1, launch).bind(2, static_cast<int64_t>(kind)).bind(3, place++).bind(4, word);
    BELLJAR_TRY(entry.run());
  }
  return {};
}

base::Result<std::vector<std::string>> words_of(const Database& database, int64_t launch, Word kind) {
  BELLJAR_ASSIGN(Statement entries,
                 database.prepare("SELECT text FROM launch_word WHERE launch = ? AND kind = ? ORDER BY place"));
  entries.bind(1, launch).bind(2, static_cast<int64_t>(kind));
  std::vector<std::string> out;
  for (;;) {
    BELLJAR_ASSIGN(const bool row, entries.step());
    if (!row) return out;
    out.push_back(entries.text(0));
  }
}

base::Result<int64_t> insert(const Database& database, const Launch& launch) {
  BELLJAR_ASSIGN(Statement old, database.prepare("DELETE FROM launch WHERE id = ?"));
  BELLJAR_TRY(old.bind(1, launch.id).run());
  BELLJAR_ASSIGN(Statement record,
                 database.prepare("INSERT INTO launch (id, schema, folder, device, inode, policy, chdir,"
                                  " target_folder) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number"));
  record.bind(1, launch.id)
      .bind(2, kSchema)
      .bind(3, launch.folder.path)
      .bind(4, static_cast<int64_t>(launch.folder.device))
      .bind(5, static_cast<int64_t>(launch.folder.inode))
      .bind(6, launch.policy)
      .bind(7, launch.chdir)
      .bind(8, launch.target_folder);
  BELLJAR_ASSIGN(const bool row, record.step());
  if (!row) return base::refuse("keep the launch", launch.id, "the store took no record");
  return record.integer(0);
}

base::Status forget_oldest(const Database& database, int64_t newest) {
  BELLJAR_ASSIGN(Statement old, database.prepare("DELETE FROM launch WHERE number <= ?"));
  BELLJAR_TRY(old.bind(1, newest - kKeptLaunches).run());
  return database.execute("DELETE FROM launch_word WHERE launch NOT IN (SELECT number FROM launch)");
}

}  // namespace

base::Status Store::keep_launch(const Launch& launch) const {
  BELLJAR_TRY(database_.execute("BEGIN IMMEDIATE"));
  BELLJAR_ASSIGN(const int64_t number, insert(database_, launch));
  BELLJAR_TRY(put_words(database_, number, Word::kCommand, launch.command));
  BELLJAR_TRY(put_words(database_, number, Word::kAskedEnv, launch.asked_env));
  BELLJAR_TRY(forget_oldest(database_, number));
  return database_.execute("COMMIT");
}

base::Result<std::optional<Launch>> Store::launch(const std::string& id) const {
  BELLJAR_ASSIGN(
      Statement record,
      database_.prepare("SELECT number, schema, folder, device, inode, policy, chdir, target_folder FROM launch"
                        " WHERE id = ?"));
  record.bind(1, id);
  BELLJAR_ASSIGN(const bool row, record.step());
  if (!row) return std::nullopt;
  if (record.integer(1) > kSchema) {
    return base::refuse("read the launch", id, "a newer belljar kept it, refusing", "use that one");
  }
  Launch out{id, {}, record.text(5), {}, record.text(6), {}, record.text(7)};
  out.folder = {record.text(2), static_cast<uint64_t>(record.integer(3)), static_cast<uint64_t>(record.integer(4))};
  BELLJAR_ASSIGN(out.command, words_of(database_, record.integer(0), Word::kCommand));
  BELLJAR_ASSIGN(out.asked_env, words_of(database_, record.integer(0), Word::kAskedEnv));
  return out;
}

}  // namespace belljar::store
