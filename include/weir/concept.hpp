// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONCEPT_HPP
#define WEIR_CONCEPT_HPP

#include "weir/command/at.hpp"
#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

namespace weir {

namespace detail {

/// Stands for any handler of a result, so that a concept can be asked without instantiating a real
/// operation: as a token, it begins none.
template <class Result>
struct answer_archetype {
  void operator()(error_code, Result) const {}
};

struct wait_archetype {
  void operator()(error_code) const {}
};

}  // namespace detail
}  // namespace weir

/// @cond
// The concept's question starts nothing, so nothing is compiled for it.
template <class Result>
struct boost::asio::async_result<weir::detail::answer_archetype<Result>,
                                 void(weir::error_code, Result)> {
  using return_type = void;

  template <class Initiation, class... Args>
  static void initiate(Initiation&&, weir::detail::answer_archetype<Result>, Args&&...) {}
};
/// @endcond

namespace weir {

/// A command: a trivially destructible aggregate that names its result and says whether it may be
/// asked again. Its views must live until the handler is invoked or destroyed.
template <class C>
concept command_type = std::is_trivially_destructible_v<C> && std::is_aggregate_v<C> && requires {
  typename C::result;
  { C::repeatable } -> std::convertible_to<bool>;
};

/// The store executes the command: `s.async_execute(c, token)` completes with `void(error_code,
/// C::result)`.
template <class S, class C>
concept executes = command_type<C> && requires(S& s, C const& c) {
  s.async_execute(c, detail::answer_archetype<typename C::result>{});
};

/// The store executes the command without waiting: `s.execute(c)` returns `result<C::result>`.
template <class S, class C>
concept executes_now = command_type<C> && requires(S& s, C const& c) {
  { s.execute(c) } -> std::same_as<result<typename C::result>>;
};

/// The store executes many commands of a kind in one call, without waiting: `s.execute_each(cs,
/// out)` does the same as `execute` of one after the other, all at one time, and overlaps their
/// cache misses. Their results become `out`, by position.
template <class S, class C>
concept executes_each = executes_now<S, C> && requires(S& s, std::span<C const> cs,
                                                       std::span<result<typename C::result>> out) {
  s.execute_each(cs, out);
};

/// The store remembers for its caller where a bucket is: `s.execute(take, pin)` does the same as
/// `execute` of it, for takes of one key with the same quotas, and is faster from the second on. A
/// pin is empty at first, may be used by any number of threads at once, and may be copied.
template <class S>
concept pins_buckets =
    executes_now<S, command::take> && std::default_initializable<typename S::bucket_pin> &&
    std::copyable<typename S::bucket_pin> &&
    requires(S& s, command::take const& c, typename S::bucket_pin& pin) {
      { s.execute(c, pin) } -> std::same_as<result<decision>>;
    };

/// The store lets the caller say what time it is: a capability for tests and replays.
template <class S, class C>
concept executes_at = executes<S, command::at<C>> || executes_now<S, command::at<C>>;

/// A store, whatever it executes: a copyable handle that shares its state, with an executor.
template <class S>
concept store = std::copy_constructible<S> && requires(S const& s) {
  typename S::executor_type;
  { s.get_executor() } noexcept -> std::convertible_to<boost::asio::any_io_executor>;
};

/// Keeps concurrency limits.
template <class S>
concept permit_store =
    store<S> && executes<S, command::acquire_permit> && executes<S, command::renew_permit> &&
    executes<S, command::release_permit> && executes<S, command::inspect_permits>;

/// Keeps locks.
template <class S>
concept lock_store =
    store<S> && executes<S, command::acquire_lock> && executes<S, command::renew_lock> &&
    executes<S, command::release_lock> && executes<S, command::inspect_lock>;

/// Keeps rate limits.
template <class S>
concept bucket_store =
    store<S> && executes<S, command::take> && executes<S, command::peek_bucket> &&
    executes<S, command::refund> && executes<S, command::reset_bucket>;

/// Keeps queues of jobs, in `shard_count()` shards.
template <class S>
concept job_store =
    store<S> && executes<S, command::enqueue_jobs> && executes<S, command::peek_jobs> &&
    executes<S, command::dequeue_jobs> && executes<S, command::obtain_lease> &&
    executes<S, command::extend_lease> && executes<S, command::start_job> &&
    executes<S, command::complete_jobs> && executes<S, command::requeue_job> &&
    executes<S, command::snooze_job> && executes<S, command::return_job> &&
    executes<S, command::bury_job> && executes<S, command::cancel_job> &&
    executes<S, command::find_job> && executes<S, command::min_vesting_time> &&
    executes<S, command::scan_visible_queues> && executes<S, command::update_queue_pointer> &&
    executes<S, command::gc_stale_pointers> && executes<S, command::obtain_queue_lease> &&
    executes<S, command::release_queue_lease> && executes<S, command::snooze_queue> &&
    executes<S, command::pause_queue> && executes<S, command::resume_queue> &&
    executes<S, command::read_queue_stats> && executes<S, command::list_dead_letters> &&
    executes<S, command::replay_dead_letter> && executes<S, command::purge_job> &&
    executes<S, command::list_queues> && executes<S, command::relay_job> &&
    executes<S, command::list_jobs> && requires(S const& s) {
      { s.shard_count() } noexcept -> std::convertible_to<std::uint32_t>;
    };

/// How a primitive waits. An instance; `steady_now` goes on in suspend and may be called from any
/// thread, and `async_wait_until` completes with `void(error_code)` once `steady_now() >= t`, never
/// before, by posting to the handler's executor.
template <class C>
concept clock = std::copy_constructible<C> &&
                requires(C const& c, boost::asio::any_io_executor ex, steady_time t) {
                  { c.steady_now() } noexcept -> std::same_as<steady_time>;
                  c.async_wait_until(ex, t, detail::wait_archetype{});
                };

/// A clock that also knows the date: for stores that live on this host and decide what time it is.
///
/// For a store that the processes of a host share, `steady_now` counts from the host's boot. It may
/// say which boot that is, by a member `boot_id()` that gives a `std::string`, the same in all
/// processes; a clock without it is of the host's current boot (`system_clock::boot_id`).
template <class C>
concept host_clock = clock<C> && requires(C const& c) {
  { c.system_now() } noexcept -> std::same_as<time_point>;
};

/// How long to wait before trying again: a pure function of the attempt (from 0), the wait before
/// this one (0 at first) and 64 random bits.
template <class B>
concept backoff = std::copy_constructible<B> && requires(B const& b, std::uint32_t attempt,
                                                         duration previous, std::uint64_t entropy) {
  { b(attempt, previous, entropy) } -> std::same_as<duration>;
};

}  // namespace weir

#endif
