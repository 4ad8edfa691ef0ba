// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

// How jobs end, what is kept of them, and how the dead come back.

namespace {

using namespace test;

void kill(jobs_bed& b, std::uint64_t n, std::string_view reason = "hopeless") {
  b.enqueue(n);
  auto const l =
      b.get(command::obtain_lease{.queue = b.queue, .id = id_of(n), .holder = "h", .lease = 1s});
  b.bury(l.value(), reason);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_dead_letters)

BOOST_AUTO_TEST_CASE(F40_dead_letters_are_listed_by_their_death_in_stable_pages) {
  jobs_bed b;
  for (auto const n : list{5, 3, 9, 1, 7}) kill(b, n);
  auto page = b.dead_letters(2);
  BOOST_TEST(b.numbers(page.jobs) == (list{5, 3}));
  BOOST_TEST(!page.cursor.empty());
  kill(b, 2);
  BOOST_TEST(b.purge(5));
  BOOST_TEST(b.purge(9));
  page = b.dead_letters(2, page.cursor);
  BOOST_TEST(b.numbers(page.jobs) == (list{1, 7}), "what went and came meanwhile shifts nothing");
  page = b.dead_letters(2, page.cursor);
  BOOST_TEST(b.numbers(page.jobs) == list{2});
  BOOST_TEST(page.cursor.empty());
  BOOST_TEST(b.dead_letters(2, "").jobs.size() == 2U);
  BOOST_TEST(b.dead_letters(4).cursor.empty(), "all were on this page");
}

BOOST_AUTO_TEST_CASE(a_cursor_that_is_none_is_an_error) {
  jobs_bed b;
  kill(b, 1);
  for (std::string_view const cursor : {"x", "1x", " 1", "-1", "99999999999999999999999"}) {
    BOOST_TEST(b.error(command::list_dead_letters{.queue = "q", .limit = 1, .cursor = cursor}) ==
               errc::invalid_option);
  }
}

BOOST_AUTO_TEST_CASE(F40_replay_gives_all_attempts_back) {
  jobs_bed b;
  auto j = make_job(1);
  j.max_attempts = 2;
  b.enqueue(j);
  b.snooze(b.claim());
  b.requeue(b.claim());
  b.requeue(b.claim());
  BOOST_TEST(b.stats().dead == 1U);
  BOOST_TEST((b.replay(1, 5s) == replay_outcome::replayed));
  BOOST_TEST(b.stats().dead == 0U);
  BOOST_TEST(b.dead_letters().jobs.empty());
  BOOST_TEST(b.require(1).attempts == 0U);
  BOOST_TEST(b.require(1).snoozes == 0U);
  BOOST_TEST(b.require(1).vests_in == duration{5s});
  BOOST_TEST(b.claim_all().empty());
  b.now += 5s;
  BOOST_TEST(b.scan().queues.size() == 1U);
  BOOST_TEST(b.claim().attempt == 1U);
  BOOST_TEST((b.replay(1) == replay_outcome::not_found), "it is not dead any more");
}

BOOST_AUTO_TEST_CASE(a_replayed_jobs_deadline_counts_from_the_replay) {
  jobs_bed b;
  auto j = make_job(1);
  j.deadline = 5s;
  b.enqueue(j);
  b.now += 10s;
  BOOST_TEST(b.dequeue().dead_lettered == 1U);
  BOOST_TEST((b.replay(1) == replay_outcome::replayed));
  b.now += 4s;
  auto const l = b.claim();
  BOOST_TEST(l.deadline_in == std::optional<duration>{1s});
  BOOST_TEST(l.age == duration{14s});
}

BOOST_AUTO_TEST_CASE(R2_replay_waits_for_a_free_key) {
  jobs_bed b;
  b.enqueue(unique_job(1, unique_strategy::until_executed));
  b.bury(b.claim());
  b.enqueue(unique_job(2, unique_strategy::until_executed));
  auto const refused = b.replay_of(1);
  BOOST_TEST((refused.outcome == replay_outcome::conflict));
  BOOST_TEST((refused.other == id_of(2)), "and names the job that has the key");
  BOOST_TEST((b.require(1).state == job_state::dead));
  b.complete(b.claim());
  BOOST_TEST((b.replay(1) == replay_outcome::replayed));
  BOOST_TEST((b.enqueue(unique_job(3, unique_strategy::until_executed)).outcome ==
              enqueue_outcome::duplicate),
             "and takes it again");
}

BOOST_AUTO_TEST_CASE(a_job_held_until_expired_is_replayed_within_its_own_time) {
  jobs_bed b;
  b.enqueue(unique_job(1, unique_strategy::until_expired));
  b.bury(b.claim());
  BOOST_TEST((b.replay(1) == replay_outcome::replayed), "the key is its own");
  b.bury(b.claim());
  b.now += 60s;
  b.enqueue(unique_job(2, unique_strategy::until_expired));
  BOOST_TEST((b.replay(1) == replay_outcome::conflict));
  b.now += 60s;
  BOOST_TEST((b.replay(1) == replay_outcome::replayed));
  BOOST_TEST((b.enqueue(unique_job(3, unique_strategy::until_expired)).outcome ==
              enqueue_outcome::enqueued),
             "its time counted from the enqueue");
}

BOOST_AUTO_TEST_CASE(R4_the_dead_stay_until_replay_or_purge) {
  jobs_bed b;
  auto j = make_job(1);
  j.retention = 1s;
  b.enqueue(j);
  b.bury(b.claim());
  b.now += 24h * 365;
  b.enqueue(2);
  b.gc();
  BOOST_TEST((b.require(1).state == job_state::dead));
  BOOST_TEST((b.enqueue(j).outcome == enqueue_outcome::enqueued), "its id is known");
  BOOST_TEST(b.stats().enqueued == 2U);
  BOOST_TEST(b.purge(1));
  BOOST_TEST(!b.find(1).has_value());
  BOOST_TEST(b.stats().purged == 1U);
  BOOST_TEST(!b.purge(1));
}

BOOST_AUTO_TEST_CASE(burying_says_why) {
  jobs_bed b;
  b.enqueue(1);
  b.bury(b.claim(), std::string(limits::reason_size + 100, 'x'));
  BOOST_TEST(b.require(1).reason.size() == limits::reason_size);
  BOOST_TEST(b.require(1).attempts == 1U);
  BOOST_TEST(b.dead_letters().jobs.front().reason.size() == limits::reason_size);
}

BOOST_AUTO_TEST_CASE(cancelling) {
  jobs_bed b;
  auto j = make_job(1);
  j.retention = 10s;
  b.enqueue(j);
  BOOST_TEST((b.cancel(1) == cancel_outcome::cancelled));
  BOOST_TEST((b.cancel(1) == cancel_outcome::cancelled), "asked again, while the record stands");
  BOOST_TEST((b.require(1).state == job_state::cancelled));
  BOOST_TEST(b.stats().cancelled == 1U);
  BOOST_TEST(b.claim_all().empty());
  b.now += 10s;
  BOOST_TEST((b.cancel(1) == cancel_outcome::not_found));
  BOOST_TEST(b.stats().cancelled == 1U);

  b.enqueue(2);
  auto const l = b.claim();
  BOOST_TEST((b.cancel(2) == cancel_outcome::running));
  BOOST_TEST((b.require(2).state == job_state::leased));
  BOOST_TEST((b.cancel(2, true) == cancel_outcome::cancelled));
  BOOST_TEST((b.complete(l) == complete_outcome::lease_lost), "its holder finds its lease lost");

  b.enqueue(3);
  b.claim(5s);
  b.now += 5s;
  BOOST_TEST((b.cancel(3) == cancel_outcome::cancelled), "its holder crashed: it waits");

  j.id = id_of(4);
  b.enqueue(j);
  b.complete(b.claim());
  BOOST_TEST((b.cancel(4, true) == cancel_outcome::ended));
  kill(b, 5);
  BOOST_TEST((b.cancel(5, true) == cancel_outcome::ended));
  BOOST_TEST(b.stats().dead == 1U);
}

BOOST_AUTO_TEST_CASE(results_are_kept_for_their_retention) {
  jobs_bed b;
  auto j = make_job(1);
  j.retention = 10s;
  b.enqueue(j);
  b.enqueue(2);
  auto const got = b.dequeue(2).jobs;
  b.complete(got[0], "the result");
  b.complete(got[1], "is not kept");
  b.now += 10s - 1ns;
  auto const done = b.require(1);
  BOOST_TEST((done.state == job_state::completed));
  BOOST_TEST(done.result == "the result");
  BOOST_TEST(done.vests_in == duration{});
  BOOST_TEST(!b.find(2).has_value());
  b.now += 1ns;
  BOOST_TEST(!b.find(1).has_value());
  BOOST_TEST(!b.purge(1), "there is nothing left to purge");
  BOOST_TEST(b.stats().completed == 2U);
  BOOST_TEST(b.stats().purged == 0U);
}

BOOST_AUTO_TEST_CASE(purging_moves_the_count) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 4; ++n) {
    auto j = make_job(n);
    j.retention = 1h;
    b.enqueue(j);
  }
  b.complete(b.claim());
  b.cancel(2);
  b.bury(b.claim());
  BOOST_TEST(!b.purge(4), "it waits");
  b.claim();
  BOOST_TEST(!b.purge(4), "it runs");
  for (std::uint64_t n = 1; n <= 3; ++n) BOOST_TEST(b.purge(n));
  auto const s = b.stats();
  BOOST_TEST(s.purged == 3U);
  BOOST_TEST(s.completed == 0U);
  BOOST_TEST(s.cancelled == 0U);
  BOOST_TEST(s.dead == 0U);
  BOOST_TEST(s.enqueued == 4U);
}

BOOST_AUTO_TEST_CASE(R8_reaping_keeps_up) {
  jobs_bed b{memory_options{.max_jobs = 1000}};
  for (std::uint64_t n = 1; n <= 20'000; ++n) {
    auto j = make_job(n);
    j.retention = 5ms;
    b.enqueue(j);
    b.complete(b.claim());
    b.now += 10us;
  }
  BOOST_TEST(b.stats().completed == 20'000U);
}

BOOST_AUTO_TEST_SUITE_END()
