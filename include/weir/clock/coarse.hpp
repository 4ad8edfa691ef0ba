// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CLOCK_COARSE_HPP
#define WEIR_CLOCK_COARSE_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>

#include <time.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

namespace weir {

namespace detail {

/// How long the host has been suspended in all, for a clock that stands still meanwhile. It asks
/// once whenever that clock has moved on; whoever comes in between reads two words.
class suspended_time {
 public:
  /// @param now     of the clock that stands still in suspend
  /// @param measure returns the time in suspend, or less: what it returned at most is the answer
  template <class Measure>
  [[nodiscard]] duration until(duration now, Measure const& measure) noexcept {
    if (now.count() > checked_.load(std::memory_order_acquire)) {
      // Several threads may come here at once; each leaves the answer before it says so.
      auto const found = measure().count();
      auto known = most_.load(std::memory_order_relaxed);
      while (found > known && !most_.compare_exchange_weak(known, found)) {
      }
      checked_.store(now.count(), std::memory_order_release);
    }
    return duration{most_.load(std::memory_order_relaxed)};
  }

 private:
  alignas(64) std::atomic<duration::rep> checked_{std::numeric_limits<duration::rep>::min()};
  std::atomic<duration::rep> most_{0};
};

}  // namespace detail

/// The host's clocks, read at a fifth of the cost and to the tick of the kernel only: for a memory
/// store that does little else than read the time, such as that of a rate limiter.
///
///     weir::basic_memory_store<weir::coarse_clock> store{executor};
///
/// Its steady time is that of `system_clock`, late by at most `resolution()` (1 to 10 ms, most
/// often 4), as far as the kernel's tick is not late itself; for as long after the host resumes
/// from suspend, it may not know of that yet. It is never early and never runs backwards. So a wait
/// ends, a lease runs out and a token comes back up to that much later, and none sooner: in a
/// window of time w, a bucket grants at most capacity + rate · (w + `resolution()`).
///
/// Where the host has no such clock (it is Linux's CLOCK_MONOTONIC_COARSE), it is `system_clock`.
/// Stateless: all instances are the same clock. May be used by any number of threads.
class coarse_clock {
 public:
  /// As of `system_clock`.
  static constexpr duration longest_sleep = system_clock::longest_sleep;

  /// By how much it may be late: the kernel's tick.
  [[nodiscard]] static duration resolution() noexcept {
#if defined(CLOCK_MONOTONIC_COARSE)
    ::timespec t{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &t);
    return since_zero(t);
#else
    return duration{1};
#endif
  }

  /// The time since the host started, suspension included where the host can tell, at the latest
  /// tick.
  [[nodiscard]] static steady_time steady_now() noexcept {
#if defined(CLOCK_MONOTONIC_COARSE) && defined(CLOCK_BOOTTIME)
    auto const tick = read(CLOCK_MONOTONIC_COARSE);
    // In this order, the difference is what was spent in suspend or less, so this is never early.
    return steady_time{tick + suspended_.until(tick, [] {
      auto const with = read(CLOCK_BOOTTIME);
      return with - read(CLOCK_MONOTONIC);
    })};
#else
    return system_clock::steady_now();
#endif
  }

  /// The date, as of `system_clock`.
  [[nodiscard]] static time_point system_now() noexcept { return system_clock::system_now(); }

  /// The id of the host's current boot, as of `system_clock`.
  [[nodiscard]] static std::string const& boot_id() { return system_clock::boot_id(); }

  /// Waits until `steady_now() >= t`.
  ///
  /// @param executor of the timer, and of a handler that has none
  /// @param t        any time: the past completes at once, `steady_time::max()` when cancelled
  /// @param token    completes with `void(error_code)`
  ///
  /// Errors: `operation_aborted` when cancelled, by any kind of cancellation, which leaves nothing
  /// behind. The handler is called by its associated executor, never by this function.
  template <class Token = boost::asio::deferred_t>
  auto async_wait_until(boost::asio::any_io_executor executor, steady_time t,
                        Token&& token = {}) const
      -> decltype(detail::async_timer_wait<coarse_clock>(std::move(executor), t,
                                                         std::forward<Token>(token))) {
    return detail::async_timer_wait<coarse_clock>(std::move(executor), t,
                                                  std::forward<Token>(token));
  }

 private:
  [[nodiscard]] static duration since_zero(::timespec const& t) noexcept {
    return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
  }
  [[nodiscard]] static duration read(::clockid_t id) noexcept {
    ::timespec t{};
    ::clock_gettime(id, &t);
    return since_zero(t);
  }

  static inline detail::suspended_time suspended_{};
};

}  // namespace weir

#endif
