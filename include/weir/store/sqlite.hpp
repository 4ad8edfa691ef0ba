// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_HPP
#define WEIR_STORE_SQLITE_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/config.hpp"
#include "weir/engine_store.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/store/sqlite/host.hpp"
#include "weir/store/sqlite/options.hpp"
#include "weir/store/sqlite/transaction.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace weir {

namespace detail {

class sqlite_engine;

[[nodiscard]] std::shared_ptr<sqlite_engine> make_sqlite_engine(
    boost::asio::any_io_executor executor, std::string path, sqlite_options const& options,
    sqlite_host host);
void open_sqlite(sqlite_engine& engine,
                 boost::asio::any_completion_handler<void(error_code)> handler);
void close_engine(sqlite_engine& engine) noexcept;
[[nodiscard]] store_failure last_failure_of(sqlite_engine const& engine);

}  // namespace detail

/// All four nouns in a file: durable, with no server, and shared by the processes of one host.
///
///     weir::sqlite_store store{io.get_executor(), "jobs.db"};
///     weir::job_queue queue{store, ...};
///
/// A handle: copies share the state, and any number of threads may use them at once. SQLite blocks,
/// so a store has a thread of its own; commands that come while one transaction is being committed
/// are the next one. A brief command that need not wait for the disk is executed by the thread that
/// gives it, if nothing else is to be done (`sqlite_options::in_place`). The file is opened by the
/// first command, or by `async_open`. The last handle's destructor waits until the commands that
/// were given are executed; those that wait for a hint end with `operation_aborted`. Commands are
/// executed in the order in which one thread gives them; their handlers may be called in another.
///
/// Several stores, in any number of processes, may use one file at once: all on one host, for a
/// write-ahead log does not work over a network, and all of one user, also those that only read.
/// The log and its index, beside the file, belong to the user whose process made them; for other
/// users the file is `store_read_only`. Commands of one are atomic to the others.
///
/// The file has one time, which all its stores and transactions share. The first of them after a
/// boot of the host begins it at the date, or at the latest time in the file if that is later; then
/// it goes on by `Clock`'s steady time alone, suspend included. So a date that is set changes
/// nothing until the next boot, by any amount. At a new boot the leases of before (permits, locks,
/// those of jobs and queues) are over, for no process lives that had one; delays, keys that are
/// held `until_expired`, buckets and retention go on. Processes that share a file must see one boot
/// id
/// (`system_clock::boot_id`) and one boot clock: containers that are given a boot id of their own,
/// or a time namespace, cannot. A file of an earlier version's schema is migrated when it is
/// opened; end the processes of that version before.
///
/// Errors of every command, besides its own: `store_unavailable` when other processes keep the file
/// for longer than `busy_timeout`, when it cannot be opened, or when the disk fails; `disk_full`;
/// `store_read_only`; `store_foreign`, `schema_too_new`, `schema_outdated` (a version that was
/// never released made it) and `store_corrupt`, about which nothing is done; `invalid_option` when
/// the file has another number of shards, is where it cannot be shared, or has 64 stores of this
/// process already; `outcome_unknown` when the disk failed in the commit itself; `store_full`, when
/// `max_pending` commands wait; `closed`. In all cases but `outcome_unknown` nothing was changed,
/// and the next command tries again, with what is there then.
///
/// A command completes once it is committed. One that is cancelled before its transaction has begun
/// is not executed; after that it completes as if it had not been cancelled. What is live at a time
/// that a command is told (`command::at`) is not removed by this store's later commands either, but
/// by those of others on the file. A commit of a store ends waits at once. A commit of the
/// application's own ends them within `poll_interval`, or ten of them (see there); so does one of
/// another process where processes cannot tell each other. After `close`, what was given is still
/// executed; then those who wait for a hint end with `operation_aborted`, and the file is closed.
///
/// Known: SQLite releases before 3.51.3 can, very rarely, damage a file that several connections
/// write ("WAL-reset bug"). The store avoids what leads to it as far as it can: see
/// store/sqlite/file.hpp, and what it asks of an application's own connections.
template <host_clock Clock = system_clock>
class basic_sqlite_store : public engine_store<basic_sqlite_store<Clock>, detail::sqlite_engine> {
  using base = engine_store<basic_sqlite_store, detail::sqlite_engine>;

 public:
  using typename base::executor_type;
  using clock_type = Clock;  ///< whose time it keeps

  /// Opens nothing yet.
  ///
  /// @param executor where operations without an executor of their own complete
  /// @param path     of the file, which is made if it is not there; four more lie beside it
  /// @param options  bounds and times; held within their ranges
  /// @param clock    whose time it keeps
  explicit basic_sqlite_store(executor_type executor, std::string path, sqlite_options options = {},
                              Clock clock = Clock{})
      : base{executor, detail::bounded(options).shards,
             detail::make_sqlite_engine(executor, std::move(path), detail::bounded(options),
                                        detail::sqlite_host::of(clock))},
        clock_{std::move(clock)} {}

  /// As it was given.
  [[nodiscard]] clock_type const& get_clock() const noexcept { return clock_; }

  /// Opens the file, unless it is open: for those who want to know at once what is wrong with it.
  /// Completes with `void(error_code)`. Cancelling it (any kind) before it has begun completes it
  /// with `operation_aborted`.
  template <class Token = boost::asio::deferred_t>
  WEIR_OPERATION auto async_open(Token&& token = {}) const {
    return this->async_start(&detail::open_sqlite, std::forward<Token>(token));
  }

 private:
  Clock clock_;
};

/// In a file, by the host's clocks.
using sqlite_store = basic_sqlite_store<>;

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/store/sqlite/engine.hpp"
#endif

#endif
