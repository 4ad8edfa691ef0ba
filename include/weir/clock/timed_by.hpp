// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CLOCK_TIMED_BY_HPP
#define WEIR_CLOCK_TIMED_BY_HPP

#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <utility>

namespace weir::detail {

/// A wait by the clock `Source` (static `steady_now()`, `longest_sleep`) that Asio's timer, another
/// clock, carries out: clock/timer_wait.hpp.
template <class Source>
struct timed_by {
  static void start(boost::asio::any_completion_handler<void(error_code)> handler,
                    boost::asio::any_io_executor const& executor, steady_time t);
};

/// Starts such a wait.
template <class Source>
class timer_initiation {
 public:
  using executor_type = boost::asio::any_io_executor;

  explicit timer_initiation(executor_type executor) : executor_{std::move(executor)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

  template <class Handler>
  void operator()(Handler&& handler, steady_time t) const {
    timed_by<Source>::start(std::forward<Handler>(handler), executor_, t);
  }

 private:
  executor_type executor_;
};

/// Begins such a wait for any token. Its return type is spelled out, so that a concept that asks
/// for it does not compile one.
template <class Source, class Token>
auto async_timer_wait(boost::asio::any_io_executor executor, steady_time t, Token&& token)
    -> decltype(boost::asio::async_initiate<Token, void(error_code)>(
        std::declval<timer_initiation<Source>>(), token, t)) {
  return boost::asio::async_initiate<Token, void(error_code)>(
      timer_initiation<Source>{std::move(executor)}, token, t);
}

}  // namespace weir::detail

#endif
