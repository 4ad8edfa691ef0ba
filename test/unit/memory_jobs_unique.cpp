// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <string>
#include <vector>

// Unique keys live and die with their jobs.

namespace {

using namespace test;
using enum unique_strategy;
using enum enqueue_outcome;
using enum conflict_policy;

/// Is the key free for a newcomer? Tries, and takes the newcomer away again.
bool key_free(jobs_bed& b, std::string_view key = "key") {
  auto const answer = b.enqueue(unique_job(999'999, until_executed, discard, key));
  if (answer.outcome != enqueue_outcome::enqueued) return false;
  b.cancel(999'999);
  return true;
}

/// One way for a job to end, or to go on.
struct ending {
  char const* name;
  void (*make)(jobs_bed&, leased_job const&);
};

constexpr std::array endings{
    ending{"completed", [](jobs_bed& b, leased_job const& l) { b.complete(l); }},
    ending{"buried", [](jobs_bed& b, leased_job const& l) { b.bury(l); }},
    ending{"failed for the last time", [](jobs_bed& b, leased_job const& l) { b.requeue(l); }},
    ending{"cancelled while it runs",
           [](jobs_bed& b, leased_job const& l) { b.cancel(number_of(l.id), true); }},
    ending{"crashed for the last time",
           [](jobs_bed& b, leased_job const&) {
             b.now += 30s;
             b.dequeue();
           }},
    ending{"cancelled after a crash",
           [](jobs_bed& b, leased_job const& l) {
             b.now += 30s;
             b.cancel(number_of(l.id));
           }},
};

constexpr std::array goings_on{
    ending{"requeued", [](jobs_bed& b, leased_job const& l) { b.requeue(l); }},
    ending{"snoozed", [](jobs_bed& b, leased_job const& l) { b.snooze(l); }},
    ending{"returned", [](jobs_bed& b, leased_job const& l) { b.give_back(l); }},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_unique)

BOOST_AUTO_TEST_CASE(F14_R2_no_lock_outlives_its_job) {
  for (auto const s :
       {until_executed, until_executing, until_and_while_executing, while_executing}) {
    for (auto const& e : endings) {
      for (bool const started : {false, true}) {
        BOOST_TEST_CONTEXT("strategy " << static_cast<int>(s) << ", " << e.name << ", started "
                                       << started) {
          jobs_bed b;
          auto j = unique_job(1, s);
          j.max_attempts = 1;
          b.enqueue(j);
          BOOST_TEST(key_free(b) == !holds_while_waiting(s));
          auto const l = b.claim();
          if (started) b.start(l);
          e.make(b, l);
          BOOST_TEST(key_free(b));
          b.enqueue(unique_job(2, s));
          auto const next = b.claim();
          BOOST_TEST((b.start(next).outcome == start_outcome::started));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(F15_the_key_is_kept_while_its_job_is_merely_requeued) {
  for (auto const s : {until_executed, until_executing, until_and_while_executing, until_expired}) {
    for (auto const& e : goings_on) {
      BOOST_TEST_CONTEXT("strategy " << static_cast<int>(s) << ", " << e.name) {
        jobs_bed b;
        b.enqueue(unique_job(1, s));
        auto l = b.claim();
        BOOST_TEST(!key_free(b));
        e.make(b, l);
        BOOST_TEST(!key_free(b));
        l = b.claim(10s);
        b.now += 10s;
        BOOST_TEST(!key_free(b), "nor by a crash");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(F15_until_executing_gives_its_key_up_when_it_starts_and_takes_it_back) {
  for (auto const s : {until_executing, until_and_while_executing}) {
    for (auto const& e : goings_on) {
      BOOST_TEST_CONTEXT("strategy " << static_cast<int>(s) << ", " << e.name) {
        jobs_bed b;
        b.enqueue(unique_job(1, s));
        auto const l = b.claim();
        b.start(l);
        BOOST_TEST(key_free(b), "its handler has started");
        e.make(b, l);
        BOOST_TEST(!key_free(b), "it waits again");
      }
      BOOST_TEST_CONTEXT("and the key is taken meanwhile") {
        jobs_bed b;
        b.enqueue(unique_job(1, s));
        auto const l = b.claim();
        b.start(l);
        BOOST_TEST((b.enqueue(unique_job(2, s)).outcome == enqueue_outcome::enqueued));
        e.make(b, l);
        BOOST_TEST(number_of(b.enqueue(unique_job(3, s)).other) == 2U);
        b.cancel(2);
        BOOST_TEST(key_free(b), "the job waits without the key");
        BOOST_TEST(b.stats().pending == 1U);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(F16_a_failure_frees_the_run_lock) {
  for (auto const s : {while_executing, until_and_while_executing}) {
    for (auto const& e : goings_on) {
      BOOST_TEST_CONTEXT("strategy " << static_cast<int>(s) << ", " << e.name) {
        jobs_bed b;
        b.enqueue(unique_job(1, s));
        auto l = b.claim();
        BOOST_TEST((b.start(l).outcome == start_outcome::started));
        e.make(b, l);
        l = b.claim();
        BOOST_TEST((b.start(l).outcome == start_outcome::started),
                   "it does not block its own retry");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(R2_one_runs_at_a_time) {
  jobs_bed b;
  for (std::uint64_t n = 1; n <= 3; ++n) {
    BOOST_TEST((b.enqueue(unique_job(n, while_executing)).outcome == enqueue_outcome::enqueued),
               "many may wait");
  }
  b.enqueue(unique_job(4, while_executing, discard, "another key"));
  auto const all = b.dequeue(4, 30s).jobs;
  BOOST_TEST((b.start(all[0]).outcome == start_outcome::started));
  BOOST_TEST((b.start(all[0]).outcome == start_outcome::started), "asked again");
  BOOST_TEST((b.start(all[3]).outcome == start_outcome::started), "another key");
  b.now += 10s;
  auto const blocked = b.start(all[1]);
  BOOST_TEST((blocked.outcome == start_outcome::blocked));
  BOOST_TEST(blocked.retry_after == duration{20s});
  b.extend(all[0], 50s);
  b.extend(all[1], 70s);
  BOOST_TEST(b.start(all[1]).retry_after == duration{50s}, "the lock lasts as long as the lease");
  b.now += 50s;
  BOOST_TEST((b.start(all[1]).outcome == start_outcome::started),
             "the holder crashed: its lease is over");
  auto const late = b.claim();
  BOOST_TEST(number_of(late.id) == 3U);
  BOOST_TEST((b.start(late).outcome == start_outcome::blocked));
  b.complete(all[1]);
  BOOST_TEST((b.start(late).outcome == start_outcome::started));
}

BOOST_AUTO_TEST_CASE(a_claimed_job_that_has_not_started_holds_no_run_lock) {
  jobs_bed b;
  b.enqueue(unique_job(1, while_executing));
  b.enqueue(unique_job(2, while_executing));
  auto first = b.claim(5s);
  auto const second = b.claim(60s);
  b.start(first);
  b.now += 5s;
  first = b.claim(60s);  // again, after a crash
  BOOST_TEST(number_of(first.id) == 1U);
  BOOST_TEST((b.start(second).outcome == start_outcome::started), "the new lease has not started");
  BOOST_TEST((b.start(first).outcome == start_outcome::blocked));
}

BOOST_AUTO_TEST_CASE(a_blocked_start_changes_nothing) {
  jobs_bed b;
  b.enqueue(unique_job(1, until_and_while_executing));
  auto const one = b.claim();
  b.start(one);
  b.enqueue(unique_job(2, until_and_while_executing));
  auto const two = b.claim();
  BOOST_TEST((b.start(two).outcome == start_outcome::blocked));
  BOOST_TEST(!key_free(b), "it still holds its enqueue key");
}

BOOST_AUTO_TEST_CASE(conflicts_that_leave_all_as_it_is) {
  for (auto const policy : {reject, discard, conflict_policy::log}) {
    for (auto const s :
         {until_executed, until_executing, until_and_while_executing, until_expired}) {
      jobs_bed b;
      b.enqueue(unique_job(1, s));
      auto answer = b.enqueue(unique_job(2, s, policy));
      BOOST_TEST((answer.outcome == duplicate));
      BOOST_TEST(number_of(answer.other) == 1U);
      BOOST_TEST(b.stats().enqueued == 1U);
      BOOST_TEST(
          (b.enqueue(unique_job(3, s, policy, "other key")).outcome == enqueue_outcome::enqueued));
      b.queue = "r";
      BOOST_TEST((b.enqueue(unique_job(2, s, policy)).outcome == enqueue_outcome::enqueued),
                 "a key belongs to its queue");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_strategy_that_holds_nothing_while_waiting_meets_no_conflict) {
  jobs_bed b;
  b.enqueue(unique_job(1, until_executed));
  BOOST_TEST(
      (b.enqueue(unique_job(2, while_executing, reject)).outcome == enqueue_outcome::enqueued));
}

BOOST_AUTO_TEST_CASE(replace_ends_a_waiting_job_and_takes_its_place) {
  jobs_bed b;
  auto first = unique_job(1, until_executed);
  first.retention = 60s;
  b.enqueue(first);
  auto const answer = b.enqueue(unique_job(2, until_executed, replace));
  BOOST_TEST((answer.outcome == replaced));
  BOOST_TEST(number_of(answer.other) == 1U);
  BOOST_TEST((b.require(1).state == job_state::cancelled));
  BOOST_TEST(b.stats().cancelled == 1U);
  BOOST_TEST(number_of(b.enqueue(unique_job(3, until_executed)).other) == 2U,
             "the newcomer has the key");
  auto const l = b.claim();
  BOOST_TEST(number_of(l.id) == 2U);
  BOOST_TEST((b.enqueue(unique_job(4, until_executed, replace)).outcome == duplicate), "it runs");
  b.now += 30s;
  BOOST_TEST((b.enqueue(unique_job(4, until_executed, replace)).outcome == replaced),
             "it crashed, so it waits");
  BOOST_TEST((b.complete(l) == complete_outcome::lease_lost));
}

BOOST_AUTO_TEST_CASE(reschedule_gives_a_waiting_job_the_newcomers_time_and_priority) {
  jobs_bed b;
  auto first = unique_job(1, until_executed);
  first.delay = 1h;
  first.payload = "the first";
  b.enqueue(first);
  b.now += 10s;
  auto second = unique_job(2, until_executed, reschedule);
  second.delay = 5s;
  second.priority = 3;
  auto answer = b.enqueue(second);
  BOOST_TEST((answer.outcome == rescheduled));
  BOOST_TEST(number_of(answer.other) == 1U);
  BOOST_TEST(b.stats().enqueued == 1U);
  BOOST_TEST(b.require(1).vests_in == duration{5s});
  BOOST_TEST(b.require(1).priority == 3);
  BOOST_TEST(b.require(1).payload == "the first");
  b.now += 5s;
  BOOST_TEST(b.scan().queues.size() == 1U, "its pointer came with it");
  auto const l = b.claim();
  BOOST_TEST((b.enqueue(second).outcome == duplicate), "it runs");
  b.now += 30s;
  BOOST_TEST((b.enqueue(second).outcome == rescheduled), "it crashed, so it waits");
  BOOST_TEST(b.require(1).attempts == 1U);
  BOOST_TEST((b.complete(l) == complete_outcome::lease_lost));
  BOOST_TEST(b.claim_all().empty());
}

BOOST_AUTO_TEST_CASE(F17_a_batch_of_twins_leaves_one) {
  jobs_bed b;
  std::vector<new_job> twins;
  for (std::uint64_t n = 1; n <= 10; ++n) twins.push_back(unique_job(n, until_executed));
  auto const out = b.get(command::enqueue_jobs{.queue = "q", .jobs = twins});
  BOOST_TEST((out[0].outcome == enqueue_outcome::enqueued));
  for (std::size_t i = 1; i < 10; ++i) {
    BOOST_TEST((out[i].outcome == duplicate));
    BOOST_TEST(number_of(out[i].other) == 1U);
  }
  for (auto& t : twins) t.on_conflict = replace;
  b.get(command::enqueue_jobs{.queue = "q", .jobs = twins});
  BOOST_TEST(b.stats().pending == 1U);
  BOOST_TEST(b.claim_all() == list{10});
}

BOOST_AUTO_TEST_CASE(until_expired_holds_for_its_time_however_the_job_ends) {
  for (auto const& e : endings) {
    BOOST_TEST_CONTEXT(e.name) {
      jobs_bed b;
      auto const enqueued_at = b.now;
      auto j = unique_job(1, until_expired);
      j.max_attempts = 1;
      b.enqueue(j);
      e.make(b, b.claim());
      BOOST_TEST((b.enqueue(unique_job(2, until_expired, replace)).outcome == duplicate),
                 "it has ended: no conflict to win");
      b.now = enqueued_at + 60s - 1ns;
      BOOST_TEST(!key_free(b));
      b.now += 1ns;
      BOOST_TEST(key_free(b));
    }
  }
}

BOOST_AUTO_TEST_CASE(until_expired_lets_another_in_while_the_first_still_waits) {
  jobs_bed b;
  b.enqueue(unique_job(1, until_expired));
  b.now += 60s;
  BOOST_TEST((b.enqueue(unique_job(2, until_expired)).outcome == enqueue_outcome::enqueued));
  BOOST_TEST(b.stats().pending == 2U);
  b.complete(b.claim());
  BOOST_TEST(number_of(b.enqueue(unique_job(3, until_executed)).other) == 2U,
             "the first's end frees nothing of the second's");
}

BOOST_AUTO_TEST_CASE(a_key_that_was_held_until_expired_passes_to_who_replaces_its_job) {
  jobs_bed b;
  b.enqueue(unique_job(1, until_expired));
  BOOST_TEST((b.enqueue(unique_job(2, until_executed, replace)).outcome == replaced));
  b.now += 60s;
  BOOST_TEST(!key_free(b), "now it lasts as long as its job");
  b.complete(b.claim());
  BOOST_TEST(key_free(b));
}

BOOST_AUTO_TEST_CASE(F27_keys_are_bytes) {
  jobs_bed b;
  std::vector<std::string> const keys{std::string{"a\0b", 3},
                                      "a",
                                      std::string{"a\0", 2},
                                      "a\r\nb",
                                      "{a}",
                                      "a b",
                                      "*",
                                      ">",
                                      "\xff\xfe",
                                      "'; drop--",
                                      "\"a\"",
                                      std::string(1024, 'x')};
  std::uint64_t n = 0;
  for (auto const& k : keys) {
    BOOST_TEST((b.enqueue(unique_job(++n, until_executed, discard, k)).outcome ==
                enqueue_outcome::enqueued));
  }
  for (auto const& k : keys) {
    BOOST_TEST((b.enqueue(unique_job(++n, until_executed, discard, k)).outcome == duplicate));
  }
  BOOST_TEST(b.require(1).unique_key == keys[0]);
  BOOST_TEST(b.require(1).kind == "kind");
  BOOST_TEST(b.require(1).payload == "payload");
}

BOOST_AUTO_TEST_SUITE_END()
