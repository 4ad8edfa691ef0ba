// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/uniqueness.hpp"

#include "driver.hpp"
#include "weir/detail/spawn.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Several nodes want the same keys for themselves. (The unique keys of queued jobs are in
// queues.cpp.)
namespace {

namespace asio = boost::asio;
using namespace weir::testing::simulation;
using namespace std::chrono_literals;
using weir::duration;
using weir::testing::dice;

/// Mistakes of a store about locks.
struct defects {
  explicit defects(int w) : which{w} {}

  template <class Store>
  weir::result<weir::lock_grant> step(weir::command::acquire_lock c, Store& s) {
    if (which == 2) c.ttl = 24h;
    auto a = s.execute(c);
    if (which == 2 && a.has_value() && a.value().granted) a.value().expires_in = 1s;
    if (which == 3 && a.has_value() && !a.value().granted && a.value().expires_in < 500ms) {
      a.value().granted = true;
      a.value().fence = 1;
      a.value().expires_in = c.ttl;
    }
    if (which == 4 && a.has_value() && a.value().granted) a.value().expires_in *= 2;
    return a;
  }
  template <class Store>
  weir::result<weir::lease_release> step(weir::command::release_lock c, Store& s) {
    if (which != 0) return s.execute(c);
    auto const found = s.execute(weir::command::inspect_lock{.key = c.key});
    if (!found.value().held) return weir::lease_release{};
    c.holder = found.value().holder;
    c.fence = found.value().fence;
    return s.execute(c);
  }
  template <class Store>
  weir::result<weir::lease_renewal> step(weir::command::renew_lock c, Store& s) {
    auto a = s.execute(c);
    if (which == 1 && a.has_error()) return weir::lease_renewal{c.ttl};
    return a;
  }

  int which;
};

constexpr defect known_defects[] = {
    {0, "F13", "a release deletes by key alone"},
    {1, "F6", "a renewal after the end is acknowledged"},
    {2, "F14", "a lock outlives its holder by a day"},
    {3, "R2", "a lock is given out half a second before its end"},
    {4, "F4", "the holder is told twice the time that it has"},
};

using engine_type = engine_with<defects>;

class locks final : public simulated_program<engine_type> {
 public:
  struct knobs {
    knobs(dice& d, bool small) {
      constexpr duration ttls[] = {300ms, 1s, 3s, 10s};
      ttl = d.pick(ttls);
      constexpr duration polls[] = {50ms, 500ms, 2s};
      poll = d.pick(polls);
      policy = d.pick(std::array{weir::conflict_policy::reject, weir::conflict_policy::discard,
                                 weir::conflict_policy::log});
      keys = 1 + d.below(2);
      clients = small ? 2 : 1 + d.below(3);
      run.nodes = small ? 2 : static_cast<std::uint32_t>(1 + d.below(4));
      run.safety = small ? 4 * ttl : ttl * static_cast<int>(4 + d.below(12));
      draw_trouble(run, d, ttl);
    }

    plan run;
    duration ttl;
    duration poll;
    weir::conflict_policy policy;
    std::uint64_t keys;
    std::uint64_t clients;
  };

  locks(cluster<engine>& in, knobs const& k) : simulated_program{in}, knobs_{k}, bodies_{in} {}
  ~locks() override { in_.nodes.clear(); }

  static weir::memory_options engine_options(std::uint64_t seed) {
    weir::memory_options o;
    if (seed % 4 == 0) o.max_locks = 1;  // a store that is full now and then
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
      if (in_.engine().execute(weir::command::inspect_lock{.key = key}).value().held) {
        in_.in.after(knobs_.ttl / 4, [] {});
        return false;
      }
    }
    return true;
  }

  void check() override { bodies_.check(); }

 private:
  using limiter_type = weir::uniqueness<network_store<engine>, simulated_clock>;

  struct process {
    process(locks& p, node<engine>& n)
        : all{p},
          on{n},
          once{n.make_store(),
               {.ttl = p.knobs_.ttl, .poll = p.knobs_.poll, .on_conflict = p.knobs_.policy},
               n.clock(),
               weir::detail::default_backoff<weir::detail::waiting_backoff>(),
               n.ids()} {
      once.on_conflict([&all = all](auto, auto) { all.in_.in.reach(rare_state::conflict_logged); });
    }
    locks& all;
    node<engine>& on;
    limiter_type once;
  };
  using process_pointer = std::shared_ptr<process>;

  static asio::awaitable<void> client(process_pointer p) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    while (!all.healing_ && co_await goes_on()) {
      auto const key = name(d.below(all.knobs_.keys));
      switch (d.below(6)) {
        case 0: co_await try_once(p, key); break;
        case 1: co_await wait_for_it(p, key); break;
        case 2: co_await give_up_waiting(p, key); break;
        case 3: {
          auto const ttl = all.up_to(2 * all.knobs_.ttl);
          co_await p->once.async_claim(key, ttl, token);
          break;
        }
        default: co_await with_lock(p, key); break;
      }
      co_await sleep(p, all.up_to(all.knobs_.ttl / 4));
    }
  }

  static asio::awaitable<void> hold(process_pointer p, weir::lock held) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    {
      bodies<engine>::entry const here{all.bodies_, p->on, held, 1, all.knobs_.ttl, nullptr};
      co_await sleep(p, all.up_to(all.knobs_.ttl / 2));
      if (d.chance(50)) {
        co_await p->once.async_renew(held, token);
        co_await sleep(p, all.up_to(all.knobs_.ttl));
      }
    }
    switch (d.below(4)) {
      case 0: break;  // its destructor does it
      case 1: all.left_behind_.push_back(std::move(held)); break;
      default: co_await p->once.async_release(std::move(held), token);
    }
  }

  static asio::awaitable<void> try_once(process_pointer p, std::string key) {
    auto [ec, got] = co_await p->once.async_try_lock(key, token);
    if (got) {
      auto holding = hold(p, std::move(*got));
      co_await std::move(holding);
    }
  }

  static asio::awaitable<void> wait_for_it(process_pointer p, std::string key) {
    auto& all = p->all;
    weir::lock_options o;
    if (all.in_.in.choices.chance(50)) o.wait = all.up_to(4 * all.knobs_.ttl);
    auto [ec, got] = co_await p->once.async_lock(key, o, token);
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
    auto either = p->once.async_lock(key, token) ||
                  p->on.clock().async_wait_until(p->on.executor(), until, token);
    auto got = co_await std::move(either);
    if (got.index() == 1) all.in_.in.reach(rare_state::wait_cancelled);
  }

  static asio::awaitable<void> with_lock(process_pointer p, std::string key) {
    auto& all = p->all;
    auto body = [p](weir::lock const& held) { return run_body(p, held); };
    weir::with_lock_options o;
    if (all.in_.in.choices.chance(50)) o.wait = all.up_to(4 * all.knobs_.ttl);
    auto [e, ran] = co_await p->once.async_with_lock(key, o, body, token);
    auto const ec = weir::detail::error_of(e);
    if (ec == weir::errc::lease_lost) all.in_.in.reach(rare_state::lost_lease_told);
    if (ec == weir::errc::unique_conflict) all.in_.in.reach(rare_state::conflict_rejected);
    if (!ec && !ran) all.in_.in.reach(rare_state::conflict_discarded);
  }

  static asio::awaitable<void> run_body(process_pointer p, weir::lock const& held) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    auto const told = co_await asio::this_coro::cancellation_state;
    bodies<engine>::entry const here{all.bodies_, p->on, held, 1, all.knobs_.ttl, &told};
    bool const stubborn = d.chance(20);  // it does not mind being told
    auto const times = 1 + d.below(6);
    for (std::uint64_t i = 0; i != times; ++i) {
      if (stubborn) co_await asio::this_coro::throw_if_cancelled(false);
      co_await sleep(p, all.up_to(all.knobs_.ttl));
      if (!stubborn && told.cancelled() != asio::cancellation_type::none) break;
    }
  }

  knobs knobs_;
  bodies<engine> bodies_;
  std::vector<weir::lock> left_behind_;
};

simulator<locks, defects> const simulate{"uniqueness"};

using enum rare_state;
constexpr rare_state expected[] = {
    unknown_then_retried, crashed_with_lease, store_restarted_in_flight, lease_expired_in_body,
    lease_stolen,         lost_lease_told,    late_release_harmless,     wait_timed_out,
    wait_cancelled,       lock_conflict,      conflict_rejected,         conflict_discarded,
    conflict_logged,      store_full,
};

}  // namespace

BOOST_AUTO_TEST_SUITE(uniqueness_simulated)

BOOST_AUTO_TEST_CASE(seeds) { simulate.check_seeds(2250, expected); }

WEIR_SIMULATION_TESTS(3, known_defects, 100)

BOOST_AUTO_TEST_SUITE_END()
