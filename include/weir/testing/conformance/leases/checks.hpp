// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_LEASES_CHECKS_HPP
#define WEIR_TESTING_CONFORMANCE_LEASES_CHECKS_HPP

#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/keys.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The promises of locks and of permits alike. A permit is here one of a limit of 1.
namespace weir::testing::conformance {

template <class Noun>
using lease_bench = bench<typename Noun::commands>;

template <class Noun>
void renew_needs_the_owner(lease_bench<Noun>& b) {
  using renew = typename Noun::renew;
  auto const grant = Noun::take(b, "key", "owner", b.lasting);
  b.refuses(renew{"key", "stranger", grant.fence, b.lasting}, errc::lease_lost);
  b.refuses(renew{"key", "owner", grant.fence + 1, b.lasting}, errc::lease_lost);
  b.refuses(renew{"key", "owner", 0, b.lasting}, errc::lease_lost);
  b.refuses(renew{"other", "owner", grant.fence, b.lasting}, errc::lease_lost);
  Noun::expect_held(b, "key", "owner", grant.fence);
  expect(Noun::is_free(b, "other"), "a refused renewal takes nothing");
}

template <class Noun>
void over_at_its_expiry(lease_bench<Noun>& b) {
  auto const grant = Noun::take(b, "key", "first", b.brief());
  Noun::take(b, "lasting", "first", b.lasting);
  Noun::refuse(b, "lasting", "second", b.lasting);
  Noun::refuse(b, "key", "second", b.brief());
  if (b.exact()) {
    b.pass(b.brief() - b.grain());
    Noun::expect_held(b, "key", "first", grant.fence);
    Noun::refuse(b, "key", "second", b.brief());
    b.pass(b.grain() + b.slack());
    expect(Noun::is_free(b, "key"), "a lease is over at the instant of its expiry");
  }
  b.eventually([&] { return Noun::is_free(b, "key"); }, "a lease is over when its time is");
  Noun::take(b, "key", "second", b.lasting);
  Noun::refuse(b, "lasting", "second", b.lasting);
}

template <class Noun>
void late_owner_changes_nothing(lease_bench<Noun>& b) {
  using renew = typename Noun::renew;
  using release = typename Noun::release;
  auto const late = Noun::take(b, "key", "late", b.brief());
  b.pass(2 * b.brief());
  b.refuses(renew{"key", "late", late.fence, b.lasting}, errc::lease_lost);
  expect(Noun::is_free(b, "key"), "a lease that is over cannot be renewed (F6)");
  auto const now = Noun::take(b, "key", "successor", b.lasting);
  expect(!b.must(release{"key", "late", late.fence}).freed, "a late release frees nothing");
  expect(!b.must(release{"key", "late", 0}).freed, "nor does one by holder");
  b.refuses(renew{"key", "late", late.fence, b.lasting}, errc::lease_lost);
  b.refuses(renew{"key", "late", now.fence, b.lasting}, errc::lease_lost);
  Noun::expect_held(b, "key", "successor", now.fence);
  Noun::refuse(b, "key", "third", b.lasting);
}

template <class Noun>
void renewal_counts_from_now(lease_bench<Noun>& b) {
  using renew = typename Noun::renew;
  auto const grant = Noun::take(b, "key", "owner", b.brief());
  auto const renewed = b.must(renew{"key", "owner", grant.fence, b.lasting});
  expect(renewed.expires_in > b.brief() && renewed.expires_in <= b.lasting + b.slack(),
         "a renewal says how long the lease lasts from now");
  b.pass(2 * b.brief());
  Noun::expect_held(b, "key", "owner", grant.fence);
  b.must(renew{"key", "owner", grant.fence, b.brief()});
  b.pass(2 * b.brief());
  expect(Noun::is_free(b, "key"), "a renewal also shortens a lease");
  b.refuses(renew{"key", "owner", grant.fence, b.lasting}, errc::lease_lost);
  expect(Noun::is_free(b, "key"), "and one that comes too late takes nothing");
}

template <class Noun>
void short_leases_are_leases(lease_bench<Noun>& b) {
  auto const ttl = std::max(b.grain(), b.can().shortest_ttl);
  for (auto const d : {ttl, std::max<duration>(ttl, std::chrono::milliseconds{300})}) {
    std::string const key = to_text(d);
    auto const grant = Noun::take(b, key, "owner", d);
    expect(grant.expires_in >= d && grant.expires_in <= d + b.slack() + b.grain(),
           "a lease of " + key + " lasts that long, not " + to_text(grant.expires_in));
    if (b.exact()) Noun::expect_held(b, key, "owner", grant.fence);
    b.eventually([&] { return Noun::is_free(b, key); }, "a lease of " + key + " is over some day");
  }
}

template <class Noun>
void fences_grow(lease_bench<Noun>& b) {
  std::uint64_t last = 0;
  for (int i = 0; i < 8; ++i) {
    bool const expires = i % 2 == 0;
    std::string const holder{"holder" + std::to_string(i % 3)};
    auto const grant = Noun::take(b, "key", holder, expires ? b.brief() : b.lasting);
    expect(grant.fence > last,
           "fence " + std::to_string(grant.fence) + " came after " + std::to_string(last));
    last = grant.fence;
    if (expires) {
      b.pass(2 * b.brief());
    } else {
      b.must(typename Noun::release{"key", holder, 0});
    }
  }
}

template <class Noun>
void fences_follow_time(lease_bench<Noun>& b) {
  b.need(b.can().fences_follow_time, "declared: fences do not follow the store's time");
  b.need(b.source() == time_source::told, "the store's time is not known");
  auto const micros = [&] {
    return static_cast<std::uint64_t>(
        std::chrono::floor<std::chrono::microseconds>(b.now()).time_since_epoch().count());
  };
  expect(Noun::take(b, "key", "one", b.brief()).fence >= micros(),
         "a fence is at least the store's microseconds");
  b.pass(24 * b.lasting);
  expect(Noun::take(b, "key", "two", b.brief()).fence >= micros(),
         "a fence is at least the store's microseconds");
}

template <class Noun>
void keys_are_told_apart(lease_bench<Noun>& b) {
  auto const keys = difficult_keys(b.can().any_bytes);
  std::vector<std::uint64_t> fences;
  auto const holder = [](std::size_t i) { return "holder" + std::to_string(i); };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    fences.push_back(Noun::take(b, keys[i], holder(i), b.lasting).fence);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Noun::expect_held(b, keys[i], holder(i), fences[i]);
  }
  if (!b.can().any_bytes) return;
  using namespace std::string_view_literals;
  Noun::take(b, "holders", "a\0b"sv, b.lasting);
  for (auto const other : {"a\0c"sv, "a"sv}) {
    expect(!b.must(typename Noun::release{"holders", other, 0}).freed,
           "holders are told apart by every byte");
  }
}

template <class Noun>
void bad_input_is_refused(lease_bench<Noun>& b) {
  std::string const long_key(limits::key_size + 1, 'k');
  std::string const long_holder(limits::holder_size + 1, 'h');
  auto const grant = Noun::take(b, "key", "owner", b.lasting);
  auto const each = [&](std::string_view key, std::string_view holder, duration ttl, errc wanted) {
    b.refuses(Noun::acquire(key, holder, ttl), wanted);
    b.refuses(typename Noun::renew{key, holder, grant.fence, ttl}, wanted);
  };
  each("", "owner", b.lasting, errc::invalid_key);
  each(long_key, "owner", b.lasting, errc::invalid_key);
  each("key", "", b.lasting, errc::invalid_holder);
  each("key", long_holder, b.lasting, errc::invalid_holder);
  each("key", "owner", duration::zero(), errc::invalid_ttl);
  each("key", "owner", duration{-1}, errc::invalid_ttl);
  each("key", "owner", duration::min(), errc::invalid_ttl);
  each("key", "owner", limits::span + duration{1}, errc::invalid_ttl);
  b.refuses(typename Noun::release{"", "owner", 0}, errc::invalid_key);
  b.refuses(typename Noun::release{"key", "", 0}, errc::invalid_holder);
  b.refuses(Noun::inspect(""), errc::invalid_key);
  b.refuses(Noun::inspect(long_key), errc::invalid_key);
  Noun::expect_held(b, "key", "owner", grant.fence);
  std::string const longest_holder(limits::holder_size, 'h');
  Noun::take(b, std::string(limits::key_size, 'k'), longest_holder, limits::span);
}

template <class Noun>
void time_backwards_revives_nothing(lease_bench<Noun>& b) {
  b.need(b.source() == time_source::told, "the store's time cannot be moved back");
  auto const old = Noun::take(b, "key", "first", b.brief());
  b.pass(2 * b.brief());
  auto const now = Noun::take(b, "key", "second", b.lasting);
  b.step_back(2 * b.brief());
  Noun::expect_held(b, "key", "second", now.fence);
  b.refuses(typename Noun::renew{"key", "first", old.fence, b.lasting}, errc::lease_lost);
  b.must(typename Noun::release{"key", "second", now.fence});
  expect(Noun::take(b, "key", "third", b.lasting).fence > now.fence,
         "fences grow also when time runs backwards");
}

template <class Noun>
void handlers_are_never_called_inline(lease_bench<Noun>& b) {
  b.need(b.source() != time_source::told,
         "told time is for tests: how its commands complete is not promised");
  auto const c = Noun::acquire("key", "owner", b.lasting);
  auto const p = b.start(c);
  expect(!p.done(), "a handler is not called before the function returns that was given it");
  b.ask(Noun::inspect("key"));
  b.eventually([&] { return p.done(); }, "an operation ends");
  expect(p.answer().has_value() && p.answer()->granted, "and does what it was asked for");
}

}  // namespace weir::testing::conformance

#endif
