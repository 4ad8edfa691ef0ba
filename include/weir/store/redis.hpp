// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_HPP
#define WEIR_STORE_REDIS_HPP

#include "weir/clock/system.hpp"
#include "weir/command/list.hpp"
#include "weir/detail/config.hpp"
#include "weir/engine_store.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/options.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>

#include <concepts>
#include <memory>
#include <string_view>
#include <utility>

namespace weir {

namespace detail {

class redis_engine;
[[nodiscard]] std::shared_ptr<redis_engine> make_redis_engine(
    boost::asio::any_io_executor const& executor, redis_address const& address,
    redis_options const& options);
void run_redis(redis_engine& engine, boost::asio::any_completion_handler<void(error_code)> handler);
void close_engine(redis_engine& engine);
[[nodiscard]] store_failure last_failure_of(redis_engine const& engine);

/// Keys expire by themselves: there is nothing to reap.
template <class C>
inline constexpr bool engine_executes<redis_engine, C> =
    engine_step<C> && !std::same_as<C, command::reap_buckets>;

}  // namespace detail

/// All four nouns on a Redis (6.2 or later) or Valkey (7.2 or later) server of 64 bits, shared by
/// any number of processes and hosts.
///
///     weir::redis_store store{io.get_executor(), "redis://127.0.0.1:6379"};
///     store.async_run(weir::log::failures{"store"});
///     weir::limiter limiter{store, ...};
///
/// Programs link the CMake target weir::redis, which brings OpenSSL; or OpenSSL themselves.
///
/// A handle: copies share the state, and any number of threads may use them at once; none may
/// outlive the execution context, which ends with whatever is under way. There is one
/// connection, on a strand of its own, which exists while `async_run` runs; commands that are under
/// way at the same time share it. Once somebody waits for a hint, there is another one, which
/// subscribes to them, on channels that begin with `{PREFIX:`. A command is one script and so one
/// round trip; the server's clock decides, in microseconds.
///
/// The bytes under way on a connection are bounded: commands whose arguments, and largest answers,
/// would together be more than 64 MiB wait for their turn, and small ones do not wait for them. A
/// server whose `client-output-buffer-limit normal` is above 128 MiB, or 0 as it comes, never ends
/// a connection for the answers that it has not read.
///
/// A server whose memory is full (`maxmemory`) is drained: claims, completions, renewals, releases,
/// cancels, listings, and takes of buckets that are there go on; what needs room, such as an
/// enqueue or a new key, is `store_full`. A completed job's result needs room, too: it is not kept
/// then, and the worker (`result_dropped`) and the job (`result_had_no_room`) say so.
///
/// Errors of every command, besides its own: `store_unavailable` when there was no connection for
/// `offline_patience`, or a server that loads its data, or the server is busy; `outcome_unknown`
/// when the connection ended, or made no sense, after the command was given to it, or too few
/// replicas have it
/// (`redis_options::replicas`); `store_full` when `max_pending` commands are under way, or the
/// server is out of memory; `store_read_only` when for `offline_patience` there was no server but a
/// replica, or one that cannot write to its disk; `permission_denied`, without waiting for
/// anything, while the server refuses the user or the password, which is tried again, or what this
/// user may not do; `store_foreign` when a key has a type that is not weir's; `store_evicts` when
/// the server may forget what it has (`redis_options::allow_eviction`); `store_corrupt` when a
/// record that it needs is damaged, or a fence has reached 2^53; `invalid_option` when the prefix
/// is not valid, what is on the server has another number of shards, there is no database of this
/// number, or the address says that it is a cluster and it is none, or the other way round;
/// `closed`.
///
/// A cluster (`redis_address::cluster`): each shard is in one slot, and a connection goes to each
/// node that serves a shard, so more shards use more nodes. Slots that move are followed. While
/// Redis itself moves a slot's keys, it refuses commands of several keys, which are nearly all:
/// they wait until it is done, up to `offline_patience`, as they do while a dead master has no
/// successor. What had been given to a master that dies is `outcome_unknown`.
///
/// Fail-over to a replica that was not up to date, in a cluster or without one, loses what it had
/// not got, whatever was answered: leases may then be given out twice, jobs that were enqueued last
/// are missing, and some that were completed last run again. Fences still grow across it, as long
/// as the servers' clocks agree to the time that it takes (R5): let what is guarded check them.
/// `redis_options::replicas` makes such a loss less likely.
///
/// Sentinels (`redis_address::sentinel`) are asked where the server is whenever a connection is
/// made, one after the other until one leads to a server that writes. One of them, on a connection
/// of its own, tells when the server is succeeded.
///
/// A server that refuses a command because it has become a replica, loads its data, or cannot write
/// to its disk, may have a successor. Its connection ends once all that is under way is answered.
/// Then names are looked up again, and of several hosts and addresses the next one is tried, each
/// with a time-out of its own. The command, which was not executed, waits for that.
///
/// A command that is cancelled was not executed if there was no connection, and otherwise is
/// executed or not. A wait ends at most `poll_interval` after there is reason for it, or, while
/// hints arrive, 2 s if that is more. The time that `command::at` tells is within the years 1970 to
/// 2223. `close` ends the connection: commands under way are `outcome_unknown`, those that wait for
/// one are `closed`, and `async_run` completes.
///
/// Kept on the server for good: for each shard a fence, and the number of shards. A queue's
/// hash of counters and its name stay until it has nothing left and was left alone for two days; a
/// worker's housekeeping (`gc_interval`) forgets them, and removes in pieces what is over of a
/// queue with more than 10,000 records. Jobs, dead letters and keys held by jobs stay as long as
/// they are what they are. Which processes have idle workers is kept for a day; everything else
/// expires, at most a minute after it is over, or a week where it is that many records.
class redis_store : public engine_store<redis_store, detail::redis_engine> {
 public:
  using clock_type = system_clock;  ///< measures waits; what time it is, the server says
  /// It takes notice of `command::await_jobs::in_turn`.
  static constexpr bool tells_in_turn = true;

  /// Connects to nothing yet.
  ///
  /// @param executor where the connection lives, and operations without an executor of their own
  /// complete
  /// @param address  of the server, and as whom to speak to it
  /// @param options  bounds and times; held within their ranges
  explicit redis_store(executor_type executor, redis_address const& address = redis_address{},
                       redis_options const& options = {})
      : engine_store{executor, detail::bounded(options).shards,
                     detail::make_redis_engine(executor, address, options)} {}

  /// The same, with an address in one line.
  ///
  /// @param executor as above
  /// @param url      what `redis_address::parse` reads. Throws `boost::system::system_error` with
  ///                 `invalid_option`, which says what is wrong, if it is none.
  /// @param options  as above
  redis_store(executor_type executor, std::string_view url, redis_options const& options = {})
      : redis_store{std::move(executor), redis_address::parse(url).value(), options} {}

  /// Keeps a connection to the server, and makes another one whenever it ends, until `close`.
  /// Completes with `void(error_code)`: success once `close` is called, `closed` where it was
  /// called before, `already_started` where it runs, `invalid_option` where the prefix is none:
  /// then it connects to nothing. Cancelling it (any kind) completes it with `operation_aborted`;
  /// the connection goes on.
  template <class Token = boost::asio::deferred_t>
  WEIR_OPERATION auto async_run(Token&& token = {}) const {
    return async_start(&detail::run_redis, std::forward<Token>(token));
  }
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/store/redis/engine.hpp"
#endif

#endif
