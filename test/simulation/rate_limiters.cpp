// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "driver.hpp"
#include "weir/rate_limiter.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Several nodes spend from the same buckets: at once, ahead, waiting, and giving back.
namespace {

namespace asio = boost::asio;
using namespace weir::testing::simulation;
using namespace std::chrono_literals;
using weir::duration;
using weir::testing::dice;

/// Mistakes of a store about buckets.
struct defects {
  explicit defects(int w) : which{w} {}

  template <class Store>
  weir::result<weir::decision> step(weir::command::take c, Store& s) {
    if (which == 0 && ++taken % 8 == 0) {  // its write is lost
      return s.execute(weir::command::peek_bucket{
          .key = c.key, .quotas = c.quotas, .cost = c.cost, .max_wait = c.max_wait});
    }
    if (which == 1 && s.now() < last) {
      static_cast<void>(s.execute(weir::command::reset_bucket{.key = c.key}));
    }
    last = s.now();
    if (which == 2) c.quotas = c.quotas.first(1);
    if (which == 3) c.max_wait += 1s;
    auto a = s.execute(c);
    if (which == 4 && a.has_value()) a.value().retry_after = duration::zero();
    return a;
  }
  template <class Store>
  weir::result<weir::refund_receipt> step(weir::command::refund c, Store& s) {
    auto a = s.execute(c);
    if (which == 5 && a.has_value() && a.value().credited == 0) {
      static_cast<void>(s.execute(weir::command::reset_bucket{.key = c.key}));
      return weir::refund_receipt{.credited = c.cost};
    }
    if (which == 6 && a.has_value() && a.value().credited != 0) ++a.value().credited;
    return a;
  }

  int which;
  std::uint64_t taken = 0;
  weir::time_point last{};
};

constexpr defect known_defects[] = {
    {0, "F19", "now and then a take is not stored: its credit is granted twice"},
    {1, "F52", "the clock steps back, and the bucket is full again"},
    {2, "R3", "of several quotas only the first counts"},
    {3, "R3", "a reservation lies further ahead than allowed"},
    {4, "F24", "a denial says: now"},
    {5, "F23", "what cannot be refunded is credited all the same"},
    {6, "F23", "a refund says that it gave back more than was taken"},
};

using engine_type = engine_with<defects>;

class rate_limiters final : public simulated_program<engine_type> {
 public:
  struct knobs {
    knobs(dice& d, bool small) {
      constexpr duration periods[] = {100ms, 1s, 7s};
      period = d.pick(periods);
      auto const tokens = 1 + d.below(10);
      quotas.push_back(weir::quota::per(tokens, period).burst(1 + d.below(2 * tokens)));
      if (d.chance(50)) {
        auto const more = 1 + d.below(10 * tokens);
        quotas.push_back(weir::quota::per(more, 3 * period).burst(1 + d.below(more)));
      }
      most = quotas.front().capacity();
      for (auto const& q : quotas) most = std::min(most, q.capacity());
      keys = 1 + d.below(2);
      clients = small ? 2 : 1 + d.below(4);
      run.nodes = small ? 2 : static_cast<std::uint32_t>(1 + d.below(3));
      run.safety = small ? 3 * period : period * static_cast<int>(5 + d.below(30));
      run.network = draw_weather(d);
      run.trouble.every = period;
      run.trouble.longest = 3 * period;
      run.trouble.store_jumps = d.chance(60);
    }

    plan run;
    duration period;
    std::vector<weir::quota> quotas;
    std::uint64_t most = 1;
    std::uint64_t keys;
    std::uint64_t clients;
  };

  rate_limiters(cluster<engine>& in, knobs const& k) : simulated_program{in}, knobs_{k} {}
  ~rate_limiters() override { in_.nodes.clear(); }

  static weir::memory_options engine_options(std::uint64_t seed) {
    weir::memory_options o;
    if (seed % 4 == 0) o.max_buckets = 1;  // a store that is full now and then
    return o;
  }

  void start(node<engine>& on) override {
    auto const p = std::make_shared<process>(*this, on);
    on.keep(p);
    for (std::uint64_t i = 0; i != knobs_.clients; ++i) on.spawn(client(p));
  }
  bool holds_lease(node<engine>&) override { return false; }

  /// Everybody has had an answer, and in the end every bucket is full again: nothing is booked that
  /// nobody has.
  bool drained() override {
    if (runs()) return false;
    for (std::uint64_t k = 0; k != knobs_.keys; ++k) {
      auto const key = name(k);
      auto const peek = in_.engine().execute(weir::command::peek_bucket{
          .key = key, .quotas = knobs_.quotas, .cost = 1, .max_wait = {}});
      if (peek.value().remaining != knobs_.most) {
        in_.in.after(knobs_.period, [] {});
        return false;
      }
    }
    return true;
  }

 private:
  using limiter_type = weir::rate_limiter<network_store<engine>, simulated_clock, weir::raw_key>;

  struct process {
    process(rate_limiters& p, node<engine>& n)
        : all{p},
          on{n},
          limiter{n.make_store(), std::span<weir::quota const>{p.knobs_.quotas}, n.clock()} {}
    rate_limiters& all;
    node<engine>& on;
    limiter_type limiter;
  };
  using process_pointer = std::shared_ptr<process>;

  static asio::awaitable<void> client(process_pointer p) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    while (!all.healing_ && co_await goes_on()) {
      auto const key = name(d.below(all.knobs_.keys));
      auto const cost = 1 + d.below(all.knobs_.most);
      weir::take_options const o{.cost = cost, .wait = all.up_to(5 * all.knobs_.period)};
      switch (d.below(7)) {
        case 0: co_await wait_and_spend(p, key, o); break;
        case 1: co_await give_up_waiting(p, key, o); break;
        case 2: {
          auto [ec, grant] = co_await p->limiter.async_reserve(key, o, token);
          co_await sleep(p, all.up_to(all.knobs_.period / 2));
          weir::refund_options const how{.before_instant = grant.wait > all.knobs_.period};
          co_await p->limiter.async_refund(key, grant, how, token);
          co_await p->limiter.async_refund(key, grant, how, token);
          break;
        }
        case 3: co_await p->limiter.async_peek(key, token); break;
        case 4:
          if (d.chance(10)) co_await p->limiter.async_reset(key, token);
          break;
        default: {
          auto [ec, grant] = co_await p->limiter.async_try_take(key, cost, token);
          if (d.chance(30)) co_await p->limiter.async_refund(key, grant, token);
        }
      }
      co_await sleep(p, all.up_to(all.knobs_.period / 4));
    }
  }

  /// Whoever waits for a reservation is not told before its instant: not by the world's time
  /// either, as far as clocks may differ.
  static asio::awaitable<void> wait_and_spend(process_pointer p, std::string key,
                                              weir::take_options o) {
    auto& w = p->all.in_.in;
    auto const began = p->on.clock().steady_now();
    auto [ec, grant] = co_await p->limiter.async_take(key, o, token);
    if (ec || !grant.allowed) co_return;
    auto const waited = p->on.clock().steady_now() - began;
    w.expect(waited >= grant.wait, "R3",
             [&] { return key + ": a waiting take completes before its instant"; });
    if (w.choices.chance(20)) {
      co_await p->limiter.async_refund(key, grant, token);
    }
  }

  static asio::awaitable<void> give_up_waiting(process_pointer p, std::string key,
                                               weir::take_options o) {
    using namespace asio::experimental::awaitable_operators;
    auto& all = p->all;
    auto const until = p->on.clock().steady_now() + all.up_to(all.knobs_.period);
    auto either = p->limiter.async_take(key, o, token) ||
                  p->on.clock().async_wait_until(p->on.executor(), until, token);
    auto got = co_await std::move(either);
    if (got.index() == 1) all.in_.in.reach(rare_state::wait_cancelled);
  }

  knobs knobs_;
};

simulator<rate_limiters, defects> const simulate{"rate_limiters"};

using enum rare_state;
constexpr rare_state expected[] = {
    unknown_then_retried, store_restarted_in_flight, take_denied,      take_reserved,
    wait_cancelled,       refund_credited,           refund_forfeited, bucket_shed,
};

}  // namespace

BOOST_AUTO_TEST_SUITE(rate_limiters_simulated)

BOOST_AUTO_TEST_CASE(seeds) { simulate.check_seeds(2250, expected); }

WEIR_SIMULATION_TESTS(3, known_defects, 100)

BOOST_AUTO_TEST_SUITE_END()
