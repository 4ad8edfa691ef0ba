// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The permits, locks and buckets of the file against those of the memory store, on generated
// histories.

#include "sqlite_histories.hpp"
#include "weir/testing/fields.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace sqlite_test;

std::vector<std::string> const keys{"a", std::string{"b\0{}", 4}, "c"};
std::vector<std::string> const holders{"one", "two", "three", "four", "five", "six"};

template <class Step>
void play(std::uint64_t seed, Step&& step) {
  BOOST_TEST_CONTEXT("seed " << seed) {
    history h{seed, quick(), {}};
    for (int batch = 0; batch != 60; ++batch) {
      for (auto n = 1 + h.below(6); n != 0; --n) {
        step(h);
        h.pass();
      }
      h.play();
      if (batch % 10 == 0) h.check_sums();
    }
  }
}

struct lease {
  std::string key;
  std::string holder;
  std::uint64_t fence;
};

/// The latest leases, and commands of one of them.
struct leases {
  template <class C>
  void tell(history& h, C c) {
    if (all.empty()) return;
    auto const& l = all[all.size() - 1 - h.below(std::min<std::size_t>(all.size(), 6))];
    c.key = l.key;
    c.holder = h.chance(90) ? l.holder : h.any(holders);
    c.fence = l.fence;
    auto for_file = c;
    for_file.fence = h.fence_of(l.key, l.fence);
    h.tell(c, for_file, l.key);
  }

  std::vector<lease> all;
};

void permits(history& h, leases& given) {
  auto const& key = h.any(keys);
  auto const& holder = h.any(holders);
  auto const ttl = std::chrono::milliseconds{1 + h.below(3000)};
  switch (h.below(8)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return h.tell(
          command::acquire_permit{key, holder, static_cast<std::uint32_t>(1 + h.below(3)), ttl,
                                  h.chance(70) ? std::chrono::milliseconds{h.below(2000)} : 0ms},
          key, [&given, key, holder](permit_grant const& g) {
            if (g.granted) given.all.push_back({key, holder, g.fence});
          });
    case 4:
      return given.tell(h, command::renew_permit{.key = {}, .holder = {}, .fence = 0, .ttl = ttl});
    case 5: return given.tell(h, command::release_permit{});
    case 6: return h.tell(command::release_permit{key, holder, 0}, key);
    default: return h.tell(command::inspect_permits{key, 5}, key);
  }
}

void locks(history& h, leases& given) {
  auto const& key = h.any(keys);
  auto const& holder = h.any(holders);
  auto const ttl = std::chrono::milliseconds{1 + h.below(3000)};
  switch (h.below(6)) {
    case 0:
    case 1:
      return h.tell(command::acquire_lock{key, holder, ttl}, key,
                    [&given, key, holder](lock_grant const& g) {
                      if (g.granted) given.all.push_back({key, holder, g.fence});
                    });
    case 2:
      return given.tell(h, command::renew_lock{.key = {}, .holder = {}, .fence = 0, .ttl = ttl});
    case 3: return given.tell(h, command::release_lock{});
    case 4: return h.tell(command::release_lock{key, holder, 0}, key);
    default: return h.tell(command::inspect_lock{key}, key);
  }
}

std::vector<std::vector<quota>> const quotas{
    {quota::per_second(3)},
    {quota::per_second(2).burst(7)},
    {quota::per(5, 2s), quota::per_minute(40)},
    {quota::per_second(3), quota::per(10, 7s), quota::per_minute(30), quota::per_hour(500)},
};

struct grant {
  std::string key;
  std::vector<quota> const* quotas;
  std::uint64_t cost;
  bucket_mark mark;
  time_point instant;
};

void buckets(history& h, std::vector<grant>& given, std::vector<std::string> const& names) {
  auto const& key = h.any(names);
  auto const& q = h.chance(90)
                      ? quotas[static_cast<std::size_t>(&key - names.data()) % quotas.size()]
                      : h.any(quotas);
  auto const cost = 1 + h.below(3);
  auto const wait = h.chance(30) ? std::chrono::milliseconds{h.below(3000)} : 0ms;
  switch (h.below(8)) {
    default:
      return h.tell(command::take{key, q, cost, wait}, {},
                    [&given, key, &q, t = h.now](decision const& d) {
                      if (d.allowed) given.push_back({key, &q, d.cost, d.mark, t + d.wait});
                    });
    case 5: return h.tell(command::peek_bucket{key, q, cost, wait});
    case 6: {
      if (given.empty()) return;
      auto const& g = given[given.size() - 1 - h.below(std::min<std::size_t>(given.size(), 4))];
      return h.tell(command::refund{g.key, *g.quotas, g.cost, g.mark, h.now < g.instant});
    }
    case 7: return h.chance(20) ? h.tell(command::reset_bucket{key}) : void();
  }
}

/// Both count a bucket's times from the first take.
void begin(history& h) { h.tell(command::take{"first", quotas[0], 1, {}}); }

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_key_histories)

BOOST_AUTO_TEST_CASE(R1_permits_are_those_of_the_memory_store) {
  for (std::uint64_t seed = 1; seed != 41; ++seed) {
    leases given;
    play(seed, [&](history& h) { permits(h, given); });
  }
}

BOOST_AUTO_TEST_CASE(R2_locks_are_those_of_the_memory_store) {
  for (std::uint64_t seed = 201; seed != 241; ++seed) {
    leases given;
    play(seed, [&](history& h) { locks(h, given); });
  }
}

BOOST_AUTO_TEST_CASE(R3_buckets_are_those_of_the_memory_store) {
  for (std::uint64_t seed = 301; seed != 341; ++seed) {
    std::vector<grant> given;
    bool begun = false;
    play(seed, [&](history& h) {
      if (!std::exchange(begun, true)) {
        begin(h);
        return h.play_now();
      }
      buckets(h, given, keys);
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
