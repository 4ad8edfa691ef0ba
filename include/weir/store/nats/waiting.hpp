// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_WAITING_HPP
#define WEIR_STORE_NATS_WAITING_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/outage.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/socket.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

namespace weir::detail {

template <class T>
[[nodiscard]] T take_first(std::deque<T>& from) {
  auto first = std::move(from.front());
  from.pop_front();
  return first;
}

/// Those who wait until they can be served, in the order of their patience. In the strand of the
/// link.
///
/// Each has `wanted()`, a time `give_up_at`, and `lose_patience(error_code)`, which is called then.
template <class T>
class nats_waiting {
 public:
  /// @param state knows why nobody could be served
  explicit nats_waiting(std::shared_ptr<outage> state) : state_{std::move(state)} {}

  /// @param owner has this as a member, and lives as long as somebody waits
  /// @param patience no shorter than that of those who came before
  void add(std::shared_ptr<void> owner, nats_strand const& strand, std::shared_ptr<T> who,
           duration patience) {
    who->give_up_at = saturating_add(system_clock{}.steady_now(), patience);
    all_.push_back(std::move(who));
    if (all_.size() == 1) sweep(std::move(owner), strand);
  }

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }

  /// All of them, who do not wait any more.
  [[nodiscard]] std::deque<std::shared_ptr<T>> take() {
    timer_.stop();
    return std::exchange(all_, {});
  }

 private:
  /// Sends away those that have waited for too long, and looks again when the next one will have.
  void sweep(std::shared_ptr<void> owner, nats_strand const& strand) {
    auto const now = system_clock{}.steady_now();
    while (!all_.empty() && (!all_.front()->wanted() || all_.front()->give_up_at <= now)) {
      auto const who = take_first(all_);
      who->lose_patience(state_->gives_up());
    }
    if (all_.empty()) return;
    timer_.start(strand, all_.front()->give_up_at,
                 [this, owner = std::move(owner), strand] { sweep(owner, strand); });
  }

  std::shared_ptr<outage> const state_;
  std::deque<std::shared_ptr<T>> all_;
  alarm<system_clock> timer_;
};

}  // namespace weir::detail

#endif
