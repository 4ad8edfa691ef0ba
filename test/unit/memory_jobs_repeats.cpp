// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"

#include <boost/test/unit_test.hpp>

// A dequeue whose reply was lost is asked again, by its number.

namespace {

using namespace test;

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_repeats)

BOOST_AUTO_TEST_CASE(F54_a_dequeue_asked_again_gives_the_same_leases) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 6; ++n) b.enqueue(n);
  auto const first = b.dequeue(3, 30s, "h", 1).jobs;
  b.now += 10s;
  auto again = b.dequeue(3, 30s, "h", 1);
  BOOST_TEST(b.numbers(again.jobs) == (list{1, 2, 3}));
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(again.jobs[i].fence == first[i].fence);
    BOOST_TEST(again.jobs[i].attempt == 1U);
    BOOST_TEST(again.jobs[i].expires_in == duration{20s});
  }
  BOOST_TEST(again.more);
  BOOST_TEST(b.numbers(b.dequeue(2, 30s, "other", 1).jobs) == (list{4, 5}),
             "numbers are each holder's own");
  b.complete(first[1]);
  BOOST_TEST(b.numbers(b.dequeue(3, 30s, "h", 1).jobs) == (list{1, 3}));
  BOOST_TEST(b.numbers(b.dequeue(3, 30s, "h", 2).jobs) == list{6});
  BOOST_TEST(b.numbers(b.dequeue(3, 30s, "h", 2).jobs) == list{6});
  b.now += 30s;
  BOOST_TEST(b.numbers(b.dequeue(2, 30s, "h", 2).jobs) == (list{1, 3}),
             "those leases are over: it is a new one");
  BOOST_TEST(b.require(1).attempts == 2U);
}

BOOST_AUTO_TEST_CASE(F54_leases_that_moved_on_are_not_given_again) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 3; ++n) b.enqueue(n);
  auto const first = b.dequeue(3, 10s, "h", 1).jobs;
  b.extend(first[2], 100s);
  b.now += 10s;
  BOOST_TEST(b.claim_all(1) == list{1});  // by the same holder, unnumbered
  BOOST_TEST(b.numbers(b.dequeue(3, 10s, "h", 1).jobs) == list{3});
}

BOOST_AUTO_TEST_CASE(F54_of_many_leases_those_that_live_are_given_again) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 100; ++n) b.enqueue(n);
  auto const all = b.dequeue(100, 30s, "h", 1).jobs;
  list left;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 20 == 7) {
      left.push_back(number_of(all[i].id));
    } else {
      b.complete(all[i]);
    }
  }
  BOOST_TEST(b.numbers(b.dequeue(100, 30s, "h", 1).jobs) == left);
}

BOOST_AUTO_TEST_CASE(F54_an_unnumbered_dequeue_is_always_another) {
  jobs_bed b;
  b.enqueue(1);
  b.enqueue(2);
  BOOST_TEST(b.numbers(b.dequeue(1, 30s, "h", 0).jobs) == list{1});
  BOOST_TEST(b.numbers(b.dequeue(1, 30s, "h", 0).jobs) == list{2});
}

BOOST_AUTO_TEST_CASE(a_holder_whose_last_lease_is_buried_by_its_own_dequeue_goes_on) {
  jobs_bed b;
  auto j = make_job(1);
  j.max_attempts = 1;
  b.enqueue(j);
  BOOST_TEST(b.dequeue(1, 1s, "h", 1).jobs.size() == 1U);
  b.now += 1s;
  b.enqueue(2);
  b.enqueue(3);
  auto const got = b.dequeue(5, 1s, "h", 2);
  BOOST_TEST(b.numbers(got.jobs) == (list{2, 3}));
  BOOST_TEST(got.dead_lettered == 1U);
  BOOST_TEST(b.numbers(b.dequeue(5, 1s, "h", 2).jobs) == (list{2, 3}));
}

BOOST_AUTO_TEST_CASE(a_holder_outlives_the_burials_of_its_own_dequeue) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 2; ++n) {
    auto j = make_job(n);
    j.max_attempts = 1;
    b.enqueue(j);
  }
  b.dequeue(1, 1s, "first");
  b.dequeue(1, 1s, "second");
  b.now += 1s;
  b.enqueue(3);
  auto const got = b.dequeue(5, 1s, "first");
  BOOST_TEST(got.dead_lettered == 2U);
  BOOST_TEST(b.numbers(got.jobs) == list{3});
  BOOST_TEST(b.require(3).holder == "first");
}

BOOST_AUTO_TEST_SUITE_END()
