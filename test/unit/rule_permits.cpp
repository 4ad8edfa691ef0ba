// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/rule/permits.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;

constexpr time_point start{1'000s};

// One key, driven by hand.
struct key {
  rule::permit_line line;
  std::uint64_t last_fence = 0;
  time_point now = start;

  permit_grant acquire(std::string_view holder, std::uint32_t limit, duration ttl,
                       duration patience = 0s) {
    return rule::apply(line, command::acquire_permit{"k", holder, limit, ttl, patience}, now,
                       last_fence)
        .value();
  }
  result<lease_renewal> renew(std::string_view holder, std::uint64_t fence, duration ttl) {
    return rule::apply(line, command::renew_permit{"k", holder, fence, ttl}, now);
  }
  lease_release release(std::string_view holder, std::uint64_t fence) {
    return rule::apply(line, command::release_permit{"k", holder, fence}, now);
  }
  permit_census inspect(std::uint32_t limit = 0) {
    return rule::apply(line, command::inspect_permits{"k", limit}, now);
  }
  bool should_ask(std::string_view holder) {
    return rule::should_ask(line, command::await_permit{"k", holder}, now);
  }
};

bool lost(result<lease_renewal> const& r) {
  return r.has_error() && r.error() == make_error_code(errc::lease_lost);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rule_permits)

BOOST_AUTO_TEST_CASE(R1_grants_below_the_limit_only) {
  key k;
  for (std::uint32_t i = 1; i <= 3; ++i) {
    auto const g = k.acquire("h" + std::to_string(i), 3, 10s);
    BOOST_TEST(g.granted);
    BOOST_TEST(g.in_use == i);
    BOOST_TEST((g.expires_in == 10s));
  }
  auto const refused = k.acquire("h4", 3, 10s);
  BOOST_TEST(!refused.granted);
  BOOST_TEST(refused.fence == 0u);
  BOOST_TEST((refused.expires_in == 0s));
  BOOST_TEST(refused.in_use == 3u);
  BOOST_TEST(refused.place == 0u);
  BOOST_TEST((refused.retry_after == 10s));
}

BOOST_AUTO_TEST_CASE(a_lease_lives_while_now_is_before_its_expiry) {
  key k;
  BOOST_TEST(k.acquire("a", 1, 10s).granted);
  k.now = start + 10s - 1ns;
  BOOST_TEST(k.inspect().in_use == 1u);
  BOOST_TEST((k.acquire("b", 1, 1s).retry_after == 1ns));
  k.now = start + 10s;
  BOOST_TEST(k.inspect().in_use == 0u);
  BOOST_TEST(k.acquire("b", 1, 1s).granted);
}

BOOST_AUTO_TEST_CASE(the_same_holder_is_given_the_same_permit_unchanged) {
  key k;
  auto const first = k.acquire("a", 2, 10s);
  k.now += 3s;
  auto const again = k.acquire("a", 1, 60s, 5s);
  BOOST_TEST(again.granted);
  BOOST_TEST(again.fence == first.fence);
  BOOST_TEST((again.expires_in == 7s));
  BOOST_TEST(again.in_use == 1u);
  BOOST_TEST(k.inspect().waiting == 0u);
}

BOOST_AUTO_TEST_CASE(F3_every_lease_has_its_own_ttl) {
  key k;
  k.acquire("long", 3, 60s);
  k.acquire("short", 3, 1s);
  k.acquire("middle", 3, 30s);
  auto const ends = [&] {
    std::vector<duration> left;
    for (auto const& p : k.inspect(10).holders) left.push_back(p.expires_in);
    return left;
  };
  BOOST_TEST((ends() == std::vector<duration>{60s, 1s, 30s}));
  k.now += 1s;
  BOOST_TEST((ends() == std::vector<duration>{59s, 29s}));
}

BOOST_AUTO_TEST_CASE(F9_a_ttl_of_a_nanosecond_is_one) {
  key k;
  BOOST_TEST((k.acquire("a", 1, 1ns).expires_in == 1ns));
  BOOST_TEST((k.acquire("b", 1, 1s).retry_after == 1ns));
  k.now += 1ns;
  BOOST_TEST(k.acquire("b", 1, 1s).granted);
}

BOOST_AUTO_TEST_CASE(F8_the_limit_is_that_of_the_command) {
  key k;
  for (auto const* h : {"a", "b", "c"}) BOOST_TEST(k.acquire(h, 3, 10s).granted);
  // Lowered: nobody loses a permit, and none is given until enough have gone.
  BOOST_TEST(!k.acquire("d", 1, 10s).granted);
  BOOST_TEST(k.inspect().in_use == 3u);
  k.release("a", 0);
  k.release("b", 0);
  BOOST_TEST(!k.acquire("d", 1, 10s).granted);
  k.release("c", 0);
  BOOST_TEST(k.acquire("d", 1, 10s).granted);
  // Raised: more are given at once.
  BOOST_TEST(k.acquire("e", 3, 10s).granted);
  BOOST_TEST(k.acquire("f", 3, 10s).granted);
  BOOST_TEST(!k.acquire("g", 3, 10s).granted);
}

BOOST_AUTO_TEST_CASE(R1_first_come_first_served_in_line) {
  key k;
  auto const a = k.acquire("a", 1, 60s);
  BOOST_TEST(k.acquire("b", 1, 60s, 5s).place == 1u);
  BOOST_TEST(k.acquire("c", 1, 60s, 5s).place == 2u);
  BOOST_TEST(k.acquire("b", 1, 60s, 5s).place == 1u);  // asking again keeps the place
  k.release("a", a.fence);
  BOOST_TEST(!k.acquire("d", 1, 60s).granted);      // a newcomer is behind everyone
  BOOST_TEST(!k.acquire("c", 1, 60s, 5s).granted);  // and the second behind the first
  auto const b = k.acquire("b", 1, 60s, 5s);
  BOOST_TEST(b.granted);
  BOOST_TEST(b.place == 0u);
  BOOST_TEST(k.inspect().waiting == 1u);  // the ticket went with the grant
  BOOST_TEST(k.acquire("c", 1, 60s, 5s).place == 1u);
}

BOOST_AUTO_TEST_CASE(two_free_permits_serve_the_first_two_in_any_order) {
  key k;
  k.acquire("a", 2, 60s);
  k.acquire("b", 2, 60s);
  for (auto const* h : {"c", "d", "e"}) k.acquire(h, 2, 60s, 5s);
  k.release("a", 0);
  k.release("b", 0);
  BOOST_TEST(!k.acquire("e", 2, 60s, 5s).granted);
  BOOST_TEST(k.acquire("d", 2, 60s, 5s).granted);
  BOOST_TEST(k.acquire("e", 2, 60s, 5s).place == 2u);
  BOOST_TEST(k.acquire("c", 2, 60s, 5s).granted);
}

BOOST_AUTO_TEST_CASE(a_ticket_lapses_at_its_deadline) {
  key k;
  k.acquire("a", 1, 60s);
  k.acquire("b", 1, 60s, 5s);
  k.acquire("c", 1, 60s, 50s);
  k.now += 5s - 1ns;
  BOOST_TEST(k.acquire("c", 1, 60s, 50s).place == 2u);
  k.now += 1ns;
  BOOST_TEST(k.acquire("c", 1, 60s, 50s).place == 1u);
  BOOST_TEST(k.acquire("b", 1, 60s, 5s).place == 2u);  // it comes back as a newcomer
}

BOOST_AUTO_TEST_CASE(asking_without_patience_gives_the_place_up) {
  key k;
  k.acquire("a", 1, 10s);
  k.acquire("b", 1, 60s, 5s);
  k.acquire("c", 1, 60s, 5s);
  auto const b = k.acquire("b", 1, 60s);
  BOOST_TEST(!b.granted);
  BOOST_TEST(b.place == 0u);
  BOOST_TEST(k.inspect().waiting == 1u);
  BOOST_TEST(k.acquire("c", 1, 60s, 5s).place == 1u);
}

BOOST_AUTO_TEST_CASE(F10_retry_after_is_the_expiry_that_serves_this_place) {
  key k;
  k.acquire("a", 3, 30s);
  k.acquire("b", 3, 10s);
  k.acquire("c", 3, 20s);
  BOOST_TEST((k.acquire("w1", 3, 60s, 40s).retry_after == 10s));
  BOOST_TEST((k.acquire("w2", 3, 60s, 41s).retry_after == 20s));
  BOOST_TEST((k.acquire("w3", 3, 60s, 42s).retry_after == 30s));
  BOOST_TEST((k.acquire("w1", 3, 60s, 40s).retry_after == 10s));
  BOOST_TEST((k.acquire("w2", 3, 60s, 41s).retry_after == 20s));
  // With three ahead, expiring permits alone are not enough: when all that others have now is over.
  BOOST_TEST((k.acquire("w4", 3, 60s, 90s).retry_after == 42s));
  BOOST_TEST((k.acquire("w4", 3, 60s, 90s).retry_after == 42s));  // its own ticket does not count
  BOOST_TEST((k.acquire("w5", 3, 60s).retry_after == 90s));
  // A lower limit waits for more of them.
  BOOST_TEST((k.acquire("w1", 2, 60s, 40s).retry_after == 20s));
  BOOST_TEST((k.acquire("w1", 1, 60s, 40s).retry_after == 30s));
}

BOOST_AUTO_TEST_CASE(F24_a_punctual_waiter_is_not_refused_again) {
  key k;
  for (int i = 0; i < 5; ++i) k.acquire("p" + std::to_string(i), 5, 10s + i * 1s + 1ns);
  std::vector<duration> waits;
  for (int i = 0; i < 5; ++i) {
    waits.push_back(k.acquire("w" + std::to_string(i), 5, 1h, 1min).retry_after);
  }
  for (std::size_t i = 0; i < waits.size(); ++i) {
    auto early = k;  // a value: the same key twice
    early.now = start + waits[i] - 1ns;
    BOOST_TEST(!early.acquire("w" + std::to_string(i), 5, 1h, 1min).granted);
    k.now = start + waits[i];
    BOOST_TEST(k.acquire("w" + std::to_string(i), 5, 1h, 1min).granted);
  }
}

BOOST_AUTO_TEST_CASE(renewing_makes_it_last_ttl_from_now_longer_or_shorter) {
  key k;
  auto const a = k.acquire("a", 1, 10s);
  k.now += 9s;
  BOOST_TEST((k.renew("a", a.fence, 10s)->expires_in == 10s));
  k.now += 9s;
  BOOST_TEST(k.inspect().in_use == 1u);
  BOOST_TEST((k.renew("a", a.fence, 100ms)->expires_in == 100ms));
  k.now += 100ms;
  BOOST_TEST(k.inspect().in_use == 0u);
  BOOST_TEST(lost(k.renew("a", a.fence, 10s)));
}

BOOST_AUTO_TEST_CASE(R5_a_lost_lease_changes_nothing) {
  key k;
  auto const a = k.acquire("a", 1, 10s);
  for (auto const fence : {a.fence - 1, a.fence + 1, std::uint64_t{0}}) {
    BOOST_TEST(lost(k.renew("a", fence, 60s)));
  }
  BOOST_TEST(lost(k.renew("b", a.fence, 60s)));
  BOOST_TEST(!k.release("a", a.fence + 1).freed);
  BOOST_TEST(!k.release("b", a.fence).freed);
  BOOST_TEST(!k.release("b", 0).freed);
  auto const census = k.inspect(1);
  BOOST_TEST(census.in_use == 1u);
  BOOST_TEST((census.holders.at(0).expires_in == 10s));
}

BOOST_AUTO_TEST_CASE(F1_a_late_release_frees_nobody_elses_permit) {
  key k;
  auto const a = k.acquire("a", 1, 10s);
  k.now += 10s;
  auto const b = k.acquire("b", 1, 10s);
  BOOST_TEST(b.fence > a.fence);
  BOOST_TEST(!k.release("a", a.fence).freed);
  BOOST_TEST(!k.release("a", 0).freed);
  BOOST_TEST(k.inspect().in_use == 1u);
  // Nor does the earlier lease of a holder that has a later one.
  k.now += 10s;
  auto const again = k.acquire("a", 1, 10s);
  BOOST_TEST(again.fence > b.fence);
  BOOST_TEST(!k.release("a", a.fence).freed);
  BOOST_TEST(k.inspect().in_use == 1u);
}

BOOST_AUTO_TEST_CASE(F7_double_release_frees_one_permit) {
  key k;
  auto const a = k.acquire("a", 2, 10s);
  k.acquire("b", 2, 10s);
  BOOST_TEST(k.release("a", a.fence).freed);
  BOOST_TEST(!k.release("a", a.fence).freed);
  BOOST_TEST(!k.release("a", 0).freed);
  BOOST_TEST(k.inspect().in_use == 1u);
  BOOST_TEST(k.acquire("c", 2, 10s).granted);
  BOOST_TEST(!k.acquire("d", 2, 10s).granted);
}

BOOST_AUTO_TEST_CASE(release_by_holder_ends_whatever_it_has) {
  key k;
  k.acquire("a", 1, 10s);
  k.acquire("b", 1, 10s, 5s);
  auto const ticket = k.release("b", 0);
  BOOST_TEST(!ticket.freed);
  BOOST_TEST(ticket.left_line);
  auto const permit = k.release("a", 0);
  BOOST_TEST(permit.freed);
  BOOST_TEST(!permit.left_line);
  BOOST_TEST(k.line.size() == 0u);
  // With a fence it is about that permit only.
  k.acquire("a", 1, 10s);
  k.acquire("b", 1, 10s, 5s);
  BOOST_TEST(!k.release("b", 7).left_line);
  BOOST_TEST(k.inspect().waiting == 1u);
}

BOOST_AUTO_TEST_CASE(F52_what_was_over_stays_over_when_time_runs_backwards) {
  key k;
  auto const a = k.acquire("a", 1, 10s);
  k.acquire("w", 1, 10s, 5s);
  k.now = start + 10s;
  BOOST_TEST(k.inspect().in_use == 0u);
  k.now = start - 1h;
  BOOST_TEST(lost(k.renew("a", a.fence, 10s)));
  BOOST_TEST(k.inspect().waiting == 0u);
  auto const b = k.acquire("b", 1, 10s);
  BOOST_TEST(b.granted);
  BOOST_TEST(b.fence > a.fence);
  BOOST_TEST((b.expires_in == 10s));
  // A live lease is denied to others for the step and its own length, and no longer.
  k.now = start - 2h;
  BOOST_TEST((k.acquire("c", 1, 10s).retry_after == 1h + 10s));
}

BOOST_AUTO_TEST_CASE(times_saturate) {
  key k;
  k.now = time_point::max() - 5s;
  auto const a = k.acquire("a", 1, 10s);
  BOOST_TEST(a.granted);
  BOOST_TEST((a.expires_in == 5s));
  auto const b = k.acquire("b", 1, 10s, 10s);
  BOOST_TEST((b.retry_after == 5s));
  k.now = time_point::min();
  BOOST_TEST((k.acquire("c", 1, 10s).retry_after == duration::max()));
}

BOOST_AUTO_TEST_CASE(inspect_lists_by_fence) {
  key k;
  for (auto const* h : {"c", "a", "b"}) k.acquire(h, 3, 10s);
  k.renew("c", k.inspect(1).holders.at(0).fence, 60s);
  auto const all = k.inspect(100);
  BOOST_TEST(all.holders.size() == 3u);
  BOOST_TEST(all.holders[0].holder == "c");
  BOOST_TEST(all.holders[1].holder == "a");
  BOOST_TEST(all.holders[2].holder == "b");
  BOOST_TEST(k.inspect(2).holders.size() == 2u);
  BOOST_TEST(k.inspect(0).in_use == 3u);
}

BOOST_AUTO_TEST_CASE(a_line_is_a_value) {
  for (int const holders : {3, 40}) {
    key a;
    for (int i = 0; i < holders; ++i) a.acquire("h" + std::to_string(i), 100, 10s);
    auto b = a;
    b.release("h0", 0);
    BOOST_TEST(!b.acquire("x", 1, 10s, 5s).granted);
    auto const n = static_cast<std::uint32_t>(holders);
    BOOST_TEST(a.inspect().in_use == n);
    BOOST_TEST(a.inspect().waiting == 0u);
    auto c = std::move(b);
    BOOST_TEST(c.inspect().in_use == n - 1);
    BOOST_TEST(c.inspect().waiting == 1u);
    c = a;
    BOOST_TEST(c.inspect(1).holders.at(0).holder == "h0");
    c.now += 10s;
    BOOST_TEST(c.inspect().in_use == 0u);
    BOOST_TEST(c.acquire("h0", 1, 10s).granted);
    BOOST_TEST(a.inspect().in_use == n);
  }
}

BOOST_AUTO_TEST_CASE(who_should_ask_again) {
  key k;
  BOOST_TEST(k.should_ask("b"));  // not in line
  k.acquire("a", 1, 10s);
  k.acquire("b", 1, 10s, 60s);
  k.acquire("c", 1, 10s, 60s);
  BOOST_TEST(!k.should_ask("b"));
  k.release("a", 0);
  BOOST_TEST(k.should_ask("b"));
  BOOST_TEST(!k.should_ask("c"));
  k.acquire("b", 1, 10s);
  BOOST_TEST(!k.should_ask("c"));
  k.now += 10s;
  BOOST_TEST(k.should_ask("c"));
  k.now += 50s;
  BOOST_TEST(k.should_ask("c"));  // its ticket has lapsed
}

BOOST_AUTO_TEST_CASE(store_full_changes_nothing) {
  rule::permit_line line;
  std::uint64_t fence = 41;
  auto const full = [] { return false; };
  command::acquire_permit const c{"k", "a", 1, 10s, 5s};
  BOOST_TEST(
      (rule::apply(line, c, start, fence, full).error() == make_error_code(errc::store_full)));
  BOOST_TEST(fence == 41u);
  BOOST_TEST(line.size() == 0u);
  // Who is refused without a place, has a permit already, or turns its ticket into one, needs no
  // room.
  BOOST_TEST(rule::apply(line, c, start, fence).value().granted);
  BOOST_TEST(rule::apply(line, c, start, fence, full).value().granted);
  command::acquire_permit b{"k", "b", 1, 10s, 5s};
  BOOST_TEST(rule::apply(line, b, start, fence, full).has_error());
  BOOST_TEST(line.last_turn == 0u);
  b.patience = 0s;
  BOOST_TEST(!rule::apply(line, b, start, fence, full).value().granted);
  b.patience = 60s;
  BOOST_TEST(!rule::apply(line, b, start, fence).value().granted);
  BOOST_TEST(rule::apply(line, b, start + 10s, fence, full).value().granted);
}

BOOST_AUTO_TEST_SUITE_END()
