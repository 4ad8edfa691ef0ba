// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SIMULATION_DRIVER_HPP
#define WEIR_TEST_SIMULATION_DRIVER_HPP

#include "weir/store/memory.hpp"
#include "weir/testing/simulation.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// What every simulated program's test does: many seeds, the same twice, interruptions at every
// step, and defects that must be found. `program -- --seeds N --from M` and `-- --seed N` say which
// seeds, `--events N` how many of the last events of one are told.
namespace weir::testing::simulation {

using memory_engine = basic_memory_store<simulated_clock>;

/// The store that the programs run on: the memory store, or one with a deliberate defect, to see
/// that the simulator finds it. Defects are what an author of a store might get wrong.
template <class Defects>
class engine_with {
 public:
  using executor_type = boost::asio::any_io_executor;

  engine_with(memory_engine store, int defect)
      : store_{std::move(store)},
        defects_{defect < 0 && !always ? nullptr : std::make_shared<Defects>(defect)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }
  [[nodiscard]] time_point now() const noexcept { return store_.now(); }

  template <class C>
    requires weir::detail::engine_step<C>
  result<typename C::result> execute(C const& c) const {
    if constexpr (requires { defects_->step(c, store_); }) {
      if (defects_) return defects_->step(c, store_);
    }
    return store_.execute(c);
  }

  template <class C, class Token>
    requires weir::command::waits_for_event<C>
  auto async_execute(C const& c, Token&& token) const {
    return store_.async_execute(c, std::forward<Token>(token));
  }

 private:
  /// Does it change something without any defect, too?
  static constexpr bool always = requires { Defects::always; };

  memory_engine store_;
  std::shared_ptr<Defects> defects_;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

/// A sanitizer makes a run many times as slow: there, fewer seeds do, and what they reach is left
/// to the ordinary builds to judge.
inline constexpr std::uint64_t seeds_per_sanitized_seed = 40;

/// The seeds that this call of the test program is about.
struct seeds_asked_for {
  seeds_asked_for() {
    auto const& suite = boost::unit_test::framework::master_test_suite();
    for (int i = 1; i + 1 < suite.argc; i += 2) {
      std::string_view const option = suite.argv[i];
      auto const value = std::strtoull(suite.argv[i + 1], nullptr, 10);
      if (option == "--seeds") count = value;
      if (option == "--from") from = value;
      if (option == "--events") events = value;
      if (option == "--seed") {
        one = true;
        from = value;
        count = 1;
      }
    }
  }

  std::uint64_t from = 1;
  std::uint64_t count = 0;  ///< 0: as many as the test does by itself
  bool one = false;
  std::size_t events = 60;
};

/// The rare states that all programs must reach.
inline constexpr rare_state always_expected[] = {
    rare_state::request_lost,        rare_state::answer_lost,         rare_state::never_answered,
    rare_state::duplicate_delivered, rare_state::stale_delivery,      rare_state::node_partitioned,
    rare_state::node_stalled,        rare_state::node_clock_jumped,   rare_state::node_crashed,
    rare_state::store_clock_back,    rare_state::store_clock_forward,
};

struct defect {
  int which;
  std::string_view failure;  ///< in FAILURES.md, or the promise
  std::string_view what;
};

/// Bad weather, and troubles that last up to twice this long.
inline void draw_trouble(plan& run, dice& d, duration usual) {
  run.network = draw_weather(d);
  run.trouble.every = usual / static_cast<int>(1 + d.below(3));
  run.trouble.longest = 2 * usual;
  run.trouble.store_jumps = d.chance(60);
}

/// Counts for as long as it lives.
class counted {
 public:
  explicit counted(int& n) : n_{n} { ++n_; }
  counted(counted const&) = delete;
  counted& operator=(counted const&) = delete;
  ~counted() { --n_; }

 private:
  int& n_;
};

/// The parts that all programs share. Each ends its nodes itself: what runs there knows its
/// members.
template <class Engine>
class simulated_program : public program<Engine> {
 public:
  using engine = Engine;

  void heal() override { healing_ = true; }
  void check() override {}

 protected:
  static constexpr auto token = boost::asio::as_tuple(boost::asio::use_awaitable);

  explicit simulated_program(cluster<Engine>& in) : in_{in} {}

  /// Heals, and says when what was on its way has arrived.
  void heal_until_settled(plan const& run, duration more = {}) {
    healing_ = true;
    auto const takes = run.network.slowest + run.network.client_timeout + more;
    settled_at_ = in_.in.now() + takes;
    in_.in.after(takes, [] {});
  }
  /// May more jobs come, or do some wait?
  [[nodiscard]] bool has_jobs() const {
    auto const& queues = in_.audits.jobs.queues();
    return producers_ != 0 || in_.in.now() <= settled_at_ ||
           std::any_of(queues.begin(), queues.end(),
                       [](auto const& q) { return q.second.waiting != 0; });
  }
  [[nodiscard]] bool runs() const {
    return std::any_of(in_.nodes.begin(), in_.nodes.end(),
                       [](auto const& n) { return n->threads() != 0; });
  }

  static std::string name(std::uint64_t k) { return "key " + std::to_string(k); }

  duration up_to(duration most) {
    return duration{static_cast<duration::rep>(
        1 + in_.in.choices.below(static_cast<std::uint64_t>(most.count())))};
  }
  template <class Process>
  static boost::asio::awaitable<void> sleep(std::shared_ptr<Process> p, duration d) {
    auto const until = p->on.clock().steady_now() + d;
    co_await p->on.clock().async_wait_until(p->on.executor(), until, token);
  }
  static boost::asio::awaitable<bool> goes_on() {
    auto const state = co_await boost::asio::this_coro::cancellation_state;
    co_return state.cancelled() == boost::asio::cancellation_type::none;
  }

  cluster<Engine>& in_;
  bool healing_ = false;
  bool done_ = false;
  int producers_ = 0;
  duration settled_at_{};
};

/// One program, and how to make the store that it runs on.
template <class Program, class Defects>
class simulator {
 public:
  using engine = engine_with<Defects>;

  explicit simulator(std::string_view name) : name_{name} {}

  run_result run_once(run_options const& o, int defect = -1) const {
    return run<Program>(o, [&](boost::asio::any_io_executor ex, simulated_clock const& clock) {
      return engine{memory_engine{std::move(ex), Program::engine_options(o.seed), clock}, defect};
    });
  }

  /// Runs the seeds, and fails for the first broken promise, with all that is known of it, and for
  /// every state of `always_expected` and `expected` that none of them reached.
  void check_seeds(std::uint64_t usual, std::span<rare_state const> expected) const {
    seeds_asked_for const asked;
    bool const judged = asked.count == 0 && !sanitized;
    auto const own = sanitized ? usual / seeds_per_sanitized_seed : usual;
    auto const count = asked.count == 0 ? own : asked.count;
    std::array<std::uint64_t, rare_states> reached{};
    std::uint64_t steps = 0;
    std::uint64_t trace = 0;
    duration simulated{};
    auto const began = std::chrono::steady_clock::now();
    for (auto seed = asked.from; seed != asked.from + count; ++seed) {
      auto const r = run_once({.seed = seed, .telling = asked.one, .remembered = asked.events});
      steps += r.steps;
      trace = trace * 31 + r.trace;
      simulated += r.simulated;
      for (std::size_t i = 0; i != rare_states; ++i) reached[i] += r.reached[i] != 0 ? 1 : 0;
      if (r.failure) return report(seed, asked.events);
      if (asked.one) std::cout << name_ << ", seed " << seed << ": the last events\n" << r.told;
    }
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
    std::chrono::duration<double, std::ratio<3600>> const hours = simulated;
    std::cout << std::dec << name_ << ": " << count << " runs, " << steps << " steps, "
              << std::fixed << std::setprecision(0) << static_cast<double>(count) / took.count()
              << " seeds/s, " << std::setprecision(1) << hours.count() << " virtual hours, trace "
              << std::hex << trace << std::dec << '\n';
    auto const tell = [&](rare_state s) {
      auto const n = reached[static_cast<std::size_t>(s)];
      if (asked.one && n == 0) return;
      std::cout << "  " << std::left << std::setw(44) << to_string(s) << std::right << std::setw(7)
                << n << " runs\n";
      if (judged) BOOST_TEST(n != 0U, "never reached: " << to_string(s));
    };
    for (auto const s : always_expected) tell(s);
    for (auto const s : expected) tell(s);
  }

  /// Equal seeds make equal runs.
  void check_repeatable(std::uint64_t count) const {
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
      auto const once = run_once({.seed = seed});
      auto const again = run_once({.seed = seed, .telling = true});
      BOOST_TEST(once.trace == again.trace, name_ << ", seed " << seed);
      BOOST_TEST(once.steps == again.steps);
    }
    BOOST_TEST(run_once({.seed = 1}).trace != run_once({.seed = 2}).trace);
  }

  /// Small runs, interrupted at each of their steps.
  void check_interruptions(interruption what, std::uint64_t seeds, std::uint64_t most) const {
    std::uint64_t runs = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      for (std::uint64_t i = 0;; ++i) {
        run_options o{.seed = seed, .small = true, .interrupt_at = i, .what = what};
        auto const r = run_once(o);
        ++runs;
        if (r.failure) {
          o.telling = true;
          auto const told = run_once(o);
          BOOST_ERROR(name_ << ", seed " << seed << ", interrupted at step " << i << ": "
                            << r.failure->promise << ": " << r.failure->detail << '\n'
                            << told.told);
          return;
        }
        if (r.steps_in_safety < i || i >= most) break;
      }
    }
    BOOST_TEST(runs > seeds);  // each at more than one step
    std::cout << std::dec << name_ << ": " << runs << " interrupted runs\n";
  }

  /// Every defect is found by one of `most` seeds; prints by which promise, and after how many.
  void check_defects(std::span<defect const> all, std::uint64_t most) const {
    for (auto const& d : all) {
      std::uint64_t seed = 1;
      run_result r;
      for (; seed <= most && !r.failure; ++seed) r = run_once({.seed = seed}, d.which);
      std::cout << "  " << std::left << std::setw(4) << d.failure << ' ' << d.what << "\n      ";
      if (r.failure) {
        std::cout << "found by seed " << std::dec << seed - 1 << ": " << r.failure->promise << ": "
                  << r.failure->detail << std::endl;
      } else {
        std::cout << "SURVIVED" << std::endl;
      }
      BOOST_TEST(r.failure.has_value(), "not found in " << most << " seeds: " << d.what);
    }
  }

 private:
  void report(std::uint64_t seed, std::size_t events) const {
    auto const r = run_once({.seed = seed, .telling = true, .remembered = events});
    if (!r.failure) {
      BOOST_ERROR(name_ << ", seed " << seed << ": fails once, and not again");
      return;
    }
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(r.failure->at);
    BOOST_ERROR(name_ << ", seed " << seed << ": " << r.failure->promise << " is broken at step "
                      << r.failure->step << ", after " << ms.count() << " ms: " << r.failure->detail
                      << "\n  the last events:\n"
                      << r.told << "    trace " << std::hex << r.trace << std::dec
                      << "\n  replay it: ./dev sim " << name_ << " --seed " << seed);
  }

  std::string_view name_;
};

}  // namespace weir::testing::simulation

/// The tests of a program `simulate`, but for that of its seeds.
#define WEIR_SIMULATION_TESTS(sweeps, known_defects, most_seeds)                                   \
  BOOST_AUTO_TEST_CASE(equal_seeds_make_equal_runs) { simulate.check_repeatable(10); }             \
  BOOST_AUTO_TEST_CASE(R7_destroyed_at_every_step) {                                               \
    simulate.check_interruptions(interruption::destroy, sweeps, 300);                              \
  }                                                                                                \
  BOOST_AUTO_TEST_CASE(R7_cancelled_at_every_step) {                                               \
    simulate.check_interruptions(interruption::cancel, sweeps, 300);                               \
  }                                                                                                \
  BOOST_AUTO_TEST_CASE(defects_are_found) { simulate.check_defects(known_defects, most_seeds); }

#endif
