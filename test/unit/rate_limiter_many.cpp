// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Many keys in one call are answered as one after the other.

#include "weir/clock/manual.hpp"
#include "weir/key_policy.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/system_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

using weir::decision;
using weir::manual_clock;
using weir::quota;
using weir::result;

namespace {

using store_type = weir::basic_memory_store<manual_clock>;

/// A store that executes takes one by one only.
class plain_store : public store_type {
 public:
  using store_type::store_type;
  void execute_each() const = delete;
};

static_assert(weir::executes_each<store_type const, weir::command::take>);
static_assert(!weir::executes_each<store_type const, weir::command::peek_bucket>);
static_assert(!weir::executes_each<plain_store const, weir::command::take>);
static_assert(weir::executes_now<plain_store const, weir::command::take>);

bool same(result<decision> const& a, result<decision> const& b) {
  if (a.has_error() || b.has_error()) {
    return a.has_error() && b.has_error() && a.error() == b.error();
  }
  auto const fields = [](decision const& d) {
    return std::tie(d.allowed, d.shed, d.binding, d.cost, d.capacity, d.remaining, d.wait,
                    d.retry_after, d.reset_after, d.mark);
  };
  return fields(*a) == fields(*b);
}

/// Few keys, so that they come more than once; short, long and bad ones.
std::vector<std::string> some_keys() {
  std::vector<std::string> keys{"", std::string(weir::limits::key_size + 1, 'x'),
                                std::string(weir::limits::key_size, 'y')};
  for (int i = 0; i != 60; ++i) {
    keys.push_back(std::string(static_cast<std::size_t>(i), 'k') + std::to_string(i));
  }
  return keys;
}

template <class Store, class KeyPolicy>
void at_once_as_one_by_one(std::uint64_t seed, std::span<quota const> quotas, std::size_t room) {
  manual_clock clock;
  boost::asio::system_executor const executor;
  weir::rate_limiter<Store, manual_clock, KeyPolicy> const at_once{
      Store{executor, {.max_buckets = room}, clock}, quotas, clock};
  weir::rate_limiter<store_type, manual_clock, KeyPolicy> const one_by_one{
      store_type{executor, {.max_buckets = room}, clock}, quotas, clock};

  // The first command is where a store's time begins, of which its marks are made.
  BOOST_TEST_REQUIRE(same(at_once.try_take("first"), one_by_one.try_take("first")));

  auto const keys = some_keys();
  std::mt19937_64 random{seed};
  for (int round = 0; round != 40; ++round) {
    std::vector<std::string_view> asked(random() % 80);
    for (auto& key : asked) key = keys[random() % keys.size()];
    auto const cost = random() % 8 == 0 ? random() % 12 : 1;
    std::vector<result<decision>> answers(asked.size() + 1, make_error_code(weir::errc::timed_out));
    at_once.try_take_many(asked, answers, cost);
    for (std::size_t i = 0; i != asked.size(); ++i) {
      BOOST_TEST_REQUIRE(same(answers[i], one_by_one.try_take(asked[i], cost)));
    }
    BOOST_TEST((answers.back().error() == weir::errc::timed_out));  // nobody's
    clock.advance(std::chrono::milliseconds{random() % 3000});
  }
}

constexpr std::array one_quota{quota::per_second(3).burst(6)};
constexpr std::array two_quotas{quota::per_second(3).burst(6), quota::per_minute(60).burst(10)};

template <class Store, class KeyPolicy>
void all_of_it() {
  for (std::uint64_t seed = 0; seed != 4; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      for (std::size_t const room : {std::size_t{10}, std::size_t{1000}}) {
        at_once_as_one_by_one<Store, KeyPolicy>(seed, one_quota, room);
        at_once_as_one_by_one<Store, KeyPolicy>(seed, two_quotas, room);
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rate_limiter_many)

BOOST_AUTO_TEST_CASE(many_at_once_are_answered_as_one_by_one) {
  all_of_it<store_type, weir::raw_key>();
}

BOOST_AUTO_TEST_CASE(digests_are_too) { all_of_it<store_type, weir::sha256_key>(); }

BOOST_AUTO_TEST_CASE(a_store_that_takes_one_by_one_does_as_well) {
  all_of_it<plain_store, weir::raw_key>();
}

BOOST_AUTO_TEST_CASE(bad_quotas_are_told_to_each) {
  weir::rate_limiter const limiter{store_type{boost::asio::system_executor{}}, quota{}};
  std::array<std::string_view, 2> const keys{"alice", "bob"};
  std::vector<result<decision>> answers(2);
  limiter.try_take_many(keys, answers);
  for (auto const& a : answers) BOOST_TEST((a.error() == weir::errc::invalid_quota));
}

BOOST_AUTO_TEST_CASE(R3_threads_share_what_there_is) {
  constexpr std::uint64_t capacity = 2000;
  manual_clock const clock;
  weir::rate_limiter<store_type, manual_clock, weir::raw_key> const limiter{
      store_type{boost::asio::system_executor{}, {}, clock}, quota::per_hour(1).burst(capacity),
      clock};
  std::vector<std::string> const names{"a", "b", "c", "d", "e", "f", "g"};
  std::array<std::atomic<std::uint64_t>, 7> granted{};
  auto const work = [&](std::uint64_t seed) {
    std::mt19937_64 random{seed};
    std::array<std::string_view, 50> keys;
    std::array<std::size_t, 50> numbers{};
    std::vector<result<decision>> answers(keys.size());
    for (int round = 0; round != 200; ++round) {
      for (std::size_t i = 0; i != keys.size(); ++i) {
        numbers[i] = random() % names.size();
        keys[i] = names[numbers[i]];
      }
      limiter.try_take_many(keys, answers);
      for (std::size_t i = 0; i != keys.size(); ++i) {
        if (answers[i]->allowed) ++granted[numbers[i]];
      }
    }
  };
  std::thread other{work, 1};
  work(2);
  other.join();
  for (auto const& g : granted) BOOST_TEST(g.load() == capacity);
}

BOOST_AUTO_TEST_SUITE_END()
