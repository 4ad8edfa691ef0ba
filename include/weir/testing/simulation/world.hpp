// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_WORLD_HPP
#define WEIR_TESTING_SIMULATION_WORLD_HPP

#include "weir/testing/dice.hpp"
#include "weir/testing/simulation/context.hpp"
#include "weir/testing/simulation/rare_state.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// Is a lease as long as it was asked for, or longer by what a store's time is rounded to?
[[nodiscard]] constexpr bool lasts_as_asked(duration lasts, duration asked) noexcept {
  constexpr duration coarsest = std::chrono::milliseconds{1};
  return lasts >= asked && lasts <= asked + coarsest;
}

/// A promise that was found broken.
struct broken {
  std::string promise;
  std::string detail;
  std::uint64_t step = 0;
  duration at{};
};

/// Everything that a run depends on: its seed, its virtual time, what will happen when, and what is
/// ready to run where. Equal seeds make equal runs, and say so by equal traces.
class world {
 public:
  /// @param telling keeps the last events as text, for the report of a failure
  /// @param date    on every clock that is right, when the world begins
  world(std::uint64_t seed, bool telling, time_point date)
      : date_{date},
        telling_{telling},
        scheduling_{seed ^ 0x5c4ed00000000001U},
        faults{dice{seed ^ 0xfa0175U}.fork()},
        choices{dice{seed}.fork()} {
    in_order_ = 25 * scheduling_.below(5);
  }
  world(world const&) = delete;
  world& operator=(world const&) = delete;

  // ------------------------------------------------------------------------------------ time

  /// Since the start of the run.
  [[nodiscard]] duration now() const noexcept { return now_; }
  [[nodiscard]] time_point began_at() const noexcept { return date_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  template <class F>
  void after(duration d, F f) {
    events_.push_back({now_ + std::max(d, duration::zero()), ++arrivals_, task{std::move(f)}});
    std::push_heap(events_.begin(), events_.end(), later);
  }

  /// A process joins, or ends.
  void enter(simulated_context& context) { places_.push_back({&context, duration::zero()}); }
  void leave(simulated_context& context) {
    std::erase_if(places_, [&](place const& p) { return p.context == &context; });
  }
  /// The process does nothing for this long: a collector's pause, a suspended host.
  void stall(simulated_context& context, duration d) {
    for (auto& p : places_) {
      if (p.context != &context) continue;
      p.stalled_until = now_ + d;
      after(d, [] {});  // so that there is a moment at which it goes on
    }
  }
  void go_on() {
    for (auto& p : places_) p.stalled_until = duration::zero();
  }
  [[nodiscard]] bool stalled(simulated_context const& context) const noexcept {
    return std::any_of(places_.begin(), places_.end(), [&](place const& p) {
      return p.context == &context && p.stalled_until > now_;
    });
  }

  /// Runs one ready handler of one process, or, when none is ready, moves time on to the next
  /// event. False: nothing is left to happen.
  bool step() {
    std::size_t runnable = 0;
    for (auto const& p : places_) runnable += can_run(p) ? 1 : 0;
    if (runnable == 0 && events_.empty()) return false;
    ++steps_;
    if (runnable == 0) {
      std::pop_heap(events_.begin(), events_.end(), later);
      auto next = std::move(events_.back());
      events_.pop_back();
      now_ = next.when;
      mix(static_cast<std::uint64_t>(now_.count()));
      next.what();
      return true;
    }
    auto chosen = scheduling_.below(runnable);
    for (std::size_t i = 0; i != places_.size(); ++i) {
      if (!can_run(places_[i]) || chosen-- != 0) continue;
      mix(i);
      places_[i].context->run_one(scheduling_, scheduling_.chance(in_order_));
      break;
    }
    return true;
  }

  // ------------------------------------------------------------------------------------ findings

  void reach(rare_state s) noexcept { ++reached_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] auto const& reached() const noexcept { return reached_; }

  void mix(std::uint64_t value) noexcept {
    trace_ = (trace_ ^ value) * 0x9e3779b97f4a7c15U;
    trace_ ^= trace_ >> 29U;
  }
  [[nodiscard]] std::uint64_t trace() const noexcept { return trace_; }

  [[nodiscard]] bool telling() const noexcept { return telling_; }
  /// `make()` gives the text; it is called only where somebody will read it.
  template <class Make>
  void tell(Make&& make) {
    if (!telling_) return;
    auto const ms = now_.count() / 1000;
    std::string line = std::to_string(steps_) + " @" + std::to_string(ms / 1000) + '.' +
                       std::to_string(1000 + ms % 1000).substr(1) + "ms ";
    told_.push_back(std::move(line) + make());
    if (told_.size() > remembered_) told_.pop_front();
  }
  void remember(std::size_t n) noexcept { remembered_ = n; }
  [[nodiscard]] std::deque<std::string> const& told() const noexcept { return told_; }

  /// A promise is broken. The first counts.
  void found_broken(std::string_view promise, std::string detail) {
    tell([&] { return "BROKEN " + std::string{promise} + ": " + detail; });
    if (broken_.empty()) {
      broken_.push_back({std::string{promise}, std::move(detail), steps_, now_});
    }
  }
  template <class Detail>
  void expect(bool kept, std::string_view promise, Detail&& detail) {
    if (!kept) found_broken(promise, detail());
  }
  [[nodiscard]] broken const* failure() const noexcept {
    return broken_.empty() ? nullptr : &broken_.front();
  }

 private:
  struct event {
    duration when;
    std::uint64_t arrival;
    task what;
  };
  struct place {
    simulated_context* context;
    duration stalled_until;
  };

  static bool later(event const& a, event const& b) noexcept {
    return a.when != b.when ? a.when > b.when : a.arrival > b.arrival;
  }
  [[nodiscard]] bool can_run(place const& p) const noexcept {
    return p.stalled_until <= now_ && p.context->ready() != 0;
  }

  time_point date_;
  bool telling_;
  dice scheduling_;
  std::uint64_t in_order_ = 0;  // percent
  duration now_{};
  std::uint64_t steps_ = 0;
  std::uint64_t arrivals_ = 0;
  std::uint64_t trace_ = 1;
  std::size_t remembered_ = 60;
  std::vector<event> events_;
  std::vector<place> places_;
  std::array<std::uint64_t, rare_states> reached_{};
  std::deque<std::string> told_;
  std::vector<broken> broken_;

 public:
  dice faults;   ///< for what goes wrong
  dice choices;  ///< for what the programs do
};

}  // namespace weir::testing::simulation

#endif
