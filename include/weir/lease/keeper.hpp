// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_KEEPER_HPP
#define WEIR_LEASE_KEEPER_HPP

#include "weir/command/permits.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/late_renewals.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/lease/agent.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace weir::detail {

/// Renews a lease until it is stopped or the lease is lost: a permit, a lock, or a job's.
///
/// It asks when a third of the lease has passed, and then, as long as the answer is neither yes nor
/// no, every tenth of it. The lease is lost when the store says so, and when the time until which
/// it may be trusted is over; then the keeper says so, once, and never asks again: what it would
/// get is another lease, with a gap before it (F6). It also says so if it cannot go on for any
/// other reason, such as the end of its own execution context: it does not stop unseen.
///
/// Thread-safety: `lost`, `deadline` and `stop` may be called in any thread.
template <class>
class basic_lease_keeper {
 public:
  using renewal = attempt_handler<lease_renewal>;

  /// How to renew, and whom to tell.
  struct duty {
    explicit duty(std::function<void(renewal)> f) : renew{std::move(f)} {}

    std::function<void(renewal)> renew;  ///< starts the command
    std::shared_ptr<void const> keep{};  ///< lives as long as any such command
    std::function<void()> on_lost{};  ///< must not run anything inline; not called once `stop` has
                                      ///< returned
    std::function<void(steady_time)> on_renewed{};  ///< is told the new expiry; as `on_lost`
  };

  /// @param executor   where it works, on a strand. A body that blocks all threads of it starves
  /// the renewal.
  /// @param ttl        what is asked for, and was when the lease was granted
  /// @param expires_at when the lease ends, counted from before the request was sent that got it
  basic_lease_keeper(boost::asio::any_io_executor const& executor, any_clock clock, duration ttl,
                     steady_time expires_at, duty d)
      : state_{std::make_shared<state>(std::move(d.on_lost), std::move(d.on_renewed))} {
    namespace asio = boost::asio;
    auto const sent = saturating_add(expires_at, -ttl);
    state_->trust(trusted_until(sent, ttl));
    auto const running = std::make_shared<run>(executor);
    state_->running = running;
    auto work = watch(ending{state_}, std::move(clock), ttl, saturating_add(sent, ttl / 3),
                      std::move(d.renew), std::move(d.keep));
    std::shared_ptr<asio::cancellation_signal> const stop{running, &running->stop};
    spawn_on(running->strand, std::move(work),
             spawned_handler{stop, running->strand, std::make_shared<nothing>()});
  }
  basic_lease_keeper(basic_lease_keeper const&) = delete;
  basic_lease_keeper& operator=(basic_lease_keeper const&) = delete;
  ~basic_lease_keeper() { stop(); }

  /// Ends the renewing. Returns at once; nobody is told of anything any more.
  void stop() noexcept { state_->end_quietly(); }

  [[nodiscard]] bool lost() const noexcept { return state_->lost.load(std::memory_order_acquire); }
  /// From here on the lease may be over.
  [[nodiscard]] steady_time deadline() const noexcept {
    return steady_time{duration{state_->trusted.load(std::memory_order_acquire)}};
  }

 private:
  // What belongs to the keeper's own context, and so lives no longer than the coroutine that runs
  // there.
  struct run {
    explicit run(boost::asio::any_io_executor const& ex) : strand{boost::asio::make_strand(ex)} {}
    boost::asio::strand<boost::asio::any_io_executor> strand;
    boost::asio::cancellation_signal stop;
  };

  struct nothing final : spawned_end {
    void operator()(std::exception_ptr) override {}
  };

  struct state {
    state(std::function<void()> l, std::function<void(steady_time)> r)
        : on_lost{std::move(l)},
          on_renewed{std::move(r)} {}

    void trust(steady_time t) noexcept {
      trusted.store(t.time_since_epoch().count(), std::memory_order_release);
    }

    void renewed(steady_time sent, duration expires_in) {
      std::lock_guard const lock{mutex};
      if (stopped) return;
      trust(trusted_until(sent, expires_in));
      if (on_renewed) on_renewed(saturating_add(sent, expires_in));
    }

    void end() noexcept {
      std::lock_guard const lock{mutex};
      ended = true;
      if (stopped) return;
      lost.store(true, std::memory_order_release);
      try {
        if (on_lost) on_lost();
      } catch (...) {  // no memory to tell with; `lost` says it still
      }
    }

    // While the mutex is held the coroutine has not ended, and so its context exists.
    void end_quietly() noexcept {
      std::lock_guard const lock{mutex};
      if (std::exchange(stopped, true) || ended) return;
      try {
        if (auto const r = running.lock()) {
          post_task(r->strand, [r] { r->stop.emit(boost::asio::cancellation_type::terminal); });
        }
      } catch (...) {  // it finds out at its next step
      }
    }

    [[nodiscard]] bool is_stopped() noexcept {
      std::lock_guard const lock{mutex};
      return stopped;
    }

    std::mutex mutex;
    bool stopped = false;
    bool ended = false;
    std::function<void()> on_lost;
    std::function<void(steady_time)> on_renewed;
    std::weak_ptr<run> running;
    std::atomic<duration::rep> trusted{0};
    std::atomic<bool> lost{false};
  };

  // In the coroutine's frame: however that ends, it is told.
  class ending {
   public:
    explicit ending(std::shared_ptr<state> s) noexcept : state_{std::move(s)} {}
    ending(ending&& other) noexcept : state_{std::move(other.state_)} {}
    ending& operator=(ending&&) = delete;
    ~ending() {
      if (state_) state_->end();
    }
    state* operator->() const noexcept { return state_.get(); }

   private:
    std::shared_ptr<state> state_;
  };

  static boost::asio::awaitable<void> watch(ending self, any_clock clock, duration ttl,
                                            steady_time renew_at,
                                            std::function<void(renewal)> renew,
                                            std::shared_ptr<void const> keep) {
    namespace asio = boost::asio;
    co_await asio::this_coro::throw_if_cancelled(false);
    duration const again = std::max(ttl / 10, duration{1});
    while (!self->is_stopped()) {
      steady_time const deadline{duration{self->trusted.load(std::memory_order_acquire)}};
      if (clock.steady_now() >= deadline) co_return;
      auto waiting = attempt_nothing(clock, std::min(renew_at, deadline));
      auto const waited = co_await std::move(waiting);
      if (waited != errc::timed_out || self->is_stopped()) co_return;

      auto const sent = clock.steady_now();
      log_late_renewals("limiter or uniqueness", saturating_sub(sent, renew_at), ttl, "renew_on");
      if (sent >= deadline) co_return;
      auto asking = attempt<lease_renewal>(clock, deadline, keep, renew);
      auto const answer = co_await std::move(asking);
      if (answer.has_value()) {
        auto const expires_in = answer.value().expires_in;
        self->renewed(sent, expires_in);
        renew_at = saturating_add(sent, std::min(ttl, expires_in) / 3);
      } else if (answer.error() == errc::lease_lost) {
        co_return;
      } else {
        renew_at = saturating_add(clock.steady_now(), again);
      }
    }
  }

  std::shared_ptr<state> state_;
};

using lease_keeper = basic_lease_keeper<void>;

}  // namespace weir::detail

#endif
