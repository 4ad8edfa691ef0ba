// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The slots of a shard of buckets, which grows a little with each insert.

#include "weir/store/memory/bucket_key.hpp"
#include "weir/store/memory/bucket_shard.hpp"
#include "weir/testing/dice.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using weir::detail::bucket_key;
using weir::detail::bucket_shard;
using weir::detail::bucket_slot;

void insert(bucket_shard& shard, std::string const& name, std::int64_t arrival) {
  bucket_key const key{name};
  shard.make_place();
  shard.insert(key, key.hash(), 7, arrival);
}
bucket_shard::sighting find(bucket_shard const& shard, std::string const& name) {
  bucket_key const key{name};
  return shard.glimpse(key, key.hash());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_bucket_shard)

// In 3,000 runs the worst of these inserts moved 32 to 47 slots in nine of ten, and over 64 in six.
BOOST_AUTO_TEST_CASE(an_insert_moves_few_slots) {
  bucket_shard shard;
  std::vector<std::string> names;
  std::vector<bucket_slot const*> places;
  std::size_t most = 0;
  std::size_t all = 0;
  for (int i = 0; i != 2000; ++i) {
    names.push_back("key " + std::to_string(i));
    insert(shard, names.back(), i);
    places.push_back(find(shard, names.back()).slot);
    std::size_t moved = 0;
    for (std::size_t k = 0; k != names.size(); ++k) {
      auto const* const now = find(shard, names[k]).slot;
      if (std::exchange(places[k], now) != now) ++moved;
    }
    most = std::max(most, moved);
    all += moved;
  }
  BOOST_TEST(most <= 128U);
  BOOST_TEST(all > 2000U);  // it has grown
  BOOST_TEST(shard.size() == 4096U);
  for (auto const* const place : places) BOOST_TEST_REQUIRE(place != nullptr);
}

BOOST_AUTO_TEST_CASE(it_holds_what_was_put_in_and_not_erased) {
  weir::testing::dice drawn{11};
  for (int round = 0; round != 10; ++round) {
    bucket_shard shard;
    std::map<std::string, std::int64_t> model;
    auto const most = std::size_t{1} << (3 + drawn.below(8));
    for (int step = 0; step != 3000; ++step) {
      auto const name = "key " + std::to_string(drawn.below(2 * most));
      auto const known = model.find(name);
      auto const seen = find(shard, name);
      BOOST_TEST_REQUIRE(static_cast<bool>(seen) == (known != model.end()));
      if (!seen && model.size() < most) {
        insert(shard, name, step);
        model.emplace(name, step);
      } else if (seen) {
        BOOST_TEST_REQUIRE(seen.slot->arrival.load() == known->second);
        BOOST_TEST_REQUIRE(seen.meta.quotas() == 7);
        seen.slot->arrival.store(bucket_slot::absent);
        shard.erase(seen.index);
        model.erase(known);
      }
    }
    std::size_t taken = 0;
    for (std::uint32_t i = 0; i != shard.size(); ++i) {
      auto const& slot = shard.slot(i);
      if (slot.read_meta().taken()) {
        ++taken;
      } else {
        BOOST_TEST_REQUIRE(slot.arrival.load() <= 0);  // of one that was never taken, or absent
      }
    }
    BOOST_TEST(taken == model.size());
    for (auto const& [name, arrival] : model) {
      auto const seen = find(shard, name);
      BOOST_TEST_REQUIRE(static_cast<bool>(seen));
      BOOST_TEST_REQUIRE(seen.slot->arrival.load() == arrival);
    }
    BOOST_TEST(shard.size() <= 4 * most + 64);  // churn alone does not make it grow
  }
}

BOOST_AUTO_TEST_SUITE_END()
