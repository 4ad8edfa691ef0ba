// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_HPP
#define WEIR_STORE_POSTGRES_HPP

#include "weir/clock/system.hpp"
#include "weir/command/list.hpp"
#include "weir/detail/config.hpp"
#include "weir/engine_store.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/store/postgres/migration.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/transaction.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace weir {

namespace detail {

class postgres_engine;
[[nodiscard]] std::shared_ptr<postgres_engine> make_postgres_engine(
    boost::asio::any_io_executor const& executor, std::string conninfo,
    postgres_options const& options);
void migrate_postgres(postgres_engine& engine,
                      boost::asio::any_completion_handler<void(error_code)> handler);
void close_engine(postgres_engine& engine);
[[nodiscard]] store_failure last_failure_of(postgres_engine const& engine);

}  // namespace detail

/// All four nouns in a PostgreSQL database, version 14 or later: durable, shared by any number of
/// hosts, and written in the application's own transactions where that is wanted
/// (`postgres_transaction`).
///
///     weir::postgres_store store{io.get_executor(), "host=db dbname=app sslmode=verify-full"};
///     co_await store.async_migrate();  // once, or run postgres_migration_sql(options) otherwise
///     weir::job_queue queue{store, ...};
///
/// A handle: copies share the state, and any number of threads may use them at once. A command is
/// one round trip, and one transaction, READ COMMITTED whatever the database's default is. No
/// thread is ever blocked: hosts' names are looked up by Asio's resolver, all but that of a
/// `service` in the connection string, which only libpq knows. Commands of many callers share a few
/// connections, which are made as they are needed, and made anew with a backoff once they are
/// lost. Nothing keeps an executor busy while no command is under way. But after the last wait
/// ends, the store listens for 100 ms more, and keeps the executor busy for so long.
///
/// Commands that are issued together, or while two such calls are under way, go as one call, in one
/// transaction: numbered dequeues and completions of any queues; other dequeues, and enqueues, of
/// one queue. None fails because of another: a call that is refused is tried again command by
/// command. None waits for a time to pass, unless the calls under way are held up (by an
/// application's transaction, say); then for 40 ms at most.
///
/// The connection string is libpq's, and so are its TLS modes: `sslmode=verify-full` checks who the
/// server is, `require` does not, and the default, `prefer`, does not even insist on TLS. A pooler
/// may stand in between that assigns connections to transactions: nothing is kept in a session then
/// (prepared statements are, where the server itself answers). It does not pass notifications on,
/// so `listen_conninfo` then names the server itself.
///
/// The store's time is the server's. A fence grows with it and with a sequence, so that it grows
/// across restarts, and across a fail-over to a standby that has lost the last commits, if that
/// takes a fifth of a second, and the hosts' clocks agree to the time that it takes. What was
/// acknowledged is as safe as the server's `synchronous_commit` makes it.
///
/// Errors of every command, besides its own: `store_unavailable` when there is no connection to be
/// had, or when the server refused the command, or had to wait for an application's transaction for
/// longer than a second: it was not executed; `outcome_unknown` when the connection was lost,
/// or was silent for `command_timeout`, after the command left: it was executed, or not;
/// `schema_outdated` when the database has to be migrated, `schema_too_new`, `store_foreign` when
/// the schema is a stranger's; `invalid_option` when it has another number of shards, or what was
/// given is no connection string; `disk_full`, `store_read_only`, `store_corrupt`,
/// `permission_denied`; `not_enough_memory`, when the server is out of memory or of locks;
/// `store_full`, when `max_pending` commands wait; `closed`.
///
/// A command completes once it is committed. One that is cancelled completes at once: it was not
/// executed if it had not been sent yet; otherwise it was executed, or will be, or not. A store
/// that has executed a command at a given time (`command::at`) from then on removes nothing that
/// has expired by itself: the server's clock does not know which times were given. After `close`,
/// commands that wait for a connection end with `operation_aborted`, what was sent is still
/// answered, and then the connections are closed. Waits for hints end with the last handle, too.
///
/// Known: a look for a queue's first job goes through the index entries of jobs that are over and
/// not vacuumed yet. The tables ask for a vacuum after thousands of those, so `autovacuum_naptime`
/// bounds them: a minute by default; where thousands of jobs are done a second, a few seconds do
/// better.
///
/// Known: a queue's record of what came in, a row or two for each name, is kept until the queue has
/// nothing left, is neither paused nor held, and was left alone for two days; read_queue_stats
/// counts the leases of its queue. There is no bound but the disk.
class postgres_store : public engine_store<postgres_store, detail::postgres_engine> {
 public:
  using clock_type = system_clock;  ///< measures waits; what time it is, the server says

  /// Connects to nothing yet.
  ///
  /// @param executor of the connections, and of operations without an executor of their own
  /// @param conninfo as libpq has it: key=value pairs, or a postgresql:// URI
  /// @param options  bounds and times; held within their ranges
  explicit postgres_store(executor_type executor, std::string conninfo,
                          postgres_options const& options = {})
      : engine_store{executor, detail::bounded(options).shards,
                     detail::make_postgres_engine(executor, std::move(conninfo), options)} {}

  /// By which waits are measured.
  [[nodiscard]] clock_type const& get_clock() const noexcept { return clock_; }

  /// Brings the database to this version's schema, in one transaction, on a connection of its own;
  /// does nothing where it is that already. Several at once do it once. It may take longer than
  /// `command_timeout`. Completes with `void(error_code)`.
  ///
  /// Errors: `store_unavailable`; `schema_too_new`; `schema_outdated` for a schema of a version
  /// that was never released; `invalid_option` for another number of shards, or a schema's name
  /// that is none; `store_foreign` for a schema that belongs to a stranger
  /// (`postgres_migration_sql`); `permission_denied`, `disk_full`, `store_read_only`,
  /// `store_corrupt`, `not_enough_memory` as of a command; `outcome_unknown` when the connection
  /// was lost: ask again. Cancelling it (any kind) completes it with `operation_aborted`; it is
  /// done then, or not, or still going to be.
  template <class Token = boost::asio::deferred_t>
  WEIR_OPERATION auto async_migrate(Token&& token = {}) const {
    return async_start(&detail::migrate_postgres, std::forward<Token>(token));
  }

 private:
  [[no_unique_address]] system_clock clock_;
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/store/postgres/engine.hpp"
#endif

#endif
