// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_RUN_HPP
#define WEIR_TESTING_SIMULATION_RUN_HPP

#include "weir/testing/simulation/cluster.hpp"
#include "weir/testing/simulation/nemesis.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <boost/asio/cancellation_type.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace weir::testing::simulation {

/// What a sweep does to a run at one of its steps.
enum class interruption : std::uint8_t {
  none,
  destroy,  ///< every process dies at once
  cancel,   ///< everything is cancelled, and must end
};

struct run_options {
  std::uint64_t seed = 1;
  bool telling = false;            ///< keep the last events for the report
  std::size_t remembered = 60;     ///< how many
  bool small = false;              ///< few nodes and clients, and a short time
  std::uint64_t interrupt_at = 0;  ///< the step
  interruption what = interruption::none;
  std::uint64_t most_steps = 4'000;  ///< of the phase in which things go wrong
};

struct run_result {
  std::optional<broken> failure;
  std::uint64_t trace = 0;
  std::uint64_t steps = 0;
  std::uint64_t steps_in_safety = 0;
  duration simulated{};
  std::array<std::uint64_t, rare_states> reached{};
  std::string told;
};

/// How a program is run.
struct plan {
  std::uint32_t nodes = 3;
  time_point date = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};  ///< when it begins
  duration safety = std::chrono::seconds{30};  ///< how long things go wrong
  duration bound = std::chrono::minutes{30};   ///< within this all must be done after healing
  weather network{};
  troubles trouble{};
};

/// One run: things go wrong for a while, then they do not any more, and everything must come to its
/// end. The promises are checked after every step.
///
/// @tparam Program is constructed from (cluster&, Knobs const&); `Program::knobs` is drawn from the
/// seed, by a constructor (dice&, bool small), and has a member `plan run`
template <class Program, class MakeEngine>
[[nodiscard]] run_result run(run_options const& o, MakeEngine&& make_engine) {
  using engine = typename Program::engine;
  dice draws{o.seed * 2 + 1};
  typename Program::knobs const knobs{draws, o.small};
  cluster<engine> all{o.seed, o.telling, knobs.run.date, knobs.run.network, make_engine};
  auto& w = all.in;
  w.remember(o.remembered);
  constexpr std::uint64_t most_skew = 20'000;  // millionths
  for (std::uint32_t i = 0; i != knobs.run.nodes; ++i) {
    all.add_node(static_cast<std::int64_t>(draws.below(2 * most_skew)) -
                 static_cast<std::int64_t>(most_skew));
  }
  Program runs{all, knobs};
  for (auto& n : all.nodes) runs.start(*n);
  nemesis<engine> makes{all, runs, knobs.run.trouble};

  run_result out;
  auto const step = [&] {
    bool const more = w.step();
    runs.check();
    return more && w.failure() == nullptr;
  };
  auto const go_on_until = [&](duration end, std::uint64_t most, auto const& done) {
    while (!done()) {
      if (w.now() >= end || w.steps() >= most || !step()) return false;
    }
    return true;
  };

  // Safety.
  bool const interrupted = o.what != interruption::none;
  auto const never = [] { return false; };
  go_on_until(knobs.run.safety, interrupted ? o.interrupt_at : o.most_steps, never);
  out.steps_in_safety = w.steps();

  // Healing.
  makes.stop();
  all.net.heal();
  w.go_on();
  for (auto& n : all.nodes) n->cut_off(false);
  constexpr std::uint64_t patience = 400'000;  // steps
  if (interrupted && w.failure() == nullptr) {
    if (o.what == interruption::cancel) {
      constexpr boost::asio::cancellation_type kinds[] = {boost::asio::cancellation_type::terminal,
                                                          boost::asio::cancellation_type::partial,
                                                          boost::asio::cancellation_type::total};
      for (auto& n : all.nodes) {
        makes.restart(*n);
        n->cancel_all(w.faults.pick(kinds));
      }
      bool const ended = go_on_until(w.now() + knobs.run.bound, w.steps() + patience, [&] {
        std::size_t left = 0;
        for (auto& n : all.nodes) left += n->up() ? n->threads() : 0;
        return left == 0;
      });
      w.expect(ended || w.failure() != nullptr, "R7",
               [] { return std::string{"what was cancelled does not end"}; });
    }
    for (auto& n : all.nodes) {
      if (n->up()) makes.crash(*n);
    }
  }
  for (auto& n : all.nodes) makes.restart(*n);
  runs.heal();
  auto const healed_at = w.now();
  bool const drained =
      w.failure() == nullptr && go_on_until(healed_at + knobs.run.bound, w.steps() + patience,
                                            [&] { return runs.drained(); });
  w.expect(drained || w.failure() != nullptr, "R6",
           [] { return std::string{"not everything comes to its end after healing"}; });

  if (auto const* const f = w.failure()) out.failure = *f;
  out.trace = w.trace();
  out.steps = w.steps();
  out.simulated = w.now();
  out.reached = w.reached();
  for (auto const& line : w.told()) out.told.append("    ").append(line).append("\n");
  return out;
}

}  // namespace weir::testing::simulation

#endif
