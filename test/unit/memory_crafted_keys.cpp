// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "hostile/crafted_keys.hpp"

#include <boost/container_hash/hash.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>

namespace {

using namespace hostile;

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_crafted_keys)

BOOST_AUTO_TEST_CASE(they_have_one_hash_under_every_seed) {
  weir::testing::dice drawn{1};
  auto const hash = [](std::size_t seed, std::string const& key) {
    boost::hash_range(seed, key.begin(), key.end());
    return seed;
  };
  for (int const pairs : {1, 4}) {
    for (auto const& key : cancelling_keys(100, drawn, pairs)) {
      for (std::size_t const seed : {0UL, 1UL, ~0UL, 0x123456789abcdefUL}) {
        BOOST_TEST(hash(seed, key) == hash(seed, cancelling_keys(1, drawn, pairs)[0]));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(F91_crafted_keys_cost_no_more_than_twice_what_others_cost) {
  constexpr std::size_t n = 50'000;
  weir::testing::dice drawn{2};
  for (auto const& use : attacked_uses) {
    attacked_store store;
    bool const buckets = std::string{use.name} == "buckets";
    auto const crafted =
        (store.*use.of)(buckets ? folding_keys(n, drawn) : cancelling_keys(n, drawn));
    attacked_store other;
    auto const random = (other.*use.of)(random_keys(n, drawn, buckets ? 32 : 16));
    BOOST_TEST_MESSAGE(use.name << ": " << crafted << " and " << random);
    BOOST_TEST_CONTEXT(use.name) {
      BOOST_TEST(random != 0U);
      BOOST_TEST(crafted <= 2 * random);
    }
  }
}

namespace {

constexpr auto hourly = weir::quota::per_hour(1);

weir::decision take(weir::memory_store const& store, std::string const& key) {
  return store.execute(weir::command::take{key, {&hourly, 1}, 1, {}}).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(F92_chosen_keys_shed_nobody) {
  boost::asio::io_context io;
  weir::memory_store const store{io.get_executor()};
  weir::testing::dice drawn{3};
  auto keys = folding_keys(1279, drawn);
  auto const victim = keys.back();
  keys.pop_back();
  for (auto const& key : keys) BOOST_TEST_REQUIRE(take(store, key).allowed);
  BOOST_TEST(take(store, victim).allowed);
}

// Not even those that were chosen with the secret.
BOOST_AUTO_TEST_CASE(F92_all_keys_in_one_shard_shed_nobody) {
  constexpr std::size_t most = 10'000;
  boost::asio::io_context io;
  weir::memory_store const store{io.get_executor(), {.max_buckets = most}};
  weir::detail::bucket_table const like{most};
  auto const shard = [&](std::string const& key) {
    return &like.home(weir::detail::bucket_key{key}.hash());
  };
  std::size_t taken = 0;
  std::string key;
  for (std::size_t i = 0; taken != most; ++i) {
    key = "key " + std::to_string(i);
    if (shard(key) != shard("key 0")) continue;
    BOOST_TEST_REQUIRE(take(store, key).allowed);
    ++taken;
  }
  BOOST_TEST(!take(store, "key 0").allowed);
  BOOST_TEST(!take(store, "key 0").shed);
  BOOST_TEST(!take(store, key).shed);
  BOOST_TEST(take(store, "late").shed);
}

BOOST_AUTO_TEST_SUITE_END()
