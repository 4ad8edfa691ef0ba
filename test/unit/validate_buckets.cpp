// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// R8: the input of every command on buckets is checked before anything is done.

#include "validate_checks.hpp"
#include "weir/command/buckets.hpp"
#include "weir/quota.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

using namespace std::chrono_literals;
using namespace weir::test;
namespace command = weir::command;
namespace limits = weir::limits;
using weir::errc;
using weir::quota;

static_assert(weir::command_type<command::take>);
static_assert(weir::command_type<command::peek_bucket>);
static_assert(weir::command_type<command::refund>);
static_assert(weir::command_type<command::reset_bucket>);
static_assert(weir::command_type<command::reap_buckets>);

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

/// What take, peek and refund have in common.
template <class C>
void check_bucket(C const& good) {
  check_key(good);

  C c = good;
  std::vector<quota> quotas;
  auto const expect_quotas_bad = [&] {
    c.quotas = quotas;
    expect_bad(c, errc::invalid_quota);
  };
  expect_quotas_bad();
  for (std::size_t i = 0; i < limits::quotas; ++i) {
    quotas.push_back(quota::per_second(10));
    c.quotas = quotas;
    expect_good(c);
  }
  quotas.push_back(quota::per_second(10));
  expect_quotas_bad();

  for (auto const& bad :
       {quota{}, quota::per_second(0), quota::per_second(0).burst(5), quota::per_second(5).burst(0),
        quota::per(5, 0s), quota::per(5, -1s), quota::per(5, weir::duration::min())}) {
    quotas.assign(1, bad);
    expect_quotas_bad();
    quotas.assign(limits::quotas, quota::per_second(10));
    quotas.back() = bad;
    expect_quotas_bad();
  }

  // What is only large is the store's to judge.
  std::array const large{quota::per(most, weir::duration::max()), quota::per(1, 1ns).burst(most)};
  c.quotas = large;
  expect_good(c);

  // F20: what never succeeds is an error, and not "later".
  std::array const two{quota::per_second(10).burst(100), quota::per_hour(50).burst(20)};
  c.quotas = two;
  check_field<C, std::uint64_t>(c, &C::cost, errc::cost_exceeds_capacity, {1, 11, 20},
                                {21, 100, most});
  check_field<C, std::uint64_t>(c, &C::cost, errc::invalid_cost, {1}, {0});
}

constexpr std::array one{quota::per_second(10)};

}  // namespace

BOOST_AUTO_TEST_SUITE(R8_validate_buckets)

BOOST_AUTO_TEST_CASE(take) {
  command::take const good{.key = "k", .quotas = one, .cost = 1, .max_wait = 0s};
  check_bucket(good);
  check_wait(good, &command::take::max_wait);
}

BOOST_AUTO_TEST_CASE(peek_bucket) {
  command::peek_bucket const good{.key = "k", .quotas = one, .cost = 1, .max_wait = 0s};
  check_bucket(good);
  check_wait(good, &command::peek_bucket::max_wait);
}

BOOST_AUTO_TEST_CASE(refund) { check_bucket(command::refund{.key = "k", .quotas = one}); }

BOOST_AUTO_TEST_CASE(reset_bucket) { check_key(command::reset_bucket{.key = "k"}); }

BOOST_AUTO_TEST_CASE(reap_buckets) { expect_good(command::reap_buckets{}); }

BOOST_AUTO_TEST_CASE(the_first_error_is_that_of_the_first_bad_field) {
  command::take c{.key = "", .quotas = {}, .cost = 0, .max_wait = -1s};
  expect_bad(c, errc::invalid_key);
  c.key = "k";
  expect_bad(c, errc::invalid_quota);
  c.quotas = one;
  expect_bad(c, errc::invalid_cost);
  c.cost = 11;
  expect_bad(c, errc::cost_exceeds_capacity);
  c.cost = 10;
  expect_bad(c, errc::invalid_wait);
  c.max_wait = 0s;
  expect_good(c);
}

BOOST_AUTO_TEST_SUITE_END()
