// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_BUCKETS_REFUNDS_HPP
#define WEIR_TESTING_CONFORMANCE_BUCKETS_REFUNDS_HPP

#include "weir/command/buckets.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/conformance/buckets/steps.hpp"

#include <cstdint>
#include <string>

// What is promised about refunds and reservations.
namespace weir::testing::conformance {

inline void only_the_last_grant_is_refunded(bucket_bench& b) {
  quota const q[] = {slow(10)};
  expect_taken(b, "key", q);
  auto const first = expect_taken(b, "key", q, 2);
  auto const second = expect_taken(b, "key", q, 3);
  expect_available(b, "key", q, 4, "after takes of 1, 2 and 3 of 10");
  expect(refund(b, "key", q, first).credited == 0,
         "a grant that something was taken after is not refunded");
  expect_available(b, "key", q, 4, "a forfeited refund changes nothing");
  expect(refund(b, "key", q, second).credited == 3, "the last grant is refunded whole");
  expect_available(b, "key", q, 7, "a refund gives back what was taken");
  expect(refund(b, "key", q, second).credited == 0, "a grant is refunded once");
  expect_available(b, "key", q, 7, "a second refund of the same grant changes nothing");
  expect(refund(b, "key", q, first).credited == 2, "and then the one before it is the last");
  expect_available(b, "key", q, 9, "a refund gives back what was taken");
}

inline void refunds_find_their_bucket(bucket_bench& b) {
  quota const q[] = {slow(10)};
  expect_taken(b, "one", q, 2);
  auto const grant = expect_taken(b, "one", q, 2);
  expect_taken(b, "two", q, 5);
  expect(refund(b, "two", q, grant).credited == 0, "a grant of one key is not refunded to another");
  expect(refund(b, "never seen", q, grant).credited == 0, "nor to one that was never seen");
  expect_available(b, "two", q, 5, "the other key is as it was");
  b.must(command::reset_bucket{"one"});
  expect(refund(b, "one", q, grant).credited == 0, "nor after a reset");
  expect_available(b, "one", q, 10, "a reset bucket is full, and not more than full");
}

inline void refund_gives_back_what_has_not_refilled(bucket_bench& b) {
  b.need(b.exact(), "time passes by itself");
  auto const token = token_time(b);
  quota const q[] = {quota::per(1, token).burst(10)};
  auto const grant = expect_taken(b, "key", q, 6);
  b.pass(2 * token);
  auto const r = refund(b, "key", q, grant);
  expect(r.credited == 4 && r.forfeited == 2,
         "two of six tokens have refilled by themselves; got " + to_text(r));
  expect_available(b, "key", q, 10, "the bucket is full, and not more than full");
  for (int i = 0; i < 10; ++i) expect_taken(b, "key", q);
  expect_denied(b, "key", q);
}

/// Not even a moment later is a token lost that nobody used.
inline void refund_gives_back_a_token_in_part_refilled(bucket_bench& b) {
  quota const one[] = {slow(1)};
  auto const grant = expect_taken(b, "key", one);
  if (b.exact()) b.pass(b.grain());
  auto const r = refund(b, "key", one, grant);
  expect(r.credited == 1, "a token that has not refilled goes back; got " + to_text(r));
  auto const again = expect_taken(b, "key", one);
  expect(again.reset_after >= std::chrono::hours{10}, "and nothing more; got " + to_text(again));
  // The minimum of several quotas, each of which has one in part.
  quota const two[] = {slow(3), quota::per(1, std::chrono::hours{1}).burst(2)};
  auto const both = expect_taken(b, "both", two, 2);
  if (b.exact()) b.pass(b.grain());
  expect(refund(b, "both", two, both).credited == 2, "of both quotas both go back");
  expect_available(b, "both", two, 2, "each quota is full");
}

/// The instant of a reservation is hours ahead by the slow quota. By the fast one that is 2⁶⁴
/// tokens and a few: a store that counts them in 64 bits counts only those.
inline void refund_counts_more_than_64_bits(bucket_bench& b) {
  constexpr std::uint64_t cost = 1'000'000;
  quota const q[] = {quota::per(cost, duration{(std::uint64_t{1} << 63) / (cost / 2)}),
                     quota::per(1'000'000'000, std::chrono::microseconds{1})};
  expect_taken(b, "key", q, cost);
  auto const grant = expect_taken(b, "key", q, cost, std::chrono::hours{6});
  auto const r = refund(b, "key", q, grant);
  expect(r.credited > cost - cost / 100, "all but what has refilled goes back; got " + to_text(r));
}

inline void reservations_queue(bucket_bench& b) {
  auto const token = token_time(b);
  quota const q[] = {quota::per(1, token).burst(2)};
  auto const about = [&](duration told, duration should, std::string const& what) {
    expect(told <= should + b.slack() && told >= should - (b.exact() ? duration::zero() : token),
           what + " should be " + to_text(should) + ", not " + to_text(told));
  };
  expect_taken(b, "key", q, 2);
  auto const first = expect_taken(b, "key", q, 1, 10 * token);
  about(first.wait, token, "the wait for the first reserved token");
  auto const second = expect_taken(b, "key", q, 2, 10 * token);
  about(second.wait, 3 * token, "the wait of who queues behind");
  auto const denied = expect_denied(b, "key", q);
  about(denied.retry_after, 4 * token, "the retry_after of who does not wait");
  expect_denied(b, "key", q, 1, token);
  if (!b.exact()) return;
  expect(expect_denied(b, "key", q, 1, 4 * token - b.grain()).retry_after == b.grain(),
         "a wait that is too short by a grain is refused, and says by how much");
  expect(refund(b, "key", q, second, true).credited == 2,
         "who gives up before its instant gets all back");
  about(expect_taken(b, "key", q, 1, 10 * token).wait, 2 * token,
        "the wait of the next after that");
}

inline void waiter_gets_all_back(bucket_bench& b) {
  b.need(b.exact(), "time passes by itself");
  auto const token = token_time(b);
  quota const q[] = {quota::per(1, token).burst(3), quota::per(1, 7 * token).burst(6)};
  expect_taken(b, "key", q, 3);
  b.pass(token / 2 / b.grain() * b.grain());
  auto const before = peek(b, "key", q);
  auto const grant = expect_taken(b, "key", q, 2, 10 * token);
  expect(grant.wait > duration::zero(), "it has to wait");
  expect(refund(b, "key", q, grant, true).credited == 2, "a cancelled waiter gets all of it back");
  auto const after = peek(b, "key", q);
  expect(to_text(before) == to_text(after), "and the bucket is as if it had never come: " +
                                                to_text(before) + " became " + to_text(after));
}

}  // namespace weir::testing::conformance

#endif
