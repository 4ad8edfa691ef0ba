// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_WAITS_HPP
#define WEIR_STORE_NATS_WAITS_HPP

#include "weir/clock/system.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/permits.hpp"
#include "weir/store/nats/record.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// The keeper of a key's permits, who also knows who waits for a hint. While somebody does, it
/// looks at the poll interval, and at once when it is told to: so a lost message delays, and
/// strands nobody. One look is for all who wait here. An owner looks at what it remembers, whenever
/// that has changed.
class nats_permit_keeper final : public nats_keeper<nats_permits> {
 public:
  using nats_keeper::nats_keeper;

  [[nodiscard]] bool idle() const noexcept override {
    return waiters_.empty() && nats_keeper::idle();
  }

  void wait(std::string holder, hint_waiter op) {
    if (owns() && should_ask(remembered(), holder, remembered_time())) {
      wake(op);
      return;
    }
    // Another process that has given a wait up, and waits again, may not have told so.
    auto const before =
        std::ranges::find(waiters_, holder, &std::pair<std::string, hint_waiter>::first);
    if (before != waiters_.end()) {
      wake(std::exchange(before->second, std::move(op)));
    } else {
      waiters_.emplace_back(std::move(holder), std::move(op));
    }
    if (!owns()) return look();
    if (waiters_.size() == 1) look_later();
  }

  /// Somebody else owns that part, who tells those who wait there only.
  void leave(std::uint32_t part) {
    if (part == this->part()) look_failed({});
  }

  void hinted() {
    if (!waiters_.empty()) look();
  }

 private:
  static bool should_ask(nats_permits& state, std::string const& holder, nats_now now) {
    return state.should_ask(holder, now.earliest);
  }
  void changed() override {
    if (!waiters_.empty() && owns()) looked(remembered(), remembered_time());
  }
  void looked(nats_permits& state, nats_now now) override {
    sleep_.stop();
    std::erase_if(waiters_, [&](auto const& w) {
      if (!w.second->waiting()) return true;
      if (!should_ask(state, w.first, now)) return false;
      wake(w.second);
      return true;
    });
    if (!waiters_.empty()) look_later();
  }
  void look_later() {
    auto const on = link();
    if (!on) return;
    auto const keeper = std::static_pointer_cast<nats_permit_keeper>(shared_from_this());
    sleep_.start(on->strand(),
                 saturating_add(system_clock{}.steady_now(), on->options().poll_interval),
                 [keeper] { keeper->again(); });
  }
  void look_failed(error_code ec) override {
    sleep_.stop();
    for (auto const& w : std::exchange(waiters_, {})) wake(w.second, ec);
  }
  void again() {
    std::erase_if(waiters_, [](auto const& w) { return !w.second->waiting(); });
    if (waiters_.empty()) return;
    owns() ? looked(remembered(), remembered_time()) : look();
  }

  std::vector<std::pair<std::string, hint_waiter>> waiters_;
  alarm<system_clock> sleep_;
};

}  // namespace weir::detail

#endif
