#include "store/database.h"

#include <sqlite3.h>

#include <utility>

namespace belljar::store {
namespace {

std::unexpected<base::Error> failed(std::string_view operation, std::string_view subject, sqlite3* database) {
  const int code = sqlite3_errcode(database);
  const bool busy = code == SQLITE_BUSY || code == SQLITE_LOCKED;
  const bool broken = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return base::refuse(operation, subject, sqlite3_errmsg(database),
                      busy     ? "another belljar is writing: try again"
                      : broken ? "move the file away; projects and trusted files must then be named again"
                               : "");
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement& Statement::bind(int index, std::string_view text) {
  // A blob, so that every byte of a path or a policy comes back; text of SQLite ends at a NUL.
  sqlite3_bind_blob64(statement_.get(), index, text.data() == nullptr ? "" : text.data(), text.size(),
                      SQLITE_TRANSIENT);  // NOLINT(performance-no-int-to-ptr,cppcoreguidelines-pro-type-cstyle-cast)
  return *this;
}

Statement& Statement::bind(int index, int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

base::Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return failed("use the store", "", database_);
}

base::Status Statement::run() {
  BELLJAR_ASSIGN(const bool row, step());
  (void)row;
  return {};
}

std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

base::Result<Database> Database::open(const std::string& path, Access access) {
  sqlite3* handle = nullptr;
  const int flags = (access == Access::kWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOFOLLOW |
                    SQLITE_OPEN_PRIVATECACHE;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  std::unique_ptr<sqlite3, Close> database(handle);
  if (code != SQLITE_OK) return failed("open the store", path, handle);
  // Each transaction waits for the disk, and a person may start many launches at once.
  sqlite3_busy_timeout(handle, 15000);
  return Database(std::move(database));
}

base::Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  std::unique_ptr<sqlite3_stmt, Statement::Finalize> owned(statement);
  if (code != SQLITE_OK) return failed("use the store", "", database_.get());
  return Statement(database_.get(), std::move(owned));
}

base::Status Database::execute(const std::string& sql) const {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failed("use the store", "", database_.get());
  }
  return {};
}

}  // namespace belljar::store
