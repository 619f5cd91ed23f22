// The tasks of a store, and the pool of memory that their storage is taken from.
#include <utility>

#include "policy/values.h"
#include "store/store.h"

namespace belljar::store {
namespace {

constexpr const char* kColumns = "SELECT id, state, project, engine, bytes, clone, storage, made FROM task";

Task read(const Statement& row) {
  return {.id = row.text(0),
          .state = static_cast<TaskState>(row.integer(1)),
          .project = row.text(2),
          .engine = row.text(3),
          .bytes = static_cast<uint64_t>(row.integer(4)),
          .clone = row.text(5),
          .storage = row.text(6),
          .made = row.integer(7)};
}

base::Status put(const Database& database, const Task& task) {
  BELLJAR_ASSIGN(Statement record, database.prepare("INSERT OR REPLACE INTO task VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  return record.bind(1, task.id)
      .bind(2, static_cast<int64_t>(task.state))
      .bind(3, task.project)
      .bind(4, task.engine)
      .bind(5, static_cast<int64_t>(task.bytes))
      .bind(6, task.clone)
      .bind(7, task.storage)
      .bind(8, task.made)
      .run();
}

base::Result<uint64_t> taken_by_others(const Database& database, const std::string& id) {
  BELLJAR_ASSIGN(Statement sum, database.prepare("SELECT coalesce(sum(bytes), 0) FROM task WHERE id != ?"));
  sum.bind(1, id);
  BELLJAR_ASSIGN(const bool row, sum.step());
  return row ? static_cast<uint64_t>(sum.integer(0)) : 0;
}

base::Status admit(const Database& database, const Task& task, uint64_t pool) {
  BELLJAR_ASSIGN(const uint64_t taken, taken_by_others(database, task.id));
  if (task.bytes > pool || taken > pool - task.bytes) {
    return base::refuse("admit the task", task.id,
                        "it takes " + policy::size_text(task.bytes) + " and others have " + policy::size_text(taken) +
                            ", which is more than the pool's " + policy::size_text(pool) + ", refusing",
                        "remove a task, make it smaller, or raise the pool: belljar task pool SIZE");
  }
  return put(database, task);
}

}  // namespace

base::Status Store::admit_task(const Task& task, uint64_t default_pool) const {
  BELLJAR_TRY(database_.execute("BEGIN IMMEDIATE"));
  auto status = [&]() -> base::Status {
    BELLJAR_ASSIGN(const std::optional<uint64_t> set, pool());
    return admit(database_, task, set.value_or(default_pool));
  }();
  if (status) return database_.execute("COMMIT");
  (void)database_.execute("ROLLBACK");
  return status;
}

base::Status Store::update_task(const Task& task) const {
  return put(database_, task);
}

base::Result<std::optional<Task>> Store::task(const std::string& id) const {
  BELLJAR_ASSIGN(Statement record, database_.prepare(std::string(kColumns) + " WHERE id = ?"));
  record.bind(1, id);
  BELLJAR_ASSIGN(const bool row, record.step());
  if (!row) return std::nullopt;
  return read(record);
}

base::Result<std::vector<Task>> Store::tasks() const {
  BELLJAR_ASSIGN(Statement records, database_.prepare(std::string(kColumns) + " ORDER BY made, id"));
  std::vector<Task> out;
  for (;;) {
    BELLJAR_ASSIGN(const bool row, records.step());
    if (!row) return out;
    out.push_back(read(records));
  }
}

base::Status Store::remove_task(const std::string& id) const {
  BELLJAR_ASSIGN(Statement record, database_.prepare("DELETE FROM task WHERE id = ?"));
  return record.bind(1, id).run();
}

base::Status Store::set_pool(uint64_t bytes) const {
  BELLJAR_ASSIGN(Statement record, database_.prepare("INSERT OR REPLACE INTO task_pool VALUES (1, ?)"));
  return record.bind(1, static_cast<int64_t>(bytes)).run();
}

base::Result<std::optional<uint64_t>> Store::pool() const {
  BELLJAR_ASSIGN(Statement record, database_.prepare("SELECT bytes FROM task_pool"));
  BELLJAR_ASSIGN(const bool row, record.step());
  if (!row) return std::nullopt;
  return static_cast<uint64_t>(record.integer(0));
}

}  // namespace belljar::store
