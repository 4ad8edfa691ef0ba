// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F21, F78: a store with a bound for its buckets counts those that are not full, by whatever they
// were changed.

#include "patience.hpp"
#include "redis_server.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace redis_test;

std::array const slow{quota::per_hour(1).burst(2)};

redis_options with_room(std::size_t buckets) {
  auto o = unhurried();
  o.max_buckets = buckets;
  return o;
}

decision take(bed& on, std::string_view key, std::uint64_t cost = 1) {
  return on(command::take{key, slow, cost, 0s}).value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_bounded_buckets)

BOOST_AUTO_TEST_CASE(F21_a_store_that_is_full_sheds_new_keys_and_no_others) {
  server s;
  bed on{s, with_room(2)};
  for (auto const key : {"a", "b", "a"}) BOOST_TEST(take(on, key).allowed);
  BOOST_TEST(!take(on, "a").shed);  // it is spent
  auto const third = take(on, "c");
  BOOST_TEST((third.shed && !third.allowed));
  BOOST_TEST(third.capacity == 2U);
  // "b" is full again in an hour.
  BOOST_TEST((third.retry_after > 59min && third.retry_after <= 1h));
  BOOST_TEST(on(command::peek_bucket{"c", slow, 1})->shed);
  BOOST_TEST(!on(command::peek_bucket{"b", slow, 1})->shed);
  BOOST_TEST(s.ask("exists '{weir:0}:b:c'") == "0");
}

BOOST_AUTO_TEST_CASE(F21_what_is_given_back_or_reset_makes_room) {
  server s;
  bed on{s, with_room(1)};
  auto const first = take(on, "a");
  BOOST_TEST(take(on, "b").shed);
  BOOST_TEST(on(command::refund{"a", slow, 1, first.mark, true})->credited == 1U);
  BOOST_TEST(take(on, "b").allowed);
  BOOST_TEST(take(on, "a").shed);  // the server still has it
  BOOST_TEST(on(command::reset_bucket{"b"}).has_value());
  BOOST_TEST(take(on, "a").allowed);
  BOOST_TEST(s.ask("zcard '{weir:0}:buckets'") == "1");
}

BOOST_AUTO_TEST_CASE(F21_takes_that_travel_together_are_bounded_one_by_one) {
  server s;
  bed on{s, with_room(8)};
  constexpr std::size_t asked = 40;
  std::size_t allowed = 0;
  std::size_t shed = 0;
  for (std::size_t i = 0; i != asked; ++i) {
    on.store.async_execute(command::take{std::to_string(i), slow, 1, 0s},
                           [&](error_code ec, decision const& d) {
                             BOOST_TEST(!ec);
                             allowed += d.allowed ? 1U : 0U;
                             shed += d.shed ? 1U : 0U;
                           });
  }
  BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return allowed + shed == asked; }));
  BOOST_TEST(allowed == 8U);
}

BOOST_AUTO_TEST_CASE(F78_buckets_that_are_full_again_leave_as_new_ones_come) {
  server s;
  bed on{s, with_room(1000)};
  std::array const quick{quota::per_second(1'000'000)};
  for (int i = 0; i != 300; ++i) {
    BOOST_TEST(on(command::take{std::to_string(i), quick, 1, 0s})->allowed);
  }
  BOOST_TEST(std::stoi(s.ask("zcard '{weir:0}:buckets'")) < 20);
  // And the last of them by the server's clock.
  BOOST_TEST(std::stoi(s.ask("pttl '{weir:0}:buckets'")) > 0);
}

BOOST_AUTO_TEST_CASE(F21_a_quota_that_a_key_has_no_more_takes_no_room) {
  server s;
  bed on{s, with_room(1)};
  std::array const both{quota::per_second(1'000'000), slow[0]};
  std::array const quick{both[0]};
  BOOST_TEST(on(command::take{"a", both, 1, 0s})->allowed);
  BOOST_TEST(take(on, "b").shed);
  BOOST_TEST(on(command::take{"a", quick, 1, 0s})->allowed);
  BOOST_TEST(take(on, "b").allowed);
}

BOOST_AUTO_TEST_CASE(F21_a_bucket_that_was_taken_from_without_the_bound_goes_on) {
  server s;
  bed without{s};
  bed on{s, with_room(1)};
  BOOST_TEST(take(without, "a").allowed);
  BOOST_TEST(take(on, "b").allowed);
  BOOST_TEST(take(on, "a").allowed);
  BOOST_TEST(take(on, "c").shed);
}

BOOST_AUTO_TEST_CASE(F61_buckets_that_are_there_need_no_room) {
  server s;
  bed on{s, with_room(10)};
  BOOST_TEST(take(on, "a").allowed);
  s.ask("config set maxmemory 1");
  BOOST_TEST((on(command::take{"b", slow, 1, 0s}).error() == errc::store_full));
  BOOST_TEST(take(on, "a").allowed);
  BOOST_TEST(!take(on, "a").allowed);
  BOOST_TEST(on(command::reset_bucket{"a"}).has_value());
  s.ask("config set maxmemory 0");
  BOOST_TEST(take(on, "b").allowed);
  BOOST_TEST(s.ask("zcard '{weir:0}:buckets'") == "1");
}

BOOST_AUTO_TEST_CASE(F53_a_key_of_another_type_among_them_is_foreign_to_new_buckets) {
  server s;
  bed on{s, with_room(10)};
  BOOST_TEST(take(on, "a").allowed);
  s.ask("set '{weir:0}:buckets' other");
  BOOST_TEST((on(command::take{"b", slow, 1, 0s}).error() == errc::store_foreign));
  BOOST_TEST(s.ask("exists '{weir:0}:b:b'") == "0");
  BOOST_TEST(take(on, "a").allowed);
  BOOST_TEST(!take(on, "a").allowed);
  BOOST_TEST(on(command::reset_bucket{"a"}).has_value());
  BOOST_TEST(s.ask("get '{weir:0}:buckets'") == "other");
  BOOST_TEST(s.ask("ttl '{weir:0}:buckets'") == "-1");
}

BOOST_AUTO_TEST_SUITE_END()
