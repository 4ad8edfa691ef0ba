// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_PATIENCE_HPP
#define WEIR_DETAIL_PATIENCE_HPP

#include "weir/concept.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/parking.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace weir::detail {

/// Ends operations that take longer than their callers allow. What was not sent by then never is:
/// it ends with what is wrong with the store. What was sent is of unknown outcome.
///
/// All are looked at together, by one timer, in a strand of its own.
template <clock Clock>
class patience_watch : public std::enable_shared_from_this<patience_watch<Clock>> {
 public:
  /// @param why the error of what was not sent; called in any thread
  patience_watch(boost::asio::any_io_executor const& executor, std::function<error_code()> why)
      : strand_{boost::asio::make_strand(executor)},
        why_{std::move(why)} {}

  /// @param most from now on; 0: as long as it takes
  template <class... Args>
  void add(std::shared_ptr<parked<Args...>> const& op, duration most) {
    if (most <= duration::zero()) return;
    entry one{saturating_add(Clock{}.steady_now(), most), op};
    dispatch_task(strand_, [self = this->shared_from_this(), one = std::move(one)]() mutable {
      self->all_.push_back(std::move(one));
      if (self->all_.back().until < self->next_) self->sweep();
    });
  }

 private:
  struct entry {
    steady_time until;
    std::weak_ptr<parked_base> op;
  };

  /// Forgets those that have ended, too, so that they keep no executor busy for long.
  void sweep() {
    auto const now = Clock{}.steady_now();
    auto next = steady_time::max();
    std::erase_if(all_, [&](entry const& e) {
      auto const op = e.op.lock();
      if (!op || !op->waiting()) return true;
      if (e.until > now) {
        next = std::min(next, e.until);
        return false;
      }
      auto const why = why_();
      op->lapse(why ? why : make_error_code(errc::store_unavailable));
      return true;
    });
    next_ = next;
    if (all_.empty()) return timer_.stop();
    constexpr std::chrono::milliseconds least{1};
    constexpr std::chrono::milliseconds most{50};
    auto const at =
        std::clamp<steady_time>(next, saturating_add(now, least), saturating_add(now, most));
    timer_.start(strand_, at, [self = this->shared_from_this()] { self->sweep(); });
  }

  boost::asio::any_io_executor const strand_;
  std::function<error_code()> const why_;
  std::vector<entry> all_;
  steady_time next_ = steady_time::max();  // the first of them
  alarm<Clock> timer_;
};

}  // namespace weir::detail

#endif
