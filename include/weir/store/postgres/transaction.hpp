// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_TRANSACTION_HPP
#define WEIR_STORE_POSTGRES_TRANSACTION_HPP

#include "weir/command/at.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/transaction_way.hpp"

#include <optional>
#include <string>

namespace weir {

/// Executes commands inside an application's own PostgreSQL transaction, on its own connection to
/// the database that a `postgres_store` uses: what the application writes and what it enqueues are
/// committed together, or rolled back together.
///
///     PQexec(connection, "BEGIN");
///     ... the application's statements ...
///     weir::postgres_transaction tx{connection};
///     auto const done = tx.execute(weir::command::enqueue_jobs{.queue = "mail", .jobs = jobs});
///     if (done.has_error()) ...  // nothing of this command was done; the rest still stands
///     PQexec(connection, "COMMIT");
///
/// Nothing is begun, committed or rolled back here but a savepoint around each command; a command
/// is one round trip, for which the calling thread waits. In a transaction that is not READ
/// COMMITTED, PostgreSQL may refuse a command, or the commit, because of what others have committed
/// meanwhile: then it is the application's to run the transaction again.
///
/// A command keeps what it touched locked until the transaction ends, as a statement does: a
/// unique key that was enqueued, a key's lock, permits or bucket, a job that was claimed or ended.
/// Others that want the same wait for some seconds, and are then `store_unavailable`. Of its queue
/// an enqueue locks nothing else: others go on enqueueing and claiming.
///
/// It is to be ended by COMMIT or ROLLBACK: PREPARE TRANSACTION fails, and rolls it back, whenever
/// a command of it has told somebody who waits, since PostgreSQL prepares none that has notified.
///
/// It must not outlive the connection. For one thread at a time.
class postgres_transaction {
 public:
  /// @param connection a `PGconn`, the application's, which blocks, and is in no pipeline
  /// @param options    as those of the stores; only `schema` and `shards` matter here
  explicit postgres_transaction(pg_conn* connection, postgres_options const& options = {})
      : session_{connection, std::string{options.schema}, detail::bounded(options).shards} {}

  /// Executes a command. What it answers holds if the transaction is committed.
  ///
  /// Errors: those of the command; `not_in_transaction`; `invalid_option` for a schema's name that
  /// is none, another number of shards, or a connection in pipeline or non-blocking mode;
  /// `schema_outdated`, `schema_too_new`; `store_read_only`, `disk_full`, `store_unavailable` and
  /// others as those of a store, and then nothing of the command was done; `outcome_unknown` when
  /// the connection is lost, and the transaction with it.
  template <class C>
    requires detail::engine_step<C>
  [[nodiscard]] result<typename C::result> execute(C const& c) {
    return detail::postgres_transaction_way<C>::execute(session_, c, std::nullopt);
  }

  /// Executes a command as if at `a.time`.
  template <class C>
    requires detail::engine_step<C>
  [[nodiscard]] result<typename C::result> execute(command::at<C> const& a) {
    return detail::postgres_transaction_way<C>::execute(session_, a.command, a.time);
  }

 private:
  detail::postgres_session session_;
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/store/postgres/transaction_steps.hpp"
#endif

#endif
