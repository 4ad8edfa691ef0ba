// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory/permits.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;

constexpr time_point start{1'000'000s};

struct bed : detail::memory_permits {
  explicit bed(std::size_t capacity = 1'000'000)
      : detail::memory_permits{memory_options{.max_permits = capacity}} {}

  using detail::memory_permits::lines;
  time_point now = start;

  result<permit_grant> acquire(std::string_view key, std::string_view holder, std::uint32_t limit,
                               duration ttl = 10s, duration patience = 0s) {
    return apply(command::acquire_permit{key, holder, limit, ttl, patience}, now);
  }
  bool release(std::string_view key, std::string_view holder, std::uint64_t fence) {
    return apply(command::release_permit{key, holder, fence}, now)->freed;
  }
  bool lost(std::string_view key, std::string_view holder, std::uint64_t fence) {
    auto const r = apply(command::renew_permit{key, holder, fence, 10s}, now);
    return r.has_error() && r.error() == make_error_code(errc::lease_lost);
  }
  permit_census inspect(std::string_view key, std::uint32_t limit = 0) {
    return apply(command::inspect_permits{key, limit}, now).value();
  }
};

bool is_full(result<permit_grant> const& r) {
  return r.has_error() && r.error() == make_error_code(errc::store_full);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_permits)

BOOST_AUTO_TEST_CASE(a_key_that_is_not_there) {
  bed b;
  BOOST_TEST(b.inspect("k").in_use == 0u);
  BOOST_TEST(b.inspect("k").waiting == 0u);
  BOOST_TEST(!b.release("k", "a", 1));
  BOOST_TEST(!b.release("k", "a", 0));
  BOOST_TEST(b.lost("k", "a", 1));
  BOOST_TEST(b.lines().keys() == 0u);
}

BOOST_AUTO_TEST_CASE(F1_a_late_release_frees_nobody_elses_permit) {
  bed b;
  auto const first = b.acquire("k", "a", 1)->fence;
  b.now += 10s;
  BOOST_TEST(b.acquire("k", "b", 1)->granted);
  BOOST_TEST(!b.release("k", "a", first));
  BOOST_TEST(b.lost("k", "a", first));
  BOOST_TEST(b.inspect("k", 1).holders.at(0).holder == "b");
  b.now += 10s;  // nor does its own earlier lease end or prolong its later one
  BOOST_TEST(b.acquire("k", "a", 1)->granted);
  BOOST_TEST(!b.release("k", "a", first));
  BOOST_TEST(b.lost("k", "a", first));
  BOOST_TEST(b.inspect("k", 1).holders.at(0).fence > first);
}

BOOST_AUTO_TEST_CASE(F3_F9_every_lease_has_its_own_ttl_to_the_nanosecond) {
  bed b;
  b.acquire("k", "long", 2, 1h);
  b.acquire("k", "short", 2, 1ns);
  BOOST_TEST(b.inspect("k").in_use == 2u);
  b.now += 1ns;
  BOOST_TEST(b.inspect("k").in_use == 1u);
  b.now += 1h - 2ns;
  BOOST_TEST(b.inspect("k").in_use == 1u);
  b.now += 1ns;
  BOOST_TEST(b.inspect("k").in_use == 0u);
}

BOOST_AUTO_TEST_CASE(F7_double_release_frees_one_permit) {
  bed b;
  auto const fence = b.acquire("k", "a", 2)->fence;
  b.acquire("k", "b", 2);
  BOOST_TEST(b.release("k", "a", fence));
  for (int i = 0; i < 5; ++i) BOOST_TEST(!b.release("k", "a", i % 2 == 0 ? fence : 0));
  BOOST_TEST(b.acquire("k", "c", 2)->granted);
  BOOST_TEST(!b.acquire("k", "d", 2)->granted);
  BOOST_TEST(b.lines().size() == 2u);
}

BOOST_AUTO_TEST_CASE(F8_a_lowered_limit_drains_and_a_raised_one_is_used) {
  bed b;
  for (int i = 0; i < 30; ++i) b.acquire("k", "h" + std::to_string(i), 30);
  BOOST_TEST(!b.acquire("k", "x", 2)->granted);
  BOOST_TEST(b.inspect("k").in_use == 30u);
  for (int i = 0; i < 29; ++i) {
    BOOST_TEST(!b.acquire("k", "x", 1)->granted);
    b.release("k", "h" + std::to_string(i), 0);
  }
  BOOST_TEST(!b.acquire("k", "x", 1)->granted);
  BOOST_TEST(b.acquire("k", "x", 2)->granted);
}

BOOST_AUTO_TEST_CASE(R5_fences_grow_per_key_whatever_happens) {
  bed b;
  std::map<std::string, std::uint64_t> last;
  for (int round = 0; round < 60; ++round) {
    auto const holder = "h" + std::to_string(round);
    for (int k = 0; k < 100; ++k) {
      auto const key = "k" + std::to_string(k);
      auto const fence = b.acquire(key, holder, 1, 1ms)->fence;
      BOOST_TEST(fence > last[key]);
      last[key] = fence;
    }
    if (round % 3 == 0) {  // expired
      b.now += 1ms;
      continue;
    }
    for (auto const& [key, fence] : last) BOOST_TEST(b.release(key, holder, fence));
    BOOST_TEST(b.lines().keys() == 0u);
    if (round % 3 == 2) b.now -= 10min;
  }
}

BOOST_AUTO_TEST_CASE(R5_F47_fences_grow_across_a_restart) {
  bed before;
  std::uint64_t fence = 0;
  for (int i = 0; i < 100; ++i) {
    before.now += 1us;
    fence = before.acquire("k", "a", 1)->fence;
    before.release("k", "a", fence);
  }
  bed after;
  after.now = before.now + 1us;
  BOOST_TEST(after.acquire("k", "a", 1)->fence > fence);
}

BOOST_AUTO_TEST_CASE(F52_time_running_backwards_gives_nothing_twice) {
  bed b;
  auto const fence = b.acquire("k", "a", 1)->fence;
  b.now -= 1h;
  BOOST_TEST(!b.acquire("k", "b", 1)->granted);
  BOOST_TEST(b.acquire("k", "a", 1)->fence == fence);
  b.now = start + 10s;
  auto const next = b.acquire("k", "b", 1);
  BOOST_TEST(next->granted);
  b.now = start;
  BOOST_TEST(b.lost("k", "a", fence));
  BOOST_TEST(!b.acquire("k", "a", 1)->granted);
  BOOST_TEST(b.inspect("k").in_use == 1u);
}

BOOST_AUTO_TEST_CASE(F11_a_key_that_holds_nothing_leaves) {
  bed b;
  for (int i = 0; i < 1'000; ++i) {
    auto const key = "k" + std::to_string(i);
    b.acquire(key, "a", 1);
    b.acquire(key, "b", 1, 10s, 5s);
    BOOST_TEST(b.lines().keys() == 1u);
    BOOST_TEST(b.lines().size() == 2u);
    b.release(key, "a", 0);
    b.release(key, "b", 0);
    BOOST_TEST(b.lines().keys() == 0u);
    BOOST_TEST(b.lines().size() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(F11_a_refusal_without_patience_leaves_nothing) {
  bed b;
  b.acquire("k", "a", 1);
  for (int i = 0; i < 1'000; ++i) b.acquire("k", "h" + std::to_string(i), 1);
  BOOST_TEST(b.lines().size() == 1u);
}

BOOST_AUTO_TEST_CASE(F11_abandoned_keys_go_while_any_other_key_is_used) {
  bed b;
  for (int i = 0; i < 50'000; ++i) {
    auto const key = "k" + std::to_string(i);
    b.acquire(key, "a", 1, 10s);
    if (i % 2 == 0) b.acquire(key, "b", 1, 10s, 20s);
  }
  BOOST_TEST(b.lines().size() == 75'000u);
  b.now += 20s;
  for (int i = 0; i < 50'000; ++i) b.inspect("another");
  BOOST_TEST(b.lines().keys() == 0u);
  BOOST_TEST(b.lines().size() == 0u);
}

BOOST_AUTO_TEST_CASE(F11_a_stream_of_abandoned_keys_does_not_pile_up) {
  bed b;
  std::size_t most = 0;
  for (int i = 0; i < 50'000; ++i) {
    b.now += 10us;
    b.acquire("k" + std::to_string(i), "a", 1, 1ms);  // a hundred are alive
    if (i % 100 == 0) most = std::max(most, b.lines().keys());
  }
  BOOST_TEST(most >= 100u);
  BOOST_TEST(most < 400u);
}

BOOST_AUTO_TEST_CASE(F11_a_renewed_lease_outlives_its_place_in_the_index) {
  bed b;
  auto const fence = b.acquire("k", "a", 1, 10s)->fence;
  for (int i = 0; i < 100; ++i) {
    b.now += 9s;
    BOOST_TEST(!b.lost("k", "a", fence));
    for (int n = 0; n < 50; ++n) b.inspect("k" + std::to_string(n));  // reaps what is due
  }
  BOOST_TEST(b.inspect("k").in_use == 1u);
  b.apply(command::renew_permit{"k", "a", fence, 1ms}, b.now);  // and it may end sooner
  b.now += 1ms;
  for (int n = 0; n < 2'000; ++n) b.inspect("other");
  BOOST_TEST(b.lines().keys() == 0u);
}

BOOST_AUTO_TEST_CASE(R8_at_the_bound_nothing_changes) {
  bed b{3};
  BOOST_TEST(b.acquire("k1", "a", 1)->granted);
  BOOST_TEST(b.acquire("k2", "a", 1)->granted);
  BOOST_TEST(b.acquire("k2", "b", 1, 10s, 5s)->place == 1u);
  BOOST_TEST(is_full(b.acquire("k3", "a", 1)));
  BOOST_TEST(is_full(b.acquire("k1", "b", 2)));
  BOOST_TEST(is_full(b.acquire("k1", "b", 1, 10s, 5s)));
  BOOST_TEST(b.lines().size() == 3u);
  BOOST_TEST(b.lines().keys() == 2u);
  BOOST_TEST(b.inspect("k1").in_use == 1u);
  BOOST_TEST(b.inspect("k1").waiting == 0u);
  // Who needs no more room is served.
  BOOST_TEST(b.acquire("k1", "a", 1)->granted);
  BOOST_TEST(!b.acquire("k1", "b", 1)->granted);
  BOOST_TEST(b.acquire("k2", "b", 1, 10s, 5s)->place == 1u);
  b.release("k2", "a", 0);
  BOOST_TEST(b.acquire("k1", "b", 2)->granted);  // what was given back
  BOOST_TEST(is_full(b.acquire("k3", "a", 1)));
  BOOST_TEST(b.acquire("k2", "b", 1)->granted);  // its ticket becomes its permit
  BOOST_TEST(b.lines().size() == 3u);
}

BOOST_AUTO_TEST_CASE(R8_at_the_bound_what_has_expired_makes_room) {
  bed b{1'000};
  for (int i = 0; i < 1'000; ++i) b.acquire("k" + std::to_string(i), "a", 1, 10s);
  BOOST_TEST(is_full(b.acquire("new", "a", 1)));
  b.now += 10s - 1ns;
  BOOST_TEST(is_full(b.acquire("new", "a", 1)));
  b.now += 1ns;
  for (int i = 0; i < 1'000; ++i) {
    BOOST_TEST(b.acquire("new" + std::to_string(i), "a", 1)->granted);
  }
  BOOST_TEST(is_full(b.acquire("new", "a", 1)));
  BOOST_TEST(b.lines().size() == 1'000u);
  BOOST_TEST(b.lines().keys() == 1'000u);
}

BOOST_AUTO_TEST_CASE(R8_one_key_at_the_bound_makes_room_for_itself) {
  bed b{100};
  for (int i = 0; i < 100; ++i) b.acquire("k", "h" + std::to_string(i), 1'000, 1s + i * 1s);
  BOOST_TEST(is_full(b.acquire("k", "x", 1'000)));
  b.now += 1s;
  BOOST_TEST(b.acquire("k", "x", 1'000)->granted);
  BOOST_TEST(is_full(b.acquire("k", "y", 1'000)));
}

BOOST_AUTO_TEST_CASE(R8_at_the_bound_at_the_end_of_time) {
  bed b{1};
  b.now = time_point::max() - 1ns;
  b.acquire("k", "a", 1);
  BOOST_TEST(is_full(b.acquire("j", "b", 1)));
  b.now = time_point::max();
  BOOST_TEST(is_full(b.acquire("j", "b", 1)));  // who ends at the end of time is not looked for
  BOOST_TEST(b.acquire("k", "b", 1)->granted);
}

BOOST_AUTO_TEST_CASE(F27_no_two_keys_or_holders_are_one) {
  using namespace std::string_literals;
  std::vector<std::string> const names{"a",
                                       "a\0"s,
                                       "a\0b"s,
                                       "\0"s,
                                       "\0\0"s,
                                       "a\r\n",
                                       "a\n",
                                       "a\r",
                                       "{a}",
                                       "a}",
                                       "{a",
                                       "'a'",
                                       "\"a\"",
                                       "a'",
                                       "a\"; --",
                                       "*",
                                       ">",
                                       "a.>",
                                       " a",
                                       "a ",
                                       " ",
                                       "\xff",
                                       "\xff\xfe",
                                       "\xc3\x28",
                                       "\xc0\x80",
                                       "\xed\xa0\x80",
                                       "A",
                                       "\xc3\xa4",
                                       "a\xcc\x88",
                                       std::string(1024, 'a'),
                                       std::string(1023, 'a'),
                                       std::string(1023, 'a') + '\0',
                                       "weir:{0}:k",
                                       "k1",
                                       "k",
                                       "1"};
  bed b;
  std::map<std::string, std::uint64_t> fences;
  for (auto const& key : names) {
    auto const g = b.acquire(key, "h", 1);
    BOOST_TEST(g->granted);
    BOOST_TEST(g->in_use == 1u);
    fences[key] = g->fence;
  }
  BOOST_TEST(b.lines().keys() == names.size());
  BOOST_TEST(fences.size() == names.size());
  for (auto const& key : names) BOOST_TEST(b.inspect(key, 5).holders.at(0).fence == fences[key]);
  for (auto const& key : names) {
    BOOST_TEST(b.release(key, "h", fences[key]));
    BOOST_TEST(!b.release(key, "h", 0));
  }
  BOOST_TEST(b.lines().keys() == 0u);
  auto const count = static_cast<std::uint32_t>(names.size());
  for (auto const& holder : names) BOOST_TEST(b.acquire("k", holder, count)->granted);
  BOOST_TEST(b.inspect("k").in_use == count);
  BOOST_TEST(!b.acquire("k", "one more", count)->granted);
  for (auto const& holder : names) BOOST_TEST(b.release("k", holder, 0));
}

BOOST_AUTO_TEST_CASE(keys_and_holders_are_copied) {
  bed b;
  {
    std::string key = "a key that is too long for the small string";
    std::string holder = "a holder that is too long for the small string";
    b.acquire(key, holder, 1);
    b.acquire(key, holder + "2", 1, 10s, 5s);
    key.assign(key.size(), '?');
    holder.assign(holder.size(), '?');
  }
  auto const census = b.inspect("a key that is too long for the small string", 1);
  BOOST_TEST(census.holders.at(0).holder == "a holder that is too long for the small string");
  BOOST_TEST(census.waiting == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
