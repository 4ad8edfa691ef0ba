// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_HPP
#define WEIR_STORE_POSTGRES_HPP

#if !__has_include(<libpq-fe.h>)
#error "weir/store/postgres.hpp needs libpq 14 or later: libpq-fe.h is not on the include path"
#endif

#include "weir/clock/system.hpp"
#include "weir/command/at.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/parking.hpp"
#include "weir/error.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/migration.hpp"
#include "weir/store/postgres/migrator.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/pool.hpp"
#include "weir/store/postgres/request.hpp"
#include "weir/store/postgres/step.hpp"
#include "weir/store/postgres/transaction.hpp"
#include "weir/store/postgres/waits.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/dispatch.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace weir {

/// All four nouns in a PostgreSQL database, version 14 or later: durable, shared by any number of
/// hosts, and written in the application's own transactions where that is wanted
/// (`postgres_transaction`).
///
///     weir::postgres_store store{io.get_executor(), "host=db dbname=app sslmode=verify-full"};
///     co_await store.async_migrate();  // once, or run postgres_migration_sql() by other means
///     weir::job_queue queue{store, ...};
///
/// A handle: copies share the state, and any number of threads may use them at once. A command is
/// one round trip, and one transaction, READ COMMITTED whatever the database's default is. No
/// thread is ever blocked: hosts' names are looked up by Asio's resolver, all but that of a
/// `service` in the connection string, which only libpq knows. Commands of many callers share a few
/// connections, which are made as they are needed, and made anew with a backoff once they are
/// lost; nothing keeps an executor busy while no command is under way, but, for a tenth of a
/// second, what listened for one that waited.
///
/// What is issued together goes together: dequeues without a sequence, completions, and enqueues
/// without unique keys, of one queue each, are made as one call, in one transaction, and so is what
/// is issued while two such calls are under way. None fails because of another: a call that is
/// refused is tried again command by command. None waits for a time to pass, unless those calls are
/// held up, by an application's transaction, say; then for 40 ms at most.
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
/// `schema_outdated` when the database has to be migrated, `schema_too_new`; `invalid_option` when
/// it has another number of shards; `disk_full`, `store_read_only`, `store_corrupt`,
/// `permission_denied`; `not_enough_memory`, when the server is out of memory or of locks;
/// `store_full`, when `max_pending` commands wait; `closed`.
///
/// Known: who looks for a queue's first job goes through the index entries of jobs that are over
/// and not vacuumed yet. The tables ask for a vacuum after thousands of those, so it is
/// `autovacuum_naptime` that bounds them: a minute, unless it is set; where thousands of jobs are
/// done a second, a few seconds do better.
///
/// Known: a queue's record of what came in, and whether it is paused, is kept for good, a row or
/// two for each name; read_queue_stats counts the leases of its queue. There is no bound but the
/// disk.
class postgres_store {
 public:
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  using clock_type = system_clock;  ///< measures waits; what time it is, the server says

  /// Connects to nothing yet.
  ///
  /// @param executor of the connections, and of operations without an executor of their own
  /// @param conninfo as libpq has it: key=value pairs, or a postgresql:// URI
  /// @param options  bounds and times; held within their ranges
  explicit postgres_store(executor_type executor, std::string conninfo,
                          postgres_options const& options = {})
      : executor_{std::move(executor)},
        pool_{std::make_shared<detail::postgres_pool>(executor_, std::move(conninfo), options)},
        waits_{detail::postgres_waits::shared_by_handles(std::make_shared<detail::postgres_waits>(
            pool_, options.listen_conninfo.empty() ? pool_->conninfo()
                                                   : std::string{options.listen_conninfo}))} {}

  /// As it was given.
  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  /// By which waits are measured.
  [[nodiscard]] clock_type const& get_clock() const noexcept { return clock_; }
  /// How many shards the job queues have, as bounded.
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return pool_->options().shards; }

  /// Brings the database to this version's schema, in one transaction, on a connection of its own;
  /// does nothing where it is that already. Several at once do it once. It may take longer than
  /// `command_timeout`. Completes with `void(error_code)`.
  ///
  /// Errors: `store_unavailable`, `schema_too_new`, `invalid_option`, `permission_denied`,
  /// `store_foreign` for a schema that belongs to a stranger (`postgres_migration_sql`), and
  /// `outcome_unknown` when the connection was lost: ask again. Cancelling it (any kind) completes
  /// it with `operation_aborted`; it is done then, or not, or still going to be.
  template <class Token = boost::asio::deferred_t>
  auto async_migrate(Token&& token = {}) const {
    auto initiate = [](boost::asio::any_completion_handler<void(error_code)> handler,
                       postgres_store const& self) {
      auto op = detail::park<error_code>(self.executor_, std::move(handler));
      auto const& pool = *self.pool_;
      auto const run = std::make_shared<detail::postgres_migrator>(pool.strand(), pool.conninfo(),
                                                                   pool.options(), std::move(op));
      boost::asio::dispatch(pool.strand(), [run] { run->run(); });
    };
    return boost::asio::async_initiate<Token, void(error_code)>(
        detail::bound_initiation{executor_, std::move(initiate)}, token, *this);
  }

  /// Executes a command and completes, once it is committed, by posting the handler. Cancelling it
  /// (any kind) completes it with `operation_aborted` at once. It was not executed if it had not
  /// been sent yet; otherwise it was executed, or will be, or not.
  template <class C, class Token>
    requires detail::postgres_step<C>
  auto async_execute(C const& c, Token&& token) const {
    return start(c, std::nullopt, std::forward<Token>(token));
  }

  /// Executes a command as if at `a.time`. From then on this store removes nothing of what time has
  /// ended of its own accord: the server's clock does not know which times it was told.
  template <class C, class Token>
    requires detail::postgres_step<C>
  auto async_execute(command::at<C> const& a, Token&& token) const {
    return start(a.command, a.time, std::forward<Token>(token));
  }

  /// Waits for a hint: at most for `poll_interval` after there is reason for one, and usually not
  /// as long. Cancelling it (any kind) completes it with `operation_aborted`, and so does the end
  /// of the last handle of the store.
  template <detail::postgres_wait C, class Token>
  auto async_execute(C const& c, Token&& token) const {
    auto initiate = [](boost::asio::any_completion_handler<void(error_code, hint)> handler,
                       postgres_store const& self, C const& command) {
      auto ec = rule::validate(command);
      if constexpr (requires { command.shard; }) {
        if (!ec && command.shard >= self.shard_count()) ec = errc::invalid_shard;
      }
      if (ec) return detail::post_completion(self.executor_, std::move(handler), ec, hint{});
      self.waits_->wait(self.executor_, std::move(handler), command);
    };
    return boost::asio::async_initiate<Token, void(error_code, hint)>(
        detail::bound_initiation{executor_, std::move(initiate)}, token, *this, c);
  }

  /// Lets nothing more in: later commands are `closed`, and so are waits. Those that wait for a
  /// connection end with `operation_aborted`, what was sent is still answered, and then the
  /// connections are closed. Does not wait.
  void close() const {
    waits_->close();
    pool_->close();
  }

 private:
  template <class C, class Token>
  auto start(C const& c, std::optional<time_point> at, Token&& token) const {
    using answer = typename C::result;
    using handler_type = boost::asio::any_completion_handler<void(error_code, answer)>;
    auto initiate = [](handler_type handler, postgres_store const& self, C const& command,
                       std::optional<time_point> time) {
      detail::postgres_scope const in{.shards = self.shard_count(), .own = true, .at = time};
      if (auto const ec = detail::refusal(command, in)) {
        return detail::post_completion(self.executor_, std::move(handler), ec, answer{});
      }
      auto op = detail::park<error_code, answer>(self.executor_, std::move(handler));
      if (time) self.pool_->tidy_no_more();
      self.pool_->submit(std::make_unique<detail::postgres_command<C>>(std::move(op), command, in));
    };
    return boost::asio::async_initiate<Token, void(error_code, answer)>(
        detail::bound_initiation{executor_, std::move(initiate)}, token, *this, c, at);
  }

  executor_type executor_;
  [[no_unique_address]] system_clock clock_;
  std::shared_ptr<detail::postgres_pool> pool_;
  std::shared_ptr<detail::postgres_waits> waits_;
};

}  // namespace weir

#endif
