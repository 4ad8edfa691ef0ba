// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_TRANSACTION_HPP
#define WEIR_STORE_POSTGRES_TRANSACTION_HPP

#include "weir/command/at.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/failure.hpp"
#include "weir/store/postgres/migration.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/store/postgres/socket.hpp"
#include "weir/store/postgres/step.hpp"
#include "weir/time.hpp"

#include <libpq-fe.h>

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
/// Others that want the same wait for a second, and are then `store_unavailable`. Of its queue an
/// enqueue locks nothing else: others go on enqueueing and claiming.
///
/// It must not outlive the connection. For one thread at a time.
class postgres_transaction {
 public:
  /// @param connection the application's, which blocks, and is in no pipeline
  /// @param options    as those of the stores; only `schema` and `shards` matter here
  explicit postgres_transaction(PGconn* connection, postgres_options const& options = {})
      : connection_{connection},
        schema_{options.schema},
        scope_{.shards = detail::bounded(options).shards, .own = false} {}

  /// Executes a command. What it answers holds if the transaction is committed.
  ///
  /// Errors: those of the command; `not_in_transaction`; `invalid_option` for a schema's name that
  /// is none, another number of shards, or a connection in pipeline or non-blocking mode;
  /// `schema_outdated`, `schema_too_new`; `store_read_only`, `disk_full`, `store_unavailable` and
  /// others as those of a store, and then nothing of the command was done; `outcome_unknown` when
  /// the connection is lost, and the transaction with it.
  template <class C>
    requires detail::postgres_step<C>
  result<typename C::result> execute(C const& c) {
    return execute_at(c, std::nullopt);
  }

  /// Executes a command as if at `a.time`.
  template <class C>
    requires detail::postgres_step<C>
  result<typename C::result> execute(command::at<C> const& a) {
    return execute_at(a.command, a.time);
  }

 private:
  template <class C>
  result<typename C::result> execute_at(C const& c, std::optional<time_point> at) {
    auto in = scope_;
    in.at = at;
    if (auto const ec = detail::refusal(c, in)) return ec;
    detail::postgres_result answer;
    if (auto const ec = run(detail::postgres_nouns::call(c, in), answer)) return ec;
    return detail::read_answer<C>(detail::postgres_note<C>{c}, detail::postgres_rows{answer.get()});
  }

  error_code run(detail::postgres_call const& call, detail::postgres_result& answer) {
    if (!detail::valid_schema(schema_)) return errc::invalid_option;
    if (PQpipelineStatus(connection_) != PQ_PIPELINE_OFF || PQisnonblocking(connection_) != 0) {
      return errc::invalid_option;
    }
    if (PQtransactionStatus(connection_) != PQTRANS_INTRANS) return errc::not_in_transaction;
    if (auto const ec = look()) return ec;
    if (PQenterPipelineMode(connection_) != 1) return errc::invalid_option;
    auto const text = call.text(schema_);
    bool sent = send("SAVEPOINT weir_command");
    sent = sent && call.with_parameters([&](int n, auto types, auto values, auto lengths,
                                            auto formats) {
      return PQsendQueryParams(connection_, text.c_str(), n, types, values, lengths, formats, 1);
    }) == 1;
    sent = sent && send("RELEASE SAVEPOINT weir_command") && PQpipelineSync(connection_) == 1;
    auto ec = sent ? read(answer) : make_error_code(errc::outcome_unknown);
    PQexitPipelineMode(connection_);
    if (PQstatus(connection_) != CONNECTION_OK) return errc::outcome_unknown;
    if (ec) {
      PQclear(PQexec(connection_, "ROLLBACK TO SAVEPOINT weir_command"));
      PQclear(PQexec(connection_, "RELEASE SAVEPOINT weir_command"));
    }
    return ec;
  }

  bool send(char const* text) {
    return PQsendQueryParams(connection_, text, 0, nullptr, nullptr, nullptr, nullptr, 1) == 1;
  }

  error_code read(detail::postgres_result& answer) {
    error_code ec;
    for (int nothing = 0; nothing < 2;) {
      detail::postgres_result r{PQgetResult(connection_)};
      if (!r) {
        ++nothing;
        continue;
      }
      nothing = 0;
      switch (PQresultStatus(r.get())) {
        case PGRES_PIPELINE_SYNC: return ec || answer ? ec : make_error_code(errc::store_corrupt);
        case PGRES_TUPLES_OK: answer = std::move(r); break;
        case PGRES_FATAL_ERROR:
          if (!ec) ec = detail::postgres_error(r.get());
          break;
        default: break;
      }
    }
    return errc::outcome_unknown;
  }

  /// Is the schema this version's? Asked once.
  error_code look() {
    if (looked_) return {};
    std::string text = "SAVEPOINT weir_command; ";
    detail::append_sql(text, "SELECT version, shards FROM ~.state", schema_);
    detail::postgres_result const r{PQexec(connection_, text.c_str())};
    error_code ec;
    if (PQresultStatus(r.get()) != PGRES_TUPLES_OK) {
      ec = detail::postgres_error(r.get());
    } else if (PQntuples(r.get()) != 1) {
      ec = errc::store_foreign;
    } else {
      auto const found = std::stol(PQgetvalue(r.get(), 0, 0));
      if (found > long{postgres_schema_version}) ec = errc::schema_too_new;
      if (found < long{postgres_schema_version}) ec = errc::schema_outdated;
      if (std::stol(PQgetvalue(r.get(), 0, 1)) != long{scope_.shards}) ec = errc::invalid_option;
    }
    PQclear(PQexec(connection_, "ROLLBACK TO SAVEPOINT weir_command"));
    PQclear(PQexec(connection_, "RELEASE SAVEPOINT weir_command"));
    looked_ = !ec;
    return ec;
  }

  PGconn* connection_;
  std::string schema_;
  detail::postgres_scope scope_;
  bool looked_ = false;
};

}  // namespace weir

#endif
