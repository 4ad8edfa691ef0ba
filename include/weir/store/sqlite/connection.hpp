// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_CONNECTION_HPP
#define WEIR_STORE_SQLITE_CONNECTION_HPP

#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/time.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir::detail {

/// SQLite did not do what it was asked to do. Never leaves the store.
class sqlite_failure : public std::exception {
 public:
  /// @param committing it was a commit that failed
  explicit sqlite_failure(int extended_code, bool committing = false) noexcept
      : code_{extended_code},
        committing_{committing} {}

  [[nodiscard]] int extended() const noexcept { return code_; }
  [[nodiscard]] int primary() const noexcept { return code_ & 0xff; }
  [[nodiscard]] bool committing() const noexcept { return committing_; }
  [[nodiscard]] char const* what() const noexcept override { return sqlite3_errstr(code_); }

  /// Does somebody else have the file now?
  [[nodiscard]] bool busy() const noexcept {
    return primary() == SQLITE_BUSY || primary() == SQLITE_LOCKED || primary() == SQLITE_PROTOCOL;
  }

 private:
  int code_;
  bool committing_;
};

/// What a failure is called outside. A commit whose write or fsync failed is undone, but may come
/// back if the process ends before anything else is written.
[[nodiscard]] inline error_code to_error(sqlite_failure const& f) noexcept {
  switch (f.primary()) {
    case SQLITE_FULL: return errc::disk_full;
    case SQLITE_READONLY:
      return f.extended() == SQLITE_READONLY_DBMOVED ? errc::store_unavailable
                                                     : errc::store_read_only;
    case SQLITE_NOTADB: return errc::store_foreign;
    case SQLITE_NOMEM: return make_error_code(boost::system::errc::not_enough_memory);
    case SQLITE_IOERR:
      if (f.extended() == SQLITE_IOERR_CORRUPTFS) return errc::store_corrupt;
      return f.committing() ? errc::outcome_unknown : errc::store_unavailable;
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:       // a table that is not there
    case SQLITE_CONSTRAINT:  // two rows where one can be
    case SQLITE_MISMATCH: return errc::store_corrupt;
    default: return errc::store_unavailable;
  }
}

/// A connection and its prepared statements. Each is prepared once and known by where its text
/// stands, so texts are named constants. For one thread at a time.
class sqlite_connection {
 public:
  /// Opens a file, which is made if it is not there. Reads nothing of it yet.
  explicit sqlite_connection(std::string const& path) {
    constexpr int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    sqlite3* opened = nullptr;
    int const rc = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
    own_.reset(opened);
    if (rc != SQLITE_OK) throw sqlite_failure{rc};
    db_ = opened;
  }

  /// Uses an application's connection.
  explicit sqlite_connection(sqlite3* db) noexcept : db_{db} {}

  sqlite_connection(sqlite_connection const&) = delete;
  sqlite_connection& operator=(sqlite_connection const&) = delete;

  [[nodiscard]] sqlite3* handle() const noexcept { return db_; }

  /// Runs statements that have neither parameters nor answers.
  void run(char const* text) { check(sqlite3_exec(db_, text, nullptr, nullptr, nullptr)); }

  [[nodiscard]] sqlite3_stmt* prepared(char const* text) {
    auto& slot = statements_[text];
    if (!slot) {
      sqlite3_stmt* made = nullptr;
      check(sqlite3_prepare_v3(db_, text, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr));
      slot.reset(made);
    }
    return slot.get();
  }

  /// The rows that the latest statement has changed.
  [[nodiscard]] std::int64_t changes() const noexcept { return sqlite3_changes64(db_); }
  /// The rows that all statements together have changed.
  [[nodiscard]] std::int64_t total_changes() const noexcept { return sqlite3_total_changes64(db_); }
  [[nodiscard]] bool in_transaction() const noexcept { return sqlite3_get_autocommit(db_) == 0; }
  [[nodiscard]] std::int64_t last_rowid() const noexcept { return sqlite3_last_insert_rowid(db_); }

  /// Was the file deleted, or another put in its place? What is written to it now would be lost.
  [[nodiscard]] bool moved() const noexcept {
    int answer = 0;
    int const rc = sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &answer);
    return rc == SQLITE_OK && answer != 0;
  }

  void check(int rc) const {
    if (rc == SQLITE_OK) return;
    int const extended = sqlite3_extended_errcode(db_);
    throw sqlite_failure{(extended & 0xff) == (rc & 0xff) ? extended : rc};
  }

 private:
  struct closer {
    void operator()(sqlite3* db) const noexcept { sqlite3_close(db); }
  };
  struct finalizer {
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
  };

  std::unique_ptr<sqlite3, closer> own_;
  sqlite3* db_ = nullptr;
  boost::unordered_flat_map<char const*, std::unique_ptr<sqlite3_stmt, finalizer>> statements_;
};

/// One use of a prepared statement, its parameters in order. What they view must live as long.
class sqlite_query {
 public:
  template <class... Args>
  sqlite_query(sqlite_connection& db, char const* text, Args const&... args)
      : db_{db},
        statement_{db.prepared(text)} {
    int i = 0;
    try {
      (bind(++i, args), ...);
    } catch (...) {
      sqlite3_reset(statement_);
      throw;
    }
  }
  sqlite_query(sqlite_query const&) = delete;
  sqlite_query& operator=(sqlite_query const&) = delete;
  ~sqlite_query() { sqlite3_reset(statement_); }

  /// Goes to the next row. False: there is none.
  bool next() {
    int const rc = sqlite3_step(statement_);
    if (rc == SQLITE_ROW) return true;
    if (rc != SQLITE_DONE) db_.check(rc);
    return false;
  }

  [[nodiscard]] bool null(int column) const noexcept {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  [[nodiscard]] std::int64_t integer(int column) const noexcept {
    return sqlite3_column_int64(statement_, column);
  }
  template <class T>
  [[nodiscard]] T as(int column) const noexcept {
    return static_cast<T>(integer(column));
  }
  [[nodiscard]] time_point time(int column) const noexcept {
    return time_point{duration{integer(column)}};
  }
  /// Valid until the next row, or the end of the query.
  [[nodiscard]] std::string_view bytes(int column) const noexcept {
    auto const* const data = static_cast<char const*>(sqlite3_column_blob(statement_, column));
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  [[nodiscard]] std::string text(int column) const { return std::string{bytes(column)}; }
  [[nodiscard]] job_id id(int column) const {
    job_id out;
    auto const b = bytes(column);
    if (b.size() != sizeof(out)) throw sqlite_failure{SQLITE_CORRUPT};
    std::memcpy(&out, b.data(), sizeof(out));
    return out;
  }

 private:
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void bind(int i, T value) {
    db_.check(sqlite3_bind_int64(statement_, i, static_cast<std::int64_t>(value)));
  }
  void bind(int i, duration d) { bind(i, d.count()); }
  void bind(int i, time_point t) { bind(i, t.time_since_epoch()); }
  void bind(int i, std::nullopt_t) { db_.check(sqlite3_bind_null(statement_, i)); }
  void bind(int i, std::string_view bytes) {
    auto const* const data = bytes.data() == nullptr ? "" : bytes.data();  // null would be NULL
    db_.check(sqlite3_bind_blob64(statement_, i, data, bytes.size(), SQLITE_STATIC));
  }
  void bind(int i, std::string const& bytes) { bind(i, std::string_view{bytes}); }
  void bind(int i, job_id const& id) {
    bind(i, std::string_view{reinterpret_cast<char const*>(&id), sizeof(id)});
  }
  template <class T>
  void bind(int i, std::optional<T> const& value) {
    value ? bind(i, *value) : bind(i, std::nullopt);
  }

  sqlite_connection& db_;
  sqlite3_stmt* statement_;
};

/// Runs a statement that has no rows to give.
template <class... Args>
void sqlite_run(sqlite_connection& db, char const* text, Args const&... args) {
  sqlite_query q{db, text, args...};
  q.next();
}

}  // namespace weir::detail

#endif
