// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/rule/locks.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string_view>

namespace {

using namespace weir;
using namespace std::chrono_literals;

constexpr time_point start{1'000s};

// One key, driven by hand.
struct key {
  rule::lock_state lock{};
  std::uint64_t last_fence = 0;
  time_point now = start;

  lock_grant acquire(std::string_view holder, duration ttl) {
    return rule::apply(lock, command::acquire_lock{"k", holder, ttl}, now, last_fence).value();
  }
  result<lease_renewal> renew(std::string_view holder, std::uint64_t fence, duration ttl) {
    return rule::apply(lock, command::renew_lock{"k", holder, fence, ttl}, now);
  }
  bool release(std::string_view holder, std::uint64_t fence) {
    auto const r = rule::apply(lock, command::release_lock{"k", holder, fence}, now);
    BOOST_TEST(!r.left_line);
    return r.freed;
  }
  lock_info inspect() { return rule::apply(lock, command::inspect_lock{"k"}, now); }
};

bool lost(result<lease_renewal> const& r) {
  return r.has_error() && r.error() == make_error_code(errc::lease_lost);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rule_locks)

BOOST_AUTO_TEST_CASE(R2_one_unexpired_holder) {
  key k;
  auto const a = k.acquire("a", 10s);
  BOOST_TEST(a.granted);
  BOOST_TEST(a.fence == 1'000'000'000u);
  BOOST_TEST((a.expires_in == 10s));
  BOOST_TEST(a.holder.empty());
  k.now += 4s;
  auto const b = k.acquire("b", 10s);
  BOOST_TEST(!b.granted);
  BOOST_TEST(b.fence == 0u);
  BOOST_TEST((b.expires_in == 6s));
  BOOST_TEST(b.holder == "a");
}

BOOST_AUTO_TEST_CASE(a_lease_lives_while_now_is_before_its_expiry) {
  key k;
  k.acquire("a", 10s);
  k.now = start + 10s - 1ns;
  BOOST_TEST(k.inspect().held);
  BOOST_TEST(!k.acquire("b", 1s).granted);
  k.now = start + 10s;
  BOOST_TEST(!k.inspect().held);
  BOOST_TEST(k.inspect().holder.empty());
  BOOST_TEST(k.acquire("b", 1s).granted);
}

BOOST_AUTO_TEST_CASE(the_same_holder_is_given_the_same_lock_unchanged) {
  key k;
  auto const a = k.acquire("a", 10s);
  k.now += 3s;
  auto const again = k.acquire("a", 60s);
  BOOST_TEST(again.granted);
  BOOST_TEST(again.fence == a.fence);
  BOOST_TEST((again.expires_in == 7s));
}

BOOST_AUTO_TEST_CASE(F13_release_checks_the_owner) {
  key k;
  auto const a = k.acquire("a", 10s);
  BOOST_TEST(!k.release("b", a.fence));
  BOOST_TEST(!k.release("b", 0));
  BOOST_TEST(!k.release("a", a.fence + 1));
  BOOST_TEST(!k.release("a", a.fence - 1));
  BOOST_TEST(k.inspect().holder == "a");
  BOOST_TEST(k.release("a", a.fence));
  BOOST_TEST(!k.release("a", a.fence));
  BOOST_TEST(!k.inspect().held);
  // Without a fence: whatever this holder has.
  k.acquire("a", 10s);
  BOOST_TEST(k.release("a", 0));
  BOOST_TEST(!k.release("a", 0));
}

BOOST_AUTO_TEST_CASE(F1_a_late_release_does_not_free_the_successor) {
  key k;
  auto const a = k.acquire("a", 10s);
  k.now += 10s;
  auto const b = k.acquire("b", 10s);
  BOOST_TEST(b.fence > a.fence);
  BOOST_TEST(!k.release("a", a.fence));
  k.now += 10s;
  auto const again = k.acquire("a", 10s);
  BOOST_TEST(again.fence > b.fence);
  BOOST_TEST(!k.release("a", a.fence));
  BOOST_TEST(k.inspect().fence == again.fence);
}

BOOST_AUTO_TEST_CASE(renewing_makes_it_last_ttl_from_now_longer_or_shorter) {
  key k;
  auto const a = k.acquire("a", 10s);
  k.now += 9s;
  BOOST_TEST((k.renew("a", a.fence, 10s)->expires_in == 10s));
  BOOST_TEST((k.renew("a", a.fence, 1ns)->expires_in == 1ns));
  k.now += 1ns;
  BOOST_TEST(lost(k.renew("a", a.fence, 10s)));
}

BOOST_AUTO_TEST_CASE(R5_a_lost_lease_changes_nothing) {
  key k;
  auto const a = k.acquire("a", 10s);
  BOOST_TEST(lost(k.renew("a", a.fence + 1, 60s)));
  BOOST_TEST(lost(k.renew("a", 0, 60s)));
  BOOST_TEST(lost(k.renew("b", a.fence, 60s)));
  BOOST_TEST((k.inspect().expires_in == 10s));
  k.release("a", 0);
  BOOST_TEST(lost(k.renew("a", a.fence, 60s)));
  BOOST_TEST(!k.inspect().held);
}

BOOST_AUTO_TEST_CASE(F52_what_was_over_stays_over_and_fences_grow_when_time_runs_backwards) {
  key k;
  auto const a = k.acquire("a", 10s);
  k.now += 10s;
  BOOST_TEST(!k.inspect().held);
  k.now = start - 1h;
  BOOST_TEST(lost(k.renew("a", a.fence, 10s)));
  auto const b = k.acquire("b", 10s);
  BOOST_TEST(b.granted);
  BOOST_TEST(b.fence == a.fence + 1);
  BOOST_TEST((b.expires_in == 10s));
}

BOOST_AUTO_TEST_CASE(times_saturate) {
  key k;
  k.now = time_point::max() - 5s;
  BOOST_TEST((k.acquire("a", 10s).expires_in == 5s));
  k.now = time_point::min();
  BOOST_TEST((k.acquire("b", 10s).expires_in == duration::max()));
}

BOOST_AUTO_TEST_CASE(store_full_changes_nothing) {
  key k;
  k.last_fence = 41;
  command::acquire_lock const c{"k", "a", 10s};
  auto const full = [] { return false; };
  auto const refused = rule::apply(k.lock, c, start, k.last_fence, full);
  BOOST_TEST((refused.error() == make_error_code(errc::store_full)));
  BOOST_TEST(k.last_fence == 41u);
  BOOST_TEST(!k.inspect().held);
  k.acquire("a", 10s);  // who has it, or is refused it, needs no room
  BOOST_TEST(rule::apply(k.lock, c, start, k.last_fence, full)->granted);
  command::acquire_lock const other{"k", "b", 10s};
  BOOST_TEST(!rule::apply(k.lock, other, start, k.last_fence, full)->granted);
}

BOOST_AUTO_TEST_SUITE_END()
