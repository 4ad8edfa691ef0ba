// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/command/buckets.hpp"
#include "weir/error.hpp"
#include "weir/key_policy.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/memory/bucket_pin.hpp"
#include "weir/store/memory/bucket_steps.hpp"
#include "weir/store/memory/buckets.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/time.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using weir::decision;
using weir::duration;
using weir::errc;
using weir::quota;
using weir::time_point;
namespace command = weir::command;

namespace {

constexpr time_point start = std::chrono::sys_days{std::chrono::year{2026} / 3 / 1};

// A table, and the time.
struct table {
  explicit table(std::size_t most = 1000) : buckets{weir::memory_options{.max_buckets = most}} {}

  decision take(std::string_view key, std::span<quota const> quotas, std::uint64_t cost = 1,
                duration max_wait = {}) {
    command::take const c{.key = key, .quotas = quotas, .cost = cost, .max_wait = max_wait};
    BOOST_TEST_REQUIRE(!weir::rule::validate(c));
    return buckets.apply(c, now).value();
  }
  decision take(std::string_view key, quota const& q, std::uint64_t cost = 1,
                duration max_wait = {}) {
    return take(key, std::span{&q, 1}, cost, max_wait);
  }
  weir::bucket_info peek(std::string_view key, std::span<quota const> quotas,
                         std::uint64_t cost = 1) {
    return buckets
        .apply(command::peek_bucket{.key = key, .quotas = quotas, .cost = cost, .max_wait = {}},
               now)
        .value();
  }
  weir::bucket_info peek(std::string_view key, quota const& q, std::uint64_t cost = 1) {
    return peek(key, std::span{&q, 1}, cost);
  }
  weir::refund_receipt refund(std::string_view key, std::span<quota const> quotas,
                              decision const& d, bool before_instant = false) {
    return buckets
        .apply(command::refund{.key = key,
                               .quotas = quotas,
                               .cost = d.cost,
                               .mark = d.mark,
                               .before_instant = before_instant},
               now)
        .value();
  }
  weir::refund_receipt refund(std::string_view key, quota const& q, decision const& d,
                              bool before_instant = false) {
    return refund(key, std::span{&q, 1}, d, before_instant);
  }
  void reset(std::string_view key) {
    BOOST_TEST(buckets.apply(command::reset_bucket{.key = key}, now).has_value());
  }
  command::reaped reap() { return buckets.apply(command::reap_buckets{}, now).value(); }

  weir::detail::memory_buckets buckets;
  time_point now = start;
};

std::string numbered(std::size_t n) { return "key " + std::to_string(n); }

constexpr auto ten = quota::per_second(10);
constexpr auto one = quota::per_second(1);

}  // namespace

// What the livery rate limiter's store does, feature by feature.
BOOST_AUTO_TEST_SUITE(memory_buckets_as_livery)

BOOST_AUTO_TEST_CASE(allow_tells_what_remains_and_when_all_is_back) {
  table t;
  auto const d = t.take("k", ten);
  BOOST_TEST(d.allowed);
  BOOST_TEST(d.remaining == 9U);
  BOOST_TEST((d.reset_after == 100ms));
  BOOST_TEST(t.take("k", ten, 4).remaining == 5U);
  BOOST_TEST(t.take("other", ten).remaining == 9U);
}

BOOST_AUTO_TEST_CASE(deny_tells_when_to_retry) {
  table t;
  BOOST_TEST(t.take("k", ten, 10).allowed);
  auto const d = t.take("k", ten);
  BOOST_TEST(!d.allowed);
  BOOST_TEST(!d.shed);
  BOOST_TEST((d.retry_after == 100ms));
  t.now += 100ms;
  BOOST_TEST(t.take("k", ten).allowed);
}

BOOST_AUTO_TEST_CASE(sweep_removes_the_full_ones_and_counts_them) {
  table t;
  for (std::size_t i = 0; i != 50; ++i) BOOST_TEST(t.take(numbered(i), ten, 1 + i % 10).allowed);
  t.now += 500ms;
  auto swept = t.reap();
  BOOST_TEST(swept.removed == 25U);
  BOOST_TEST(swept.kept == 25U);
  t.now += 499ms;
  swept = t.reap();
  BOOST_TEST(swept.removed == 20U);
  BOOST_TEST(swept.kept == 5U);
  t.now += 1ms;
  BOOST_TEST(t.reap().removed == 5U);
  BOOST_TEST(t.reap().kept == 0U);
}

BOOST_AUTO_TEST_CASE(keys_are_bounded_and_new_ones_are_shed) {
  table t{10};
  for (std::size_t i = 0; i != 10; ++i) BOOST_TEST(t.take(numbered(i), one).allowed);
  auto const d = t.take("one more", one);
  BOOST_TEST(!d.allowed);
  BOOST_TEST(d.shed);
  BOOST_TEST((d.retry_after == 1s));
  BOOST_TEST(d.remaining == 0U);
  BOOST_TEST(t.peek("one more", one).shed);
  for (std::size_t i = 0; i != 10; ++i) {
    auto const known = t.take(numbered(i), one);
    BOOST_TEST(!known.allowed);
    BOOST_TEST(!known.shed);
  }
  t.now += 1s;  // the bound is released as buckets refill
  BOOST_TEST(t.take("one more", one).allowed);
}

BOOST_AUTO_TEST_CASE(digest_keys_are_held_as_they_are) {
  table t;
  weir::sha256_key const digest;
  auto const key = digest("a bearer token");
  BOOST_TEST(t.take(key.view(), one).allowed);
  BOOST_TEST(!t.take(digest("a bearer token").view(), one).allowed);
  BOOST_TEST(t.take(digest("another").view(), one).allowed);
  BOOST_TEST(t.take("a bearer token", one).allowed);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(memory_buckets_table)

BOOST_AUTO_TEST_CASE(peek_says_what_is_there_and_changes_nothing) {
  table t;
  for (int i = 0; i != 3; ++i) BOOST_TEST(t.peek("k", ten, 4).remaining == 10U);
  BOOST_TEST(t.reap().kept == 0U);
  BOOST_TEST(t.take("k", ten, 8).allowed);
  for (int i = 0; i != 3; ++i) {
    auto const d = t.peek("k", ten, 4);
    BOOST_TEST(!d.allowed);
    BOOST_TEST((d.retry_after == 200ms));
    BOOST_TEST(t.peek("k", ten, 2).remaining == 2U);
  }
  // What was only peeked at cannot be refunded.
  auto const peeked = t.peek("k", ten, 2);
  BOOST_TEST(peeked.allowed);
  BOOST_TEST(t.refund("k", ten, peeked).credited == 0U);
  BOOST_TEST(t.refund("k", ten, peeked, true).credited == 0U);
  BOOST_TEST(t.take("k", ten, 2).allowed);
}

BOOST_AUTO_TEST_CASE(reset_makes_it_full) {
  table t;
  BOOST_TEST(t.take("k", ten, 10).allowed);
  t.reset("k");
  t.reset("unknown");
  BOOST_TEST(t.reap().kept == 0U);
  BOOST_TEST(t.take("k", ten, 10).allowed);
  BOOST_TEST(!t.take("k", ten).allowed);
}

BOOST_AUTO_TEST_CASE(refund_follows_the_rule) {
  table t;
  auto const first = t.take("k", ten, 3);
  auto const second = t.take("k", ten, 4);
  BOOST_TEST(t.refund("k", ten, first).forfeited == 3U);
  t.now += 150ms;
  BOOST_TEST(t.refund("k", ten, second).credited == 4U);
  BOOST_TEST(t.peek("k", ten, 8).allowed);
  BOOST_TEST(!t.peek("k", ten, 9).allowed);
  BOOST_TEST(t.refund("k", ten, second).credited == 0U);
  BOOST_TEST(t.refund("never seen", ten, second).forfeited == 4U);

  BOOST_TEST(t.take("w", one).allowed);
  auto const waiter = t.take("w", one, 1, 10s);
  BOOST_TEST((waiter.wait == 1s));
  BOOST_TEST(t.refund("w", one, waiter, true).credited == 1U);
  t.now += 1s;
  BOOST_TEST(t.take("w", one).allowed);
}

BOOST_AUTO_TEST_CASE(several_quotas_on_one_key) {
  table t;
  quota const both[] = {quota::per_second(5), quota::per_minute(8)};
  auto const d = t.take("k", both, 5);
  BOOST_TEST(d.allowed);
  BOOST_TEST(d.binding == 0);
  BOOST_TEST(!t.take("k", both).allowed);
  t.now += 1s;
  auto const last = t.take("k", both, 3);
  BOOST_TEST(last.allowed);
  BOOST_TEST(last.binding == 1);
  BOOST_TEST(!t.take("k", both).allowed);
  BOOST_TEST(t.refund("k", both, d).credited == 0U);
  BOOST_TEST(t.refund("k", both, last).credited == 3U);
  BOOST_TEST(t.take("k", both, 3).allowed);
  t.now += 1min;
  auto const swept = t.reap();
  BOOST_TEST(swept.removed == 1U);
  BOOST_TEST(swept.kept == 0U);
}

BOOST_AUTO_TEST_CASE(changed_quotas_keep_what_was_spent) {
  table t;
  quota const three[] = {quota::per_second(20), quota::per_minute(30), quota::per_hour(40)};
  BOOST_TEST(t.take("k", ten, 7).allowed);
  // A denial changes nothing, not even the quotas.
  BOOST_TEST(!t.take("k", three, 14).allowed);
  BOOST_TEST(!t.peek("k", ten, 4).allowed);
  BOOST_TEST(t.peek("k", ten, 3).allowed);
  auto const d = t.take("k", three, 13);  // 7 were missing from 20
  BOOST_TEST(d.allowed);
  BOOST_TEST(d.binding == 0);
  BOOST_TEST(d.remaining == 0U);
  BOOST_TEST(t.peek("k", std::span{three}.subspan(1), 10).allowed);
  // Its mark is in the units of the three.
  BOOST_TEST(t.refund("k", ten, d).credited == 13U);
  BOOST_TEST(t.take("k", std::span{three}.first(2), 13).allowed);
  BOOST_TEST(!t.take("k", ten).allowed);  // 20 missing: capped at 10
  t.now += 1s;
  BOOST_TEST(t.take("k", ten, 10).allowed);
}

BOOST_AUTO_TEST_CASE(quotas_that_are_tuned_all_the_time_cost_no_memory) {
  table t;
  for (std::uint64_t i = 0; i != 200'000; ++i) {
    auto const d = t.take("k", quota::per(1, duration{1000 + static_cast<duration::rep>(i)}));
    if (!d.allowed) BOOST_FAIL("refused at " << i);
    t.now += 1s;
  }
}

BOOST_AUTO_TEST_CASE(too_many_different_quotas_at_once_are_an_error) {
  table t{100'000};
  std::size_t full = 0;
  for (std::size_t i = 0; i != 66'000; ++i) {
    auto const q = quota::per(1, 1h + duration{static_cast<duration::rep>(i)});
    auto const answer = t.buckets.apply(
        command::take{.key = numbered(i), .quotas = std::span{&q, 1}, .cost = 1, .max_wait = {}},
        t.now);
    if (answer.has_error()) {
      BOOST_TEST((answer.error() == errc::store_full));
      ++full;
    }
  }
  BOOST_TEST(full == 66'000 - 65'535U);
  t.now += 2h;
  BOOST_TEST(t.take("later", quota::per(1, 3h)).allowed);
}

BOOST_AUTO_TEST_CASE(any_time_will_do) {
  for (auto const now : {time_point{}, time_point::min(), time_point::max(), start}) {
    table t;
    t.now = now;
    BOOST_TEST(t.take("k", one).allowed);
    BOOST_TEST(!t.take("k", one).allowed);
    t.now = time_point{5s};
    t.take("k", one, 1, 10s);
    t.now = start;
    t.take("k", one, 1, 10s);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(memory_buckets_failures)

BOOST_AUTO_TEST_CASE(F19_a_thread_that_comes_late_with_an_earlier_time_gains_nothing) {
  table t;
  BOOST_TEST(t.take("k", ten, 10).allowed);
  t.now += 1s;
  BOOST_TEST(t.take("k", ten, 10).allowed);
  t.now -= 500ms;
  BOOST_TEST(!t.take("k", ten).allowed);
  t.now += 500ms;
  BOOST_TEST(!t.take("k", ten).allowed);  // and took nothing away
  t.now += 100ms;
  BOOST_TEST(t.take("k", ten).allowed);
}

BOOST_AUTO_TEST_CASE(F20_a_cost_above_the_capacity_and_a_rate_of_zero_are_errors) {
  auto const problem = [](quota const& q, std::uint64_t cost) {
    return weir::rule::validate(
        command::take{.key = "k", .quotas = std::span{&q, 1}, .cost = cost, .max_wait = {}});
  };
  BOOST_TEST((problem(ten, 11) == errc::cost_exceeds_capacity));
  BOOST_TEST((problem(quota::per_second(0).burst(5), 1) == errc::invalid_quota));
  BOOST_TEST((problem(ten, 0) == errc::invalid_cost));
}

BOOST_AUTO_TEST_CASE(who_is_shed_is_told_when_there_can_be_room) {
  table t{3};
  auto const soon = quota::per(1, 700ms);
  BOOST_TEST(t.take("hour", quota::per_hour(1)).allowed);
  BOOST_TEST(t.take("soon", soon).allowed);
  BOOST_TEST(t.take("day", quota::per_day(1)).allowed);
  t.now += 200ms;
  auto const d = t.take("late", one);
  BOOST_TEST((d.shed && d.retry_after == 500ms));
  auto const seen = t.peek("late", one);
  BOOST_TEST((seen.shed && seen.retry_after == 500ms));
  t.now += d.retry_after - 1ns;
  BOOST_TEST((t.take("late", one).retry_after == 1ns));
  t.now += 1ns;
  BOOST_TEST(t.take("late", one).allowed);
}

BOOST_AUTO_TEST_CASE(F21_full_buckets_make_room_before_anyone_is_shed) {
  for (std::size_t const most : {1U, 7U, 100U, 1024U}) {
    table t{most};
    for (std::size_t i = 0; i != most; ++i) BOOST_TEST(t.take(numbered(i), one).allowed);
    BOOST_TEST(t.take("late", one).shed);
    t.now += 1s;
    // All are full again: as many new ones come in, one after the other.
    for (std::size_t i = 0; i != most; ++i) BOOST_TEST(t.take(numbered(most + i), one).allowed);
    BOOST_TEST(t.take("late", one).shed);
    // One refund makes one full.
    auto const last = t.take(numbered(most), one, 1, 5s);
    BOOST_TEST(last.allowed);
    t.reset(numbered(most));
    BOOST_TEST(t.take("in its place", one).allowed);
    BOOST_TEST(t.take("late", one).shed);
  }
}

BOOST_AUTO_TEST_CASE(F21_a_refund_makes_room) {
  table t{3};
  auto const a = t.take("a", one);
  BOOST_TEST(t.take("b", one).allowed);
  BOOST_TEST(t.take("c", one).allowed);
  BOOST_TEST(t.take("d", one).shed);
  BOOST_TEST(t.refund("a", one, a).credited == 1U);
  BOOST_TEST(t.take("d", one).allowed);
  BOOST_TEST(t.take("e", one).shed);
}

BOOST_AUTO_TEST_CASE(F21_a_flood_forgets_nothing_that_was_spent) {
  constexpr std::size_t most = 5000;  // several shards
  table t{most};
  auto const slow = quota::per_hour(1);
  for (std::size_t i = 0; i != most / 2; ++i) BOOST_TEST(t.take(numbered(i), slow).allowed);
  std::size_t shed = 0;
  for (std::size_t i = 0; i != 50'000; ++i) {
    t.now += 10us;
    shed += t.take("flood " + std::to_string(i), quota::per_minute(1)).shed ? 1U : 0U;
  }
  BOOST_TEST(shed >= 50'000 - most / 2);
  BOOST_TEST(shed < 50'000 - most / 2 + 50);  // an uneven hash may fill a shard a little earlier
  for (std::size_t i = 0; i != most / 2; ++i) {
    if (t.take(numbered(i), slow).allowed) BOOST_FAIL("forgot " << i);
  }
  BOOST_TEST(t.reap().kept <= most);
}

BOOST_AUTO_TEST_CASE(F21_full_ones_are_found_among_many) {
  constexpr std::size_t most = 20'000;
  table t{most};
  for (std::size_t i = 0; i != most; ++i)
    t.take(numbered(i), quota::per(1, i % 1000 == 0 ? 10s : duration{1h}));
  t.now += 10s;
  std::size_t in = 0;
  for (std::size_t i = 0; i != 100; ++i) {
    in += t.take("new " + std::to_string(i), quota::per_hour(1)).allowed ? 1U : 0U;
    t.now += 2ms;
  }
  BOOST_TEST(in >= 20U);  // every full one made room
}

BOOST_AUTO_TEST_CASE(F21_reaped_as_it_goes_without_pressure) {
  table t{100'000};
  for (std::size_t i = 0; i != 50'000; ++i) {
    BOOST_TEST_REQUIRE(t.take(numbered(i), ten).allowed);
    t.now += 10ms;  // 100 new keys a second, each full after 0.1 s
  }
  // 100 or so are not full, and those are kept that a round has not come to.
  BOOST_TEST(t.reap().removed < 20'000U);
}

BOOST_AUTO_TEST_CASE(F25_an_arrival_below_a_millisecond_is_kept) {
  table t;
  auto const q = quota::per(1, 100us);
  BOOST_TEST(t.take("k", q).allowed);
  BOOST_TEST(!t.take("k", q).allowed);
  t.reap();
  t.now += 99'999ns;
  t.reap();
  BOOST_TEST(!t.take("k", q).allowed);
  t.now += 1ns;
  BOOST_TEST(t.take("k", q).allowed);
}

BOOST_AUTO_TEST_CASE(F27_two_keys_never_share_a_bucket) {
  using namespace std::string_literals;
  std::vector<std::string> keys{
      "a", "a\0"s, "a\0\0"s, "\0"s, "\0a"s, "'; DROP TABLE", "\"",       "a\r\nb",      "{a}",
      "*", ">",    " ",      "a ",  " a",   "\xff",          "\xc3\x28", "\xed\xa0\x80"};
  for (std::size_t const n : {7U, 8U, 9U, 31U, 32U, 33U, 63U, 64U, 65U, 1023U, 1024U}) {
    keys.push_back(std::string(n, 'x'));
    keys.push_back(std::string(n, '\0'));
    keys.push_back(std::string(n - 1, 'x') + "y");
  }
  // The digest that a long key is stored as, as a key of its own.
  weir::sha256_key const digest;
  keys.emplace_back(digest(std::string(33, 'x')).view());
  keys.emplace_back(digest(std::string(1024, 'x')).view());
  table t;
  for (auto const& key : keys) BOOST_TEST(t.take(key, one).allowed);
  for (auto const& key : keys) BOOST_TEST(!t.take(key, one).allowed);
  BOOST_TEST(t.reap().kept == keys.size());
}

BOOST_AUTO_TEST_CASE(F52_a_forgotten_bucket_is_not_full_when_time_runs_back) {
  table t;
  BOOST_TEST(t.take("k", one).allowed);
  t.now += 1s;
  BOOST_TEST(t.reap().removed == 1U);
  t.now -= 700ms;
  auto const d = t.take("k", one);
  BOOST_TEST(!d.allowed);
  BOOST_TEST((d.retry_after == 700ms));  // no longer than the step
  BOOST_TEST(t.reap().kept == 0U);
  t.now += 700ms;
  BOOST_TEST(t.take("k", one).allowed);
}

BOOST_AUTO_TEST_CASE(R3_a_quota_that_does_not_fit_is_refused_before_any_change) {
  table t;
  auto const huge = quota::per_second(1).burst(std::numeric_limits<std::uint64_t>::max());
  quota const mixed[] = {ten, quota::per_second(1'000'000'007)};
  BOOST_TEST(t.take("k", ten, 4).allowed);
  for (std::string_view const key : {"k", "new"}) {
    for (auto const quotas : {std::span<quota const>{&huge, 1}, std::span<quota const>{mixed}}) {
      auto const is_too_large = [&](auto const& c) {
        return t.buckets.apply(c, t.now).error() == errc::quota_too_large;
      };
      BOOST_TEST(
          is_too_large(command::take{.key = key, .quotas = quotas, .cost = 1, .max_wait = {}}));
      BOOST_TEST(is_too_large(
          command::peek_bucket{.key = key, .quotas = quotas, .cost = 1, .max_wait = {}}));
      BOOST_TEST(
          is_too_large(command::refund{.key = key, .quotas = quotas, .cost = 1, .mark = {}}));
    }
  }
  BOOST_TEST(t.reap().kept == 1U);
  BOOST_TEST(t.peek("k", ten, 6).allowed);
}

// The quota of a bucket that exists need not be looked at again. All else must be, whichever way
// the take came.
BOOST_AUTO_TEST_CASE(R8_a_bucket_that_exists_makes_no_invalid_take_valid) {
  table t;
  std::string const longest(weir::limits::key_size, 'k');
  std::string const too_long(weir::limits::key_size + 1, 'k');
  quota const none{};
  auto const asked = [](std::string_view key, quota const& q, std::uint64_t cost = 1,
                        duration max_wait = {}) {
    return command::take{.key = key, .quotas = {&q, 1}, .cost = cost, .max_wait = max_wait};
  };
  for (std::string_view const key : {std::string_view{"k"}, std::string_view{longest}}) {
    BOOST_TEST(t.take(key, ten, 4).allowed);
    weir::detail::bucket_pin pin;
    BOOST_TEST(t.buckets.apply(asked(key, ten), pin, t.now)->allowed);
    BOOST_TEST(t.buckets.apply(asked(key, ten, 10), pin, t.now)->remaining == 5U);

    command::take const invalid[] = {
        asked("", ten),
        asked(too_long, ten),
        command::take{.key = key, .quotas = {}, .cost = 1, .max_wait = {}},
        asked(key, none),
        asked(key, ten, 0),
        asked(key, ten, 11),
        asked(key, ten, std::numeric_limits<std::uint64_t>::max()),
        asked(key, ten, 1, -1ns),
        asked(key, ten, 1, weir::limits::span + 1ns),
    };
    std::vector<weir::result<decision>> answers(std::size(invalid), decision{});
    t.buckets.apply_each(invalid, answers, t.now);
    for (std::size_t i = 0; i != std::size(invalid); ++i) {
      auto const& c = invalid[i];
      auto const wrong = weir::rule::validate(c);
      BOOST_TEST_REQUIRE(wrong.failed());
      BOOST_TEST(t.buckets.apply(c, t.now).error() == wrong);
      BOOST_TEST(t.buckets.apply(c, pin, t.now).error() == wrong);
      BOOST_TEST(answers[i].error() == wrong);
    }
    BOOST_TEST(t.peek(key, ten, 5).allowed);
    BOOST_TEST(!t.peek(key, ten, 6).allowed);
  }
}

BOOST_AUTO_TEST_SUITE_END()
