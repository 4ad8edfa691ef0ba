// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_BUCKETS_CHECKS_HPP
#define WEIR_TESTING_CONFORMANCE_BUCKETS_CHECKS_HPP

#include "weir/command/buckets.hpp"
#include "weir/detail/int128.hpp"
#include "weir/limits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/buckets/refunds.hpp"
#include "weir/testing/conformance/buckets/steps.hpp"
#include "weir/testing/keys.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace weir::testing::conformance {

inline void capacity_holds(bucket_bench& b) {
  quota const q[] = {slow(3)};
  for (std::uint64_t left = 3; left-- > 0;) {
    auto const d = expect_taken(b, "key", q);
    expect(d.remaining == left && d.capacity == 3 && d.wait == duration::zero(),
           "got " + to_text(d));
  }
  auto const before = peek(b, "key", q);
  for (int i = 0; i < 3; ++i) expect_denied(b, "key", q);
  auto const after = peek(b, "key", q);
  expect(!before.allowed && !after.allowed && after.retry_after <= before.retry_after,
         "a denial changes nothing: " + to_text(before) + " became " + to_text(after));
}

inline void peek_changes_nothing(bucket_bench& b) {
  quota const q[] = {slow(3)};
  for (int i = 0; i < 5; ++i) {
    expect(peek(b, "key", q, 3).allowed, "a peek takes nothing");
  }
  auto const full = peek(b, "key", q, 2);
  expect(full.allowed && full.remaining == 3 && full.capacity == 3 && full.cost == 2 &&
             full.reset_after == duration::zero(),
         "a peek tells what is there now: " + to_text(full));
  auto const taken = expect_taken(b, "key", q, 2);
  auto const left = peek(b, "key", q, 2);
  expect(!left.allowed && left.remaining == 1 && left.retry_after > duration::zero() &&
             left.reset_after <= taken.reset_after,
         "also when it says no: " + to_text(left) + " after " + to_text(taken));
  expect(peek(b, "key", q, 1).allowed, "what is left can be taken");
}

inline void peek_tells_each_level(bucket_bench& b) {
  quota const q[] = {slow(10), quota::per(1, std::chrono::hours{20}).burst(4), slow(7)};
  auto const same = [](quota_level const& l, std::uint64_t capacity, std::uint64_t remaining) {
    return l.capacity == capacity && l.remaining == remaining &&
           (l.reset_after > duration::zero()) == (remaining < capacity);
  };
  auto const unseen = peek(b, "key", q);
  expect(same(unseen.levels[0], 10, 10) && same(unseen.levels[1], 4, 4) &&
             same(unseen.levels[2], 7, 7) && same(unseen.levels[3], 0, 0),
         "each quota of a bucket that was never seen is full");
  expect_taken(b, "key", q, 3);
  auto const seen = peek(b, "key", q, 2);
  expect(same(seen.levels[0], 10, 7) && same(seen.levels[1], 4, 1) && same(seen.levels[2], 7, 4) &&
             same(seen.levels[3], 0, 0),
         "each quota has its own level");
  expect(!seen.allowed && seen.binding == 1 && seen.remaining == 1 && seen.capacity == 4,
         "the lowest binds: " + to_text(seen));
  auto latest = duration::zero();
  for (auto const& l : seen.levels) latest = std::max(latest, l.reset_after);
  expect(seen.reset_after == latest, "the bucket is full when its last quota is");
}

inline void retry_after_is_exact(bucket_bench& b) {
  auto const token = token_time(b);
  quota const q[] = {quota::per(4, 4 * token).burst(3)};
  expect_taken(b, "key", q, 3);
  auto const two = expect_denied(b, "key", q, 2);
  expect(two.retry_after <= 2 * token + b.slack(),
         "two tokens take two tokens' time; got " + to_text(two));
  if (b.exact()) {
    expect(two.retry_after >= 2 * token, "retry_after is never too early; got " + to_text(two));
    expect(two.reset_after >= 3 * token && two.reset_after <= 3 * token + b.slack(),
           "got " + to_text(two));
    b.pass(2 * token - b.grain());
    expect_denied(b, "key", q, 2);
    b.pass(b.grain() + b.slack());
  } else {
    b.pass(two.retry_after);
  }
  expect_taken(b, "key", q, 2);
}

inline void reset_after_is_exact(bucket_bench& b) {
  auto const token = token_time(b);
  quota const q[] = {quota::per(2, token).burst(8), quota::per(1, token).burst(5)};
  auto const d = expect_taken(b, "key", q, 4);
  if (b.exact()) {
    expect(d.reset_after >= 4 * token && d.reset_after <= 4 * token + b.slack(),
           "the slower quota is full again after four tokens' time; got " + to_text(d));
    b.pass(4 * token - b.grain());
    expect_available(b, "key", q, 4, "just before reset_after");
    b.pass(b.grain() + b.slack());
  } else {
    b.pass(d.reset_after);
  }
  expect_available(b, "key", q, 5, "after reset_after the bucket is full");
}

inline void quotas_are_all_or_nothing(bucket_bench& b) {
  quota const q[] = {slow(10), quota::per(1, std::chrono::hours{20}).burst(4)};
  auto const d = expect_taken(b, "key", q, 3);
  expect(d.binding == 1 && d.remaining == 1 && d.capacity == 4,
         "the tightest quota binds; got " + to_text(d));
  for (int i = 0; i < 3; ++i) expect_denied(b, "key", q, 2);
  expect_taken(b, "key", q, 1);
  expect_denied(b, "key", q, 1);
  expect_available(b, "key", std::span{q, 1}, 6,
                   "a denial by one quota takes nothing from another");
}

inline void cost_above_capacity_is_never(bucket_bench& b) {
  quota const q[] = {slow(10), slow(3)};
  using command::take;
  b.refuses(take{"key", q, 4, {}}, errc::cost_exceeds_capacity);
  b.refuses(take{"key", q, 4, b.lasting}, errc::cost_exceeds_capacity);
  b.refuses(take{"key", q, std::numeric_limits<std::uint64_t>::max(), {}},
            errc::cost_exceeds_capacity);
  b.refuses(command::peek_bucket{"key", q, 11, {}}, errc::cost_exceeds_capacity);
  b.refuses(take{"key", q, 0, {}}, errc::invalid_cost);
  expect_available(b, "key", q, 3, "bad input takes nothing");
}

inline void rates_do_not_drift(bucket_bench& b) {
  b.need(b.exact(), "time passes by itself");
  using std::chrono::hours;
  quota const fast[] = {quota::per_second(300'000'000)};
  quota const odd[] = {quota::per_second(1'000'003).burst(1'000'003)};
  quota const large[] = {quota::per_day(1'000'000'000)};
  quota const slowest[] = {quota::per(1, hours{24 * 365}).burst(20)};
  for (auto const quotas : {std::span<quota const>{fast}, std::span<quota const>{odd},
                            std::span<quota const>{large}, std::span<quota const>{slowest}}) {
    auto const& q = quotas.front();
    std::string const key = to_text(command::take{"", quotas, 1, {}});
    auto const first = b.ask(command::take{key, quotas, q.capacity(), {}});
    if (first.has_error() && first.error() == errc::quota_too_large) continue;
    expect(first.has_value() && first->allowed, key + ": a fresh bucket is full");
    // In small steps, so that what is lost or won in each would add up.
    auto const step = q.period() / 1000 / b.grain() * b.grain() + b.grain();
    std::uint64_t taken = 0;
    duration passed{};
    for (int i = 0; i < 1000; ++i) {
      b.pass(step);
      passed += step;
      auto const n = available(b, key, quotas);
      if (n > 0) expect_taken(b, key, quotas, n);
      taken += n;
      using wide = weir::detail::uint128;
      auto const within = [&](duration d) {
        return static_cast<std::uint64_t>(static_cast<wide>(d.count()) * q.tokens() /
                                          static_cast<wide>(q.period().count()));
      };
      auto const told =
          key + ": " + std::to_string(taken) + " tokens in " + to_text(passed) + " are too ";
      expect(taken <= within(passed), told + "many");
      expect(taken + 1 >= within(passed), told + "few");
    }
  }
}

inline void tiny_periods_count(bucket_bench& b) {
  b.need(b.exact(), "time passes by itself");
  auto const token = std::max<duration>(b.grain(), std::chrono::microseconds{10});
  quota const q[] = {quota::per(1, token).burst(1)};
  expect_taken(b, "key", q);
  expect_denied(b, "key", q);
  if (token > b.grain()) {
    b.pass(token - b.grain());
    expect_denied(b, "key", q);
    b.pass(b.grain() + b.slack());
  } else {
    b.pass(token + b.slack());
  }
  expect_taken(b, "key", q);
}

inline void unrepresentable_quotas_are_refused(bucket_bench& b) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  for (auto const& odd :
       {quota::per(most, limits::span), quota::per(1, duration::max()).burst(most),
        quota::per(most, duration{1}), quota::per(1, limits::span).burst(most / 2)}) {
    quota const q[] = {odd};
    auto const answer = b.ask(command::take{"key", q, 1, {}});
    if (answer.has_error()) {
      expect(answer.error() == errc::quota_too_large,
             "a quota that cannot be represented is quota_too_large, not " +
                 answer.error().message());
    } else {
      expect(answer->allowed && answer->remaining <= odd.capacity() - 1, "got " + to_text(*answer));
    }
    b.must(command::reset_bucket{"key"});
  }
}

inline void every_quota_is_taken_exactly(bucket_bench& b) {
  using wide = weir::detail::uint128;
  using std::chrono::hours;
  constexpr std::uint64_t most = 1'000'000'000;
  constexpr std::uint64_t rates[] = {1,         7,         1001,        14'901,      3'600'001,
                                     8'000'009, 1U << 29U, 999'999'937, 999'999'999, most};
  for (auto const n : rates) {
    for (duration const period : {duration{std::chrono::seconds{1}}, duration{hours{24}},
                                  duration{hours{1}}, duration{std::chrono::minutes{1}}}) {
      auto const p = static_cast<wide>(period.count());
      auto const fills = static_cast<wide>(n) * static_cast<wide>(limits::span.count()) / p;
      auto const largest = static_cast<std::uint64_t>(std::min<wide>(fills, most));
      for (auto const burst : {std::uint64_t{1}, std::min(n, largest), largest}) {
        quota const q[] = {quota::per(n, period).burst(burst)};
        std::string const key = to_text(command::take{"", q, 1, {}});
        b.must(command::reset_bucket{key});  // a burst may stand in the list twice
        expect_taken(b, key, q, burst);
        if (!b.exact()) continue;
        // A token bucket, in period-ths of a token.
        wide level = 0;
        auto const token = period / static_cast<std::int64_t>(n) / b.grain() * b.grain();
        for (duration const step : {b.grain(), token, b.grain(), 7 * b.grain(), 3 * token}) {
          b.pass(step);
          level = std::min(level + static_cast<wide>(n) * static_cast<wide>(step.count()),
                           static_cast<wide>(burst) * p);
          auto const there = static_cast<std::uint64_t>(level / p);
          expect_available(b, key, q, there, key + ": as many as have refilled");
          if (there == 0) continue;
          expect_taken(b, key, q, there);
          level -= static_cast<wide>(there) * p;
        }
      }
      if (largest == most) continue;
      quota const slower[] = {quota::per(n, period).burst(largest + 1)};
      b.refuses(command::take{"slower", slower, 1, {}}, errc::quota_too_large);
    }
  }
  for (auto const& q : {quota::per_second(most + 1), quota::per_second(1).burst(most + 1),
                        quota::per_day(most + 7).burst(1)}) {
    quota const outside[] = {q};
    b.refuses(command::take{"outside", outside, 1, {}}, errc::quota_too_large);
    b.refuses(command::peek_bucket{"outside", outside, 1, {}}, errc::quota_too_large);
  }
}

inline void changed_quotas_keep_what_was_spent(bucket_bench& b) {
  quota const before[] = {slow(10)};
  quota const wider[] = {slow(20)};
  quota const tighter[] = {slow(4)};
  expect_taken(b, "key", before, 6);
  expect_available(b, "key", wider, 14, "six of twenty were spent under the old quota");
  expect_available(b, "key", tighter, 0, "no more can be missing than a bucket holds");
  expect_available(b, "key", before, 4, "a peek with other quotas changes nothing");
  expect_taken(b, "key", wider, 1);
  expect_available(b, "key", wider, 13, "the new quotas are those of the bucket");
}

inline void reset_makes_it_full(bucket_bench& b) {
  quota const q[] = {slow(3)};
  expect_taken(b, "key", q, 3);
  expect_taken(b, "other", q, 3);
  b.must(command::reset_bucket{"key"});
  b.must(command::reset_bucket{"never seen"});
  expect_available(b, "key", q, 3, "a reset bucket is full");
  expect_available(b, "other", q, 0, "a reset concerns its own key");
}

inline void reaping_changes_no_answer(bucket_bench& b) {
  b.need(b.executes<command::reap_buckets>(), "the store's engine forgets keys by itself");
  quota const quick[] = {quota::per(1, token_time(b)).burst(2)};
  quota const q[] = {slow(3)};
  expect_taken(b, "quick", quick);
  expect_taken(b, "slow", q);
  if (b.exact())
    expect(b.must(command::reap_buckets{}).removed == 0, "what is not full is not reaped");
  b.pass(2 * token_time(b));
  auto const r = b.must(command::reap_buckets{});
  expect(r.removed <= 1 && r.kept == 1,
         "full buckets are forgotten, others kept; got " + to_text(r));
  expect_available(b, "quick", quick, 2, "a reaped bucket equals a fresh one");
  expect_available(b, "slow", q, 2, "what was spent is remembered");
}

inline void spent_keys_are_never_forgotten(bucket_bench& b) {
  b.need(static_cast<bool>(b.from().make_bounded), "the driver makes no bounded store");
  constexpr std::size_t room = 8;
  bucket_bench small{b.from(), b.source(), b.settings(), room};
  auto const token = token_time(small);
  quota const quick[] = {quota::per(1, token).burst(2)};
  quota const q[] = {slow(2)};
  std::size_t spent = 0;
  std::size_t shed = 0;
  for (std::size_t i = 0; i < 4 * room; ++i) {
    std::string const key{"spent" + std::to_string(i)};
    auto const d = small.must(command::take{key, q, 2, {}});
    spent += d.allowed ? 1U : 0U;
    shed += d.shed ? 1U : 0U;
    expect(d.allowed != d.shed, "a new key is taken from or shed; got " + to_text(d));
    if (d.allowed)
      expect(!small.must(command::take{key, q, 1, {}}).allowed, "a spent bucket is remembered");
  }
  expect(spent == room && shed == 3 * room,
         "a store with room for 8 spent buckets holds 8, and sheds other keys");
  for (std::size_t i = 0; i < spent; ++i) {
    expect(!small.must(command::take{"spent" + std::to_string(i), q, 1, {}}).allowed,
           "a flood of keys does not make the store forget what was spent");
  }
  // Now of keys that are full again.
  bucket_bench honest{b.from(), b.source(), b.settings(), room};
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < room; ++i) {
      auto const d =
          honest.must(command::take{std::to_string(round) + '/' + std::to_string(i), quick, 1, {}});
      expect(d.allowed, "what is full again makes room for new keys; got " + to_text(d));
    }
    honest.pass(2 * token);
  }
}

inline void time_backwards_adds_nothing(bucket_bench& b) {
  b.need(b.source() == time_source::told, "the store's time cannot be moved back");
  auto const token = token_time(b);
  quota const q[] = {quota::per(1, token).burst(4)};
  b.pass(100 * token);
  expect_taken(b, "key", q, 4);
  auto const back = 50 * token;
  b.step_back(back);
  auto const d = expect_denied(b, "key", q);
  expect(d.retry_after <= back + token + b.slack(),
         "it denies no longer than the step; got " + to_text(d));
  for (int i = 0; i < 5; ++i) {
    b.pass(10 * token - b.grain());
    expect_denied(b, "key", q);
    b.step_back(10 * token);
    expect_denied(b, "key", q);
    b.pass(10 * token);
  }
  b.pass(token + 6 * b.grain() + b.slack());
  expect_taken(b, "key", q, 1);
  expect_denied(b, "key", q, 1);
}

inline void bucket_keys_are_told_apart(bucket_bench& b) {
  auto const keys = difficult_keys(b.can().any_bytes);
  quota const q[] = {slow(keys.size() + 1)};
  for (std::size_t i = 0; i < keys.size(); ++i) expect_taken(b, keys[i], q, i + 1);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    expect_available(b, keys[i], q, keys.size() - i, "of the bucket " + in_quotes(keys[i]));
  }
}

inline void bad_bucket_input_is_refused(bucket_bench& b) {
  std::string const long_key(limits::key_size + 1, 'k');
  quota const good[] = {slow(10)};
  quota const many[] = {slow(1), slow(2), slow(3), slow(4), slow(5)};
  expect_taken(b, "key", good, 4);
  auto const each = [&](std::string_view key, std::span<quota const> quotas, errc wanted) {
    b.refuses(command::take{key, quotas, 1, {}}, wanted);
    b.refuses(command::peek_bucket{key, quotas, 1, {}}, wanted);
    b.refuses(command::refund{key, quotas, 1, {}, false}, wanted);
  };
  each("", good, errc::invalid_key);
  each(long_key, good, errc::invalid_key);
  each("key", {}, errc::invalid_quota);
  each("key", many, errc::invalid_quota);
  for (auto const& bad : {quota{}, quota::per(0, b.lasting).burst(1),
                          quota::per(1, duration::zero()), quota::per(1, duration{-1}), slow(0)}) {
    quota const q[] = {bad};
    each("key", q, errc::invalid_quota);
  }
  b.refuses(command::take{"key", good, 1, duration{-1}}, errc::invalid_wait);
  b.refuses(command::take{"key", good, 1, limits::span + duration{1}}, errc::invalid_wait);
  b.refuses(command::reset_bucket{""}, errc::invalid_key);
  expect_available(b, "key", good, 6, "bad input changes nothing");
  expect_taken(b, std::string(limits::key_size, 'k'), std::span{many, limits::quotas}, 1);
}

inline void bucket_handlers_are_never_called_inline(bucket_bench& b) {
  b.need(b.source() != time_source::told,
         "told time is for tests: how its commands complete is not promised");
  quota const q[] = {slow(10)};
  command::take const c{"key", q, 1, {}};
  auto const p = b.start(c);
  expect(!p.done(), "a handler is not called before the function returns that was given it");
  b.eventually([&] { return p.done(); }, "an operation ends");
  expect(p.answer().has_value() && p.answer()->allowed, "and does what it was asked for");
}

/// Every promise about buckets that one client can find broken.
inline constexpr check<bucket_commands> bucket_checks[] = {
    {"R3", "no more than the capacity at once, and a denial changes nothing", &capacity_holds},
    {"R3", "a peek tells what is there, and takes nothing", &peek_changes_nothing},
    {"R3", "a peek tells the level of each of several quotas", &peek_tells_each_level},
    {"R3", "several quotas are taken from all or not at all", &quotas_are_all_or_nothing},
    {"R3", "what was spent stays spent when the quotas change",
     &changed_quotas_keep_what_was_spent},
    {"R3", "quotas that the store cannot represent are refused",
     &unrepresentable_quotas_are_refused},
    {"R3", "reservations queue, and one that waits too long is refused with no change",
     &reservations_queue},
    {"R3", "a reset makes a bucket full", &reset_makes_it_full},
    {"F19", "time that runs backwards adds nothing, and denies no longer than the step",
     &time_backwards_adds_nothing},
    {"F20", "a cost above the capacity is an error, not a later", &cost_above_capacity_is_never},
    {"F21", "spent keys are never forgotten, full ones make room", &spent_keys_are_never_forgotten},
    {"F21", "reaping forgets full buckets only", &reaping_changes_no_answer},
    {"F22", "rates do not drift", &rates_do_not_drift},
    {"F65", "every quota of the set is taken, and exact to the store's clock",
     &every_quota_is_taken_exactly},
    {"F23", "the last grant is refunded, once, and no other", &only_the_last_grant_is_refunded},
    {"F23", "a refund goes to the bucket that it was taken from", &refunds_find_their_bucket},
    {"F23", "a late refund gives back what has not refilled",
     &refund_gives_back_what_has_not_refilled},
    {"F23", "a token that has refilled in part goes back",
     &refund_gives_back_a_token_in_part_refilled},
    {"F23", "a refund far ahead of a fast quota gives back all", &refund_counts_more_than_64_bits},
    {"F23", "a cancelled waiter gets all back", &waiter_gets_all_back},
    {"F24", "retry_after is exact", &retry_after_is_exact},
    {"F24", "reset_after is exact", &reset_after_is_exact},
    {"F25", "the shortest periods count", &tiny_periods_count},
    {"F27", "no key is taken for another", &bucket_keys_are_told_apart},
    {"R8", "bad input is a typed error and changes nothing", &bad_bucket_input_is_refused},
    {"R7", "a handler is never called inline", &bucket_handlers_are_never_called_inline},
};

}  // namespace weir::testing::conformance

#endif
