// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CLOCK_TIMER_WAIT_HPP
#define WEIR_CLOCK_TIMER_WAIT_HPP

#include "weir/clock/timed_by.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/posting.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <memory>
#include <utility>

// The waits of the host's clocks, behind their seam: included where they are compiled.
namespace weir::detail {

/// One body for all handlers, because it is erased.
template <class Source>
class timer_wait {
 public:
  using handler_type = boost::asio::any_completion_handler<void(error_code)>;
  using executor_type =
      boost::asio::associated_executor_t<handler_type, boost::asio::any_io_executor>;
  using allocator_type = boost::asio::associated_allocator_t<handler_type>;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  timer_wait(boost::asio::any_io_executor const& executor, steady_time t, handler_type&& handler)
      : handler_{std::move(handler)},
        sleep_{std::make_unique<sleep>(executor, t, handler_)} {}

  [[nodiscard]] executor_type get_executor() const noexcept {
    return boost::asio::get_associated_executor(handler_, sleep_->timer.get_executor());
  }
  [[nodiscard]] allocator_type get_allocator() const noexcept {
    return boost::asio::get_associated_allocator(handler_);
  }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
    return sleep_->cancellation.slot();
  }

  void operator()(error_code ec) {
    if (!ec && Source::steady_now() < sleep_->until) {
      // A cancellation that came while this was on its way from the timer found nothing to cancel.
      if (sleep_->cancellation.cancelled() == boost::asio::cancellation_type::none) {
        return std::move(*this).sleep_on();
      }
      ec = boost::asio::error::operation_aborted;
    }
    // The timer's entry in the slot refers to the timer: a late cancellation is to find nothing.
    boost::asio::get_associated_cancellation_slot(handler_).clear();
    sleep_.reset();
    std::move(handler_)(ec);
  }

  void sleep_on() && {
    auto& timer = sleep_->timer;
    timer.expires_after(
        std::min(saturating_sub(sleep_->until, Source::steady_now()), Source::longest_sleep));
    timer.async_wait(std::move(*this));
  }

 private:
  struct sleep {
    sleep(boost::asio::any_io_executor const& executor, steady_time t, handler_type const& handler)
        : timer{executor},
          until{t},
          cancellation{boost::asio::get_associated_cancellation_slot(handler),
                       boost::asio::enable_total_cancellation{}} {}

    boost::asio::steady_timer timer;
    steady_time until;
    boost::asio::cancellation_state cancellation;
  };

  handler_type handler_;
  std::unique_ptr<sleep> sleep_;  // a timer cannot be moved while it waits
};

template <class Source>
void timed_by<Source>::start(boost::asio::any_completion_handler<void(error_code)> handler,
                             boost::asio::any_io_executor const& executor, steady_time t) {
  if (Source::steady_now() >= t) {
    // A timer that has expired costs a thousand times as much as a post.
    post_completion(executor, std::move(handler), error_code{});
  } else {
    timer_wait<Source> wait{executor, t, std::move(handler)};
    std::move(wait).sleep_on();
  }
}

}  // namespace weir::detail

#endif
