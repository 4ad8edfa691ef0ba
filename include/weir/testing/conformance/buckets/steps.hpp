// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_BUCKETS_STEPS_HPP
#define WEIR_TESTING_CONFORMANCE_BUCKETS_STEPS_HPP

#include "weir/command/buckets.hpp"
#include "weir/quota.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/fields.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// What most checks of buckets do.
namespace weir::testing::conformance {

using bucket_bench = bench<bucket_commands>;

/// A token of quotas that refill while a check waits: no shorter than `least`, and a whole number
/// of grains.
[[nodiscard]] inline duration token_time(bucket_bench const& b,
                                         duration least = std::chrono::milliseconds{100}) {
  auto const wanted = b.exact() ? std::max(least, b.grain()) : std::max(b.brief(), b.grain());
  return (wanted + b.grain() - duration{1}) / b.grain() * b.grain();
}

/// Quotas that do not refill while a check runs.
[[nodiscard]] inline quota slow(std::uint64_t capacity) {
  return quota::per(1, std::chrono::hours{10}).burst(capacity);
}

inline decision take(bucket_bench& b, std::string_view key, std::span<quota const> quotas,
                     std::uint64_t cost = 1, duration max_wait = {}) {
  command::take const c{key, quotas, cost, max_wait};
  auto const d = b.must(c);
  expect(d.cost == cost && !d.shed, to_text(c) + " got " + to_text(d));
  return d;
}

inline decision expect_taken(bucket_bench& b, std::string_view key, std::span<quota const> quotas,
                             std::uint64_t cost = 1, duration max_wait = {}) {
  auto const d = take(b, key, quotas, cost, max_wait);
  expect(d.allowed, to_text(command::take{key, quotas, cost, max_wait}) +
                        " should be allowed; got " + to_text(d));
  return d;
}

inline decision expect_denied(bucket_bench& b, std::string_view key, std::span<quota const> quotas,
                              std::uint64_t cost = 1, duration max_wait = {}) {
  auto const d = take(b, key, quotas, cost, max_wait);
  expect(!d.allowed, to_text(command::take{key, quotas, cost, max_wait}) +
                         " should be denied; got " + to_text(d));
  expect(d.retry_after > duration::zero() && d.wait == duration::zero(),
         "a denial says after what time it would be allowed; got " + to_text(d));
  return d;
}

inline bucket_info peek(bucket_bench& b, std::string_view key, std::span<quota const> quotas,
                        std::uint64_t cost = 1) {
  return b.must(command::peek_bucket{key, quotas, cost, {}});
}

/// Tokens that could be taken now.
inline std::uint64_t available(bucket_bench& b, std::string_view key,
                               std::span<quota const> quotas) {
  return peek(b, key, quotas).remaining;
}

/// Requires that so many tokens can be taken now.
inline void expect_available(bucket_bench& b, std::string_view key, std::span<quota const> quotas,
                             std::uint64_t n, std::string_view why,
                             std::source_location at = std::source_location::current()) {
  auto const found = available(b, key, quotas);
  if (found == n) return;
  expect(false,
         std::string{why} + ": " + std::to_string(n) + " tokens should be there, not " +
             std::to_string(found),
         at);
}

inline refund_receipt refund(bucket_bench& b, std::string_view key, std::span<quota const> quotas,
                             decision const& grant, bool early = false) {
  command::refund const c{key, quotas, grant.cost, grant.mark, early};
  auto const r = b.must(c);
  expect(r.credited + r.forfeited == grant.cost,
         to_text(c) + " should account for every token; got " + to_text(r));
  return r;
}

}  // namespace weir::testing::conformance

#endif
