// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_PATIENCE_HPP
#define WEIR_DETAIL_PATIENCE_HPP

#include "weir/concept.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::detail {

/// Ends operations that take longer than their callers allow. What was not sent by then never is:
/// it ends with what is wrong with the store. What was sent is of unknown outcome.
///
/// All are looked at together, by one timer, in a strand of their own. Only what the executor is to
/// run has that strand, and so it goes with the executor, which a store may outlive.
template <clock Clock>
class patience_watch {
 public:
  /// @param why the error of what was not sent; called in any thread
  patience_watch(boost::asio::any_io_executor executor, std::function<error_code()> why)
      : executor_{std::move(executor)},
        why_{std::move(why)} {}

  /// Of any thread.
  /// @param most from now on; 0: as long as it takes
  template <class... Args>
  void add(std::shared_ptr<parked<Args...>> const& op, duration most) {
    if (most <= duration::zero()) return;
    entry one{saturating_add(Clock{}.steady_now(), most), op};
    auto const to = current();
    dispatch_task(to->strand, [to, one = std::move(one)]() mutable {
      to->all.push_back(std::move(one));
      if (to->all.back().until < to->next) to->sweep();
    });
  }

 private:
  struct entry {
    steady_time until;
    std::weak_ptr<parked_base> op;
  };

  /// Those that wait at the same time; over once none does.
  struct vigil : std::enable_shared_from_this<vigil> {
    explicit vigil(patience_watch const& of)
        : strand{boost::asio::make_strand(of.executor_)},
          why{of.why_} {}

    /// Forgets those that have ended, too, so that they keep no executor busy for long.
    void sweep() {
      auto const now = Clock{}.steady_now();
      auto soonest = steady_time::max();
      std::erase_if(all, [&](entry const& e) {
        auto const op = e.op.lock();
        if (!op || !op->waiting()) return true;
        if (e.until > now) {
          soonest = std::min(soonest, e.until);
          return false;
        }
        auto const ec = why();
        op->lapse(ec ? ec : make_error_code(errc::store_unavailable));
        return true;
      });
      next = soonest;
      if (all.empty()) return timer.stop();
      constexpr std::chrono::milliseconds least{1};
      constexpr std::chrono::milliseconds most{50};
      auto const at =
          std::clamp<steady_time>(next, saturating_add(now, least), saturating_add(now, most));
      timer.start(strand, at, [self = this->shared_from_this()] { self->sweep(); });
    }

    boost::asio::any_io_executor const strand;
    std::function<error_code()> const why;
    std::vector<entry> all{};
    steady_time next = steady_time::max();  // the first of them
    alarm<Clock> timer{};
  };

  [[nodiscard]] std::shared_ptr<vigil> current() {
    std::lock_guard const lock{mutex_};
    auto out = current_.lock();
    if (!out) current_ = out = std::make_shared<vigil>(*this);
    return out;
  }

  boost::asio::any_io_executor const executor_;
  std::function<error_code()> const why_;
  std::mutex mutex_;
  std::weak_ptr<vigil> current_;
};

}  // namespace weir::detail

#endif
