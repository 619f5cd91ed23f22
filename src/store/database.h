// SQLite as values and errors of this project.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace belljar::store {

// One statement, prepared and bound. Lives shorter than its Database.
class Statement {
 public:
  // Parameters count from 1. Text and bytes are copied.
  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, int64_t value);

  // True with a row to read, false at the end.
  [[nodiscard]] base::Result<bool> step();
  // Runs a statement that has no rows to give.
  [[nodiscard]] base::Status run();

  // Of the current row, columns from 0.
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] int64_t integer(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, std::unique_ptr<sqlite3_stmt, Finalize> statement)
      : database_(database), statement_(std::move(statement)) {}

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// An open database file. Waits up to two seconds for another process that writes.
class Database {
 public:
  enum class Access : uint8_t { kRead, kWrite };

  // The file must exist; a link in its place is refused (SQLITE_OPEN_NOFOLLOW, SQLite 3.31).
  [[nodiscard]] static base::Result<Database> open(const std::string& path, Access access);

  [[nodiscard]] base::Result<Statement> prepare(std::string_view sql) const;
  // Statements without parameters and rows, separated by `;`.
  [[nodiscard]] base::Status execute(const std::string& sql) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(std::unique_ptr<sqlite3, Close> database) : database_(std::move(database)) {}

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace belljar::store
