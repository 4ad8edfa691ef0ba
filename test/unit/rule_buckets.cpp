// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/quota.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/time.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

using namespace std::chrono_literals;
using weir::decision;
using weir::duration;
using weir::quota;
using weir::rule::bucket_scale;
using weir::rule::bucket_scales;

namespace {

constexpr duration year = 24h * 365;

__extension__ using wide = unsigned __int128;

constexpr bucket_scales scales_of(std::initializer_list<quota> quotas) {
  return bucket_scales::of(std::span<quota const>{quotas.begin(), quotas.size()}).value();
}

// A bucket that does what the rule says.
class bucket {
 public:
  constexpr explicit bucket(std::initializer_list<quota> quotas) : scales_{scales_of(quotas)} {}

  constexpr decision take(duration now, std::uint64_t cost = 1, duration max_wait = {}) {
    auto const d = ask(now, cost, max_wait);
    if (d.allowed) arrivals_ = weir::rule::arrivals_in(d.mark);
    return d;
  }
  [[nodiscard]] constexpr decision ask(duration now, std::uint64_t cost = 1,
                                       duration max_wait = {}) const {
    return weir::rule::take(scales_.span(), arrivals_, now, cost, max_wait);
  }
  constexpr weir::refund_receipt refund(duration now, decision const& d,
                                        bool before_instant = false) {
    auto const out =
        weir::rule::refund(scales_.span(), arrivals_, d.mark, d.cost, before_instant, now);
    arrivals_ = out.arrivals;
    return out.receipt;
  }
  constexpr void change(duration now, std::initializer_list<quota> quotas) {
    auto const next = scales_of(quotas);
    arrivals_ = weir::rule::changed_quotas(scales_.span(), arrivals_, next.span(), now);
    scales_ = next;
  }
  [[nodiscard]] constexpr duration full_from() const {
    return weir::rule::full_from(scales_.span(), arrivals_);
  }

 private:
  bucket_scales scales_;
  weir::rule::bucket_arrivals arrivals_ = weir::rule::unseen_bucket;
};

constexpr bool usable_at_compile_time() {
  bucket b{quota::per_second(2)};
  return b.take(0s).allowed && b.take(0s).allowed && !b.take(0s).allowed;
}
static_assert(usable_at_compile_time());

}  // namespace

BOOST_AUTO_TEST_SUITE(bucket_scale_of_a_quota)

BOOST_AUTO_TEST_CASE(common_rates_fit_into_one_word) {
  auto const hundred = bucket_scale::of(quota::per_second(100)).value();
  BOOST_TEST(hundred.narrow);
  BOOST_TEST(hundred.gain == 1);
  BOOST_TEST(hundred.price == 10'000'000);
  BOOST_TEST((hundred.room() == 1'000'000'000));

  auto const third = bucket_scale::of(quota::per_second(3).burst(7)).value();
  BOOST_TEST(third.narrow);
  BOOST_TEST(third.gain == 3);
  BOOST_TEST(third.price == 1'000'000'000);
  BOOST_TEST(third.capacity == 7U);

  for (auto const& q : {quota::per_minute(100), quota::per_hour(1), quota::per_day(1'000'000),
                        quota::per_second(1'000'000'000)}) {
    BOOST_TEST(bucket_scale::of(q).value().narrow);
  }
  for (auto const& q : {quota::per_second(1001), quota::per_second(999'983)}) {
    BOOST_TEST(!bucket_scale::of(q).value().narrow);
  }
}

BOOST_AUTO_TEST_CASE(F65_every_whole_rate_is_taken_and_exact) {
  std::vector<std::uint64_t> rates{14'900,      14'901,      3'600'001,    8'000'009,
                                   999'999'937, 999'999'999, 1'000'000'000};
  for (std::uint64_t n = 1; n < 1'000'000'000; n = n * 5 / 4 + 1) rates.push_back(n);
  for (auto const n : rates) {
    for (auto const period : {duration{1s}, duration{1min}, duration{1h}, duration{24h}}) {
      auto const fills = static_cast<wide>(n) *
                         static_cast<std::uint64_t>(weir::limits::span.count()) /
                         static_cast<std::uint64_t>(period.count());
      auto const most = static_cast<std::uint64_t>(std::min<wide>(fills, 1'000'000'000));
      for (std::uint64_t const burst : {std::uint64_t{1}, std::min(n, most), most}) {
        for (duration const tick : {duration{1ns}, duration{1us}}) {
          auto const scale = bucket_scale::of(quota::per(n, period).burst(burst), tick);
          BOOST_TEST_REQUIRE(scale.has_value(), n << " per " << period.count() << " ns");
          // gain/tick units a nanosecond over price units a token: n/period tokens a nanosecond.
          BOOST_TEST((static_cast<weir::rule::bucket_units>(scale->gain) * period.count() ==
                      static_cast<weir::rule::bucket_units>(n) * scale->price * tick.count()));
          BOOST_TEST(scale->gain <= 1'000'000'000);
          BOOST_TEST(scale->capacity == burst);
        }
      }
      if (most < 1'000'000'000)
        BOOST_TEST(!bucket_scale::of(quota::per(n, period).burst(most + 1)).has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE(tokens_are_counted_without_a_division_and_exactly) {
  std::vector<quota> quotas{quota::per(1, 1ns).burst(1'000'000'000), quota::per(1, 2ns).burst(5),
                            quota::per(1, 10 * year), quota::per(1, year).burst(10)};
  for (std::int64_t n = 1; n < 300'000'000'000'000'000 / 7; n = n * 7 / 3 + 1) {
    quotas.push_back(quota::per(1, duration{n})
                         .burst(static_cast<std::uint64_t>(
                             std::min<std::int64_t>(300'000'000'000'000'000 / n, 1'000'000'000))));
  }
  for (auto const& q : quotas) {
    auto const scale = bucket_scale::of(q).value();
    auto const count = [&](weir::rule::bucket_units units) {
      BOOST_TEST_REQUIRE(scale.narrow);
      BOOST_TEST_REQUIRE(scale.tokens_in(units) == static_cast<std::uint64_t>(units / scale.price));
      return scale.tokens_in(units);
    };
    for (std::uint64_t n = 0; n < scale.capacity; n = n * 3 / 2 + 1) {
      auto const exact = scale.price_of(n);
      BOOST_TEST_REQUIRE(count(exact) == n);
      BOOST_TEST_REQUIRE(count(exact + scale.price - 1) == n);
    }
    BOOST_TEST_REQUIRE(count(scale.room()) == scale.capacity);
    BOOST_TEST_REQUIRE(count(scale.room() - 1) == scale.capacity - 1);
  }
}

BOOST_AUTO_TEST_CASE(F65_quota_too_large_is_the_same_on_every_store) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  for (auto const tick : {duration{1ns}, duration{1us}}) {
    for (auto const& q : {quota::per_second(1'000'000'001), quota::per_second(1'000'000'007),
                          quota::per_second(most), quota::per(most, duration::max()),
                          quota::per(1, duration::max()), quota::per_second(1).burst(most),
                          quota::per(1, 10 * year).burst(2), quota::per(1, 1ns).burst(most),
                          quota::per(1, 10 * year + 1ns),
                          // 1000 · 1,000,003 tokens in 1,000,007 µs
                          quota::per(1'000'003, 1'000'007ns).burst(5)}) {
      BOOST_TEST(!bucket_scale::of(q, tick).has_value(), q.tokens()
                                                             << " per " << q.period().count());
    }
    BOOST_TEST(bucket_scale::of(quota::per(1, 10 * year), tick).has_value());
    BOOST_TEST(bucket_scale::of(quota::per(3, 1ns).burst(1), tick).has_value());
  }
}

BOOST_AUTO_TEST_CASE(F65_a_nanosecond_brings_no_more_than_its_own) {
  // 7,199 tokens came in a nanosecond while time was rounded down to 2 ms.
  auto const q = quota::per_second(3'600'003).burst(3600);
  bucket b{q};
  BOOST_TEST(b.take(1'999'999ns, 3600).allowed);
  BOOST_TEST((b.ask(2'000'000ns, 1).retry_after == 277ns));
  BOOST_TEST(!b.ask(1'999'999ns + 277ns, 1).allowed);
  BOOST_TEST(b.ask(1'999'999ns + 278ns, 1).allowed);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bucket_take)

BOOST_AUTO_TEST_CASE(a_burst_then_one_by_one) {
  bucket b{quota::per_second(10).burst(3)};
  for (unsigned i = 0; i != 3; ++i) {
    auto const d = b.take(0s);
    BOOST_TEST(d.allowed);
    BOOST_TEST(d.cost == 1U);
    BOOST_TEST(d.capacity == 3U);
    BOOST_TEST(d.remaining == 2 - i);
    BOOST_TEST((d.reset_after == 100ms * (i + 1)));
    BOOST_TEST((d.wait == 0s));
  }
  auto const refused = b.take(0s);
  BOOST_TEST(!refused.allowed);
  BOOST_TEST(!refused.shed);
  BOOST_TEST(refused.remaining == 0U);
  BOOST_TEST((refused.retry_after == 100ms));
  BOOST_TEST((refused.reset_after == 300ms));
  BOOST_TEST(!b.take(99'999'999ns).allowed);
  BOOST_TEST(b.take(100ms).allowed);
  BOOST_TEST(!b.take(100ms).allowed);
  BOOST_TEST(b.ask(400ms, 3).allowed);
}

BOOST_AUTO_TEST_CASE(a_refusal_of_many_leaves_few_to_be_had) {
  bucket b{quota::per_second(10)};
  BOOST_TEST(b.take(0s, 4).remaining == 6U);
  auto const refused = b.take(0s, 8);
  BOOST_TEST(!refused.allowed);
  BOOST_TEST(refused.remaining == 6U);
  BOOST_TEST((refused.retry_after == 200ms));
  BOOST_TEST(b.take(0s, 6).allowed);
}

BOOST_AUTO_TEST_CASE(F24_retry_after_is_enough_and_no_more) {
  // 7 tokens in 3 seconds: nothing divides.
  bucket b{quota::per(7, 3s).burst(5)};
  BOOST_TEST(b.take(1ns, 5).allowed);
  for (std::uint64_t cost = 1; cost <= 5; ++cost) {
    auto const d = b.ask(2ns, cost);
    BOOST_TEST(!d.allowed);
    BOOST_TEST(b.ask(2ns + d.retry_after, cost).allowed);
    BOOST_TEST(!b.ask(1ns + d.retry_after, cost).allowed);
  }
  BOOST_TEST((b.ask(2ns, 1).retry_after == 428'571'428ns));
}

BOOST_AUTO_TEST_CASE(F22_three_hundred_million_a_second_does_not_drift) {
  auto const q = quota::per_second(300'000'000).burst(1000);
  bucket b{q};
  std::uint64_t granted = 0;
  for (duration now{}; now <= 1ms; now += 333ns) {
    while (b.take(now, 7).allowed) granted += 7;
  }
  // 300,000 in a millisecond, and the burst; integer nanoseconds per token would have granted
  // 333,000.
  BOOST_TEST(granted <= 301'000U);
  BOOST_TEST(granted > 300'880U);
}

BOOST_AUTO_TEST_CASE(F22_a_long_period_with_a_big_burst_does_not_overflow) {
  bucket b{quota::per(1, year).burst(10)};
  duration const late = 29 * year;
  BOOST_TEST((b.take(late, 10).reset_after == 10 * year));
  auto const refused = b.take(late, 10);
  BOOST_TEST((refused.retry_after == 10 * year));
  // A reservation in the far future, and the clock at the other end; the largest numbers, too.
  for (auto const& q : {quota::per(10, 10 * year), quota::per(999'999'937, 10 * year)}) {
    auto const all = q.capacity();
    bucket c{q};
    BOOST_TEST(c.take(30 * year, all).allowed);
    BOOST_TEST(c.take(30 * year, all, 10 * year).allowed);
    BOOST_TEST((c.take(-30 * year, all).retry_after == 60 * year + 20 * year));
    BOOST_TEST((c.take(duration::min(), all).retry_after == 80 * year));
    BOOST_TEST((c.take(duration::max(), all).retry_after == 20 * year));
  }
}

BOOST_AUTO_TEST_CASE(one_in_ten_years) {
  bucket b{quota::per(1, 10 * year)};
  BOOST_TEST(b.take(5s).allowed);
  BOOST_TEST((b.take(6s).retry_after == 10 * year - 1s));
  BOOST_TEST(!b.take(10 * year + 5s - 1ns).allowed);
  BOOST_TEST(b.take(10 * year + 5s).allowed);
}

BOOST_AUTO_TEST_CASE(F52_time_running_backwards_adds_nothing_and_denies_no_longer_than_the_step) {
  bucket b{quota::per_second(1).burst(2)};
  BOOST_TEST(b.take(100s, 2).allowed);
  auto const back = b.take(40s);
  BOOST_TEST(!back.allowed);
  BOOST_TEST((back.retry_after == 61s));  // the step, and what was missing before it
  BOOST_TEST(back.remaining == 0U);
  BOOST_TEST(!b.take(100s).allowed);
  BOOST_TEST(b.take(101s).allowed);
}

BOOST_AUTO_TEST_CASE(several_quotas_all_or_nothing) {
  bucket b{quota::per_second(10), quota::per_minute(12)};
  auto d = b.take(0s, 10);
  BOOST_TEST(d.allowed);
  BOOST_TEST(d.remaining == 0U);
  BOOST_TEST(d.binding == 0);
  BOOST_TEST(d.capacity == 10U);
  BOOST_TEST((d.reset_after == 50s));
  d = b.take(1s, 5);
  BOOST_TEST(!d.allowed);
  BOOST_TEST(d.binding == 1);
  BOOST_TEST(d.capacity == 12U);
  BOOST_TEST(d.remaining == 2U);
  BOOST_TEST((d.retry_after == 14s));  // three more of the minute's, 5 s each, less the second
  // The refusal took nothing from the first, which would have allowed it.
  BOOST_TEST(b.take(1s, 2).remaining == 0U);
  BOOST_TEST(b.ask(1s, 1).binding == 1);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bucket_reservation)

BOOST_AUTO_TEST_CASE(waits_line_up_behind_each_other) {
  bucket b{quota::per_second(10).burst(1)};
  BOOST_TEST((b.take(0s, 1, 1s).wait == 0s));
  BOOST_TEST((b.take(0s, 1, 1s).wait == 100ms));
  BOOST_TEST((b.take(0s, 1, 1s).wait == 200ms));
  auto const now_or_never = b.take(0s);
  BOOST_TEST(!now_or_never.allowed);
  BOOST_TEST((now_or_never.retry_after == 300ms));
  BOOST_TEST(now_or_never.remaining == 0U);
  BOOST_TEST((now_or_never.reset_after == 300ms));
}

BOOST_AUTO_TEST_CASE(a_wait_longer_than_allowed_is_refused) {
  bucket b{quota::per_second(10).burst(1)};
  BOOST_TEST(b.take(0s).allowed);
  auto const d = b.take(0s, 1, 99'999'999ns);
  BOOST_TEST(!d.allowed);
  BOOST_TEST((d.wait == 0s));
  BOOST_TEST((d.retry_after == 1ns));  // then the same call, with the same wait, is granted
  BOOST_TEST((b.take(1ns, 1, 99'999'999ns).wait == 99'999'999ns));
}

BOOST_AUTO_TEST_CASE(several_quotas_are_booked_at_one_instant) {
  // The slow one lets the reservations through one a second from the 100th on; the fast one must
  // count them there, and not now, when it has ten to give at once.
  bucket b{quota::per_second(1).burst(100), quota::per(1, 10s).burst(10)};
  BOOST_TEST(b.take(0s, 10).allowed);
  BOOST_TEST((b.take(0s, 1, 1h).wait == 10s));
  BOOST_TEST((b.take(0s, 1, 1h).wait == 20s));

  bucket c{quota::per_second(1).burst(1), quota::per(1, 10s).burst(10)};
  BOOST_TEST(c.take(0s).allowed);
  duration last{};
  for (int i = 0; i != 20; ++i) last = c.take(0s, 1, 1h).wait;
  // At most 10 + 0.1 per second: the 21st counts no earlier than 110 s.
  BOOST_TEST((last == 110s));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bucket_refund)

BOOST_AUTO_TEST_CASE(the_latest_grant_goes_back_as_far_as_it_has_not_refilled) {
  bucket b{quota::per_second(10)};
  auto const d = b.take(0s, 6);
  BOOST_TEST(b.ask(250ms).remaining == 5U);
  auto const receipt = b.refund(250ms, d);  // 2.5 have refilled: of 4 a part has not
  BOOST_TEST(receipt.credited == 4U);
  BOOST_TEST(receipt.forfeited == 2U);
  BOOST_TEST(b.ask(250ms).remaining == 9U);  // 10 less the one asked for
}

BOOST_AUTO_TEST_CASE(F23_a_bucket_of_one_token_gets_it_back_in_part_refilled) {
  bucket b{quota::per_minute(1)};
  BOOST_TEST(b.refund(1ns, b.take(0s)).credited == 1U);
  BOOST_TEST(b.ask(1ns).allowed);
  auto const d = b.take(1ns);
  BOOST_TEST((b.full_from() == 1min + 1ns));  // saves nothing of what went back
  BOOST_TEST(b.refund(1min + 1ns, d).credited == 0U);
}

BOOST_AUTO_TEST_CASE(F23_a_grant_is_refunded_once) {
  bucket b{quota::per_second(10)};
  auto const d = b.take(0s, 6);
  BOOST_TEST(b.refund(0s, d).credited == 6U);
  auto const again = b.refund(0s, d);
  BOOST_TEST(again.credited == 0U);
  BOOST_TEST(again.forfeited == 6U);
  BOOST_TEST(b.ask(0s).remaining == 9U);
}

BOOST_AUTO_TEST_CASE(F23_nothing_is_refunded_from_below_a_later_grant) {
  bucket b{quota::per_second(10)};
  auto const first = b.take(0s, 3);
  auto const second = b.take(0s, 2);
  BOOST_TEST(b.refund(0s, first).forfeited == 3U);
  BOOST_TEST(b.ask(0s).remaining == 4U);
  BOOST_TEST(b.refund(0s, second).credited == 2U);
  BOOST_TEST(b.refund(0s, first).credited == 3U);  // its mark stands again: nothing is after it
  BOOST_TEST(b.ask(0s, 10).allowed);
}

BOOST_AUTO_TEST_CASE(a_refund_gives_back_no_more_than_was_missing) {
  bucket b{quota::per_second(10)};
  auto const d = b.take(0s, 6);
  BOOST_TEST(b.refund(1h, d).credited == 0U);
  BOOST_TEST(b.ask(1h, 10).allowed);
  BOOST_TEST(b.ask(1h, 10).remaining == 0U);
}

BOOST_AUTO_TEST_CASE(a_waiter_that_gives_up_before_its_instant_gets_all_back) {
  bucket b{quota::per(7, 3s).burst(5), quota::per(1, 10s).burst(10)};
  BOOST_TEST(b.take(0s, 5).allowed);
  auto const before = b.ask(1s, 5, 1h);
  auto const waiter = b.take(1s, 5, 1h);
  BOOST_TEST(waiter.allowed);
  BOOST_TEST((waiter.wait > 0s));
  auto const receipt = b.refund(1s, waiter, true);
  BOOST_TEST(receipt.credited == 5U);
  BOOST_TEST(receipt.forfeited == 0U);
  auto const after = b.ask(1s, 5, 1h);
  BOOST_TEST((after.wait == before.wait));
  BOOST_TEST((after.mark == before.mark));
}

BOOST_AUTO_TEST_CASE(a_fast_quota_gets_back_what_a_slow_one_made_it_book_late) {
  bucket b{quota::per_second(1).burst(1), quota::per_hour(1).burst(1)};
  BOOST_TEST(b.take(0s).allowed);
  auto const waiter = b.take(10s, 1, 2h);
  BOOST_TEST((waiter.wait == 1h - 10s));
  BOOST_TEST(b.refund(20s, waiter, true).credited == 1U);
  BOOST_TEST((b.full_from() == 1h));
}

BOOST_AUTO_TEST_CASE(a_refund_of_a_refusal_or_of_a_forged_mark_adds_nothing) {
  bucket b{quota::per_second(10)};
  auto const d = b.take(0s, 10);
  auto refused = b.take(0s, 4);
  BOOST_TEST(b.refund(0s, refused).credited == 0U);
  BOOST_TEST(b.refund(0s, refused, true).credited == 0U);
  // A cost above what a bucket can hold was never granted.
  auto forged = d;
  forged.cost = 11;
  BOOST_TEST(b.refund(0s, forged).credited == 0U);
  // Before-marks that promise less than nothing are not believed.
  forged = d;
  forged.mark.before[0] = d.mark.arrival[0];
  BOOST_TEST(b.refund(0s, forged, true).credited == 10U);
  BOOST_TEST(b.ask(0s, 10).allowed);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bucket_change)

BOOST_AUTO_TEST_CASE(what_was_spent_stays_spent) {
  bucket b{quota::per_second(10)};
  BOOST_TEST(b.take(0s, 7).allowed);
  b.change(50ms, {quota::per_minute(20)});  // 6.5 are missing: rounded up
  BOOST_TEST(b.ask(50ms).remaining == 12U);
  b.change(50ms, {quota::per_second(5)});  // 7 are missing: capped
  BOOST_TEST(!b.ask(50ms).allowed);
  BOOST_TEST((b.ask(50ms).retry_after == 200ms));
}

BOOST_AUTO_TEST_CASE(by_position_and_full_without_a_predecessor) {
  bucket b{quota::per_second(10), quota::per_hour(100)};
  BOOST_TEST(b.take(0s, 10).allowed);
  b.change(1h, {quota::per_second(10), quota::per_hour(200), quota::per_day(50)});
  BOOST_TEST(b.ask(1h, 10).remaining == 0U);
  b.change(1h, {quota::per_second(10)});
  b.change(1h, {quota::per_second(10), quota::per_hour(11)});
  BOOST_TEST(b.take(1h, 10).allowed);
  BOOST_TEST((b.take(1h + 1s, 2).retry_after == 326'272'727'273ns));  // a token in 327.27… s
}

BOOST_AUTO_TEST_CASE(F52_a_forgotten_bucket_is_no_fuller_than_it_was) {
  auto const scales = scales_of({quota::per_second(1).burst(5)});
  auto const start = weir::rule::forgotten_bucket(scales.span(), 100s);
  auto const d = weir::rule::take(scales.span(), start, 97s, 3, duration{});
  BOOST_TEST(!d.allowed);
  BOOST_TEST((d.retry_after == 1s));
  BOOST_TEST(weir::rule::take(scales.span(), start, 97s, 2, duration{}).allowed);
  BOOST_TEST(weir::rule::take(scales.span(), start, 100s, 5, duration{}).allowed);
}

BOOST_AUTO_TEST_SUITE_END()
