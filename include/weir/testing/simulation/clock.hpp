// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_CLOCK_HPP
#define WEIR_TESTING_SIMULATION_CLOCK_HPP

#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// A host's clock in a simulated world: it runs a little too fast or too slow, and may jump ahead,
/// as after a suspend; as a store's own clock it may also jump back. Copies are the same clock.
class simulated_clock {
 public:
  static constexpr steady_time uptime = steady_time{std::chrono::hours{24}};

  /// @param skew how much faster than the world's time, in millionths
  explicit simulated_clock(world& in, std::int64_t skew = 0)
      : state_{std::make_shared<state>(in, skew)} {}

  [[nodiscard]] steady_time steady_now() const noexcept { return uptime + state_->elapsed(); }
  [[nodiscard]] time_point system_now() const noexcept {
    return state_->in.began_at() + state_->elapsed();
  }

  /// Moves it, ahead or (for a store's) back. Waits whose time has come end.
  void jump(duration by) const {
    state_->ahead += by;
    state_->wake_due();
    for (auto const& [place, w] : state_->line) schedule(state_, place.deadline);
  }

  template <class Token = boost::asio::deferred_t>
  auto async_wait_until(boost::asio::any_io_executor executor, steady_time t,
                        Token&& token = {}) const {
    using handler_type = boost::asio::any_completion_handler<void(error_code)>;
    auto initiate = [ex = executor](handler_type handler, steady_time until,
                                    std::shared_ptr<state> const& s) {
      wait(ex, std::move(handler), until, s);
    };
    return boost::asio::async_initiate<Token, void(error_code)>(
        weir::detail::bound_initiation{std::move(executor), std::move(initiate)}, token, t, state_);
  }

 private:
  struct place_in_line {
    steady_time deadline;
    std::uint64_t arrival = 0;
    friend constexpr auto operator<=>(place_in_line const&, place_in_line const&) = default;
  };
  using waiter = std::shared_ptr<weir::parked<error_code>>;

  struct state {
    state(world& w, std::int64_t skew) : in{w}, rate{1'000'000 + skew} {}

    [[nodiscard]] duration elapsed() const noexcept {
      auto const n = in.now().count();
      return duration{n / 1'000'000 * rate + n % 1'000'000 * rate / 1'000'000} + ahead;
    }
    /// How long the world takes until this clock has moved on by `d`, at least.
    [[nodiscard]] duration until(duration d) const noexcept {
      return duration{d.count() / rate * 1'000'000 + d.count() % rate * 1'000'000 / rate + 2};
    }
    void wake_due() {
      std::vector<waiter> due;
      while (!line.empty() && line.begin()->first.deadline <= uptime + elapsed()) {
        due.push_back(line.begin()->second);
        line.erase(line.begin());
      }
      for (auto const& w : due) w->resume({});
    }

    world& in;
    std::int64_t rate;
    duration ahead{};
    std::uint64_t arrivals = 0;
    std::map<place_in_line, waiter> line;
  };

  static void wait(boost::asio::any_io_executor const& ex,
                   boost::asio::any_completion_handler<void(error_code)> handler, steady_time until,
                   std::shared_ptr<state> const& s) {
    auto const now = uptime + s->elapsed();
    if (now >= until) {
      weir::post_completion(ex, std::move(handler), error_code{});
      return;
    }
    place_in_line const place{until, ++s->arrivals};
    auto leave = [weak = std::weak_ptr<state>{s}, place]() noexcept {
      if (auto const owner = weak.lock()) owner->line.erase(place);
    };
    auto const op = weir::park<error_code>(ex, std::move(handler), std::move(leave));
    if (!op->waiting()) return;
    s->line.emplace(place, op);
    schedule(s, until);
  }

  static void schedule(std::shared_ptr<state> const& s, steady_time deadline) {
    auto const left = deadline - (uptime + s->elapsed());
    if (left > std::chrono::hours{24}) return;  // longer than any run
    s->in.after(s->until(left), [weak = std::weak_ptr<state>{s}] {
      if (auto const owner = weak.lock()) owner->wake_due();
    });
  }

  std::shared_ptr<state> state_;
};

static_assert(host_clock<simulated_clock>);

}  // namespace weir::testing::simulation

#endif
