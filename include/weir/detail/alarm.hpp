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
    auto on_time = [wait, wake = std::move(wake)](error_code ec) mutable {
      wait->signal.slot().clear();
      if (!ec && !std::exchange(wait->over, true)) wake();
    };
    Clock{}.async_wait_until(
        strand, until,
        boost::asio::bind_cancellation_slot(
            wait->signal.slot(), boost::asio::bind_executor(strand, std::move(on_time))));
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

  std::shared_ptr<waiting> current_;
};

}  // namespace weir::detail

#endif
