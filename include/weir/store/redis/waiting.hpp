// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_WAITING_HPP
#define WEIR_STORE_REDIS_WAITING_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/backend.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace weir::detail {

/// Commands that were not executed, and wait until they can be, each as long as it has patience. A
/// member of its backend, and in its strand.
class redis_waiting {
 public:
  using command = std::shared_ptr<redis_request>;

  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

  /// Its `give_up_at` is set.
  void add(redis_backend& backend, command const& r) {
    r->stays();
    all_.push_back(r);
    if (all_.size() == 1) sweep(backend.shared_from_this());
  }

  /// All of them, from the longest waiting one on.
  [[nodiscard]] std::deque<command> take() {
    patience_.stop();
    return std::exchange(all_, {});
  }

  void fail(error_code ec) {
    for (auto const& r : take()) r->fail(ec);
  }

 private:
  /// Fails those that have waited for too long, and looks again when the next one will have. Each
  /// time it looks at all of them; and those that came back may have less patience left.
  void sweep(std::shared_ptr<redis_backend> const& owner) {
    auto const now = system_clock{}.steady_now();
    auto next = steady_time::max();
    std::vector<command> over;
    std::erase_if(all_, [&](auto const& r) {
      bool const stays = r->wanted() && r->give_up_at > now;
      if (stays) next = std::min(next, r->give_up_at);
      if (!stays) over.push_back(r);
      return !stays;
    });
    if (!all_.empty()) {
      next = std::clamp(next, saturating_add(now, std::chrono::milliseconds{10}),
                        saturating_add(now, std::chrono::milliseconds{100}));
      patience_.start(owner->strand(), next, [this, owner] { sweep(owner); });
    }
    for (auto const& r : over) {
      r->fail(r->refusal() ? r->refusal() : owner->state().gives_up());
    }
  }

  std::deque<command> all_;
  alarm<system_clock> patience_;
};

}  // namespace weir::detail

#endif
