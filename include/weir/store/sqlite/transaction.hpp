// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_TRANSACTION_HPP
#define WEIR_STORE_SQLITE_TRANSACTION_HPP

#include "weir/clock/system.hpp"
#include "weir/command/at.hpp"
#include "weir/concept.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/error.hpp"
#include "weir/store/sqlite/host.hpp"
#include "weir/store/sqlite/options.hpp"

#include <memory>
#include <optional>

struct sqlite3;

namespace weir {

namespace detail {

class sqlite_session;

[[nodiscard]] std::shared_ptr<sqlite_session> make_sqlite_session(sqlite3* db,
                                                                  sqlite_options const& options,
                                                                  sqlite_host host);

}  // namespace detail

/// Executes commands inside an application's own SQLite transaction, on its own connection to the
/// file that a `sqlite_store` uses: what the application writes and what it enqueues are committed
/// together, or rolled back together.
///
///     sqlite3_exec(db, "BEGIN IMMEDIATE", ...);
///     ... the application's statements ...
///     {
///       weir::sqlite_transaction tx{db};
///       auto const done = tx.execute(weir::command::enqueue_jobs{.queue = "mail", .jobs = jobs});
///       if (done.has_error()) ...  // nothing of this command was done; the rest still stands
///     }
///     sqlite3_exec(db, "COMMIT", ...);
///
/// Nothing is begun, committed or rolled back here but a savepoint around each command. The
/// transaction must have begun IMMEDIATE (or be EXCLUSIVE): one that began otherwise, and then has
/// to write, may be refused by SQLite with the application's own work in it. It holds the file's
/// only write lock, so it should be short: every store on the file waits for it.
///
/// The file may be damaged, or made to harm its reader: its schema must be weir's own, without any
/// trigger, view or index that others have put on weir's tables. Nor may the connection have a
/// temporary table, view, index or trigger whose name begins with `weir_`, or that is of a table
/// whose name does so, in upper case or lower, also where that table is an attached file's. What is
/// read is checked, as by the store. The connection's settings are the application's: where the
/// file is not to be trusted, set `SQLITE_DBCONFIG_DEFENSIVE`, switch
/// `SQLITE_DBCONFIG_TRUSTED_SCHEMA` off and `PRAGMA cell_size_check` on, and let no value be longer
/// than 4 MiB (`SQLITE_LIMIT_LENGTH`), which is the least that weir needs.
///
/// It must not outlive the connection, whose statements it keeps prepared, and leaves none behind.
/// For one thread at a time, and not while the connection is used by another.
template <host_clock Clock = system_clock>
class basic_sqlite_transaction {
 public:
  /// @param db      the application's connection; its main database is the store's file
  /// @param options bounds, as those of the stores on the file; the others do not matter here
  /// @param clock   by which the file's time goes, as for the stores on the file
  explicit basic_sqlite_transaction(sqlite3* db, sqlite_options const& options = {},
                                    Clock const& clock = Clock{})
      : session_{detail::make_sqlite_session(db, detail::bounded(options),
                                             detail::sqlite_host::of(clock))} {}
  basic_sqlite_transaction(basic_sqlite_transaction const&) = delete;
  basic_sqlite_transaction& operator=(basic_sqlite_transaction const&) = delete;

  /// Executes a command, in the calling thread. What it answers holds if the transaction is
  /// committed.
  ///
  /// Errors: those of the command; `not_in_transaction`; `invalid_option` where the connection
  /// takes no values of 4 MiB; `store_foreign` when the file has no store in it or weir's tables
  /// are not as weir made them, `schema_too_new`, `schema_outdated` and `store_corrupt`;
  /// `permission_denied` by the connection's authorizer (also to read, where nobody has used the
  /// file since the host was started: then its time begins); `operation_aborted` by its progress
  /// handler or `sqlite3_interrupt`; `disk_full` and `store_unavailable`. After the last three the
  /// whole transaction may have been rolled back (`sqlite3_get_autocommit` tells).
  template <class C>
    requires detail::engine_step<C>
  [[nodiscard]] result<typename C::result> execute(C const& c) {
    return execute_at(c, std::nullopt);
  }

  /// Executes a command as if at `a.time`.
  template <class C>
    requires detail::engine_step<C>
  [[nodiscard]] result<typename C::result> execute(command::at<C> const& a) {
    return execute_at(a.command, a.time);
  }

 private:
  template <class C>
  result<typename C::result> execute_at(C const& c, detail::told_time at) {
    return detail::step_way<detail::sqlite_session, C, detail::told_time>::execute(*session_, c,
                                                                                   at);
  }

  std::shared_ptr<detail::sqlite_session> session_;  // alone: not a unique_ptr, for it is
                                                     // incomplete
};

/// By the host's clocks.
using sqlite_transaction = basic_sqlite_transaction<>;

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/store/sqlite/session.hpp"
#endif

#endif
