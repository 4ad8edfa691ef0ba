// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_LOCKS_CHECKS_HPP
#define WEIR_TESTING_CONFORMANCE_LOCKS_CHECKS_HPP

#include "weir/command/locks.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/leases/checks.hpp"
#include "weir/testing/fields.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::testing::conformance {

using lock_bench = bench<lock_commands>;

/// Locks, for the checks of all leases.
struct lock_noun {
  using commands = lock_commands;
  using renew = command::renew_lock;
  using release = command::release_lock;
  static constexpr bool counts = false;  ///< has a limit and a line

  static command::acquire_lock acquire(std::string_view key, std::string_view holder, duration ttl,
                                       std::uint32_t = 1, duration = {}) {
    return {key, holder, ttl};
  }
  static command::inspect_lock inspect(std::string_view key, std::uint32_t = 0) { return {key}; }

  /// Takes the lock, which must be free.
  static lock_grant take(lock_bench& b, std::string_view key, std::string_view holder,
                         duration ttl) {
    auto const c = acquire(key, holder, ttl);
    auto const grant = b.must(c);
    expect(grant.granted, to_text(c) + " should have been granted: nobody holds it");
    expect(grant.fence > 0, to_text(c) + " was granted with fence 0");
    return grant;
  }
  /// Asks for what another holds, for so long at most.
  static void refuse(lock_bench& b, std::string_view key, std::string_view holder,
                     duration within) {
    auto const c = acquire(key, holder, b.lasting);
    auto const refused = b.must(c);
    expect(!refused.granted, to_text(c) + " should have been refused: another holds it");
    expect(refused.fence == 0, "a refusal has no fence");
    expect(refused.expires_in > duration::zero() && refused.expires_in <= within + b.slack(),
           "a refusal says what is left of the other's lease");
  }
  /// Requires that this holder has the lock, by this lease.
  static void expect_held(lock_bench& b, std::string_view key, std::string_view holder,
                          std::uint64_t fence) {
    auto const info = b.must(inspect(key));
    expect(info.held && info.holder == holder && info.fence == fence,
           in_quotes(holder) + " should still hold the lock with fence " + std::to_string(fence) +
               ", but the store says: " + to_text(info));
  }
  static bool is_free(lock_bench& b, std::string_view key) { return !b.must(inspect(key)).held; }
};

inline void release_needs_the_owner(lock_bench& b) {
  auto const grant = lock_noun::take(b, "key", "owner", b.lasting);
  auto const try_release = [&](std::string_view holder, std::uint64_t fence) {
    command::release_lock const c{"key", holder, fence};
    expect(!b.must(c).freed, to_text(c) + " should free nothing: the lock is another's");
    lock_noun::expect_held(b, "key", "owner", grant.fence);
  };
  try_release("stranger", 0);
  try_release("stranger", grant.fence);
  try_release("owner", grant.fence + 1);
  expect(b.must(command::release_lock{"key", "owner", grant.fence}).freed,
         "the owner's release frees its lock");
  expect(lock_noun::is_free(b, "key"), "a released lock is free");
}

inline void only_one_holds_it(lock_bench& b) {
  auto const grant = lock_noun::take(b, "key", "owner", b.lasting);
  lock_noun::refuse(b, "key", "other", b.lasting);
  expect(b.must(command::acquire_lock{"key", "other", b.lasting}).holder == "owner",
         "a refusal says who has the lock");
  lock_noun::expect_held(b, "key", "owner", grant.fence);
}

inline void asking_again_changes_nothing(lock_bench& b) {
  auto const first = lock_noun::take(b, "key", "owner", b.lasting);
  auto const again = b.must(command::acquire_lock{"key", "owner", b.brief()});
  expect(again.granted && again.fence == first.fence,
         "a holder that asks again is given the same lease");
  expect(again.expires_in > b.brief(), "asking again does not change when it ends");
  expect(b.must(command::release_lock{"key", "owner", first.fence}).freed, "it was held once");
  expect(!b.must(command::release_lock{"key", "owner", first.fence}).freed,
         "a second release frees nothing");
  expect(lock_noun::is_free(b, "key"), "one release is enough");
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

/// Every promise about locks that one client can find broken.
inline constexpr check<lock_commands> lock_checks[] = {
    {"R2", "only one holder has a lock, and a refusal says who", &only_one_holds_it},
    {"F13", "a lock is released by its owner only", &release_needs_the_owner},
    {"F13", "a lock is renewed by its owner only", &renew_needs_the_owner<lock_noun>},
    {"F4", "a lease is over at its expiry, neither before nor after",
     &over_at_its_expiry<lock_noun>},
    {"R5", "a lost lease's renewal and release change nothing",
     &late_owner_changes_nothing<lock_noun>},
    {"F6", "a renewal counts from now", &renewal_counts_from_now<lock_noun>},
    {"F9", "the shortest leases are not cut to nothing", &short_leases_are_leases<lock_noun>},
    {"F45", "asking again gives the same lease, releasing again frees nothing",
     &asking_again_changes_nothing},
    {"F47", "fences grow across release and expiry", &fences_grow<lock_noun>},
    {"R5", "fences do not fall behind the store's time", &fences_follow_time<lock_noun>},
    {"F27", "no key is taken for another", &keys_are_told_apart<lock_noun>},
    {"R8", "bad input is a typed error and changes nothing", &bad_input_is_refused<lock_noun>},
    {"F11", "what is over makes room, what is held is kept", &leftovers_make_room},
    {"F52", "time that runs backwards revives no lease",
     &time_backwards_revives_nothing<lock_noun>},
    {"R7", "a handler is never called inline", &handlers_are_never_called_inline<lock_noun>},
};

}  // namespace weir::testing::conformance

#endif
