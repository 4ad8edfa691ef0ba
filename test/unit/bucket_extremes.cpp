// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/rule/fence.hpp"
#include "weir/store/memory/wide_arrival.hpp"
#include "weir/time.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>

using namespace std::chrono_literals;
using weir::duration;
using weir::quota;
using weir::rule::bucket_scale;
using weir::rule::bucket_units;

namespace {

constexpr auto largest = (bucket_units{1} << 95) - 1;  // that a record holds
constexpr auto least = -(bucket_units{1} << 95);

constexpr std::array quotas{
    quota::per_second(100),
    quota::per_second(7),
    quota::per_second(1'000'000'000).burst(1'000'000'000),
    quota::per(1, weir::limits::span),
    quota::per_day(999'999'937).burst(1'000'000'000),
    quota::per(1, 1ns),
};
constexpr std::array times{duration{}, duration::min(), duration::max(), weir::rule::bucket_horizon,
                           -weir::rule::bucket_horizon};

}  // namespace

BOOST_AUTO_TEST_SUITE(bucket_extremes)

// A damaged record may hold any number. The sanitizer for undefined behaviour finds the sums that
// overflow, and what is told is the nearest thing that there is.
BOOST_AUTO_TEST_CASE(F97_any_arrival_that_was_read_is_an_answer) {
  for (auto const& q : quotas) {
    auto const scale = bucket_scale::of(q).value();
    std::array const scales{scale, scale, scale, scale};
    std::span<bucket_scale const> const one{scales.data(), 1};
    for (auto const now : times) {
      for (auto const& arrival : {largest, largest / 2, bucket_units{1} << 90, least, least + 1,
                                  bucket_units{std::numeric_limits<std::int64_t>::max()},
                                  bucket_units{std::numeric_limits<std::int64_t>::min()}}) {
        auto const arrivals = weir::rule::bucket_arrivals{arrival, arrival, arrival, arrival};
        for (auto const max_wait : {duration{}, weir::limits::span}) {
          for (auto const cost : {std::uint64_t{1}, scale.capacity}) {
            auto const d = weir::rule::take(one, arrivals, now, cost, max_wait);
            BOOST_TEST(d.remaining <= scale.capacity);
            BOOST_TEST((d.wait >= 0ns && d.retry_after >= 0ns && d.reset_after >= 0ns));
            if (arrival >= largest / 2) BOOST_TEST((!d.allowed && d.retry_after > 1h));
            if (arrival < 0 && now >= 0ns) BOOST_TEST(d.allowed);
            auto const info = weir::rule::peek(one, arrivals, now, cost, max_wait);
            BOOST_TEST((info.allowed == d.allowed && info.retry_after == d.retry_after));
            for (bool const before : {false, true}) {
              auto const back = weir::rule::refund(one, arrivals, d.mark, cost, before, now);
              BOOST_TEST(back.receipt.credited + back.receipt.forfeited == cost);
            }
          }
        }
        auto const full = weir::rule::full_from(std::span<bucket_scale const>{scales}, arrivals);
        BOOST_TEST((arrival < largest / 2 || full > now || now == duration::max()));
        for (auto const& other : quotas) {
          auto const after = bucket_scale::of(other).value();
          auto const changed = weir::rule::changed_quotas(
              one, arrivals, std::span<bucket_scale const>{&after, 1}, now);
          auto const d = weir::rule::take(std::span<bucket_scale const>{&after, 1}, changed, now, 1,
                                          duration{});
          if (arrival >= largest / 2) BOOST_TEST(!d.allowed);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(F97_the_greatest_fence_is_followed_by_none_that_is_less) {
  constexpr auto greatest = std::numeric_limits<std::uint64_t>::max();
  for (auto const now : {weir::time_point::min(), weir::time_point{}, weir::time_point::max()}) {
    BOOST_TEST(weir::rule::next_fence(greatest, now) == greatest);
    BOOST_TEST(weir::rule::next_fence(greatest - 1, now) == greatest);
  }
}

BOOST_AUTO_TEST_CASE(an_arrival_of_two_words_is_what_was_written) {
  weir::detail::wide_arrival a;
  for (auto const& units :
       {largest, least, bucket_units{0}, bucket_units{-1}, bucket_units{1} << 64,
        -(bucket_units{1} << 64), bucket_units{std::numeric_limits<std::int64_t>::min()}}) {
    auto const before = a.read();
    a.exchange(units);
    BOOST_TEST((a.read().units() == units));
    BOOST_TEST(!a.swap(before, 5));
    BOOST_TEST((a.read().units() == units));
    auto const seen = a.read();
    BOOST_TEST(a.swap(seen, units));
    BOOST_TEST(!a.swap(seen, 5));  // although it is the same again
  }
}

BOOST_AUTO_TEST_SUITE_END()
