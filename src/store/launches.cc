// The launches that earlier versions kept in the store.
#include <utility>

#include "store/store.h"

namespace belljar::store {
namespace {

// Of a record as a whole: what its columns and its policy mean. Raised when an older Belljar would misread it.
constexpr int64_t kSchema = 1;

// Of launch_word.
enum class Word : uint8_t { kCommand, kAskedEnv };

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

}  // namespace

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
