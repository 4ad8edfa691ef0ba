// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/backoff/all.hpp"
#include "weir/concept.hpp"
#include "weir/limits.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using weir::duration;
namespace limits = weir::limits;

namespace {

constexpr std::uint32_t last_attempt = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t all_bits = std::numeric_limits<std::uint64_t>::max();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

using weir::capped_backoff;
using weir::constant_backoff;
using weir::decaying_backoff;
using weir::exponential_backoff;
using weir::fibonacci_backoff;
using weir::jittered_backoff;
using weir::linear_backoff;
using weir::polynomial_backoff;

template <class B>
constexpr bool is_good = weir::backoff<B> && std::is_trivially_copyable_v<B> &&
                         noexcept(std::declval<B const&>()(0, duration{}, 0));
static_assert(is_good<constant_backoff>);
static_assert(is_good<linear_backoff>);
static_assert(is_good<exponential_backoff>);
static_assert(is_good<polynomial_backoff>);
static_assert(is_good<decaying_backoff>);
static_assert(is_good<fibonacci_backoff>);
static_assert(is_good<capped_backoff<exponential_backoff>>);
static_assert(is_good<jittered_backoff<exponential_backoff>>);
static_assert(is_good<jittered_backoff<exponential_backoff, weir::equal_jitter>>);
static_assert(is_good<jittered_backoff<exponential_backoff, weir::decorrelated_jitter>>);
static_assert(is_good<capped_backoff<jittered_backoff<capped_backoff<polynomial_backoff>>>>);

// They are constants where their users want constants (a job's traits), also at the ends of the
// range.
static_assert(exponential_backoff{1s}(3, 0s, 0) == 8s);
static_assert(exponential_backoff{1s, 1e300}(last_attempt, 0s, 0) == limits::span);
static_assert(polynomial_backoff{}(last_attempt, 0s, all_bits) == limits::span);
static_assert(decaying_backoff{}(0, 0s, 0) == 1s);
static_assert(fibonacci_backoff{1s}(10, 0s, 0) == 89s);
static_assert(capped_backoff{exponential_backoff{100ms}, 30s}(last_attempt, 0s, 0) == 30s);
static_assert(jittered_backoff{exponential_backoff{1s}, weir::equal_jitter{}}(0, 0s, 0) == 1s);

/// Anybody's backoff, with results that no wait may have.
struct wild {
  duration result;
  duration operator()(std::uint32_t, duration, std::uint64_t) const noexcept { return result; }
};
static_assert(weir::backoff<wild>);

template <class B>
std::vector<duration> first(B const& b, std::uint32_t n) {
  std::vector<duration> waits;
  duration previous{};
  for (std::uint32_t i = 0; i < n; ++i) waits.push_back(previous = b(i, previous, 0));
  return waits;
}

/// The mean of many draws, as a part of `whole`.
template <class B>
double mean(B const& b, std::uint32_t attempt, duration previous, duration whole) {
  std::mt19937_64 random{1};
  double sum = 0;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    sum += static_cast<double>(b(attempt, previous, random()).count());
  }
  return sum / draws / static_cast<double>(whole.count());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(backoff)

BOOST_AUTO_TEST_CASE(constant_is_constant) {
  BOOST_TEST((first(constant_backoff{3s}, 3) == std::vector<duration>{3s, 3s, 3s}));
}

BOOST_AUTO_TEST_CASE(linear_grows_by_a_step) {
  BOOST_TEST((first(linear_backoff{1s, 2s}, 4) == std::vector<duration>{1s, 3s, 5s, 7s}));
  BOOST_TEST((first(linear_backoff{1s, 0s}, 2) == std::vector<duration>{1s, 1s}));
}

BOOST_AUTO_TEST_CASE(exponential_grows_by_a_factor) {
  BOOST_TEST((first(exponential_backoff{1s}, 5) == std::vector<duration>{1s, 2s, 4s, 8s, 16s}));
  BOOST_TEST((first(exponential_backoff{100ms, 1.5}, 4) ==
              std::vector<duration>{100ms, 150ms, 225ms, 337'500us}));
  for (double const bad : {0.5, 0.0, -2.0, not_a_number}) {  // counts as 1
    BOOST_TEST((first(exponential_backoff{1s, bad}, 3) == std::vector<duration>{1s, 1s, 1s}));
  }
  BOOST_TEST((exponential_backoff{1ns, infinity}(1, 0s, 0) == limits::span));
  BOOST_TEST((exponential_backoff{0s, infinity}(last_attempt, 0s, 0) == 0s));
}

BOOST_AUTO_TEST_CASE(polynomial_is_sidekiqs_curve) {
  BOOST_TEST((first(polynomial_backoff{}, 5) ==
              std::vector<duration>{15s, 16s, 15s + 16s, 15s + 81s, 15s + 256s}));
  for (std::uint32_t const attempt : {0U, 1U, 10U}) {
    duration const base = polynomial_backoff{}(attempt, 0s, 0);
    duration const jitter = 10s * (attempt + 1);
    BOOST_TEST((polynomial_backoff{}(attempt, 0s, all_bits) <= base + jitter));
    BOOST_TEST((polynomial_backoff{}(attempt, 0s, all_bits) > base + jitter - 1us));
    double const drawn = mean(polynomial_backoff{}, attempt, 0s, 1s);
    double const expected = std::chrono::duration<double>{base + jitter / 2}.count();
    BOOST_TEST(drawn == expected, boost::test_tools::tolerance(0.02));
  }
  duration total{};
  for (std::uint32_t i = 0; i < 25; ++i) total += polynomial_backoff{}(i, 0s, all_bits / 2);
  BOOST_TEST((total > 20 * 24h && total < 21 * 24h));  // "about three weeks"
}

BOOST_AUTO_TEST_CASE(polynomial_takes_any_power) {
  BOOST_TEST((first(polynomial_backoff{0s, 10ms, 2, 0s}, 4) ==
              std::vector<duration>{0ms, 10ms, 40ms, 90ms}));
  BOOST_TEST((first(polynomial_backoff{1s, 1s, 0, 0s}, 3) == std::vector<duration>{2s, 2s, 2s}));
  BOOST_TEST((polynomial_backoff{1s, 0s, last_attempt, 0s}(last_attempt, 0s, 0) == 1s));
}

BOOST_AUTO_TEST_CASE(decaying_is_the_seeds_curve) {
  decaying_backoff const b;
  BOOST_TEST((b(0, 0s, 0) == 1s));
  for (std::uint32_t i = 0; i < 200; ++i) {
    double const seconds = std::max(0.4 + 0.6 * std::exp(-0.17 * i), 0.5);
    BOOST_TEST(std::chrono::duration<double>{b(i, 0s, 0)}.count() == seconds,
               boost::test_tools::tolerance(1e-8));
    if (i > 0) BOOST_TEST((b(i, 0s, 0) <= b(i - 1, 0s, 0)));
  }
  BOOST_TEST((b(10, 0s, 0) > 500ms));
  BOOST_TEST((b(11, 0s, 0) == 500ms));
  BOOST_TEST((b(last_attempt, 0s, 0) == 500ms));
}

BOOST_AUTO_TEST_CASE(decaying_takes_any_parameters) {
  decaying_backoff const flat{1s, 1s, 0, 0s};
  BOOST_TEST((flat(last_attempt, 0s, 0) == 2s));
  decaying_backoff const negative{1s, 1s, -5, 0s};  // counts as 0
  BOOST_TEST((negative(100, 0s, 0) == 2s));
  decaying_backoff const nan{1s, 1s, not_a_number, 0s};
  BOOST_TEST((nan(100, 0s, 0) == 2s));
  decaying_backoff const steep{1s, 1s, infinity, 0s};
  BOOST_TEST((steep(0, 0s, 0) == 2s));
  BOOST_TEST((steep(1, 0s, 0) == 1s));
  decaying_backoff const high{limits::span, limits::span, 0.1, 0s};
  BOOST_TEST((high(0, 0s, 0) == limits::span));
  for (double const rate : {1e-9, 0.5, 1.0, 10.0, 64.0}) {
    decaying_backoff const b{0s, 1000s, rate, 0s};
    BOOST_TEST(static_cast<double>(b(1, 0s, 0).count()) == 1e12 * std::exp(-rate),
               boost::test_tools::tolerance(1e-9 + 2e-12 / std::exp(-std::min(rate, 20.0))));
  }
}

BOOST_AUTO_TEST_CASE(fibonacci_adds_the_last_two) {
  BOOST_TEST(
      (first(fibonacci_backoff{1s}, 8) == std::vector<duration>{1s, 1s, 2s, 3s, 5s, 8s, 13s, 21s}));
  BOOST_TEST((fibonacci_backoff{1ns}(last_attempt, 0s, 0) == limits::span));
  BOOST_TEST((fibonacci_backoff{0s}(last_attempt, 0s, 0) == 0s));
}

BOOST_AUTO_TEST_CASE(capped_is_never_longer) {
  BOOST_TEST((first(capped_backoff{exponential_backoff{1s}, 5s}, 5) ==
              std::vector<duration>{1s, 2s, 4s, 5s, 5s}));
  BOOST_TEST((capped_backoff{constant_backoff{1s}, -1s}(0, 0s, 0) == 0s));
  BOOST_TEST((capped_backoff{constant_backoff{1s}, duration::max()}(0, 0s, 0) == 1s));
  BOOST_TEST((capped_backoff{wild{duration::max()}, duration::max()}(0, 0s, 0) == limits::span));
  BOOST_TEST((capped_backoff{wild{-1s}, 1s}(0, 0s, 0) == 0s));
}

BOOST_AUTO_TEST_CASE(full_jitter_draws_from_all_of_the_wait) {
  jittered_backoff const b{constant_backoff{1s}};
  BOOST_TEST((b(0, 0s, 0) == 0s));
  BOOST_TEST((b(0, 0s, all_bits) <= 1s));
  BOOST_TEST((b(0, 0s, all_bits) > 1s - 1us));
  BOOST_TEST(mean(b, 0, 0s, 1s) == 0.5, boost::test_tools::tolerance(0.02));
}

BOOST_AUTO_TEST_CASE(equal_jitter_draws_from_the_upper_half) {
  jittered_backoff const b{constant_backoff{1s}, weir::equal_jitter{}};
  BOOST_TEST((b(0, 0s, 0) == 1s));
  BOOST_TEST((b(0, 0s, all_bits) >= 500ms));
  BOOST_TEST((b(0, 0s, all_bits) < 500ms + 1us));
  BOOST_TEST(mean(b, 0, 0s, 1s) == 0.75, boost::test_tools::tolerance(0.02));
}

BOOST_AUTO_TEST_CASE(decorrelated_jitter_grows_from_the_last_wait) {
  jittered_backoff const b{constant_backoff{1s}, weir::decorrelated_jitter{}};
  BOOST_TEST((b(0, 0s, 0) == 1s));
  BOOST_TEST((b(0, 0s, all_bits) <= 3s));
  BOOST_TEST((b(7, 100s, 0) == 1s));
  BOOST_TEST((b(7, 100s, all_bits) <= 300s));
  BOOST_TEST((b(7, 100s, all_bits) > 300s - 1ms));
  BOOST_TEST(mean(b, 7, 100s, 1s) == 150.5, boost::test_tools::tolerance(0.02));
  BOOST_TEST((b(7, duration::max(), all_bits) <= limits::span));
  BOOST_TEST((b(7, duration::min(), all_bits) <= 3s));
  capped_backoff const bounded{b, 10s};
  duration previous{};
  for (std::uint32_t i = 0; i < 100; ++i) previous = bounded(i, previous, all_bits);
  BOOST_TEST((previous == 10s));
}

BOOST_AUTO_TEST_CASE(jitter_within_jitter_is_drawn_apart) {
  // The same bits for both would square what is drawn: a mean of 1/3 instead of 1/4.
  jittered_backoff const twice{jittered_backoff<constant_backoff>{constant_backoff{1s}},
                               weir::full_jitter{}};
  BOOST_TEST(mean(twice, 0, 0s, 1s) == 0.25, boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(R8_no_input_makes_a_wait_that_there_is_not) {
  std::mt19937_64 random{7};
  std::array const durations{duration::min(), duration{-1s}, duration{0},      duration{1},
                             duration{1s},    limits::span,  limits::span * 5, duration::max()};
  std::array const attempts{0U, 1U, 2U, 20U, 63U, 64U, 1000U, last_attempt - 1, last_attempt};
  auto const check = [&](auto const& b) {
    for (auto const attempt : attempts) {
      for (auto const previous : durations) {
        for (std::uint64_t const entropy : {std::uint64_t{0}, random(), all_bits}) {
          duration const wait = b(attempt, previous, entropy);
          BOOST_REQUIRE((wait >= 0s));
          BOOST_REQUIRE((wait <= limits::span));
        }
      }
    }
  };
  auto const check_wrapped = [&](auto const& b, duration d) {
    check(b);
    check(capped_backoff{b, d});
    check(jittered_backoff{b, weir::full_jitter{}});
    check(jittered_backoff{b, weir::equal_jitter{}});
    check(jittered_backoff{b, weir::decorrelated_jitter{}});
  };
  for (auto const a : durations) {
    check_wrapped(constant_backoff{a}, a);
    check_wrapped(fibonacci_backoff{a}, a);
    for (auto const b : durations) {
      check_wrapped(linear_backoff{a, b}, b);
      check(polynomial_backoff{a, b, last_attempt, a});
      check(polynomial_backoff{a, b, 4, a});
      for (double const x : {-infinity, -1.0, 0.0, 0.17, 1.0, 2.0, 1e308, infinity, not_a_number}) {
        check(exponential_backoff{a, x});
        check(decaying_backoff{a, b, x, a});
      }
    }
  }
  for (auto const a : durations) {  // a wrapper of anybody's
    check(capped_backoff{wild{a}, 1h});
    check(jittered_backoff{wild{a}, weir::full_jitter{}});
    check(jittered_backoff{wild{a}, weir::equal_jitter{}});
    check(jittered_backoff{wild{a}, weir::decorrelated_jitter{}});
  }
}

BOOST_AUTO_TEST_SUITE_END()
