// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_PERMITS_CHECKS_HPP
#define WEIR_TESTING_CONFORMANCE_PERMITS_CHECKS_HPP

#include "weir/command/permits.hpp"
#include "weir/limits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/leases/checks.hpp"
#include "weir/testing/conformance/permits/line.hpp"
#include "weir/testing/conformance/permits/steps.hpp"
#include "weir/testing/fields.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::testing::conformance {

inline void limit_holds(permit_bench& b) {
  take_permit(b, "key", "a", 2, b.lasting);
  take_permit(b, "key", "b", 2, b.lasting);
  auto const refused = b.must(command::acquire_permit{"key", "c", 2, b.lasting});
  expect(!refused.granted && refused.in_use == 2 && refused.fence == 0 && refused.place == 0,
         "with both of 2 permits taken the next is refused, and told how many are in use; got " +
             to_text(refused));
  auto const census = b.must(command::inspect_permits{"key", 10});
  expect(census.in_use == 2 && census.waiting == 0 && census.holders.size() == 2 &&
             census.holders[0].holder == "a" && census.holders[1].holder == "b" &&
             census.holders[0].fence < census.holders[1].fence,
         "a census lists the holders by fence; got " + to_text(census));
  expect(b.must(command::inspect_permits{"key", 1}).holders.size() == 1,
         "and no more of them than asked for");
  expect(b.must(command::inspect_permits{"none", 10}).in_use == 0,
         "a key that was never used has no permits taken");
}

inline void release_frees_its_own(permit_bench& b) {
  auto const mine = take_permit(b, "key", "a", 2, b.lasting);
  auto const others = take_permit(b, "key", "b", 2, b.lasting);
  auto const frees_nothing = [&](std::string_view holder, std::uint64_t fence) {
    command::release_permit const c{"key", holder, fence};
    expect(!b.must(c).freed, to_text(c) + " should free nothing");
    expect_in_use(b, "key", 2);
  };
  frees_nothing("a", others.fence);
  frees_nothing("c", mine.fence);
  frees_nothing("c", 0);
  expect(b.must(command::release_permit{"key", "a", mine.fence}).freed,
         "a holder's release frees its permit");
  expect_permit(b, "key", "b", others.fence);
  expect_in_use(b, "key", 1);
}

inline void second_release_frees_nothing(permit_bench& b) {
  auto const a = take_permit(b, "key", "a", 2, b.lasting);
  take_permit(b, "key", "b", 2, b.lasting);
  expect(b.must(command::release_permit{"key", "a", a.fence}).freed,
         "the first release frees the permit");
  for (auto const fence : {a.fence, std::uint64_t{0}, a.fence}) {
    auto const again = b.must(command::release_permit{"key", "a", fence});
    expect(!again.freed && !again.left_line, "another release of the same permit frees nothing");
  }
  take_permit(b, "key", "c", 2, b.lasting);
  expect_refused(b, "key", "d", 2);
}

inline void each_permit_ends_by_its_own_ttl(permit_bench& b) {
  auto const long_one = take_permit(b, "key", "long", 3, b.lasting);
  take_permit(b, "key", "short", 3, b.brief());
  auto const longer = take_permit(b, "key", "longer", 3, 2 * b.lasting);
  b.pass(2 * b.brief());
  expect_in_use(b, "key", 2);
  expect_permit(b, "key", "long", long_one.fence);
  expect_permit(b, "key", "longer", longer.fence);
  auto const census = b.must(command::inspect_permits{"key", 3});
  expect(census.holders[0].expires_in <= b.lasting,
         "a longer lease beside it does not prolong a lease");
}

inline void limit_of_the_command_decides(permit_bench& b) {
  b.need(b.can().limit_of_command, "declared: the limit is not that of the command alone");
  auto const first = take_permit(b, "key", "a", 1, b.lasting);
  expect_refused(b, "key", "b", 1);
  take_permit(b, "key", "b", 3, b.lasting);
  take_permit(b, "key", "c", 3, b.lasting);
  expect_refused(b, "key", "d", 3);
  expect_refused(b, "key", "d", 2);
  expect_in_use(b, "key", 3);
  expect_permit(b, "key", "a", first.fence);
  b.must(command::release_permit{"key", "b", 0});
  expect_refused(b, "key", "d", 2);
  b.must(command::release_permit{"key", "c", 0});
  take_permit(b, "key", "d", 2, b.lasting);
}

inline void asking_again_gives_the_same(permit_bench& b) {
  auto const first = take_permit(b, "key", "a", 2, b.lasting);
  auto const again = b.must(command::acquire_permit{"key", "a", 2, b.brief(), b.lasting});
  expect(again.granted && again.fence == first.fence && again.in_use == 1,
         "a holder that asks again is given the same permit; got " + to_text(again));
  expect(again.expires_in > b.brief(), "asking again does not change when it ends");
  take_permit(b, "key", "b", 2, b.lasting);
  expect(b.must(command::acquire_permit{"key", "a", 1, b.lasting}).granted,
         "also with a limit that is reached");
  expect(b.must(command::release_permit{"key", "a", 0}).freed, "one release");
  expect_in_use(b, "key", 1);
}

inline void bad_limits_are_refused(permit_bench& b) {
  auto const grant = take_permit(b, "key", "a", 1, b.lasting);
  using acquire = command::acquire_permit;
  b.refuses(acquire{"key", "b", 0, b.lasting, {}}, errc::invalid_limit);
  b.refuses(acquire{"key", "b", limits::permits + 1, b.lasting, {}}, errc::invalid_limit);
  b.refuses(acquire{"key", "b", 1, b.lasting, duration{-1}}, errc::invalid_wait);
  b.refuses(acquire{"key", "b", 1, b.lasting, duration::max()}, errc::invalid_wait);
  b.refuses(command::inspect_permits{"key", limits::batch + 1}, errc::invalid_batch);
  expect_permit(b, "key", "a", grant.fence);
  auto const census = b.must(command::inspect_permits{"key", 0});
  expect(census.in_use == 1 && census.waiting == 0, "bad input changes nothing");
  take_permit(b, "widest", "a", limits::permits, b.lasting);
}

inline void permit_leftovers_make_room(permit_bench& b) {
  b.need(static_cast<bool>(b.from().make_bounded), "the driver makes no bounded store");
  constexpr std::size_t room = 8;
  permit_bench small{b.from(), b.source(), b.settings(), room};
  auto const fill = [&](std::string const& prefix) {
    std::size_t n = 0;
    for (; n <= room; ++n) {
      std::string const key = prefix + std::to_string(n / 2);
      std::string const holder = std::to_string(n);
      auto const answer =
          small.ask(command::acquire_permit{key, holder, 1, small.brief(), small.brief()});
      if (answer.has_error()) {
        expect(answer.error() == errc::store_full, "a full store says store_full");
        break;
      }
    }
    return n;
  };
  expect(fill("a") == room, "a store with room for 8 permits and tickets holds 8");
  small.pass(2 * small.brief());
  expect(fill("b") == room, "permits and tickets that are over make room for others");
}

/// Every promise about permits that one client can find broken.
inline constexpr check<permit_commands> permit_checks[] = {
    {"R1", "no more permits than the limit, and a census of them", &limit_holds},
    {"R1", "a release frees its own permit only", &release_frees_its_own},
    {"F1", "a late release frees no successor's permit", &late_owner_changes_nothing<permit_noun>},
    {"F3", "each permit ends by its own TTL", &each_permit_ends_by_its_own_ttl},
    {"F4", "a permit is over at its expiry, neither before nor after",
     &over_at_its_expiry<permit_noun>},
    {"F6", "a permit is renewed while it lives, and not after",
     &renewal_counts_from_now<permit_noun>},
    {"R5", "a permit is renewed by its holder only", &renew_needs_the_owner<permit_noun>},
    {"F7", "a second release raises no limit", &second_release_frees_nothing},
    {"F8", "the limit in the command decides, and lowering it revokes nothing",
     &limit_of_the_command_decides},
    {"F9", "the shortest permits are not cut to nothing", &short_leases_are_leases<permit_noun>},
    {"F10", "waiters are served in the order in which they came, and nobody overtakes",
     &line_is_kept},
    {"R1", "a ticket lapses unless its holder asks again", &tickets_lapse},
    {"R1", "a place in line is given up by asking without patience or by releasing",
     &places_are_given_up},
    {"F10", "retry_after is when the turn could come", &retry_after_is_not_too_early},
    {"F10", "a freed permit wakes the one who is next", &one_permit_wakes_one},
    {"R7", "waiting for a hint can be cancelled, and is harmless without a ticket",
     &waiting_can_be_cancelled},
    {"F11", "what is over makes room", &permit_leftovers_make_room},
    {"F27", "no key is taken for another", &keys_are_told_apart<permit_noun>},
    {"F45", "asking again gives the same permit", &asking_again_gives_the_same},
    {"F47", "fences grow across release and expiry", &fences_grow<permit_noun>},
    {"R5", "fences do not fall behind the store's time", &fences_follow_time<permit_noun>},
    {"F52", "time that runs backwards revives no permit",
     &time_backwards_revives_nothing<permit_noun>},
    {"R8", "bad input is a typed error and changes nothing", &bad_input_is_refused<permit_noun>},
    {"R8", "so is a bad limit, wait or batch", &bad_limits_are_refused},
    {"R7", "a handler is never called inline", &handlers_are_never_called_inline<permit_noun>},
};

}  // namespace weir::testing::conformance

#endif
