// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A bucket that is kept is the one that its limiter would find, wherever the table has moved it.

#include "weir/bucket.hpp"

#include "weir/clock/manual.hpp"
#include "weir/command/buckets.hpp"
#include "weir/concept.hpp"
#include "weir/key_policy.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using weir::decision;
using weir::manual_clock;
using weir::quota;
using weir::result;

namespace {

using store_type = weir::basic_memory_store<manual_clock>;

/// A store that cannot remember a place for its caller.
class plain_store : public store_type {
 public:
  using store_type::execute;
  using store_type::store_type;
  using bucket_pin = void;
};

static_assert(weir::pins_buckets<store_type const>);
static_assert(!weir::pins_buckets<plain_store const>);

template <class Store, class KeyPolicy = weir::raw_key>
using limiter_of = weir::rate_limiter<Store, manual_clock, KeyPolicy>;

auto fields(decision const& d) {
  return std::tie(d.allowed, d.shed, d.binding, d.cost, d.capacity, d.remaining, d.wait,
                  d.retry_after, d.reset_after, d.mark);
}
auto fields(weir::refund_receipt const& r) { return std::tie(r.credited, r.forfeited); }

template <class T>
bool same(result<T> const& a, result<T> const& b) {
  if (a.has_error() || b.has_error()) {
    return a.has_error() && b.has_error() && a.error() == b.error();
  }
  return fields(*a) == fields(*b);
}

/// Does with a bucket what another limiter, on a store of its own, does with its key; among other
/// keys, which make the table grow, and while full buckets are forgotten.
template <class Store, class KeyPolicy>
void compare(std::string const& key, std::uint32_t seed) {
  manual_clock clock;
  Store const ours{boost::asio::system_executor{}, {}, clock};
  Store const theirs{boost::asio::system_executor{}, {}, clock};
  limiter_of<Store, KeyPolicy> const limiter{ours, quota::per_second(10).burst(5), clock};
  limiter_of<Store, KeyPolicy> const model{theirs, quota::per_second(10).burst(5), clock};
  limiter_of<Store, KeyPolicy> const other{ours, quota::per_second(20), clock};
  limiter_of<Store, KeyPolicy> const other_model{theirs, quota::per_second(20), clock};
  auto const bucket = limiter.bucket(key);
  std::mt19937 dice{seed};
  auto const below = [&](std::uint32_t n) { return dice() % n; };
  std::size_t strangers = 0;
  decision grant;
  decision grant_model;
  for (int i = 0; i != 500; ++i) {
    switch (below(9)) {
      case 0: {
        for (auto n = below(20); n != 0; --n) {
          auto const name = "stranger" + std::to_string(strangers++);
          BOOST_TEST(limiter.try_take(name, 5)->allowed);
          BOOST_TEST(model.try_take(name, 5)->allowed);
        }
        break;
      }
      case 1: clock.advance(std::chrono::milliseconds{below(400)}); break;
      case 2:
        (void)ours.execute(weir::command::reap_buckets{});
        (void)theirs.execute(weir::command::reap_buckets{});
        break;
      case 3: {
        auto const wait = std::chrono::milliseconds{below(200)};
        BOOST_TEST_REQUIRE(same(bucket.reserve({.cost = 2, .wait = wait}),
                                model.reserve(key, {.cost = 2, .wait = wait})));
        break;
      }
      case 4: BOOST_TEST_REQUIRE(same(bucket.peek(), model.peek(key))); break;
      case 5: BOOST_TEST_REQUIRE(same(bucket.refund(grant), model.refund(key, grant_model))); break;
      case 6:  // the quotas become others, and back
        BOOST_TEST_REQUIRE(same(other.try_take(key), other_model.try_take(key)));
        break;
      case 7:
        if (below(10) == 0) {
          BOOST_TEST(bucket.reset().has_value());
          BOOST_TEST(model.reset(key).has_value());
        }
        break;
      default: {
        auto const cost = 1 + below(2);
        auto const got = bucket.try_take(cost);
        auto const wanted = model.try_take(key, cost);
        BOOST_TEST_REQUIRE(same(got, wanted));
        grant = *got;
        grant_model = *wanted;
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(buckets)

BOOST_AUTO_TEST_CASE(do_what_their_limiters_do_with_the_key) {
  std::string const longer(100, 'k');
  for (std::uint32_t seed = 1; seed != 4; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      compare<store_type, weir::raw_key>("key", seed);
      compare<store_type, weir::raw_key>(longer, seed);
      compare<store_type, weir::sha256_key>("key", seed);
      compare<plain_store, weir::raw_key>("key", seed);
    }
  }
}

BOOST_AUTO_TEST_CASE(F1_whoever_has_the_place_now_is_not_asked_instead) {
  manual_clock clock;
  store_type const store{boost::asio::system_executor{}, {.max_buckets = 80}, clock};
  limiter_of<store_type> const limiter{store, quota::per_second(1), clock};
  constexpr int many = 40;
  std::vector<decltype(limiter.bucket(""))> kept;
  for (int i = 0; i != many; ++i) {
    kept.push_back(limiter.bucket("kept" + std::to_string(i)));
    BOOST_TEST(kept.back().try_take()->allowed);
    BOOST_TEST(!kept.back().try_take()->allowed);  // by the place that it knows now
  }
  clock.advance(10s);
  BOOST_TEST(store.execute(weir::command::reap_buckets{})->removed == 40U);
  for (int i = 0; i != many; ++i) BOOST_TEST(limiter.try_take(std::to_string(i))->allowed);
  clock.advance(2s);
  BOOST_TEST(store.execute(weir::command::reap_buckets{})->removed == 40U);
  for (int i = 0; i != many / 2; ++i) BOOST_TEST(limiter.try_take(std::to_string(i))->allowed);
  for (auto const& b : kept) BOOST_TEST(b.try_take()->allowed);
  for (int i = 0; i != many; ++i) {
    BOOST_TEST(limiter.try_take(std::to_string(i))->allowed == (i >= many / 2));
  }
}

BOOST_AUTO_TEST_CASE(R1_threads_that_share_one_get_no_more_than_there_is) {
  manual_clock clock;
  store_type const store{boost::asio::system_executor{}, {.max_buckets = 1000}, clock};
  constexpr std::uint64_t capacity = 20'000;
  limiter_of<store_type> const limiter{store, quota::per_hour(1).burst(capacity), clock};
  limiter_of<store_type> const strangers{store, quota::per_second(1'000'000), clock};
  auto const bucket = limiter.bucket("key");
  constexpr int threads = 4;
  std::barrier together{threads};
  std::atomic<std::uint64_t> granted{0};
  std::vector<std::thread> all;
  for (int t = 0; t != threads; ++t) {
    all.emplace_back([&, t] {
      together.arrive_and_wait();
      for (int i = 0; i != 10'000; ++i) {
        if (bucket.try_take()->allowed) ++granted;
        // Others come, so that the table grows meanwhile.
        (void)strangers.try_take(std::to_string(t) + "-" + std::to_string(i % 700));
        if (i % 1000 == 0) (void)store.execute(weir::command::reap_buckets{});
      }
    });
  }
  for (auto& t : all) t.join();
  // A take that is under way when the table moves its bucket may pay twice. As the clock stands
  // still, nothing is full and forgotten: a shard of 32 slots grows to 1,024, and maybe once more.
  constexpr std::uint64_t moves = 6;
  BOOST_TEST(granted <= capacity);
  BOOST_TEST(granted >= capacity - threads * moves);
  BOOST_TEST(bucket.peek()->remaining == 0U);
}

BOOST_AUTO_TEST_CASE(are_told_of_a_key_that_is_not_valid) {
  store_type const store{boost::asio::system_executor{}};
  limiter_of<store_type> const limiter{store, quota::per_second(1)};
  for (auto const& key : {std::string{}, std::string(weir::limits::key_size + 1, 'k')}) {
    auto const bucket = limiter.bucket(key);
    BOOST_TEST((bucket.try_take().error() == weir::errc::invalid_key));
    BOOST_TEST((bucket.peek().error() == weir::errc::invalid_key));
    BOOST_TEST((bucket.reset().error() == weir::errc::invalid_key));
  }
  BOOST_TEST((limiter.bucket("key").try_take(2).error() == weir::errc::cost_exceeds_capacity));
  BOOST_TEST((limiter.bucket("key").try_take(0).error() == weir::errc::invalid_cost));
}

BOOST_AUTO_TEST_CASE(may_outlive_their_limiters_and_become_others) {
  manual_clock clock;
  store_type const store{boost::asio::system_executor{}, {}, clock};
  auto const make = [&](std::string_view key) {
    return limiter_of<store_type>{store, quota::per_second(1), clock}.bucket(key);
  };
  auto one = make("one");
  BOOST_TEST(one.try_take()->allowed);
  BOOST_TEST(!one.try_take()->allowed);
  auto const copy = one;
  one = make("two");
  BOOST_TEST(one.try_take()->allowed);
  BOOST_TEST(!copy.try_take()->allowed);
  auto const moved = std::move(one);
  BOOST_TEST(!moved.try_take()->allowed);
}

BOOST_AUTO_TEST_CASE(are_awaited_like_their_limiters) {
  boost::asio::io_context io;
  manual_clock clock;
  store_type const store{io.get_executor(), {}, clock};
  limiter_of<store_type> const limiter{store, quota::per_second(1).burst(3), clock};
  auto const bucket = limiter.bucket("key");
  auto const of = [&](auto future) {
    io.restart();
    io.run();
    return future.get();
  };
  using boost::asio::use_future;
  auto grant = of(bucket.async_try_take(2, use_future));
  BOOST_TEST(grant.remaining == 1U);
  BOOST_TEST(of(bucket.async_refund(grant, use_future)).credited == 2U);
  BOOST_TEST(of(bucket.async_try_take(use_future)).remaining == 2U);
  BOOST_TEST(of(bucket.async_take({.cost = 2}, use_future)).allowed);
  BOOST_TEST(!of(bucket.async_peek(use_future)).allowed);
  BOOST_TEST((of(bucket.async_reserve({.wait = 5s}, use_future)).wait == 1s));
  BOOST_TEST(!limiter.try_take("key")->allowed);
  of(bucket.async_reset(use_future));
  BOOST_TEST(of(bucket.async_peek({.cost = 3}, use_future)).allowed);
}

BOOST_AUTO_TEST_SUITE_END()
