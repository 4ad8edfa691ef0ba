// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/redis/room.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <deque>

namespace {

using weir::detail::redis_room;
using weir::detail::redis_room_queue;

struct request {
  std::size_t size;

  [[nodiscard]] std::size_t bytes() const noexcept { return size; }
};

constexpr request small{redis_room::small};
constexpr request large{redis_room::most / 4};

/// A connection, and what is under way on it.
struct fixture {
  void send_all() {
    while (auto const next = queue.next(room)) {
      room.take((*next)->bytes());
      under_way.push_back(*next);
      ++((*next)->bytes() == small.size ? small_ones : large_ones);
    }
  }
  void add(request const& r) {
    queue.push(&r);
    send_all();
  }
  void answer() {
    room.give_back(under_way.front()->bytes());
    under_way.pop_front();
    send_all();
  }

  redis_room room{};
  redis_room_queue<request const*> queue{};
  std::deque<request const*> under_way{};
  std::size_t small_ones = 0;
  std::size_t large_ones = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_room_queue_of_a_connection)

BOOST_AUTO_TEST_CASE(small_ones_that_never_end_do_not_keep_a_large_one_waiting) {
  fixture f;
  constexpr auto at_once = redis_room::most / small.size;
  for (std::size_t i = 0; i != at_once; ++i) f.add(small);
  f.add(large);
  BOOST_TEST(f.large_ones == 0U);
  // For each that is answered, another one comes.
  std::size_t answers = 0;
  for (; f.large_ones == 0 && answers != 10 * at_once; ++answers) {
    f.add(small);
    f.answer();
  }
  BOOST_TEST(f.large_ones == 1U);
  BOOST_TEST(answers <= 2 * at_once);
  BOOST_TEST(f.small_ones >= 2 * at_once);  // nor did it keep them waiting before
  while (!f.under_way.empty()) f.answer();
  BOOST_TEST(f.queue.empty());
  BOOST_TEST(f.small_ones == at_once + answers);
}

BOOST_AUTO_TEST_CASE(small_ones_that_wait_go_past_a_large_one_that_has_no_room) {
  fixture f;
  for (int i = 0; i != 5; ++i) f.add(large);
  BOOST_TEST(f.large_ones == 4U);
  for (std::size_t i = 0; i != 100; ++i) f.add(small);
  BOOST_TEST(f.small_ones == 100U);
  // All the room that small ones have.
  while (f.room.has(small.size)) {
    f.room.take(small.size);
    f.under_way.push_front(&small);
  }
  f.add(small);
  BOOST_TEST(f.small_ones == 100U);
  f.answer();
  BOOST_TEST(f.small_ones == 101U);
  BOOST_TEST(f.large_ones == 4U);
}

BOOST_AUTO_TEST_CASE(what_waits_can_be_taken_back) {
  fixture f;
  for (int i = 0; i != 6; ++i) f.add(large);
  BOOST_TEST(f.queue.size() == 2U);
  BOOST_TEST(f.queue.take_all().size() == 2U);
  BOOST_TEST(f.queue.empty());
}

BOOST_AUTO_TEST_SUITE_END()
