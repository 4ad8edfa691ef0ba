// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CLOCK_MANUAL_HPP
#define WEIR_CLOCK_MANUAL_HPP

#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/system/errc.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir {

/// A clock that moves only when it is told to, for tests.
///
///     weir::manual_clock clock;
///     weir::basic_memory_store store{io.get_executor(), {}, clock};
///     ...
///     clock.advance(30s);  // everything that waits for less is posted,
///     io.poll();           // and runs here
///
/// Copies share one time. It starts at 2026-01-01T00:00:00Z on a host that has been up for a day.
/// It may be used by any number of threads.
///
/// A wait that is due is posted to its handler's executor: a handler runs after the call that moved
/// the clock, and sees the time to which it was moved. To have handlers see each deadline on the
/// way, use `advance_to_next`. A wait also ends when it is cancelled (any kind of cancellation) and
/// when the last copy of the clock is gone, both with `operation_aborted`; when its execution
/// context is destroyed, its handler is destroyed with it.
class manual_clock {
 public:
  static constexpr time_point default_date =
      std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};  ///< the date of a new clock
  static constexpr steady_time default_uptime = steady_time{std::chrono::hours{24}};  ///< the
                                                                                      ///< steady
                                                                                      ///< time of a
                                                                                      ///< new clock

  /// @param date   what `system_now` says at first
  /// @param uptime what `steady_now` says at first
  explicit manual_clock(time_point date = default_date, steady_time uptime = default_uptime)
      : state_{std::make_shared<state>(date, uptime)} {}

  /// The time, as it was last set.
  [[nodiscard]] steady_time steady_now() const noexcept { return state_->steady_now(); }
  /// The date, as it was last set.
  [[nodiscard]] time_point system_now() const noexcept { return state_->system_now(); }

  /// Moves time and date on by `d`, and posts what has become due: by deadline, then in the order
  /// of arrival.
  /// @throws std::invalid_argument if `d` is negative: steady time never runs backwards. Nothing is
  /// changed then.
  void advance(duration d) {
    if (d < duration::zero())
      throw std::invalid_argument{"manual_clock::advance: a negative duration"};
    state_->move([d](steady_time now) { return saturating_add(now, d); });
  }

  /// Moves time to `t`, and the date on by as much; posts what has become due.
  /// @throws std::invalid_argument if `t` is earlier than `steady_now()`. Nothing is changed then.
  void set(steady_time t) {
    state_->move([t](steady_time now) {
      if (t < now) throw std::invalid_argument{"manual_clock::set: a time in the past"};
      return t;
    });
  }

  /// Sets the date, also back, as an administrator or a time server may. Time stays as it is and
  /// nobody is woken.
  void set_system(time_point date) noexcept { state_->set_system(date); }

  /// Moves on to the earliest deadline that somebody waits for. Returns false, and does nothing, if
  /// nobody waits.
  bool advance_to_next() { return state_->move_to_next(); }

  /// The number of waits that have not ended.
  [[nodiscard]] std::size_t waiters() const { return state_->waiters(); }

  /// The earliest deadline that somebody waits for.
  [[nodiscard]] std::optional<steady_time> next_deadline() const { return state_->next_deadline(); }

  /// Waits until `steady_now() >= t`.
  ///
  /// @param executor of a handler that has none
  /// @param t        any time; one in the past completes at once
  /// @param token    completes with `void(error_code)`
  ///
  /// Errors: `operation_aborted` (see above), `not_enough_memory`. Cancellation leaves nothing
  /// behind. The handler is posted to its associated executor, never called by this function or by
  /// those that move the clock.
  template <class Token = boost::asio::deferred_t>
  auto async_wait_until(boost::asio::any_io_executor executor, steady_time t,
                        Token&& token = {}) const {
    auto initiate = [ex = executor](auto handler, steady_time until,
                                    std::shared_ptr<state> const& s) {
      if (s->steady_now() >= until) {
        post_completion(ex, std::move(handler), error_code{});
        return;
      }
      auto const place = s->next_place(until);
      departure leave{s, place};
      s->wait(place, park<error_code>(ex, std::move(handler), std::move(leave)));
    };
    return boost::asio::async_initiate<Token, void(error_code)>(
        detail::bound_initiation{std::move(executor), std::move(initiate)}, token, t, state_);
  }

 private:
  using waiter = std::shared_ptr<parked<error_code>>;

  struct place_in_line {
    steady_time deadline;
    std::uint64_t arrival = 0;
    friend constexpr auto operator<=>(place_in_line const&, place_in_line const&) = default;
  };

  class state {
   public:
    state(time_point date, steady_time uptime) noexcept
        : steady_{uptime},
          ahead_{saturating_sub(date, time_point{uptime.time_since_epoch()})} {}

    [[nodiscard]] steady_time steady_now() const noexcept {
      return steady_.load(std::memory_order_acquire);
    }
    [[nodiscard]] time_point system_now() const noexcept {
      std::lock_guard const lock{mutex_};
      return saturating_add(time_point{ahead_}, steady_now().time_since_epoch());
    }
    void set_system(time_point date) noexcept {
      std::lock_guard const lock{mutex_};
      ahead_ = saturating_sub(date, time_point{steady_now().time_since_epoch()});
    }

    [[nodiscard]] std::size_t waiters() const {
      std::lock_guard const lock{mutex_};
      return line_.size();
    }
    [[nodiscard]] std::optional<steady_time> next_deadline() const {
      std::lock_guard const lock{mutex_};
      if (line_.empty()) return std::nullopt;
      return line_.begin()->first.deadline;
    }

    template <class Where>
    void move(Where const& where) {
      std::unique_lock lock{mutex_};
      steady_.store(where(steady_now()), std::memory_order_release);
      wake_due(std::move(lock));
    }
    bool move_to_next() {
      std::unique_lock lock{mutex_};
      if (line_.empty()) return false;
      steady_.store(line_.begin()->first.deadline, std::memory_order_release);
      wake_due(std::move(lock));
      return true;
    }

    [[nodiscard]] place_in_line next_place(steady_time deadline) noexcept {
      return {deadline, arrivals_.fetch_add(1, std::memory_order_relaxed)};
    }
    void wait(place_in_line place, waiter const& op) {
      error_code ec;
      try {
        std::lock_guard const lock{mutex_};
        if (steady_now() < place.deadline) {
          if (op->waiting()) line_.emplace(place, op);
          return;
        }
      } catch (std::bad_alloc const&) {
        ec = make_error_code(boost::system::errc::not_enough_memory);
      }
      op->resume(ec);
    }
    void forget(place_in_line place) noexcept {
      std::lock_guard const lock{mutex_};
      line_.erase(place);
    }

   private:
    void wake_due(std::unique_lock<std::mutex> lock) {
      std::vector<waiter> due;
      auto const now = steady_now();
      auto end = line_.begin();
      for (; end != line_.end() && end->first.deadline <= now; ++end) due.push_back(end->second);
      line_.erase(line_.begin(), end);
      lock.unlock();
      for (auto const& op : due) op->resume({});
    }

    mutable std::mutex mutex_;
    std::atomic<steady_time> steady_;  // written under the mutex
    duration ahead_;                   // the date less the time
    std::atomic<std::uint64_t> arrivals_{0};
    std::map<place_in_line, waiter> line_;
  };

  class departure {
   public:
    departure(std::weak_ptr<state> owner, place_in_line place) noexcept
        : owner_{std::move(owner)},
          place_{place} {}
    void operator()() const noexcept {
      if (auto const s = owner_.lock()) s->forget(place_);
    }

   private:
    std::weak_ptr<state> owner_;
    place_in_line place_;
  };

  std::shared_ptr<state> state_;
};

}  // namespace weir

#endif
