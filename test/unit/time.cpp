// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/time.hpp"

#include "weir/limits.hpp"
#include "weir/rule/fence.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>

using namespace std::chrono_literals;
using weir::duration;
using weir::saturating_add;
using weir::saturating_sub;
using weir::steady_time;
using weir::time_point;

static_assert(sizeof(duration) == 8 && std::is_same_v<duration::period, std::nano>);
static_assert(!std::is_same_v<time_point, steady_time>, "a date is no steady time");
static_assert(!std::is_convertible_v<time_point, steady_time>);
static_assert(saturating_add(time_point{1s}, 2s) == time_point{3s});
static_assert(saturating_sub(steady_time{1s}, steady_time{3s}) == -2s);
static_assert(time_point::max() - time_point{} > 290 * 365 * 24h);
static_assert(weir::limits::span > 0s && weir::limits::span < duration::max() / 8);

namespace {

__extension__ using wide = __int128;

duration nearest(wide exact) {
  wide const least = duration::min().count();
  wide const most = duration::max().count();
  return duration{static_cast<std::int64_t>(std::clamp(exact, least, most))};
}

void check(std::int64_t a, std::int64_t b) {
  duration const x{a};
  duration const y{b};
  BOOST_REQUIRE((saturating_add(time_point{x}, y).time_since_epoch() == nearest(wide{a} + b)));
  BOOST_REQUIRE((saturating_add(steady_time{x}, y).time_since_epoch() == nearest(wide{a} + b)));
  BOOST_REQUIRE((saturating_sub(time_point{x}, time_point{y}) == nearest(wide{a} - b)));
  BOOST_REQUIRE((saturating_sub(steady_time{x}, steady_time{y}) == nearest(wide{a} - b)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(time_values)

BOOST_AUTO_TEST_CASE(saturating_arithmetic_is_exact_or_at_the_end_of_the_range) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr std::array edges{
      least,    least + 1, least / 2, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1},
      most / 2, most - 1,  most};
  for (auto const a : edges) {
    for (auto const b : edges) check(a, b);
  }
  std::mt19937_64 random{3};
  for (int i = 0; i < 100'000; ++i) {
    auto const shift = random() % 64;
    check(static_cast<std::int64_t>(random()) >> shift, static_cast<std::int64_t>(random()));
  }
}

BOOST_AUTO_TEST_CASE(F47_a_fence_grows_and_never_falls_behind_the_date) {
  using weir::rule::next_fence;
  BOOST_TEST(next_fence(0, time_point{1s}) == 1'000'000U);
  BOOST_TEST(next_fence(1'000'000, time_point{1s}) == 1'000'001U);
  BOOST_TEST(next_fence(5'000'000, time_point{1s}) == 5'000'001U);  // the date was set back
  BOOST_TEST(next_fence(1'000'001, time_point{2s}) == 2'000'000U);  // or the last one was lost
  BOOST_TEST(next_fence(0, time_point{1999ns}) == 1U);
  BOOST_TEST(next_fence(7, time_point{-1s}) == 8U);
  BOOST_TEST(next_fence(0, time_point::min()) == 1U);
  std::uint64_t last = 0;
  std::mt19937_64 random{4};
  for (int i = 0; i < 10'000; ++i) {
    auto const next =
        next_fence(last, time_point{duration{static_cast<std::int64_t>(random() % 1'000'000'000)}});
    BOOST_REQUIRE(next > last);
    last = next;
  }
}

BOOST_AUTO_TEST_SUITE_END()
