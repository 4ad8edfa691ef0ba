// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_HPP
#define WEIR_STORE_MEMORY_HPP

#include "weir/clock/system.hpp"
#include "weir/command/at.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/store/memory/bucket_pin.hpp"
#include "weir/store/memory/buckets.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/store/memory/time.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace weir {

namespace detail {

template <class>
class basic_memory_state;
using memory_state = basic_memory_state<void>;

/// Makes a state, and says where its buckets are: callers know those, so that a take is compiled
/// where it is asked for.
template <class State>
[[nodiscard]] std::shared_ptr<State> make_memory_state(
    std::shared_ptr<context_bound_executor const>, memory_options const& options,
    memory_buckets*& buckets);

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
      : executor_{detail::context_bound_executor::make(std::move(executor))},
        clock_{std::move(clock)},
        born_{clock_.system_now()},
        started_{clock_.steady_now()},
        shards_{bounded(options).shards},
        state_{detail::make_memory_state<detail::memory_state>(executor_, bounded(options),
                                                               buckets_)} {}

  /// As it was given.
  [[nodiscard]] executor_type get_executor() const noexcept { return executor_->get(); }
  /// As it was given.
  [[nodiscard]] clock_type const& get_clock() const noexcept { return clock_; }
  /// How many shards the job queues have, as bounded.
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return shards_; }

  /// The same store: its calls take no time. For code that works on every store.
  ///
  /// @param most of no effect
  [[nodiscard]] basic_memory_store with_patience([[maybe_unused]] duration most) const {
    return *this;
  }

  /// Always empty, since this store never fails as a whole: for code that works on every store.
  [[nodiscard]] static store_failure last_failure() { return {}; }

  /// The store's time now. It is what every command without an `at` is executed at.
  [[nodiscard]] time_point now() const noexcept {
    return saturating_add(born_, clock_.steady_now() - started_);
  }

  /// Executes a command in the calling thread.
  template <class C>
    requires detail::engine_step<C>
  result<typename C::result> execute(C const& c) const {
    if constexpr (std::same_as<C, command::take>) {
      return buckets_->apply(c, now());
    } else {
      return step(c, {.at = now()});
    }
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
    return buckets_->apply(c, pin, now());
  }

  /// Executes commands in the calling thread, one after the other at one time, each as if alone.
  /// Their cache misses overlap.
  ///
  /// @param takes   any number
  /// @param answers as many: what each was answered, by position
  void execute_each(std::span<command::take const> takes,
                    std::span<result<decision>> answers) const {
    buckets_->apply_each(takes, answers, now());
  }

  /// Executes a command as if at `a.time`. What is live at the time that was told last is not
  /// removed by commands of other keys and queues, as long as there is room.
  template <class C>
    requires detail::engine_step<C>
  result<typename C::result> execute(command::at<C> const& a) const {
    return step(a.command, {.at = a.time, .told = true});
  }

  /// Executes a command in the initiation; the handler is posted, never called inline. A command
  /// that was initiated is done: cancelling it has no effect.
  template <class C, class Token>
    requires executes_now<basic_memory_store const, C>
  WEIR_OPERATION auto async_execute(C const& c, Token&& token) const {
    return detail::async_lift<typename C::result>(
        get_executor(), [self = *this, c] { return self.execute(c); }, std::forward<Token>(token));
  }

  /// Waits for a hint. Cancelling it (any kind) completes it with `operation_aborted`.
  template <class C, class Token>
    requires command::waits_for_event<C>
  WEIR_OPERATION auto async_execute(C const& c, Token&& token) const {
    auto initiate = [](detail::erased_handler<C> handler, basic_memory_store const& self,
                       C const& command) {
      detail::engine_way<detail::memory_state, C>::execute(*self.state_, command,
                                                           {.at = self.now()}, std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(error_code, hint)>(
        detail::bound_initiation{get_executor(), initiate}, token, *this, c);
  }

 private:
  template <class C>
  result<typename C::result> step(C const& c, detail::memory_time when) const {
    return detail::step_way<detail::memory_state, C, detail::memory_time>::execute(*state_, c,
                                                                                   when);
  }

  static memory_options bounded(memory_options o) noexcept {
    constexpr std::size_t least = 1;
    o.max_buckets = std::max(o.max_buckets, least);
    o.max_permits = std::max(o.max_permits, least);
    o.max_locks = std::max(o.max_locks, least);
    o.max_jobs = std::max(o.max_jobs, least);
    o.shards = std::clamp(o.shards, std::uint32_t{1}, std::uint32_t{1024});
    return o;
  }

  std::shared_ptr<detail::context_bound_executor const> executor_;
  Clock clock_;
  time_point born_;
  steady_time started_;
  std::uint32_t shards_;
  detail::memory_buckets* buckets_ = nullptr;  // the state's
  std::shared_ptr<detail::memory_state> state_;
};

/// In this process, by the host's clocks.
using memory_store = basic_memory_store<>;

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/store/memory/engine.hpp"
#endif

#endif
