// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Each allocation of a step fails in turn: no job is lost, and none is there that was refused.

#include "failing_allocations.hpp"
#include "jobs_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <new>
#include <string>
#include <vector>

namespace {

using namespace test;
using weir_test::allocations_left;

std::string const before(60, 'b');
std::string const after(60, 'a');

struct chain : jobs_bed {
  command::relay_job step{.queue = queue, .id = id_of(1), .expected = before};
  std::vector<std::string> keys;
  std::vector<new_job> next;

  void begin(new_job first) {
    first.payload = before;
    enqueue(first);
  }
  void goes_on_with(new_job j) {
    j.payload = after;
    next.push_back(j);
  }
};

/// `steps`: from one allocation that fails to the next one that does.
void R4_holds(std::function<void(chain&)> const& prepare, int steps = 1) {
  for (int n = 0;; n += steps) {
    chain c;
    prepare(c);
    c.step.next = c.next;
    bool failed = false;
    allocations_left = n;
    try {
      BOOST_TEST((c.jobs.apply(c.step, c.now)->outcome == relay_outcome::relayed));
    } catch (std::bad_alloc const&) {
      failed = true;
    }
    allocations_left = -1;
    c.check_sum(c.queue);
    if (failed) {
      BOOST_TEST_REQUIRE(c.require(1).payload == before, "lost at allocation " << n);
      BOOST_TEST((c.get(c.step).outcome == relay_outcome::relayed));  // and it still can be
    }
    for (auto const& j : c.next) {
      auto const there = c.find(number_of(j.id));
      BOOST_TEST_REQUIRE(there.has_value(), "gone after allocation " << n);
      BOOST_TEST(there->payload == after);
    }
    if (failed) continue;
    BOOST_TEST(n > 0);
    return;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_out_of_memory)

BOOST_AUTO_TEST_CASE(R4_a_job_that_relays_itself_stays) {
  R4_holds([](chain& c) {
    c.begin(make_job(1));
    auto next = make_job(1);
    next.priority = 7;
    next.headers = before;
    c.goes_on_with(next);
  });
}

BOOST_AUTO_TEST_CASE(R4_a_link_with_the_key_of_the_one_before_stays) {
  R4_holds([](chain& c) {
    c.begin(unique_job(1, unique_strategy::until_executed));
    c.goes_on_with(unique_job(2, unique_strategy::until_executed));
    c.goes_on_with(unique_job(3, unique_strategy::until_expired, conflict_policy::discard, after));
  });
}

BOOST_AUTO_TEST_CASE(R4_a_link_whose_key_a_missed_job_has_stays) {
  R4_holds([](chain& c) {
    c.begin(make_job(1));
    auto missed = unique_job(2, unique_strategy::until_executed);
    missed.deadline = 1s;
    c.enqueue(missed);
    c.now += 2s;
    c.goes_on_with(unique_job(3, unique_strategy::until_executed));
  });
}

BOOST_AUTO_TEST_CASE(R4_a_link_after_which_many_keys_come_stays) {
  constexpr std::uint64_t many = 1'500;  // so that the table of keys is sparse in between
  R4_holds(
      [](chain& c) {
        c.begin(unique_job(1, unique_strategy::until_executed));
        for (std::uint64_t i = 0; i != many; ++i) c.keys.push_back(std::to_string(i));
        for (std::uint64_t i = 0; i != many; ++i) {
          c.goes_on_with(unique_job(2 + i, unique_strategy::until_executed,
                                    conflict_policy::discard, c.keys[i]));
        }
      },
      97);
}

BOOST_AUTO_TEST_CASE(R4_a_batch_is_enqueued_or_is_not) {
  std::vector<new_job> batch{
      make_job(1), unique_job(2, unique_strategy::until_executed),
      unique_job(3, unique_strategy::until_expired, conflict_policy::discard, after)};
  batch[1].priority = 7;
  batch[2].headers = before;
  command::enqueue_jobs const all{.queue = "q", .jobs = batch};
  for (int n = 0;; ++n) {
    chain c;
    bool failed = false;
    allocations_left = n;
    try {
      (void)c.jobs.apply(all, c.now);
    } catch (std::bad_alloc const&) {
      failed = true;
    }
    allocations_left = -1;
    BOOST_TEST(c.stats().enqueued == (failed ? 0U : 3U));
    BOOST_TEST(c.get(all).size() == 3U);
    BOOST_TEST(c.stats().enqueued == 3U);
    if (failed) continue;
    BOOST_TEST(n > 0);
    return;
  }
}

BOOST_AUTO_TEST_CASE(of_two_with_an_id_the_one_is_added_whose_key_is_free) {
  jobs_bed b;
  b.enqueue(unique_job(1, unique_strategy::until_executed));
  std::vector<new_job> batch{unique_job(2, unique_strategy::until_executed), make_job(2)};
  batch[1].payload = after;
  b.get(command::enqueue_jobs{.queue = "q", .jobs = batch});
  BOOST_TEST(b.require(2).payload == after);
}

BOOST_AUTO_TEST_SUITE_END()
