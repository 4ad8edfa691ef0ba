// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "driver.hpp"
#include "weir/backoff/all.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/lease/pursuit.hpp"
#include "weir/limiter.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Several nodes contend for permits, in all the ways that there are.
namespace {

namespace asio = boost::asio;
using namespace weir::testing::simulation;
using namespace std::chrono_literals;
using weir::duration;
using weir::testing::dice;

/// Mistakes of a store about permits.
struct defects {
  explicit defects(int w) : which{w} {}

  template <class Store>
  weir::result<weir::permit_grant> step(weir::command::acquire_permit c, Store& s) {
    if (which == 2) ++c.limit;
    if (which == 3) c.patience = duration::zero();
    if (which == 4 && c.patience > duration::zero()) c.patience = 24h;
    if (which == 5) c.ttl /= 2;
    if (which == 9) c.ttl *= 3;
    auto a = s.execute(c);
    if (which == 5 && a.has_value()) a.value().expires_in *= 2;
    if (which == 6 && a.has_value() && a.value().granted) a.value().fence = 7;
    if (which == 3 && a.has_value() && !a.value().granted) a.value().place = 1;
    return a;
  }
  template <class Store>
  weir::result<weir::lease_release> step(weir::command::release_permit c, Store& s) {
    if (which == 7) return weir::lease_release{.freed = true};
    if (which != 0) return s.execute(c);
    auto const found = s.execute(weir::command::inspect_permits{.key = c.key, .limit = 1});
    if (found.value().holders.empty()) return weir::lease_release{};
    auto const& any = found.value().holders.front();
    c.holder = any.holder;
    c.fence = any.fence;
    return s.execute(c);
  }
  template <class Store>
  weir::result<weir::lease_renewal> step(weir::command::renew_permit c, Store& s) {
    auto a = s.execute(c);
    if (which == 8 && a.has_value()) a.value().expires_in += c.ttl;
    if (which != 1 || a.has_value()) return a;
    auto const again = s.execute(weir::command::acquire_permit{
        .key = c.key, .holder = c.holder, .limit = 100, .ttl = c.ttl, .patience = {}});
    return weir::lease_renewal{again.value().expires_in};
  }

  int which;
};

constexpr defect known_defects[] = {
    {0, "F1", "a release frees whatever permit the key has"},
    {1, "F6", "a renewal after the end re-acquires silently"},
    {2, "R1", "the limit is one too high"},
    {3, "F10", "who is refused gets a place, and none is kept"},
    {4, "R6", "a place in line outlives its holder by a day"},
    {5, "F4", "the store ends leases earlier than it says"},
    {6, "R5", "every lease has the same fence"},
    {7, "F11", "a release is acknowledged and not done"},
    {8, "F3", "a renewal promises twice the time"},
    {9, "F3", "a permit lasts longer than it was asked for"},
};

using engine_type = engine_with<defects>;

class limiters final : public simulated_program<engine_type> {
 public:
  struct knobs {
    knobs(dice& d, bool small) {
      constexpr duration ttls[] = {300ms, 1s, 3s, 10s};
      ttl = d.pick(ttls);
      constexpr duration polls[] = {50ms, 500ms, 2s};
      poll = d.pick(polls);
      limit = static_cast<std::uint32_t>(1 + d.below(3));
      limits_differ = d.chance(30);
      keys = 1 + d.below(2);
      clients = small ? 2 : 1 + d.below(4);
      run.nodes = small ? 2 : static_cast<std::uint32_t>(1 + d.below(4));
      run.safety = small ? 4 * ttl : ttl * static_cast<int>(4 + d.below(12));
      draw_trouble(run, d, ttl);
    }

    plan run;
    duration ttl;
    duration poll;
    std::uint32_t limit;  ///< the lowest, where a new one is being rolled out
    bool limits_differ;
    std::uint64_t keys;
    std::uint64_t clients;

    [[nodiscard]] std::uint32_t highest_limit() const { return limit + (limits_differ ? 1 : 0); }
  };

  limiters(cluster<engine>& in, knobs const& k) : simulated_program{in}, knobs_{k}, bodies_{in} {}
  // What is left behind goes when its executor has gone.
  ~limiters() override { in_.nodes.clear(); }

  static weir::memory_options engine_options(std::uint64_t seed) {
    weir::memory_options o;
    if (seed % 4 == 0) o.max_permits = 3;  // a store that is full now and then
    return o;
  }

  void start(node<engine>& on) override {
    auto const p = std::make_shared<process>(*this, on);
    on.keep(p);
    for (std::uint64_t i = 0; i != knobs_.clients; ++i) on.spawn(client(p));
  }

  bool holds_lease(node<engine>& on) override { return bodies_.any_on(on); }

  bool drained() override {
    if (runs()) return false;
    left_behind_.clear();
    for (std::uint64_t k = 0; k != knobs_.keys; ++k) {
      auto const key = name(k);
      auto const found = in_.engine().execute(weir::command::inspect_permits{.key = key});
      if (found.value().in_use != 0 || found.value().waiting != 0) {
        in_.in.after(knobs_.ttl / 4, [] {});
        return false;
      }
    }
    return true;
  }

  void check() override {
    bodies_.check();
    if (healing_) check_nobody_waits_in_vain();
  }

 private:
  using store_type = network_store<engine>;
  using limiter_type = weir::limiter<store_type, simulated_clock>;

  struct process {
    process(limiters& p, node<engine>& n)
        : all{p},
          on{n},
          limiter{n.make_store(),
                  {.limit = p.own_limit(), .ttl = p.knobs_.ttl, .poll = p.knobs_.poll},
                  n.clock(),
                  weir::detail::default_backoff<weir::detail::waiting_backoff>(),
                  n.ids()} {}
    limiters& all;
    node<engine>& on;
    limiter_type limiter;
  };
  using process_pointer = std::shared_ptr<process>;

  std::uint32_t own_limit() {
    return knobs_.limits_differ && in_.in.choices.chance(50) ? knobs_.highest_limit()
                                                             : knobs_.limit;
  }

  static asio::awaitable<void> client(process_pointer p) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    while (!all.healing_ && co_await goes_on()) {
      auto const key = name(d.below(all.knobs_.keys));
      switch (d.below(5)) {
        case 0: co_await try_once(p, key); break;
        case 1: co_await wait_for_one(p, key); break;
        case 2: co_await give_up_waiting(p, key); break;
        default: co_await with_permit(p, key); break;
      }
      co_await sleep(p, all.up_to(all.knobs_.ttl / 4));
    }
    if (p->on.number() % 2 == 0) {
      co_await p->limiter.async_drain(token);
    }
  }

  static asio::awaitable<void> hold(process_pointer p, weir::permit held) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    auto const end = p->on.clock().steady_now() + all.up_to(all.knobs_.ttl);
    while (p->on.clock().steady_now() < end) {
      {
        bodies<engine>::entry const here{all.bodies_,    p->on,  held, all.knobs_.highest_limit(),
                                         all.knobs_.ttl, nullptr};
        co_await sleep(p, all.up_to(all.knobs_.ttl / 2));
      }
      if (d.chance(30)) {
        co_await p->limiter.async_renew(held, token);
      }
    }
    switch (d.below(4)) {
      case 0: break;  // its destructor does it
      case 1: all.left_behind_.push_back(std::move(held)); break;
      default: co_await p->limiter.async_release(std::move(held), token);
    }
  }

  static asio::awaitable<void> try_once(process_pointer p, std::string key) {
    auto [ec, got] = co_await p->limiter.async_try_acquire(key, token);
    if (got) {
      auto holding = hold(p, std::move(*got));
      co_await std::move(holding);
    }
  }

  static asio::awaitable<void> wait_for_one(process_pointer p, std::string key) {
    auto& all = p->all;
    weir::acquire_options o;
    if (all.in_.in.choices.chance(50)) o.wait = all.up_to(4 * all.knobs_.ttl);
    auto [ec, got] = co_await p->limiter.async_acquire(key, o, token);
    if (ec == weir::errc::timed_out) all.in_.in.reach(rare_state::wait_timed_out);
    if (got) {
      auto holding = hold(p, std::move(got));
      co_await std::move(holding);
    }
  }

  static asio::awaitable<void> give_up_waiting(process_pointer p, std::string key) {
    using namespace asio::experimental::awaitable_operators;
    auto& all = p->all;
    auto const until = p->on.clock().steady_now() + all.up_to(all.knobs_.ttl);
    auto either = p->limiter.async_acquire(key, token) ||
                  p->on.clock().async_wait_until(p->on.executor(), until, token);
    auto got = co_await std::move(either);
    if (got.index() == 1) all.in_.in.reach(rare_state::wait_cancelled);
  }

  static asio::awaitable<void> with_permit(process_pointer p, std::string key) {
    auto& all = p->all;
    auto body = [p](weir::permit const& held) { return run_body(p, held); };
    weir::acquire_options o;
    if (all.in_.in.choices.chance(50)) o.wait = all.up_to(4 * all.knobs_.ttl);
    auto [e] = co_await p->limiter.async_with_permit(key, o, body, token);
    if (!e) co_return;
    auto const ec = weir::detail::error_of(e);
    if (ec == weir::errc::timed_out) all.in_.in.reach(rare_state::wait_timed_out);
    if (ec == weir::errc::lease_lost) all.in_.in.reach(rare_state::lost_lease_told);
  }

  static asio::awaitable<void> run_body(process_pointer p, weir::permit const& held) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    auto const told = co_await asio::this_coro::cancellation_state;
    bodies<engine>::entry const here{all.bodies_,    p->on, held, all.knobs_.highest_limit(),
                                     all.knobs_.ttl, &told};
    bool const stubborn = d.chance(20);  // it does not mind being told
    auto const times = 1 + d.below(6);
    for (std::uint64_t i = 0; i != times; ++i) {
      if (stubborn) co_await asio::this_coro::throw_if_cancelled(false);
      co_await sleep(p, all.up_to(all.knobs_.ttl));
      if (!stubborn && told.cancelled() != asio::cancellation_type::none) break;
    }
  }

  /// R6, in numbers: once all is well, a permit is not free for longer than a poll and the patience
  /// of a waiter that died, while somebody who lives waits for it.
  void check_nobody_waits_in_vain() {
    auto& w = in_.in;
    free_since_.resize(knobs_.keys, duration::max());
    for (std::uint64_t k = 0; k != knobs_.keys; ++k) {
      auto const key = name(k);
      auto const found = in_.engine().execute(weir::command::inspect_permits{.key = key});
      bool const idle = found.value().in_use < knobs_.limit && found.value().waiting != 0;
      if (!idle) {
        free_since_[k] = duration::max();
      } else if (free_since_[k] == duration::max()) {
        free_since_[k] = w.now();
      } else {
        auto const patience = weir::detail::patience_for(knobs_.poll);
        auto const bound = 2 * (knobs_.poll + patience) + 10s;  // what was on its way when it
                                                                // healed
        w.expect(w.now() - free_since_[k] <= bound, "R6",
                 [&] { return key + ": a permit stays free while others wait for it"; });
      }
    }
  }

  knobs knobs_;
  bodies<engine> bodies_;
  std::vector<weir::permit> left_behind_;
  std::vector<duration> free_since_;
};

simulator<limiters, defects> const simulate{"limiters"};

using enum rare_state;
constexpr rare_state expected[] = {
    unknown_then_retried,
    crashed_with_lease,
    store_restarted_in_flight,
    hint_dropped,
    hint_spurious,
    hint_delivered,
    lease_expired_in_body,
    lease_stolen,
    lost_lease_told,
    late_release_harmless,
    waited_in_line,
    wait_timed_out,
    wait_cancelled,
    line_not_overtaken,
    limit_lowered,
    store_full,
};

}  // namespace

BOOST_AUTO_TEST_SUITE(limiters_simulated)

BOOST_AUTO_TEST_CASE(seeds) { simulate.check_seeds(2250, expected); }

WEIR_SIMULATION_TESTS(3, known_defects, 100)

BOOST_AUTO_TEST_SUITE_END()
