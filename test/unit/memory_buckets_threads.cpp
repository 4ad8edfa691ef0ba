// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/command/buckets.hpp"
#include "weir/decision.hpp"
#include "weir/quota.hpp"
#include "weir/store/memory/bucket_steps.hpp"
#include "weir/store/memory/buckets.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/time.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using weir::decision;
using weir::duration;
using weir::quota;
using weir::time_point;
namespace command = weir::command;

namespace {

constexpr time_point start = std::chrono::sys_days{std::chrono::year{2026} / 3 / 1};
constexpr std::size_t thread_count = 4;

class shared_table {
 public:
  explicit shared_table(std::size_t most) : buckets_{weir::memory_options{.max_buckets = most}} {
    buckets_.apply(command::reap_buckets{}, start).value();
  }

  decision take(std::string_view key, std::span<quota const> quotas, time_point now,
                std::uint64_t cost = 1, duration max_wait = {}) {
    return buckets_
        .apply(command::take{.key = key, .quotas = quotas, .cost = cost, .max_wait = max_wait}, now)
        .value();
  }
  template <class Command>
  auto apply(Command const& c, time_point now) {
    return buckets_.apply(c, now).value();
  }

 private:
  weir::detail::memory_buckets buckets_;
};

template <class Body>
void in_threads(Body const& body) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i != thread_count; ++i) threads.emplace_back([&body, i] { body(i); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_buckets_threads)

BOOST_AUTO_TEST_CASE(R3_one_key_hammered_grants_exactly_capacity_and_then_exactly_the_rate) {
  auto const fast = quota::per_second(100'000).burst(30'000);
  for (auto const& quotas :
       {std::vector{fast}, std::vector{quota::per_second(100'100).burst(30'000)},
        std::vector{fast, quota::per_minute(10'000'000)}}) {
    shared_table table{10};
    std::atomic<std::uint64_t> granted{0};
    std::atomic<time_point> now{start};
    std::vector<std::uint64_t> per_round;
    std::barrier round_over{thread_count, [&]() noexcept {
                              per_round.push_back(granted.exchange(0));
                              now = now.load() + 100ms;
                            }};
    in_threads([&](std::size_t) {
      for (int round = 0; round != 5; ++round) {
        for (int i = 0; i != 10'000; ++i) granted += table.take("k", quotas, now).allowed ? 1U : 0U;
        round_over.arrive_and_wait();
      }
    });
    BOOST_TEST(per_round.at(0) == 30'000U);
    std::uint64_t later = 0;
    for (std::size_t i = 1; i != per_round.size(); ++i) later += per_round[i];
    BOOST_TEST(later == quotas[0].tokens() * 4 / 10);  // 0.4 seconds
  }
}

BOOST_AUTO_TEST_CASE(R3_no_take_is_lost_among_many) {
  shared_table table{10};
  auto const q = quota::per_second(1).burst(2'000'000);
  std::barrier together{thread_count};
  in_threads([&](std::size_t) {
    together.arrive_and_wait();
    for (int i = 0; i != 400'000; ++i) {
      if (!table.take("k", {&q, 1}, start).allowed) BOOST_FAIL("refused with tokens left");
    }
  });
  BOOST_TEST(table.take("k", {&q, 1}, start).remaining == 2'000'000 - 1'600'001U);
}

BOOST_AUTO_TEST_CASE(F19_threads_with_differing_clocks_gain_nothing) {
  shared_table table{10};
  auto const q = quota::per_second(100'000).burst(10);
  std::atomic<std::uint64_t> granted{0};
  in_threads([&](std::size_t thread) {
    std::mt19937_64 random{thread};
    std::uint64_t mine = 0;
    for (int i = 0; i != 20'000; ++i) {
      duration const late{static_cast<duration::rep>(random() % 5'000'000)};
      auto const now = start + 10us * i - late;
      mine += table.take("k", {&q, 1}, now).allowed ? 1U : 0U;
    }
    granted += mine;
  });
  BOOST_TEST(granted <= 10 + 20'000U + 500U);  // in 0.2 s, and the 5 ms before
}

BOOST_AUTO_TEST_CASE(R3_refunds_of_many_threads_give_back_no_more_than_was_taken) {
  for (auto const& q :
       {quota::per_hour(1).burst(1000), quota::per(1'000'003, 10'000h).burst(1000)}) {
    shared_table table{10};
    std::atomic<std::uint64_t> held{0};
    in_threads([&](std::size_t thread) {
      std::mt19937_64 random{thread};
      std::uint64_t mine = 0;
      for (int i = 0; i != 5000; ++i) {
        auto const d = table.take("k", {&q, 1}, start, 1 + random() % 9);
        if (!d.allowed) continue;
        mine += d.cost;
        if (random() % 2 == 0) {
          command::refund const c{.key = "k",
                                  .quotas = {&q, 1},
                                  .cost = d.cost,
                                  .mark = d.mark,
                                  .before_instant = random() % 2 == 0};
          mine -= table.apply(c, start).credited;
        }
      }
      held += mine;
    });
    // What nobody holds is there, to the token.
    std::uint64_t left = 0;
    while (table.take("k", {&q, 1}, start).allowed) ++left;
    BOOST_TEST(held + left == 1000U);
  }
}

// Keys come and go, are forgotten and come again, change their quotas, in a table that grows all
// the while.
BOOST_AUTO_TEST_CASE(R3_holds_for_every_key_of_a_busy_table) {
  constexpr std::size_t keys = 3000;
  shared_table table{keys + thread_count};
  quota const fast = quota::per_second(1).burst(2);
  quota const both[] = {fast, quota::per_second(2).burst(4)};
  quota const wide = quota::per(1'000'003, 1'000'000s).burst(2);
  std::vector<std::atomic<std::uint64_t>> granted(keys);
  std::atomic<std::int64_t> ticks{0};
  in_threads([&](std::size_t thread) {
    std::mt19937_64 random{thread};
    for (int i = 0; i != 40'000; ++i) {
      auto const now = start + 100us * ticks.fetch_add(1, std::memory_order_relaxed);
      auto const n = random() % keys;
      auto const key = "key " + std::to_string(n);
      switch (random() % 64) {
        case 0: table.apply(command::peek_bucket{.key = key, .quotas = {&fast, 1}}, now); break;
        case 1:
          if (i % 50 == 0) table.apply(command::reap_buckets{}, now);
          break;
        default: {
          // Some have other quotas all the time, some every now and then.
          bool const other = n % 7 < 3 && random() % 2 == 0;
          std::span<quota const> quotas{&fast, 1};
          if (n % 7 == 3 || (n % 7 == 1 && other)) quotas = {&wide, 1};
          if (n % 7 == 0 && other) quotas = both;
          if (n % 7 == 2) quotas = other ? std::span<quota const>{both} : std::span{&wide, 1};
          auto const d = table.take(key, quotas, now);
          if (d.shed) BOOST_FAIL("shed with room left");
          if (d.allowed) granted[n].fetch_add(1, std::memory_order_relaxed);
        }
      }
    }
  });
  auto const lasted = static_cast<std::uint64_t>(ticks.load()) / 10'000;  // seconds
  std::uint64_t most = 0;
  for (auto const& g : granted) most = std::max(most, g.load());
  BOOST_TEST(most <= 2 + lasted);
  BOOST_TEST(most + 3 >= 2 + lasted);  // it was asked for more
}

BOOST_AUTO_TEST_CASE(F21_the_bound_holds_under_a_flood_from_all_threads) {
  constexpr std::size_t most = 2000;
  shared_table table{most};
  auto const slow = quota::per_hour(1);
  std::atomic<std::size_t> in{0};
  in_threads([&](std::size_t thread) {
    for (std::size_t i = 0; i != 4000; ++i) {
      auto const d =
          table.take(std::to_string(thread) + '/' + std::to_string(i), {&slow, 1}, start);
      in += d.allowed ? 1U : 0U;
    }
  });
  BOOST_TEST(in <= most);
  BOOST_TEST(in >= most - 20);
  BOOST_TEST(table.apply(command::reap_buckets{}, start).kept == in);
  // Whoever is in stays in.
  std::size_t again = 0;
  for (std::size_t thread = 0; thread != thread_count; ++thread) {
    for (std::size_t i = 0; i != 4000; ++i) {
      auto const d =
          table.take(std::to_string(thread) + '/' + std::to_string(i), {&slow, 1}, start);
      again += d.allowed ? 1U : 0U;
    }
  }
  BOOST_TEST(again <= most - in);
}

BOOST_AUTO_TEST_SUITE_END()
