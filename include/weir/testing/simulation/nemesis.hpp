// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_NEMESIS_HPP
#define WEIR_TESTING_SIMULATION_NEMESIS_HPP

#include "weir/testing/simulation/cluster.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace weir::testing::simulation {

/// What goes wrong in a run beside the requests: hosts and the store, by the seed.
struct troubles {
  duration every = std::chrono::seconds{2};    ///< one of them, about this often
  duration longest = std::chrono::seconds{5};  ///< outages, stalls and jumps
  bool crashes = true;
  bool partitions = true;
  bool stalls = true;
  bool node_jumps = true;
  bool store_jumps = true;
  bool store_restarts = true;
};

/// Draws the weather of a run.
[[nodiscard]] inline weather draw_weather(dice& d) {
  weather w;
  constexpr std::uint32_t rates[] = {0, 5, 30, 100};
  w.fail_before = d.pick(rates);
  w.lose_answer = d.pick(rates);
  w.silence = d.pick(rates) / 2;
  w.duplicate = d.pick(rates);
  w.slow = d.pick(rates);
  constexpr std::uint32_t hint_rates[] = {0, 100, 500, 1000};
  w.hint_dropped = d.pick(hint_rates);
  w.hint_spurious = (1000 - w.hint_dropped) / (d.chance(50) ? 2 : 10);
  constexpr std::int64_t latencies[] = {1, 10, 100};
  w.latency = std::chrono::milliseconds{d.pick(latencies)};
  constexpr std::int64_t times[] = {500, 2'000, 8'000};
  w.slowest = std::chrono::milliseconds{d.pick(times)};
  w.client_timeout = std::chrono::milliseconds{d.pick(times)};
  return w;
}

/// Makes trouble until it is told to stop.
template <class Engine>
class nemesis {
 public:
  nemesis(cluster<Engine>& on, program<Engine>& runs, troubles const& t)
      : on_{on},
        runs_{runs},
        troubles_{t} {
    next();
  }
  nemesis(nemesis const&) = delete;
  nemesis& operator=(nemesis const&) = delete;

  void stop() noexcept { stopped_ = true; }

  void crash(node<Engine>& n) {
    auto& w = on_.in;
    w.reach(rare_state::node_crashed);
    if (runs_.holds_lease(n)) w.reach(rare_state::crashed_with_lease);
    w.tell([&] { return "node " + std::to_string(n.number()) + " crashes"; });
    n.crash(w.faults.chance(50));
  }
  void restart(node<Engine>& n) {
    if (n.up()) return;
    on_.in.tell([&] { return "node " + std::to_string(n.number()) + " is back"; });
    n.boot();
    runs_.start(n);
  }

 private:
  void next() {
    auto const most = static_cast<std::uint64_t>(troubles_.every.count());
    on_.in.after(duration{static_cast<duration::rep>(on_.in.faults.below(2 * most))}, [this] {
      if (stopped_) return;
      strike();
      next();
    });
  }

  duration some_time() {
    auto const most = static_cast<std::uint64_t>(troubles_.longest.count());
    return duration{static_cast<duration::rep>(1 + on_.in.faults.below(most))};
  }

  void strike() {
    auto& w = on_.in;
    auto& n = *on_.nodes[w.faults.below(on_.nodes.size())];
    auto const d = some_time();
    auto const on_node = [&](std::string_view what) {
      w.tell([&] { return "node " + std::to_string(n.number()) + ' ' + std::string{what}; });
    };
    switch (w.faults.below(7)) {
      case 0:
        if (!troubles_.crashes || !n.up()) return;
        crash(n);
        w.after(d, [this, &n] { restart(n); });
        return;
      case 1:
        if (!troubles_.partitions || !n.up()) return;
        w.reach(rare_state::node_partitioned);
        on_node("is cut off");
        n.cut_off(true);
        w.after(d, [&n] { n.cut_off(false); });
        return;
      case 2:
        if (!troubles_.stalls || !n.up()) return;
        w.reach(rare_state::node_stalled);
        on_node("stalls");
        w.stall(n.context(), d);
        return;
      case 3:
        if (!troubles_.node_jumps) return;
        w.reach(rare_state::node_clock_jumped);
        on_node("has its clock jump ahead");
        n.clock().jump(d);
        return;
      case 4:
        if (!troubles_.store_jumps) return;
        w.reach(rare_state::store_clock_forward);
        w.tell([&] { return "the store's clock jumps ahead by " + to_text(d); });
        on_.last_jump = w.now();
        on_.store_clock.jump(d);
        return;
      case 5:
        if (!troubles_.store_jumps) return;
        w.reach(rare_state::store_clock_back);
        w.tell([&] { return "the store's clock jumps back by " + to_text(d); });
        on_.store_clock.jump(-d);
        return;
      default:
        if (!troubles_.store_restarts) return;
        w.tell([] { return std::string{"the store restarts"}; });
        on_.net.restart(d / 4);
        return;
    }
  }

  cluster<Engine>& on_;
  program<Engine>& runs_;
  troubles troubles_;
  bool stopped_ = false;
};

}  // namespace weir::testing::simulation

#endif
