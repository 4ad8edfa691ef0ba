// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_HPP
#define WEIR_STORE_MEMORY_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/memory/bucket_pin.hpp"
#include "weir/store/memory/buckets.hpp"
#include "weir/store/memory/jobs.hpp"
#include "weir/store/memory/locks.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/store/memory/permits.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace weir {

namespace detail {

/// The four nouns of a memory store side by side. Each locks for itself; none knows the others, or
/// the clock.
template <class>
struct basic_memory_state : memory_permits, memory_locks, memory_buckets, memory_jobs {
  explicit basic_memory_state(memory_options const& options)
      : memory_permits{options},
        memory_locks{options},
        memory_buckets{options},
        memory_jobs{options} {}

  /// Keeps the store's clock from tidying state that is live at a told time.
  void told(time_point t) noexcept {
    memory_permits::told(t);
    memory_locks::told(t);
    memory_jobs::told(t);
  }

  using memory_buckets::apply;
  using memory_jobs::apply;
  using memory_jobs::await;
  using memory_locks::apply;
  using memory_permits::apply;
  using memory_permits::await;
};

using memory_state = basic_memory_state<void>;

template <class C>
concept memory_step = command_type<C> && requires(memory_state& s, C const& c, time_point now) {
  { s.apply(c, now) } -> std::same_as<result<typename C::result>>;
};

template <class C>
concept memory_wait =
    command_type<C> && requires(memory_state& s, C const& c, boost::asio::any_io_executor ex,
                                boost::asio::any_completion_handler<void(error_code, hint)> h,
                                time_point now) { s.await(c, now, std::move(h), ex); };

}  // namespace detail

/// All four nouns in this process: for one process, for tests, and as the reference of what a store
/// does.
///
/// A handle: copies share the state, and any number of threads may use them at once. Every command
/// runs in the calling thread (`execute`), where it may lock for the length of one step, or as an
/// asynchronous operation whose handler is posted. Nothing outlives the process.
///
/// The store's time is that of its `Clock`: the date at construction plus what `steady_now` has
/// passed since, so it neither jumps nor runs backwards when the host's date is set, and goes on in
/// suspend.
template <host_clock Clock = system_clock>
class basic_memory_store {
 public:
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  using clock_type = Clock;                            ///< whose time it keeps

  /// @param executor where operations without an executor of their own complete; it need not run
  ///        for `execute`
  /// @param options  bounds; values of 0 count as 1, shards are held within 1…1,024
  /// @param clock    whose time it keeps
  explicit basic_memory_store(executor_type executor, memory_options options = {},
                              Clock clock = Clock{})
      : executor_{std::move(executor)},
        clock_{std::move(clock)},
        born_{clock_.system_now()},
        started_{clock_.steady_now()},
        state_{std::make_shared<detail::memory_state>(bounded(options))} {}

  /// As it was given.
  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  /// As it was given.
  [[nodiscard]] clock_type const& get_clock() const noexcept { return clock_; }
  /// How many shards the job queues have, as bounded.
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return state_->shard_count(); }

  /// The store's time now. It is what every command without an `at` is executed at.
  [[nodiscard]] time_point now() const noexcept {
    return saturating_add(born_, clock_.steady_now() - started_);
  }

  /// Executes a command in the calling thread.
  template <class C>
    requires detail::memory_step<C>
  result<typename C::result> execute(C const& c) const {
    if constexpr (!std::same_as<C, command::take>) {  // which validates itself
      if (auto const ec = rule::validate(c)) return ec;
    }
    return state_->apply(c, now());
  }

  /// Where the bucket of one key was that is asked again and again; empty at first. Any number of
  /// threads may use one at once. Copies are empty.
  using bucket_pin = detail::bucket_pin;

  /// Executes a take in the calling thread, and does not look for the bucket where the pin knows
  /// it.
  ///
  /// @param c   of the same key and quotas each time, and for the same store
  /// @param pin remembers the bucket
  result<decision> execute(command::take const& c, bucket_pin& pin) const {
    return state_->apply(c, pin, now());
  }

  /// Executes commands in the calling thread, one after the other at one time, each as if alone.
  /// Their cache misses overlap.
  ///
  /// @param takes   any number
  /// @param answers as many: what each was answered, by position
  void execute_each(std::span<command::take const> takes,
                    std::span<result<decision>> answers) const {
    state_->apply_each(takes, answers, now());
  }

  /// Executes a command as if at `a.time`. What is live then is not removed by later commands, as
  /// long as they are of other keys and queues and there is room.
  template <class C>
    requires detail::memory_step<C>
  result<typename C::result> execute(command::at<C> const& a) const {
    if (auto const ec = rule::validate(a.command)) return ec;
    state_->told(a.time);
    return state_->apply(a.command, a.time);
  }

  /// Executes a command in the initiation; the handler is posted, never called inline. A command
  /// that was initiated is done: cancelling it has no effect.
  template <class C, class Token>
    requires executes_now<basic_memory_store const, C>
  auto async_execute(C const& c, Token&& token) const {
    return detail::async_lift<typename C::result>(
        executor_, [self = *this, c] { return self.execute(c); }, std::forward<Token>(token));
  }

  /// Waits for a hint. Cancelling it (any kind) completes it with `operation_aborted`.
  template <class C, class Token>
    requires detail::memory_wait<C>
  auto async_execute(C const& c, Token&& token) const {
    auto initiate = [](boost::asio::any_completion_handler<void(error_code, hint)> handler,
                       basic_memory_store self, C command) {
      self.state_->await(command, self.now(), std::move(handler), self.executor_);
    };
    return boost::asio::async_initiate<Token, void(error_code, hint)>(
        detail::bound_initiation{executor_, std::move(initiate)}, token, *this, c);
  }

 private:
  static memory_options bounded(memory_options o) noexcept {
    constexpr std::size_t least = 1;
    o.max_buckets = std::max(o.max_buckets, least);
    o.max_permits = std::max(o.max_permits, least);
    o.max_locks = std::max(o.max_locks, least);
    o.max_jobs = std::max(o.max_jobs, least);
    o.shards = std::clamp(o.shards, std::uint32_t{1}, std::uint32_t{1024});
    return o;
  }

  executor_type executor_;
  Clock clock_;
  time_point born_;
  steady_time started_;
  std::shared_ptr<detail::memory_state> state_;
};

/// In this process, by the host's clocks.
using memory_store = basic_memory_store<>;

}  // namespace weir

#endif
