// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/limits.hpp"
#include "weir/store/nats/answer_room.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using weir::detail::nats_answer_room;

constexpr std::size_t large = weir::limits::answer_bytes;
constexpr std::size_t small = 1U << 20U;

/// The parts of a store, each of which has what comes for it.
struct parts {
  explicit parts(std::uint32_t shards) : room{shards}, coming(shards) {}

  bool ask(std::size_t part, std::size_t answer, std::string_view owner = "owner") {
    if (!room.has(answer, &coming[part], coming[part], owner)) return false;
    room.expect(owner, answer);
    coming[part] += answer;
    return true;
  }
  void came(std::size_t part, std::size_t answer, std::string_view owner = "owner") {
    coming[part] -= answer;
    room.came(owner, answer);
  }

  nats_answer_room room;
  std::vector<std::size_t> coming;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_answer_rooms)

BOOST_AUTO_TEST_CASE(F60_what_comes_is_bounded_for_all_and_for_each_part) {
  parts few{4};
  std::size_t asked = 0;
  while (few.ask(0, large)) ++asked;
  BOOST_TEST(asked * large <= nats_answer_room::most / 4);
  BOOST_TEST(asked > 1U);
  BOOST_TEST(few.ask(1, large));
  parts many{64};
  asked = 0;
  for (std::size_t part = 0; part != 64; ++part) asked += many.ask(part, large) ? 1 : 0;
  BOOST_TEST(asked * large <= nats_answer_room::most);
  BOOST_TEST(asked > 10U);
}

BOOST_AUTO_TEST_CASE(F60_one_answer_may_come_in_any_case) {
  parts p{1024};
  BOOST_TEST(p.ask(0, 2 * nats_answer_room::most));
  BOOST_TEST(!p.ask(1, 1));
  p.came(0, 2 * nats_answer_room::most);
  BOOST_TEST(p.ask(1, 1));
}

BOOST_AUTO_TEST_CASE(F60_smaller_answers_do_not_pass_a_large_one_for_ever) {
  parts p{64};
  std::size_t last = 0;
  while (p.ask(last, small)) ++last;
  constexpr std::size_t waits = 63;
  BOOST_TEST(!p.ask(last, small));  // it is the first one that waits
  BOOST_TEST(!p.ask(waits, large));
  p.came(0, small);
  BOOST_TEST(!p.ask(waits, large));
  BOOST_TEST(!p.ask(1, small));
  BOOST_TEST(p.ask(last, small));
  for (std::size_t part = 1; part != 5; ++part) {
    BOOST_TEST(!p.ask(waits, large));
    BOOST_TEST(!p.ask(0, small));
    p.came(part, small);
  }
  BOOST_TEST(p.ask(waits, large));
  BOOST_TEST(!p.ask(0, small));
}

BOOST_AUTO_TEST_CASE(F60_smaller_answers_of_other_owners_do_not_pass_a_large_one_for_ever) {
  std::vector<std::string> owners;
  for (int i = 0; i != 64; ++i) owners.push_back(std::to_string(i));
  parts p{64};
  constexpr std::size_t waits = 63;
  for (std::size_t part = 0; part != nats_answer_room::most / small; ++part) {
    BOOST_TEST(p.ask(part, small, owners[part]));
  }
  for (std::size_t part = 0; part != 4; ++part) {
    BOOST_TEST(!p.ask(waits, large, owners[waits]));
    p.came(part, small, owners[part]);
    BOOST_TEST(!p.ask(part, small, owners[part]));
  }
  BOOST_TEST(p.ask(waits, large, owners[waits]));
}

BOOST_AUTO_TEST_CASE(F60_a_part_that_waits_no_more_is_in_nobodys_way) {
  parts p{64};
  std::size_t last = 0;
  while (p.ask(last, small)) ++last;
  BOOST_TEST(!p.ask(last, large));
  p.came(0, small);
  BOOST_TEST(!p.ask(0, small));
  p.room.wants_none(&p.coming[last]);
  BOOST_TEST(p.ask(0, small));
}

BOOST_AUTO_TEST_CASE(F60_an_owner_that_is_mute_does_not_hold_up_those_who_answer) {
  parts p{64};
  std::size_t last = 0;
  while (p.ask(last, large, "mute")) ++last;
  BOOST_TEST(!p.ask(last + 1, large, "mute"));
  for (int i = 0; i != 3; ++i) {
    BOOST_TEST(p.ask(60, large, "one"));
    BOOST_TEST(!p.ask(61, large, "one"));
    BOOST_TEST(p.ask(62, large, "other"));
    p.came(60, large, "one");
    p.came(62, large, "other");
  }
}

BOOST_AUTO_TEST_CASE(F60_the_end_of_a_turn_is_told_to_who_waits_behind_it) {
  parts p{64};
  std::size_t last = 0;
  while (p.ask(last, large, "mute")) ++last;
  p.room.wants_none(&p.coming[last]);
  BOOST_TEST(p.ask(60, large, "one"));
  BOOST_TEST(!p.ask(61, large, "one"));
  p.came(60, large, "one");
  BOOST_TEST(!p.ask(62, large, "one"));
  int told = 0;
  p.room.wait([&] { ++told; });
  p.room.wants_none(&p.coming[62]);
  BOOST_TEST(told == 0);
  p.room.wants_none(&p.coming[61]);
  BOOST_TEST(told == 1);
  BOOST_TEST(p.ask(62, large, "one"));
}

BOOST_AUTO_TEST_CASE(F60_a_part_that_has_got_room_leaves_some_to_who_waits_behind_it) {
  parts p{64};
  std::size_t last = 0;
  while (p.ask(last, small)) ++last;
  BOOST_TEST(!p.ask(last, 2 * small));
  p.came(0, small);
  p.came(1, small);
  p.came(2, small);
  BOOST_TEST(!p.ask(0, small));
  int told = 0;
  p.room.wait([&] { ++told; });
  BOOST_TEST(p.ask(last, 2 * small));
  BOOST_TEST(told == 1);
  BOOST_TEST(p.ask(0, small));
}

BOOST_AUTO_TEST_CASE(F60_a_part_that_wants_more_than_its_share_is_in_nobodys_way) {
  parts p{4};
  for (std::size_t part = 1; part != 4; ++part) {
    for (int i = 0; i != 14; ++i) BOOST_TEST(p.ask(part, small));
  }
  while (p.ask(0, small)) {
  }
  BOOST_TEST(!p.ask(0, small));
  p.came(1, small);
  BOOST_TEST(!p.ask(2, small));
  int told = 0;
  p.room.wait([&] { ++told; });
  BOOST_TEST(!p.ask(0, 2 * large));  // since nobody waits any more for the one before it
  BOOST_TEST(told == 1);
  BOOST_TEST(p.ask(2, small));
}

BOOST_AUTO_TEST_CASE(who_waits_is_told_once_that_there_is_room) {
  parts p{1};
  int told = 0;
  BOOST_TEST(p.ask(0, small));
  p.room.wait([&] { ++told; });
  p.came(0, 0);
  BOOST_TEST(told == 0);
  p.came(0, small);
  BOOST_TEST(told == 1);
}

BOOST_AUTO_TEST_SUITE_END()
