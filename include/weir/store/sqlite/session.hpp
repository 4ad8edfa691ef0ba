// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_SESSION_HPP
#define WEIR_STORE_SQLITE_SESSION_HPP

#include "weir/detail/config.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/detail/engine_way.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/sqlite/bell.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/host.hpp"
#include "weir/store/sqlite/options.hpp"
#include "weir/store/sqlite/schema.hpp"
#include "weir/store/sqlite/tables.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

/// What an application's transaction needs on its connection.
class sqlite_session {
 public:
  sqlite_session(sqlite3* db, sqlite_options const& options, sqlite_host host)
      : options_{options},
        db_{db},
        tables_{db_, options_, std::move(host)} {
    auto const* const name = sqlite3_db_filename(db, "main");
    if (name != nullptr && *name != '\0') bell_.hang(name);
  }

  template <class C>
  result<typename C::result> execute(C const& c, told_time at) {
    if (auto const ec = rule::validate(c)) return ec;
    if (sqlite3_txn_state(db_.handle(), "main") != SQLITE_TXN_WRITE) {
      return errc::not_in_transaction;
    }
    // A job that is too long for it would be taken for damaged, and be set aside.
    if (sqlite3_limit(db_.handle(), SQLITE_LIMIT_LENGTH, -1) < sqlite_longest) {
      return explained(errc::invalid_option,
                       "SQLITE_LIMIT_LENGTH of the connection is below 4 MiB (4194304)");
    }
    error_code ec;
    try {
      if (auto const missing = look()) return missing;
      // While it can be. A command that only reads must not need the right to write.
      if constexpr (!command::reads_only<C>) static_cast<void>(db_.prepared(sql::write_nothing));
      auto const name = "weir_command_" + std::to_string(++commands_);
      auto const release = "RELEASE " + name;
      auto const back = "ROLLBACK TO " + name;
      try {
        db_.run(("SAVEPOINT " + name).c_str());
      } catch (sqlite_failure const&) {  // it may be there all the same
        runs(release.c_str());
        throw;
      }
      try {
        tables_.forget();  // the application may have rolled back since
        (void)tables_.begin(true);
        auto answer = tables_.apply(c, tables_.now_or(at));
        tables_.finish();
        db_.run(release.c_str());
        if (tables_.gave()) bell_.ring();
        return answer;
      } catch (...) {
        undo(back.c_str(), release.c_str());
        throw;
      }
    } catch (sqlite_failure const& f) {
      ec = explained(to_error(f), f.what());
    } catch (std::bad_alloc const&) {
      ec = make_error_code(boost::system::errc::not_enough_memory);
    }
    return ec;
  }

 private:
  error_code look() {
    // They would get, or change, what is written to weir's tables.
    if (sqlite_query{db_, sql::temporary_objects}.next()) {
      return explained(errc::store_foreign, "the connection has a temporary table, view or trigger "
                                            "under weir's names");
    }
    auto const schema = schema_cookie(db_);
    if (looked_at_ == schema) return {};
    looked_at_.reset();
    auto const found = identify(db_, true);
    if (found.has_error()) return found.error();
    if (found->schema == 0) return errc::store_foreign;
    // Who uses the file with an older schema does not know what this version would write.
    if (found->schema != sqlite_schema) return errc::store_unavailable;
    looked_at_ = schema;
    return {};
  }

  /// Undoes the command, or else the transaction. What interrupts the command may interrupt this,
  /// too; but where it interrupts a statement that writes, SQLite rolls all back.
  void undo(char const* back, char const* release) noexcept {
    for (int tries = 3; db_.in_transaction() && tries != 0; --tries) {
      if (runs(back)) return static_cast<void>(runs(release));
      try {
        sqlite_run(db_, sql::write_nothing);
      } catch (...) {  // as is hoped for
      }
    }
    if (db_.in_transaction()) runs("ROLLBACK");  // the savepoint was released already
  }
  bool runs(char const* text) noexcept {
    return sqlite3_exec(db_.handle(), text, nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  // Of all sessions, and part of the savepoints' names: where SAVEPOINT or RELEASE is interrupted a
  // savepoint may stay, and no later command must be undone to there.
  static inline std::atomic<std::uint64_t> commands_{0};

  sqlite_options options_;
  sqlite_connection db_;
  sqlite_tables tables_;
  sqlite_bell bell_;
  std::optional<std::int64_t> looked_at_;  // the schema that was found to be weir's
};

WEIR_DECL std::shared_ptr<sqlite_session> make_sqlite_session(sqlite3* db,
                                                              sqlite_options const& options,
                                                              sqlite_host host) {
  return std::make_shared<sqlite_session>(db, options, std::move(host));
}

}  // namespace weir::detail

#endif
