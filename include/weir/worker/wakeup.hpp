// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_WAKEUP_HPP
#define WEIR_WORKER_WAKEUP_HPP

#include "weir/detail/parking.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <memory>
#include <utility>

namespace weir::detail {

/// One coroutine waits, others wake it. A wake-up that finds nobody waiting is kept for the next
/// wait; several are one. Used on one strand only.
class wakeup {
 public:
  template <class Executor>
  explicit wakeup(Executor const& strand) : executor_{strand} {}

  void notify() {
    if (auto const waiter = std::exchange(waiter_, nullptr)) {
      if (waiter->resume(error_code{})) return;
    }
    pending_ = true;
  }

  template <class Token>
  auto async_wait(Token&& token) {
    return boost::asio::async_initiate<Token, void(error_code)>(
        [this](auto handler) {
          if (std::exchange(pending_, false)) {
            post_completion(executor_, std::move(handler), error_code{});
          } else {
            waiter_ = park<error_code>(executor_, std::move(handler));
          }
        },
        token);
  }

 private:
  boost::asio::any_io_executor executor_;
  std::shared_ptr<parked<error_code>> waiter_;
  bool pending_ = false;
};

}  // namespace weir::detail

#endif
