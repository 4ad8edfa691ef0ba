// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <string>
#include <vector>

// Claiming, holding and losing a job.

namespace {

using namespace test;

/// Every command that needs a live lease, with what a stale fence is told.
void check_lost(jobs_bed& b, leased_job const& l) {
  auto const before = b.require(number_of(l.id));
  BOOST_TEST(b.error(command::extend_lease{
                 .queue = b.queue, .id = l.id, .fence = l.fence, .lease = 1s}) == errc::lease_lost);
  BOOST_TEST(b.error(command::start_job{.queue = b.queue, .id = l.id, .fence = l.fence}) ==
             errc::lease_lost);
  BOOST_TEST(b.error(command::requeue_job{
                 .queue = b.queue, .id = l.id, .fence = l.fence, .delay = {}, .reason = {}}) ==
             errc::lease_lost);
  BOOST_TEST(b.error(command::snooze_job{
                 .queue = b.queue, .id = l.id, .fence = l.fence, .delay = {}, .memo = {}}) ==
             errc::lease_lost);
  BOOST_TEST(b.error(command::return_job{.queue = b.queue, .id = l.id, .fence = l.fence}) ==
             errc::lease_lost);
  BOOST_TEST(
      b.error(command::bury_job{.queue = b.queue, .id = l.id, .fence = l.fence, .reason = {}}) ==
      errc::lease_lost);
  BOOST_TEST((b.complete(l) == complete_outcome::lease_lost));
  auto const after = b.require(number_of(l.id));
  BOOST_TEST((after.state == before.state));
  BOOST_TEST(after.attempts == before.attempts);
  BOOST_TEST(after.fence == before.fence);
  BOOST_TEST(after.vests_in == before.vests_in);
  BOOST_TEST(after.reason == before.reason);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_leases)

BOOST_AUTO_TEST_CASE(F28_a_crashed_workers_job_is_visible_again) {
  jobs_bed b;
  b.enqueue(1);
  auto const l = b.claim(30s, "crashes");
  b.now += 30s - 1ns;
  BOOST_TEST(b.claim_all().empty(), "the lease lives until its expiry");
  BOOST_TEST(b.stats().leased == 1U);
  b.now += 1ns;
  BOOST_TEST(b.stats().leased == 0U);
  BOOST_TEST(b.stats().pending == 1U);
  BOOST_TEST((b.require(1).state == job_state::pending));
  BOOST_TEST(b.require(1).holder.empty());
  auto const next = b.claim(30s, "next");
  BOOST_TEST(next.attempt == 2U);
  BOOST_TEST(next.fence > l.fence);
  BOOST_TEST(b.require(1).holder == "next");
}

BOOST_AUTO_TEST_CASE(F29_an_extended_job_is_completed_and_gone) {
  jobs_bed b;
  b.enqueue(1);
  auto const l = b.claim(10s);
  for (int i = 0; i < 5; ++i) {
    b.now += 5s;
    b.extend(l, 10s);
  }
  BOOST_TEST(b.min_vesting() == std::optional<duration>{10s});
  BOOST_TEST((b.complete(l) == complete_outcome::completed));
  BOOST_TEST(!b.find(1).has_value());
  b.now += 1h;
  BOOST_TEST(b.claim_all().empty());
  BOOST_TEST(b.stats().completed == 1U);
}

BOOST_AUTO_TEST_CASE(F29_F30_an_extended_job_hides_no_other) {
  jobs_bed b;
  b.enqueue(1);
  b.enqueue(2);
  auto const got = b.dequeue(2, 10s).jobs;
  b.extend(got[0], 100s);
  BOOST_TEST(b.min_vesting() == std::optional<duration>{10s});
  b.now += 10s;
  BOOST_TEST(b.claim_all() == list{2});
  b.now += 90s;
  BOOST_TEST(b.claim_all() == (list{2, 1}), "each by the end of its lease");
}

BOOST_AUTO_TEST_CASE(F31_leases_add_no_pointers_and_drift_no_counters) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 50; ++n) b.enqueue(n);
  for (int round = 0; round < 10; ++round) {
    BOOST_TEST(b.dequeue(50, 5s).jobs.size() == 50U);
    BOOST_TEST(b.stats().leased == 50U);
    BOOST_TEST(b.stats().pending == 0U);
    BOOST_TEST(b.scan().queues.empty());
    b.now += 5s;
    BOOST_TEST(b.stats().leased == 0U);
    BOOST_TEST(b.stats().pending == 50U);
    BOOST_TEST(b.scan().queues.size() == 1U);
  }
  auto j = make_job(2000);
  j.delay = 1h;
  b.enqueue(j);
  BOOST_TEST(b.min_vesting() == std::optional<duration>{0s}, "however many jobs stand before it");
}

BOOST_AUTO_TEST_CASE(F34_nothing_overwrites_a_job_that_completed_meanwhile) {
  jobs_bed b;
  auto j = make_job(1);
  j.retention = 1h;
  b.enqueue(j);
  auto const crashed = b.claim(10s);
  b.now += 10s;
  auto const l = b.claim(10s);
  BOOST_TEST((b.complete(l, "done") == complete_outcome::completed));
  check_lost(b, crashed);
  BOOST_TEST((b.require(1).state == job_state::completed));
  BOOST_TEST(b.require(1).result == "done");
}

BOOST_AUTO_TEST_CASE(F34_age_alone_takes_no_job_from_a_live_holder) {
  jobs_bed b;
  b.enqueue(1);
  auto const l = b.claim(10s);
  for (int i = 0; i < 10'000; ++i) {
    b.now += 9s;
    b.extend(l, 10s);
  }
  BOOST_TEST(b.claim_all().empty());
  BOOST_TEST((b.complete(l) == complete_outcome::completed));
}

BOOST_AUTO_TEST_CASE(F35_R5_a_stale_holder_changes_nothing) {
  jobs_bed b;
  b.enqueue(1);
  auto const stale = b.claim(10s, "a");
  b.now += 10s;
  check_lost(b, stale);  // over, and nobody came
  auto const l = b.claim(10s, "a");
  check_lost(b, stale);  // the same holder's next lease
  BOOST_TEST((b.complete(l) == complete_outcome::completed));
  b.enqueue(1);
  b.claim(10s, "a");
  check_lost(b, l);  // a job of the same id
}

BOOST_AUTO_TEST_CASE(F35_R5_fences_grow_across_release_expiry_and_deletion) {
  jobs_bed b;
  std::uint64_t last = 0;
  auto const grows = [&](std::uint64_t fence) {
    BOOST_TEST(fence > last);
    last = fence;
  };
  b.enqueue(1);
  b.enqueue(2);
  for (auto const& l : b.dequeue(2, 1s).jobs) grows(l.fence);
  b.now += 1s;
  auto l = b.claim(1s);
  grows(l.fence);
  b.give_back(l);
  l = b.claim();
  grows(l.fence);
  b.complete(l);
  b.complete(b.claim());
  b.gc();
  b.enqueue(1);
  b.now -= 1h;  // F52: even if the clock steps back
  b.enqueue(9);
  l = b.claim();
  grows(l.fence);
  b.queue = "another of the shard";
  b.enqueue(1);
  grows(b.claim().fence);
  grows(b.get(command::obtain_queue_lease{.queue = "q", .holder = "h", .lease = 1s}).fence);
  b.now += 10h;
  b.enqueue(2);
  l = b.claim();
  grows(l.fence);
  auto const micros =
      std::chrono::floor<std::chrono::microseconds>(b.now).time_since_epoch().count();
  BOOST_TEST(l.fence >= static_cast<std::uint64_t>(micros));
}

BOOST_AUTO_TEST_CASE(F36_a_poison_job_is_counted_when_claimed_and_dead_lettered) {
  jobs_bed b;
  auto j = make_job(1);
  j.max_attempts = 3;
  b.enqueue(j);
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    BOOST_TEST(b.claim(10s).attempt == attempt);  // and its process dies
    b.now += 10s;
  }
  auto const got = b.dequeue();
  BOOST_TEST(got.jobs.empty());
  BOOST_TEST(got.dead_lettered == 1U);
  BOOST_TEST(!got.more);
  BOOST_TEST(!got.next_in.has_value());
  auto const dead = b.require(1);
  BOOST_TEST((dead.state == job_state::dead));
  BOOST_TEST(dead.attempts == 3U);
  BOOST_TEST(dead.reason == rule::reason_spent);
}

BOOST_AUTO_TEST_CASE(a_missed_deadline_is_dead_lettered_by_a_claim) {
  jobs_bed b;
  auto j = make_job(1);
  j.deadline = 5s;
  b.enqueue(j);
  j.id = id_of(2);
  b.enqueue(j);
  b.enqueue(3);
  b.now += 5s;
  BOOST_TEST(b.claim_all(1) == list{1}, "just in time");
  b.now += 1ns;
  auto const got = b.dequeue();
  BOOST_TEST(b.numbers(got.jobs) == list{3});
  BOOST_TEST(got.dead_lettered == 1U);
  BOOST_TEST(b.require(2).reason == rule::reason_missed);
  BOOST_TEST(b.require(2).attempts == 0U);
}

BOOST_AUTO_TEST_CASE(one_dequeue_buries_no_more_than_its_bound) {
  jobs_bed b;
  auto j = make_job(0);
  j.deadline = 1s;
  constexpr std::uint64_t n = rule::burials_per_dequeue + 5;
  for (std::uint64_t i = 1; i <= n; ++i) {
    j.id = id_of(i);
    b.enqueue(j);
  }
  j.id = id_of(n + 1);
  j.deadline = 0s;
  b.enqueue(j);
  b.now += 2s;
  auto const first = b.dequeue();
  BOOST_TEST(first.jobs.empty());
  BOOST_TEST(first.dead_lettered == rule::burials_per_dequeue);
  BOOST_TEST(first.more);
  auto const second = b.dequeue();
  BOOST_TEST(b.numbers(second.jobs) == list{n + 1});
  BOOST_TEST(second.dead_lettered == 5U);
}

BOOST_AUTO_TEST_CASE(a_lease_may_be_shortened) {
  jobs_bed b;
  b.enqueue(1);
  auto const l = b.claim(1h);
  b.extend(l, 1s);
  BOOST_TEST(b.min_vesting() == std::optional<duration>{1s});
  b.now += 1s;
  BOOST_TEST(b.scan().queues.size() == 1U, "the pointer must have followed");
  BOOST_TEST(b.claim_all() == list{1});
}

BOOST_AUTO_TEST_CASE(obtaining_a_lease_takes_that_job_and_no_other) {
  jobs_bed b;
  b.enqueue(1);
  b.enqueue(2);
  command::obtain_lease const two{.queue = "q", .id = id_of(2), .holder = "a", .lease = 10s};
  auto const l = b.get(two);
  BOOST_TEST_REQUIRE(l.has_value());
  BOOST_TEST(number_of(l->id) == 2U);
  BOOST_TEST(l->attempt == 1U);
  BOOST_TEST(l->expires_in == duration{10s});
  b.now += 3s;
  auto const again = b.get(two);
  BOOST_TEST_REQUIRE(again.has_value());
  BOOST_TEST(again->fence == l->fence);
  BOOST_TEST(again->attempt == 1U);
  BOOST_TEST(again->expires_in == duration{7s}, "the same lease, not a new one");
  BOOST_TEST(
      !b.get(command::obtain_lease{.queue = "q", .id = id_of(2), .holder = "b", .lease = 10s})
           .has_value());
  BOOST_TEST(
      !b.get(command::obtain_lease{.queue = "q", .id = id_of(3), .holder = "a", .lease = 10s})
           .has_value());
  BOOST_TEST((b.complete(*l) == complete_outcome::completed));
  BOOST_TEST(!b.get(two).has_value());
  BOOST_TEST(b.claim_all() == list{1});
}

BOOST_AUTO_TEST_CASE(obtaining_a_spent_job_buries_it) {
  jobs_bed b;
  auto j = make_job(1);
  j.max_attempts = 1;
  b.enqueue(j);
  b.claim(1s);
  b.now += 1s;
  BOOST_TEST(!b.get(command::obtain_lease{.queue = "q", .id = id_of(1), .holder = "a", .lease = 1s})
                  .has_value());
  BOOST_TEST((b.require(1).state == job_state::dead));
}

BOOST_AUTO_TEST_CASE(F33_a_snooze_is_no_failure) {
  jobs_bed b;
  auto j = make_job(1);
  j.max_attempts = 1;
  b.enqueue(j);
  for (std::uint32_t i = 1; i <= 100; ++i) {
    auto const l = b.claim();
    BOOST_TEST(l.attempt == 1U);
    BOOST_TEST(l.snoozes == i - 1);
    BOOST_TEST(l.memo == (i == 1 ? "" : "note " + std::to_string(i - 1)));
    b.snooze(l, 5s, "note " + std::to_string(i));
    BOOST_TEST(b.claim_all().empty());
    b.now += 5s;
  }
  BOOST_TEST(b.require(1).snoozes == 100U);
  BOOST_TEST(b.require(1).attempts == 0U);
}

BOOST_AUTO_TEST_CASE(a_returned_job_is_as_if_it_had_not_been_claimed) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 3; ++n) {
    b.enqueue(n);
    b.now += 1s;
  }
  auto l = b.claim();
  b.snooze(l, 0s, "memo");  // vests now: behind the others
  auto const all = b.dequeue(3);
  BOOST_TEST(b.numbers(all.jobs) == (list{2, 3, 1}));
  b.now += 10s;
  for (auto const& j : all.jobs) b.give_back(j);
  BOOST_TEST(b.stats().pending == 3U);
  BOOST_TEST(b.require(1).attempts == 0U);
  BOOST_TEST(b.require(1).snoozes == 1U);
  BOOST_TEST(b.require(1).memo == "memo");
  BOOST_TEST(b.claim_all() == (list{2, 3, 1}), "in the same order");
}

BOOST_AUTO_TEST_CASE(a_job_returned_after_a_crash_vests_when_that_lease_ended) {
  jobs_bed b;
  b.enqueue(1);
  b.claim(10s);
  b.now += 5s;
  b.enqueue(2);
  b.now += 10s;
  BOOST_TEST(b.claim_all(1) == list{2});
  b.give_back(b.claim());
  BOOST_TEST(b.require(1).attempts == 1U, "the crash counts");
  BOOST_TEST(b.require(1).vests_in == duration{-5s});
}

BOOST_AUTO_TEST_CASE(a_failed_attempt_vests_after_its_delay_with_its_reason) {
  jobs_bed b;
  auto j = make_job(1);
  j.max_attempts = 2;
  b.enqueue(j);
  BOOST_TEST((b.requeue(b.claim(), 7s, "no route") == requeue_outcome::requeued));
  BOOST_TEST(b.require(1).reason == "no route");
  BOOST_TEST(b.require(1).vests_in == duration{7s});
  b.now += 7s;
  BOOST_TEST((b.requeue(b.claim(), 7s, "still none") == requeue_outcome::dead_lettered));
  BOOST_TEST(b.require(1).reason == "still none");
  BOOST_TEST((b.require(1).state == job_state::dead));
}

BOOST_AUTO_TEST_CASE(completing_again_is_completed_while_the_record_stands) {
  jobs_bed b;
  auto j = make_job(1);
  j.retention = 60s;
  b.enqueue(j);
  b.enqueue(2);
  auto const got = b.dequeue(2).jobs;
  BOOST_TEST((b.complete(got[0], "first") == complete_outcome::completed));
  b.now += 59s;
  BOOST_TEST((b.complete(got[0], "second") == complete_outcome::completed));
  BOOST_TEST(b.require(1).result == "first");
  BOOST_TEST(b.require(1).fence == 0U);
  b.now += 1s;
  BOOST_TEST(!b.find(1).has_value());
  BOOST_TEST((b.complete(got[0]) == complete_outcome::lease_lost));
  BOOST_TEST(b.stats().completed == 1U, "counted after its record is gone");
}

BOOST_AUTO_TEST_CASE(a_batch_of_completions_has_an_outcome_for_each) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 3; ++n) b.enqueue(n);
  auto const got = b.dequeue(3).jobs;
  std::vector<finished_job> const done{{got[0].id, got[0].fence, {}},
                                       {got[1].id, got[0].fence, {}},
                                       {id_of(99), 1, {}},
                                       {got[2].id, got[2].fence, {}},
                                       {got[2].id, got[2].fence, {}}};
  auto const out = b.get(command::complete_jobs{.queue = "q", .jobs = done});
  using enum complete_outcome;
  std::array const expected{completed, lease_lost, lease_lost, completed, lease_lost};
  BOOST_TEST(std::equal(out.begin(), out.end(), expected.begin(), expected.end()));
  BOOST_TEST(b.stats().completed == 2U);
  BOOST_TEST(b.stats().leased == 1U);
}

BOOST_AUTO_TEST_CASE(F33_F51_refusals_and_returns_burn_no_attempts) {
  jobs_bed b;
  auto j = make_job(1);
  j.max_attempts = 1;
  b.enqueue(j);
  for (int i = 0; i < 50; ++i) b.give_back(b.claim());
  BOOST_TEST(b.require(1).attempts == 0U);
  BOOST_TEST(b.require(1).snoozes == 0U);
}

BOOST_AUTO_TEST_CASE(F52_a_clock_that_steps_back_gives_no_lease_twice) {
  jobs_bed b;
  b.enqueue(1);
  auto const l = b.claim(10s);
  b.now -= 1h;
  BOOST_TEST(b.claim_all().empty());
  b.extend(l, 10s);
  BOOST_TEST((b.complete(l) == complete_outcome::completed));
}

BOOST_AUTO_TEST_SUITE_END()
