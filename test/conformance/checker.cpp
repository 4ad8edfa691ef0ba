// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/testing/conformance/buckets/concurrent.hpp"
#include "weir/testing/conformance/jobs/objects.hpp"
#include "weir/testing/conformance/locks/concurrent.hpp"
#include "weir/testing/conformance/permits/concurrent.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/linearizability.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

// The checker of concurrent histories must reject histories that no store can have, and accept
// those that one can.

namespace {

using namespace weir::testing;
using lock = lock_event;
using permit = permit_event;
using bucket = bucket_event;

constexpr auto never = recorded<lock_event>::never;

template <class Model>
bool legal(std::vector<recorded<typename Model::event>> const& history) {
  auto const found = find_order<Model>(history);
  BOOST_TEST(found.decided);
  return found.exists;
}

lock acquired(std::uint32_t holder, std::uint64_t fence) {
  return {.what = lock::kind::acquire, .holder = holder, .yes = true, .number = fence};
}
lock refused(std::uint32_t holder, std::uint32_t who) {
  return {.what = lock::kind::acquire, .holder = holder, .who = who};
}
lock released(std::uint32_t holder, std::uint64_t fence, bool freed) {
  return {.what = lock::kind::release, .holder = holder, .fence = fence, .yes = freed};
}
lock renewed(std::uint32_t holder, std::uint64_t fence, bool yes) {
  return {.what = lock::kind::renew, .holder = holder, .fence = fence, .yes = yes};
}
lock inspected(std::uint32_t who, std::uint64_t fence) {
  return {.what = lock::kind::inspect, .yes = who != 0, .who = who, .number = fence};
}

BOOST_AUTO_TEST_SUITE(checker)

BOOST_AUTO_TEST_CASE(an_empty_history_is_legal) { BOOST_TEST(legal<lock_object>({})); }

BOOST_AUTO_TEST_CASE(accepts_locks_taken_in_turn) {
  BOOST_TEST(legal<lock_object>({{acquired(1, 5), 1, 2},
                                 {refused(2, 1), 3, 4},
                                 {released(1, 5, true), 5, 6},
                                 {acquired(2, 9), 7, 8},
                                 {inspected(2, 9), 9, 10}}));
}

BOOST_AUTO_TEST_CASE(rejects_two_holders) {
  BOOST_TEST(!legal<lock_object>({{acquired(1, 5), 1, 2}, {acquired(2, 6), 3, 4}}));
}

BOOST_AUTO_TEST_CASE(accepts_two_grants_that_overlap_a_release_in_any_order) {
  // By its answers the release came between the grants, though it was asked last.
  BOOST_TEST(legal<lock_object>(
      {{acquired(1, 5), 1, 20}, {acquired(2, 6), 2, 21}, {released(1, 0, true), 3, 22}}));
  // Not so if it was asked after both were answered.
  BOOST_TEST(!legal<lock_object>(
      {{acquired(1, 5), 1, 20}, {acquired(2, 6), 2, 21}, {released(1, 0, true), 30, 31}}));
}

BOOST_AUTO_TEST_CASE(rejects_a_refusal_by_a_free_lock) {
  BOOST_TEST(!legal<lock_object>(
      {{acquired(1, 5), 1, 2}, {released(1, 5, true), 3, 4}, {refused(2, 1), 5, 6}}));
}

BOOST_AUTO_TEST_CASE(rejects_fences_that_do_not_grow) {
  BOOST_TEST(!legal<lock_object>(
      {{acquired(1, 5), 1, 2}, {released(1, 5, true), 3, 4}, {acquired(2, 5), 5, 6}}));
  BOOST_TEST(!legal<lock_object>({{acquired(1, 5), 1, 2}, {acquired(1, 6), 3, 4}}));
}

BOOST_AUTO_TEST_CASE(F13_rejects_a_release_by_a_stranger) {
  BOOST_TEST(!legal<lock_object>({{acquired(1, 5), 1, 2}, {released(2, 5, true), 3, 4}}));
  BOOST_TEST(!legal<lock_object>({{acquired(1, 5), 1, 2}, {released(1, 4, true), 3, 4}}));
  BOOST_TEST(legal<lock_object>(
      {{acquired(1, 5), 1, 2}, {released(2, 5, false), 3, 4}, {renewed(1, 5, true), 5, 6}}));
}

BOOST_AUTO_TEST_CASE(rejects_a_renewal_of_a_lost_lease) {
  BOOST_TEST(!legal<lock_object>(
      {{acquired(1, 5), 1, 2}, {released(1, 5, true), 3, 4}, {renewed(1, 5, true), 5, 6}}));
}

BOOST_AUTO_TEST_CASE(an_operation_without_an_answer_may_have_happened_or_not) {
  // The release of unknown outcome explains the second grant,
  BOOST_TEST(legal<lock_object>(
      {{acquired(1, 5), 1, 2}, {released(1, 5, false), 3, never}, {acquired(2, 6), 7, 8}}));
  // or it did not happen;
  BOOST_TEST(legal<lock_object>(
      {{acquired(1, 5), 1, 2}, {released(1, 5, false), 3, never}, {refused(2, 1), 7, 8}}));
  // but not first one, and then the other.
  BOOST_TEST(!legal<lock_object>({{acquired(1, 5), 1, 2},
                                  {released(1, 5, false), 3, never},
                                  {acquired(2, 6), 7, 8},
                                  {released(2, 6, true), 9, 10},
                                  {inspected(1, 5), 11, 12}}));
  // It cannot have happened before it was asked for.
  BOOST_TEST(!legal<lock_object>(
      {{acquired(1, 5), 1, 2}, {acquired(2, 6), 3, 4}, {released(1, 5, false), 5, never}}));
  // A grant whose answer never came is seen by others.
  BOOST_TEST(legal<lock_object>(
      {{acquired(1, 0), 1, never}, {refused(2, 1), 2, 3}, {inspected(1, 7), 4, 5}}));
}

BOOST_AUTO_TEST_CASE(R1_rejects_more_permits_than_the_limit) {
  auto const granted = [](std::uint32_t holder, std::uint64_t fence, std::uint32_t in_use) {
    return permit{.what = permit::kind::acquire,
                  .holder = holder,
                  .limit = 2,
                  .yes = true,
                  .in_use = in_use,
                  .number = fence};
  };
  BOOST_TEST(legal<permit_object>({{granted(1, 5, 1), 1, 2}, {granted(2, 6, 2), 3, 4}}));
  BOOST_TEST(!legal<permit_object>(
      {{granted(1, 5, 1), 1, 2}, {granted(2, 6, 2), 3, 4}, {granted(3, 7, 3), 5, 6}}));
  BOOST_TEST(!legal<permit_object>(
      {{granted(1, 5, 1), 1, 9}, {granted(2, 6, 2), 1, 9}, {granted(3, 7, 2), 1, 9}}));
}

BOOST_AUTO_TEST_CASE(R1_rejects_a_census_of_two_moments) {
  permit const taken{.what = permit::kind::acquire,
                     .holder = 1,
                     .limit = 1,
                     .yes = true,
                     .in_use = 1,
                     .number = 5};
  permit const freed{.what = permit::kind::release, .holder = 1, .fence = 5, .yes = true};
  auto const census = [&](std::uint32_t in_use, std::uint64_t fence) {
    permit looked{.in_use = in_use};
    looked.listed[1] = fence;
    return legal<permit_object>({{taken, 1, 2}, {freed, 3, 6}, {looked, 4, 5}});
  };
  BOOST_TEST(census(1, 5));
  BOOST_TEST(census(0, 0));
  BOOST_TEST(!census(1, 0));
  BOOST_TEST(!census(0, 5));
  BOOST_TEST(!census(1, 6));
}

BOOST_AUTO_TEST_CASE(F10_rejects_overtaking) {
  auto const ask = [](std::uint32_t holder, bool yes, std::uint64_t fence, std::uint32_t place,
                      bool patient) {
    return permit{.what = permit::kind::acquire,
                  .holder = holder,
                  .limit = 1,
                  .patient = patient,
                  .yes = yes,
                  .in_use = 1,
                  .place = place,
                  .number = fence};
  };
  permit const freed{.what = permit::kind::release, .holder = 1, .fence = 5, .yes = true};
  BOOST_TEST(legal<permit_object>({{ask(1, true, 5, 0, false), 1, 2},
                                   {ask(2, false, 0, 1, true), 3, 4},
                                   {freed, 5, 6},
                                   {ask(2, true, 6, 0, true), 7, 8}}));
  BOOST_TEST(!legal<permit_object>({{ask(1, true, 5, 0, false), 1, 2},
                                    {ask(2, false, 0, 1, true), 3, 4},
                                    {freed, 5, 6},
                                    {ask(3, true, 6, 0, false), 7, 8}}));
  BOOST_TEST(!legal<permit_object>({{ask(1, true, 5, 0, false), 1, 2},
                                    {ask(2, false, 0, 1, true), 3, 4},
                                    {ask(3, false, 0, 1, true), 5, 6}}));
}

BOOST_AUTO_TEST_CASE(F19_rejects_tokens_that_were_taken_twice) {
  auto const taken = [](std::uint64_t grant, std::uint64_t left) {
    return bucket{.what = bucket::kind::take, .cost = 1, .grant = grant, .yes = true, .left = left};
  };
  BOOST_TEST(legal<bucket_object>({{taken(1, 58), 1, 10}, {taken(2, 57), 2, 9}}));
  BOOST_TEST(legal<bucket_object>({{taken(1, 57), 1, 10}, {taken(2, 58), 2, 9}}));
  BOOST_TEST(!legal<bucket_object>({{taken(1, 58), 1, 10}, {taken(2, 58), 2, 9}}));
}

BOOST_AUTO_TEST_CASE(F23_rejects_a_refund_from_the_middle) {
  auto const taken = [](std::uint64_t grant, std::uint64_t left) {
    return bucket{.what = bucket::kind::take, .cost = 1, .grant = grant, .yes = true, .left = left};
  };
  auto const refunded = [](std::uint64_t grant, std::uint64_t credited) {
    return bucket{.what = bucket::kind::refund, .cost = 1, .grant = grant, .left = credited};
  };
  BOOST_TEST(legal<bucket_object>({{taken(1, 58), 1, 2},
                                   {taken(2, 57), 3, 4},
                                   {refunded(1, 0), 5, 6},
                                   {refunded(2, 1), 7, 8}}));
  BOOST_TEST(
      !legal<bucket_object>({{taken(1, 58), 1, 2}, {taken(2, 57), 3, 4}, {refunded(1, 1), 5, 6}}));
  BOOST_TEST(!legal<bucket_object>(
      {{taken(1, 58), 1, 2}, {refunded(1, 1), 3, 4}, {refunded(1, 1), 5, 6}}));
}

BOOST_AUTO_TEST_CASE(R4_rejects_a_job_that_is_leased_twice) {
  using kind = job_event::kind;
  job_event const added{.what = kind::enqueue, .done = true};
  auto const leased = [](std::uint64_t fence, std::uint32_t attempt) {
    return job_event{.what = kind::lease, .fence = fence, .done = true, .attempts = attempt};
  };
  auto const with = [](kind what, std::uint64_t fence, bool done) {
    return job_event{.what = what, .fence = fence, .done = done};
  };
  BOOST_TEST(legal<job_object>({{added, 1, 2},
                                {leased(5, 1), 3, 4},
                                {with(kind::requeue, 5, true), 5, 6},
                                {leased(6, 2), 7, 8}}));
  BOOST_TEST(!legal<job_object>({{added, 1, 2}, {leased(5, 1), 3, 4}, {leased(6, 2), 5, 6}}));
  BOOST_TEST(!legal<job_object>({{leased(5, 1), 3, 4}, {added, 5, 6}}));
  // An attempt was not counted, or not given back.
  BOOST_TEST(!legal<job_object>({{added, 1, 2},
                                 {leased(5, 1), 3, 4},
                                 {with(kind::requeue, 5, true), 5, 6},
                                 {leased(6, 1), 7, 8}}));
  BOOST_TEST(!legal<job_object>({{added, 1, 2},
                                 {leased(5, 1), 3, 4},
                                 {with(kind::snooze, 5, true), 5, 6},
                                 {leased(6, 2), 7, 8}}));
  // F49: a stale acknowledgement.
  BOOST_TEST(!legal<job_object>({{added, 1, 2},
                                 {leased(5, 1), 3, 4},
                                 {with(kind::requeue, 5, true), 5, 6},
                                 {leased(6, 2), 7, 8},
                                 {with(kind::complete, 5, true), 9, 10}}));
  // It ends once.
  BOOST_TEST(!legal<job_object>({{added, 1, 2},
                                 {leased(5, 1), 3, 4},
                                 {with(kind::complete, 5, true), 5, 6},
                                 {with(kind::bury, 5, true), 7, 8}}));
  // It is lost.
  BOOST_TEST(!legal<job_object>({{added, 1, 2}, {with(kind::find, 0, false), 3, 4}}));
}

BOOST_AUTO_TEST_CASE(R2_rejects_two_jobs_with_one_key) {
  auto const enqueue = [](std::uint32_t job, weir::enqueue_outcome outcome, std::uint32_t other) {
    return key_event{key_event::kind::enqueue, job, outcome, other};
  };
  using weir::enqueue_outcome;
  key_event const end{key_event::kind::end, 1, {}, 0};
  BOOST_TEST(legal<key_object>({{enqueue(1, enqueue_outcome::enqueued, 0), 1, 2},
                                {enqueue(2, enqueue_outcome::duplicate, 1), 3, 4},
                                {end, 5, 6},
                                {enqueue(3, enqueue_outcome::enqueued, 0), 7, 8}}));
  BOOST_TEST(!legal<key_object>({{enqueue(1, enqueue_outcome::enqueued, 0), 1, 5},
                                 {enqueue(2, enqueue_outcome::enqueued, 0), 1, 5}}));
  // F14: the key outlives its job.
  BOOST_TEST(!legal<key_object>({{enqueue(1, enqueue_outcome::enqueued, 0), 1, 2},
                                 {end, 3, 4},
                                 {enqueue(2, enqueue_outcome::duplicate, 1), 5, 6}}));
}

BOOST_AUTO_TEST_CASE(agrees_with_trying_every_order_on_generated_histories) {
  // Small random histories, most of them illegal, judged by brute force as well.
  int legal_ones = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    dice d{seed};
    std::vector<recorded<lock_event>> history;
    for (std::size_t n = 2 + d.below(4); n > 0; --n) {
      auto const holder = static_cast<std::uint32_t>(1 + d.below(2));
      auto const start = 1 + d.below(12);
      recorded<lock_event> r{d.chance(50) ? acquired(holder, 1 + d.below(3))
                                          : released(holder, d.below(3), d.chance(60)),
                             start, start + 1 + d.below(8)};
      if (d.chance(10)) r.returned = never;
      history.push_back(r);
    }
    std::vector<std::size_t> order(history.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    bool any = false;
    do {
      // Operations without an answer may be left out: each prefix that has all the others will do.
      for (std::size_t length = 0; length <= order.size() && !any; ++length) {
        lock_object::state s;
        bool ok = true;
        for (std::size_t i = 0; i < order.size() && ok; ++i) {
          auto const& r = history[order[i]];
          bool const answered = r.returned != never;
          if (i >= length) {
            ok = !answered;
            continue;
          }
          for (std::size_t j = 0; j < history.size() && ok; ++j) {
            bool const later =
                std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i), j) ==
                order.begin() + static_cast<std::ptrdiff_t>(i);
            ok = !later || j == order[i] || history[j].returned > r.invoked;
          }
          ok = ok && lock_object::apply(s, r.event, answered);
        }
        any = any || ok;
      }
    } while (!any && std::next_permutation(order.begin(), order.end()));
    legal_ones += any ? 1 : 0;
    BOOST_TEST(legal<lock_object>(history) == any, "seed " << seed);
  }
  BOOST_TEST(legal_ones > 100);
  BOOST_TEST(legal_ones < 2900);
}

BOOST_AUTO_TEST_CASE(refuses_a_history_that_nobody_can_have_seen) {
  for (std::uint64_t const returned : {2U, 3U}) {
    std::vector<recorded<lock_event>> const history{{inspected(0, 0), 1, 2},
                                                    {acquired(1, 5), 3, returned}};
    BOOST_CHECK_THROW((void)find_order<lock_object>(history), std::invalid_argument);
  }
}

BOOST_AUTO_TEST_CASE(gives_up_where_it_was_told_to) {
  std::vector<recorded<lock_event>> history;
  for (std::uint64_t i = 0; i < 12; ++i)
    history.push_back({acquired(static_cast<std::uint32_t>(1 + i % 9), 100 - i), 1, 100});
  auto const found = find_order<lock_object>(history, {}, 3);
  BOOST_TEST(!found.exists);
  BOOST_TEST(!found.decided);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
