// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_CONNECTION_HPP
#define WEIR_STORE_SQLITE_CONNECTION_HPP

#if !__has_include(<sqlite3.h>)
#error "weir/store/sqlite.hpp needs SQLite 3.37 or later: sqlite3.h is not on the include path"
#endif

#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/time.hpp"

#include <boost/asio/error.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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

  /// Has the disk no room, or the file reached its limit?
  [[nodiscard]] bool full() const noexcept {
    return primary() == SQLITE_FULL || code_ == SQLITE_IOERR_SHMSIZE;
  }

  /// Does somebody else have the file now?
  [[nodiscard]] bool busy() const noexcept {
    return primary() == SQLITE_BUSY || primary() == SQLITE_LOCKED || primary() == SQLITE_PROTOCOL;
  }

 private:
  int code_;
  bool committing_;
};

/// A record in the file is not as weir writes it. The connection and the transaction are as good as
/// before.
class sqlite_damage : public sqlite_failure {
 public:
  sqlite_damage() noexcept : sqlite_failure{SQLITE_CORRUPT} {}
};

/// What a failure is called outside. A commit whose write or fsync failed is undone, but may come
/// back if the process ends before anything else is written.
[[nodiscard]] inline error_code to_error(sqlite_failure const& f) noexcept {
  if (f.full()) return errc::disk_full;
  switch (f.primary()) {
    case SQLITE_READONLY:
      return f.extended() == SQLITE_READONLY_DBMOVED ? errc::store_unavailable
                                                     : errc::store_read_only;
    case SQLITE_NOTADB: return errc::store_foreign;
    case SQLITE_INTERRUPT: return boost::asio::error::operation_aborted;  // by the application
    case SQLITE_NOMEM: return make_error_code(boost::system::errc::not_enough_memory);
    case SQLITE_IOERR:
      if (f.extended() == SQLITE_IOERR_CORRUPTFS) return errc::store_corrupt;
      return f.committing() ? errc::outcome_unknown : errc::store_unavailable;
    case SQLITE_PERM:
    case SQLITE_AUTH: return errc::permission_denied;
    case SQLITE_CORRUPT:
    case SQLITE_TOOBIG:      // weir writes nothing that large
    case SQLITE_ERROR:       // a table that is not there
    case SQLITE_CONSTRAINT:  // two rows where one can be
    case SQLITE_MISMATCH: return errc::store_corrupt;
    default: return errc::store_unavailable;
  }
}

/// More than the longest of weir's rows.
inline constexpr int sqlite_longest = 4 << 20;

/// A connection and its prepared statements. Each is prepared once and known by where its text
/// stands, so texts are named constants. For one thread at a time.
class sqlite_connection {
 public:
  /// Opens a file, which is made if it is not there. Reads nothing of it yet.
  explicit sqlite_connection(std::string const& path) {
    // A cache that is shared would count the commits of others as this one's own.
    constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                          SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    sqlite3* opened = nullptr;
    int const rc = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
    own_.reset(opened);
    if (rc != SQLITE_OK) throw sqlite_failure{rc};
    db_ = opened;
    distrust();
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

  /// Changes with every commit of anybody. As the current transaction sees it, once it has read.
  [[nodiscard]] unsigned version() const noexcept {
    unsigned answer = 0;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_DATA_VERSION, &answer);
    return answer;
  }

  /// Was the file deleted, or another put in its place? What is written to it now would be lost.
  [[nodiscard]] bool moved() const noexcept {
    int answer = 0;
    int const rc = sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &answer);
    return rc == SQLITE_OK && answer != 0;
  }

  void check(int rc) const {
    if (rc == SQLITE_OK) return;
    // A row that is too large to be weir's, or in which something is that must not be written back.
    if (rc == SQLITE_TOOBIG || (rc & 0xff) == SQLITE_CONSTRAINT) throw sqlite_damage{};
    int const extended = sqlite3_extended_errcode(db_);
    throw sqlite_failure{(extended & 0xff) == (rc & 0xff) ? extended : rc};
  }

 private:
  /// The file may be damaged, or made to harm its reader: nothing of its schema is run, its checks
  /// not either, and a row takes no more memory than the largest of weir's.
  void distrust() noexcept {
    for (int const off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                          SQLITE_DBCONFIG_ENABLE_FKEY, SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
      sqlite3_db_config(db_, off, 0, nullptr);
    }
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, sqlite_longest);
    sqlite3_exec(db_, "PRAGMA cell_size_check = ON; PRAGMA ignore_check_constraints = ON", nullptr,
                 nullptr, nullptr);
  }

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

/// A value of the file, of whichever type it is.
class sqlite_value {
 public:
  explicit sqlite_value(sqlite3_value const* of) : copy_{sqlite3_value_dup(of)} {
    if (!copy_) throw std::bad_alloc{};
  }
  [[nodiscard]] sqlite3_value const* get() const noexcept { return copy_.get(); }
  [[nodiscard]] int type() const noexcept { return sqlite3_value_type(copy_.get()); }
  [[nodiscard]] std::int64_t integer() const noexcept { return sqlite3_value_int64(copy_.get()); }
  /// As bytes; a number's are its digits.
  [[nodiscard]] std::string_view bytes() const noexcept {
    auto const* const data = static_cast<char const*>(sqlite3_value_blob(copy_.get()));
    return {data, static_cast<std::size_t>(sqlite3_value_bytes(copy_.get()))};
  }

 private:
  struct freer {
    void operator()(sqlite3_value* v) const noexcept { sqlite3_value_free(v); }
  };
  std::unique_ptr<sqlite3_value, freer> copy_;
};

/// The most that weir counts to. Above it is damage; from it on there is room for what is counted
/// until the file is read again.
inline constexpr std::int64_t sqlite_most = std::int64_t{1} << 62;

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

  // A column may hold anything, however the table was declared. These throw `sqlite_damage` where
  // it is not what is asked for.

  [[nodiscard]] bool null(int column) const noexcept { return type(column) == SQLITE_NULL; }
  [[nodiscard]] std::int64_t integer(int column) const {
    if (type(column) != SQLITE_INTEGER) throw sqlite_damage{};
    return sqlite3_column_int64(statement_, column);
  }
  /// From `least` to `most`.
  template <class T>
  [[nodiscard]] T within(int column, std::int64_t least, std::int64_t most) const {
    auto const value = integer(column);
    if (value < least || value > most) throw sqlite_damage{};
    return static_cast<T>(value);
  }
  [[nodiscard]] std::uint64_t count(int column) const {
    return within<std::uint64_t>(column, 0, sqlite_most);
  }
  [[nodiscard]] time_point time(int column) const { return time_point{duration{integer(column)}}; }
  [[nodiscard]] std::optional<time_point> time_or_null(int column) const {
    if (null(column)) return std::nullopt;
    return time(column);
  }
  /// `least` to `most` of them. Valid until the next row, or the end of the query.
  [[nodiscard]] std::string_view bytes(int column, std::size_t least, std::size_t most) const {
    if (type(column) != SQLITE_BLOB) throw sqlite_damage{};
    auto const out = anything(column);
    if (out.size() < least || out.size() > most) throw sqlite_damage{};
    return out;
  }
  [[nodiscard]] std::string text(int column, std::size_t least, std::size_t most) const {
    return std::string{bytes(column, least, most)};
  }
  [[nodiscard]] job_id id(int column) const {
    job_id out;
    std::memcpy(&out, bytes(column, sizeof(out), sizeof(out)).data(), sizeof(out));
    return out;
  }

  // These take whatever is there.

  [[nodiscard]] int type(int column) const noexcept {
    return sqlite3_column_type(statement_, column);
  }
  [[nodiscard]] sqlite_value value(int column) const {
    return sqlite_value{sqlite3_column_value(statement_, column)};
  }
  /// As bytes. Valid until the next row, or the end of the query.
  [[nodiscard]] std::string_view anything(int column) const noexcept {
    auto const* const data = static_cast<char const*>(sqlite3_column_blob(statement_, column));
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void bind(int i, T value) {
    db_.check(sqlite3_bind_int64(statement_, i, static_cast<std::int64_t>(value)));
  }
  void bind(int i, duration d) { bind(i, d.count()); }
  void bind(int i, time_point t) { bind(i, t.time_since_epoch()); }
  void bind(int i, sqlite_value const& v) { db_.check(sqlite3_bind_value(statement_, i, v.get())); }
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

/// The first row of a query, as it stands there.
template <std::size_t Columns, class... Args>
[[nodiscard]] std::optional<std::array<sqlite_value, Columns>> sqlite_first(sqlite_connection& db,
                                                                            char const* text,
                                                                            Args const&... args) {
  sqlite_query q{db, text, args...};
  if (!q.next()) return std::nullopt;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<sqlite_value, Columns>{q.value(static_cast<int>(I))...};
  }(std::make_index_sequence<Columns>{});
}

/// Counts down, and stops at 0: what was read may have been too low.
constexpr void sqlite_decrease(std::uint64_t& count, std::uint64_t by = 1) noexcept {
  count -= std::min(count, by);
}

}  // namespace weir::detail

#endif
