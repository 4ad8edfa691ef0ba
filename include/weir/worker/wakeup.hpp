// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_WAKEUP_HPP
#define WEIR_WORKER_WAKEUP_HPP

#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/errc.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace weir::detail {

/// Calls `then` on the strand, at a time or when cancelled: each of a worker's timers, of one type.
inline void start_timer(any_clock const& clock, boost::asio::any_io_executor const& strand,
                        steady_time at, boost::asio::cancellation_slot slot,
                        std::function<void(error_code)> then) {
  clock.async_wait_until(strand, at,
                         boost::asio::bind_cancellation_slot(
                             slot, boost::asio::bind_executor(strand, std::move(then))));
}

/// One coroutine waits, others wake it. A wake-up that finds nobody waiting is kept for the next
/// wait; several are one. Used on one strand only.
class wakeup : public std::enable_shared_from_this<wakeup> {
 public:
  explicit wakeup(boost::asio::any_io_executor strand) : strand_{std::move(strand)} {}

  void notify() {
    if (auto const waiter = std::exchange(waiter_, nullptr)) {
      if (waiter->resume(error_code{})) return;
    }
    pending_ = true;
  }

  boost::asio::awaitable<void> wait() {
    namespace asio = boost::asio;
    if (std::exchange(pending_, false)) {
      co_await boost::asio::post(asio::deferred);
      co_return;
    }
    auto initiate = [this](auto handler) {
      waiter_ = park<error_code>(strand_, std::move(handler));
    };
    co_await asio::async_initiate<asio::deferred_t const, void(error_code)>(initiate,
                                                                            asio::deferred);
    pending_ = false;  // who wakes sees what came meanwhile, too
  }

  /// Waits no longer than until a time.
  boost::asio::awaitable<void> wait_until(any_clock const& clock, steady_time until) {
    auto const over = std::make_shared<boost::asio::cancellation_signal>();
    auto const number = ++waits_;
    if (!pending_ && until != steady_time::max()) {
      start_timer(clock, strand_, until, over->slot(),
                  [over, number, weak = weak_from_this()](error_code ec) {
                    over->slot().clear();
                    // A clock that has no memory for it does not wait, and to wake early is no
                    // harm. One that fails for good would wake this again and again.
                    if (ec && ec != boost::system::errc::not_enough_memory) return;
                    auto const self = weak.lock();
                    if (self && self->waits_ == number) self->notify();
                  });
    }
    co_await wait();
    ++waits_;
    over->emit(boost::asio::cancellation_type::terminal);
  }

 private:
  boost::asio::any_io_executor strand_;
  std::shared_ptr<parked<error_code>> waiter_;
  std::uint64_t waits_ = 0;  ///< a timer that is late wakes nobody
  bool pending_ = false;
};

}  // namespace weir::detail

#endif
