// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_LOCKS_CHECKS_HPP
#define WEIR_TESTING_CONFORMANCE_LOCKS_CHECKS_HPP

#include "weir/command/locks.hpp"
#include "weir/limits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/keys.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::testing::conformance {

using lock_bench = bench<lock_commands>;

/// Takes the lock, which must be free.
inline lock_grant take_lock(lock_bench& b, std::string_view key, std::string_view holder,
                            duration ttl) {
  command::acquire_lock const c{key, holder, ttl};
  auto const grant = b.must(c);
  expect(grant.granted, to_text(c) + " should have been granted: nobody holds it");
  expect(grant.fence > 0, to_text(c) + " was granted with fence 0");
  return grant;
}

/// Requires that this holder has the lock, by this lease.
inline void expect_held(lock_bench& b, std::string_view key, std::string_view holder,
                        std::uint64_t fence) {
  auto const info = b.must(command::inspect_lock{key});
  expect(info.held && info.holder == holder && info.fence == fence,
         in_quotes(holder) + " should still hold the lock with fence " + std::to_string(fence) +
             ", but the store says: " + to_text(info));
}

inline bool lock_is_free(lock_bench& b, std::string_view key) {
  return !b.must(command::inspect_lock{key}).held;
}

inline void release_needs_the_owner(lock_bench& b) {
  auto const grant = take_lock(b, "key", "owner", b.lasting);
  auto const try_release = [&](std::string_view holder, std::uint64_t fence) {
    command::release_lock const c{"key", holder, fence};
    expect(!b.must(c).freed, to_text(c) + " should free nothing: the lock is another's");
    expect_held(b, "key", "owner", grant.fence);
  };
  try_release("stranger", 0);
  try_release("stranger", grant.fence);
  try_release("owner", grant.fence + 1);
  expect(b.must(command::release_lock{"key", "owner", grant.fence}).freed,
         "the owner's release frees its lock");
  expect(lock_is_free(b, "key"), "a released lock is free");
}

inline void renew_needs_the_owner(lock_bench& b) {
  auto const grant = take_lock(b, "key", "owner", b.lasting);
  b.refuses(command::renew_lock{"key", "stranger", grant.fence, b.lasting}, errc::lease_lost);
  b.refuses(command::renew_lock{"key", "owner", grant.fence + 1, b.lasting}, errc::lease_lost);
  b.refuses(command::renew_lock{"key", "owner", 0, b.lasting}, errc::lease_lost);
  b.refuses(command::renew_lock{"other", "owner", grant.fence, b.lasting}, errc::lease_lost);
  expect_held(b, "key", "owner", grant.fence);
  expect(lock_is_free(b, "other"), "a refused renewal takes no lock");
}

inline void only_one_holds_it(lock_bench& b) {
  auto const grant = take_lock(b, "key", "owner", b.lasting);
  auto const refused = b.must(command::acquire_lock{"key", "other", b.lasting});
  expect(!refused.granted, "a held lock is not granted to another");
  expect(refused.holder == "owner", "a refusal says who has the lock");
  expect(refused.fence == 0, "a refusal has no fence");
  expect(refused.expires_in > duration::zero() && refused.expires_in <= b.lasting + b.slack(),
         "a refusal says what is left of the other's lease");
  expect_held(b, "key", "owner", grant.fence);
}

inline void over_at_its_expiry(lock_bench& b) {
  auto const grant = take_lock(b, "key", "first", b.brief());
  take_lock(b, "lasting", "first", b.lasting);
  if (b.exact()) {
    b.pass(b.brief() - b.grain());
    expect_held(b, "key", "first", grant.fence);
    expect(!b.must(command::acquire_lock{"key", "second", b.lasting}).granted,
           "a lease lives until the instant of its expiry");
    b.pass(b.grain() + b.slack());
    expect(lock_is_free(b, "key"), "a lease is over at the instant of its expiry");
  }
  b.eventually([&] { return lock_is_free(b, "key"); }, "a lease is over when its time is");
  take_lock(b, "key", "second", b.lasting);
  expect(!b.must(command::acquire_lock{"lasting", "second", b.lasting}).granted,
         "a lease lives as long as it was asked for, whatever became of other keys");
}

inline void late_owner_changes_nothing(lock_bench& b) {
  auto const late = take_lock(b, "key", "late", b.brief());
  b.pass(2 * b.brief());
  b.refuses(command::renew_lock{"key", "late", late.fence, b.lasting}, errc::lease_lost);
  expect(lock_is_free(b, "key"), "a lease that is over cannot be renewed (F6)");
  auto const now = take_lock(b, "key", "successor", b.lasting);
  expect(!b.must(command::release_lock{"key", "late", late.fence}).freed,
         "a late release frees nothing");
  expect(!b.must(command::release_lock{"key", "late", 0}).freed, "nor does one by holder");
  b.refuses(command::renew_lock{"key", "late", late.fence, b.lasting}, errc::lease_lost);
  b.refuses(command::renew_lock{"key", "late", now.fence, b.lasting}, errc::lease_lost);
  expect_held(b, "key", "successor", now.fence);
}

inline void renewal_counts_from_now(lock_bench& b) {
  auto const grant = take_lock(b, "key", "owner", b.brief());
  auto const renewed = b.must(command::renew_lock{"key", "owner", grant.fence, b.lasting});
  expect(renewed.expires_in > b.brief() && renewed.expires_in <= b.lasting + b.slack(),
         "a renewal says how long the lease lasts from now");
  b.pass(2 * b.brief());
  expect_held(b, "key", "owner", grant.fence);
  b.must(command::renew_lock{"key", "owner", grant.fence, b.brief()});
  b.pass(2 * b.brief());
  expect(lock_is_free(b, "key"), "a renewal also shortens a lease");
}

inline void short_leases_are_leases(lock_bench& b) {
  auto const ttl = std::max(b.grain(), b.can().shortest_ttl);
  for (auto const d : {ttl, std::max<duration>(ttl, std::chrono::milliseconds{300})}) {
    std::string const key = to_text(d);
    auto const grant = take_lock(b, key, "owner", d);
    expect(grant.expires_in >= d && grant.expires_in <= d + b.slack() + b.grain(),
           "a lease of " + key + " lasts that long, not " + to_text(grant.expires_in));
    if (b.exact()) expect_held(b, key, "owner", grant.fence);
    b.eventually([&] { return lock_is_free(b, key); }, "a lease of " + key + " is over some day");
  }
}

inline void asking_again_changes_nothing(lock_bench& b) {
  auto const first = take_lock(b, "key", "owner", b.lasting);
  auto const again = b.must(command::acquire_lock{"key", "owner", b.brief()});
  expect(again.granted && again.fence == first.fence,
         "a holder that asks again is given the same lease");
  expect(again.expires_in > b.brief(), "asking again does not change when it ends");
  expect(b.must(command::release_lock{"key", "owner", first.fence}).freed, "it was held once");
  expect(!b.must(command::release_lock{"key", "owner", first.fence}).freed,
         "a second release frees nothing");
  expect(lock_is_free(b, "key"), "one release is enough");
}

inline void fences_grow(lock_bench& b) {
  std::uint64_t last = 0;
  for (int i = 0; i < 8; ++i) {
    bool const expires = i % 2 == 0;
    auto const grant =
        take_lock(b, "key", i % 3 == 0 ? "one" : "two", expires ? b.brief() : b.lasting);
    expect(grant.fence > last,
           "fence " + std::to_string(grant.fence) + " came after " + std::to_string(last));
    last = grant.fence;
    if (expires) {
      b.pass(2 * b.brief());
    } else {
      b.must(command::release_lock{"key", "one", 0});
      b.must(command::release_lock{"key", "two", 0});
    }
  }
}

inline void fences_follow_time(lock_bench& b) {
  b.need(b.can().fences_follow_time, "declared: fences do not follow the store's time");
  b.need(b.source() == time_source::told, "the store's time is not known");
  auto const micros = [&] {
    return static_cast<std::uint64_t>(
        std::chrono::floor<std::chrono::microseconds>(b.now()).time_since_epoch().count());
  };
  expect(take_lock(b, "key", "one", b.brief()).fence >= micros(),
         "a fence is at least the store's microseconds");
  b.pass(24 * b.lasting);
  expect(take_lock(b, "key", "two", b.brief()).fence >= micros(),
         "a fence is at least the store's microseconds");
}

inline void keys_are_told_apart(lock_bench& b) {
  auto const keys = difficult_keys(b.can().any_bytes);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    take_lock(b, keys[i], "holder" + std::to_string(i), b.lasting);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto const info = b.must(command::inspect_lock{keys[i]});
    expect(info.held && info.holder == "holder" + std::to_string(i),
           "the lock " + in_quotes(keys[i]) + " is held by holder" + std::to_string(i) +
               ", not: " + to_text(info));
  }
  if (!b.can().any_bytes) return;
  using namespace std::string_view_literals;
  take_lock(b, "holders", "a\0b"sv, b.lasting);
  expect(!b.must(command::release_lock{"holders", "a\0c"sv, 0}).freed,
         "holders are told apart by every byte");
  expect(!b.must(command::release_lock{"holders", "a"sv, 0}).freed,
         "holders are told apart by every byte");
}

inline void bad_input_is_refused(lock_bench& b) {
  std::string const long_key(limits::key_size + 1, 'k');
  std::string const long_holder(limits::holder_size + 1, 'h');
  auto const grant = take_lock(b, "key", "owner", b.lasting);
  auto const each = [&](std::string_view key, std::string_view holder, duration ttl, errc wanted) {
    b.refuses(command::acquire_lock{key, holder, ttl}, wanted);
    b.refuses(command::renew_lock{key, holder, grant.fence, ttl}, wanted);
  };
  each("", "owner", b.lasting, errc::invalid_key);
  each(long_key, "owner", b.lasting, errc::invalid_key);
  each("key", "", b.lasting, errc::invalid_holder);
  each("key", long_holder, b.lasting, errc::invalid_holder);
  each("key", "owner", duration::zero(), errc::invalid_ttl);
  each("key", "owner", duration{-1}, errc::invalid_ttl);
  each("key", "owner", duration::min(), errc::invalid_ttl);
  each("key", "owner", limits::span + duration{1}, errc::invalid_ttl);
  b.refuses(command::release_lock{"", "owner", 0}, errc::invalid_key);
  b.refuses(command::release_lock{"key", "", 0}, errc::invalid_holder);
  b.refuses(command::inspect_lock{long_key}, errc::invalid_key);
  expect_held(b, "key", "owner", grant.fence);
  std::string const longest_holder(limits::holder_size, 'h');
  take_lock(b, std::string(limits::key_size, 'k'), longest_holder, limits::span);
}

inline void leftovers_make_room(lock_bench& b) {
  b.need(static_cast<bool>(b.from().make_bounded), "the driver makes no bounded store");
  constexpr std::size_t room = 8;
  lock_bench small{b.from(), b.source(), b.settings(), room};
  auto const key = [](std::size_t i) { return "key" + std::to_string(i); };
  auto const fill = [&](std::size_t from) {
    std::size_t n = 0;
    while (n <= room) {
      auto const answer = small.ask(command::acquire_lock{key(from + n), "owner", small.brief()});
      if (answer.has_error()) {
        expect(answer.error() == errc::store_full, "a full store says store_full");
        return n;
      }
      ++n;
    }
    return n;
  };
  expect(fill(0) == room, "a store with room for 8 locks holds 8");
  if (small.exact()) {
    expect(!small.must(command::acquire_lock{key(0), "other", small.brief()}).granted,
           "what is held is not forgotten to make room");
  }
  small.pass(2 * small.brief());
  expect(fill(100) == room, "leases that are over make room for others");
}

inline void time_backwards_revives_nothing(lock_bench& b) {
  b.need(b.source() == time_source::told, "the store's time cannot be moved back");
  auto const old = take_lock(b, "key", "first", b.brief());
  b.pass(2 * b.brief());
  auto const now = take_lock(b, "key", "second", b.lasting);
  b.step_back(2 * b.brief());
  expect_held(b, "key", "second", now.fence);
  b.refuses(command::renew_lock{"key", "first", old.fence, b.lasting}, errc::lease_lost);
  b.must(command::release_lock{"key", "second", now.fence});
  expect(take_lock(b, "key", "third", b.lasting).fence > now.fence,
         "fences grow also when time runs backwards");
}

inline void handlers_are_never_called_inline(lock_bench& b) {
  b.need(b.source() != time_source::told,
         "told time is for tests: how its commands complete is not promised");
  command::acquire_lock const c{"key", "owner", b.lasting};
  auto const p = b.start(c);
  expect(!p.done(), "a handler is not called before the function returns that was given it");
  b.ask(command::inspect_lock{"key"});
  b.eventually([&] { return p.done(); }, "an operation ends");
  expect(p.answer().has_value() && p.answer()->granted, "and does what it was asked for");
}

/// Every promise about locks that one client can find broken.
inline constexpr check<lock_commands> lock_checks[] = {
    {"R2", "only one holder has a lock, and a refusal says who", &only_one_holds_it},
    {"F13", "a lock is released by its owner only", &release_needs_the_owner},
    {"F13", "a lock is renewed by its owner only", &renew_needs_the_owner},
    {"F4", "a lease is over at its expiry, neither before nor after", &over_at_its_expiry},
    {"R5", "a lost lease's renewal and release change nothing", &late_owner_changes_nothing},
    {"F6", "a renewal counts from now", &renewal_counts_from_now},
    {"F9", "the shortest leases are not cut to nothing", &short_leases_are_leases},
    {"F45", "asking again gives the same lease, releasing again frees nothing",
     &asking_again_changes_nothing},
    {"F47", "fences grow across release and expiry", &fences_grow},
    {"R5", "fences do not fall behind the store's time", &fences_follow_time},
    {"F27", "no key is taken for another", &keys_are_told_apart},
    {"R8", "bad input is a typed error and changes nothing", &bad_input_is_refused},
    {"F11", "what is over makes room, what is held is kept", &leftovers_make_room},
    {"F52", "time that runs backwards revives no lease", &time_backwards_revives_nothing},
    {"R7", "a handler is never called inline", &handlers_are_never_called_inline},
};

}  // namespace weir::testing::conformance

#endif
