// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_ALARM_HPP
#define WEIR_DETAIL_ALARM_HPP

#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace weir::detail {

/// At most one wait at a time, all of them in one strand. Starting another one, or stopping, means
/// that the one before will not wake.
template <clock Clock>
class alarm {
 public:
  alarm() = default;
  alarm(alarm const&) = delete;
  alarm& operator=(alarm const&) = delete;

  void start(boost::asio::any_io_executor const& strand, steady_time until,
             std::function<void()> wake) {
    stop();
    auto const wait = std::make_shared<waiting>();
    current_ = wait;
    Clock{}.async_wait_until(
        strand, until,
        boost::asio::bind_cancellation_slot(
            wait->signal.slot(), boost::asio::bind_executor(strand, waker{wait, std::move(wake)})));
  }

  void stop() {
    auto const wait = std::exchange(current_, {});
    if (!wait || std::exchange(wait->over, true)) return;
    wait->signal.emit(boost::asio::cancellation_type::terminal);
  }

 private:
  struct waiting {
    boost::asio::cancellation_signal signal;
    bool over = false;
  };

  /// What a wait ends with. One that goes with its executor is over, too: there is nothing any more
  /// that could be cancelled.
  struct waker {
    waker(std::shared_ptr<waiting> w, std::function<void()> f)
        : wait{std::move(w)},
          wake{std::move(f)} {}
    waker(waker&&) = default;
    waker& operator=(waker&&) = delete;
    ~waker() {
      if (wait) wait->over = true;
    }

    void operator()(error_code ec) {
      wait->signal.slot().clear();
      if (!ec && !std::exchange(wait->over, true)) wake();
    }

    std::shared_ptr<waiting> wait;
    std::function<void()> wake;
  };

  std::shared_ptr<waiting> current_;
};

}  // namespace weir::detail

#endif
