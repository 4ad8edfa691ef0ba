// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_UNIQUE_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_UNIQUE_HPP

#include "weir/command/jobs.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/steps.hpp"
#include "weir/unique.hpp"

#include <cstdint>
#include <string>

// What is promised about the unique keys of jobs.
namespace weir::testing::conformance {

inline constexpr unique_strategy until_ended[] = {unique_strategy::until_executed,
                                                  unique_strategy::until_executing,
                                                  unique_strategy::until_and_while_executing};
inline constexpr unique_strategy while_running[] = {unique_strategy::while_executing,
                                                    unique_strategy::until_and_while_executing};

/// Requires that the key is taken by job `owner`.
inline void expect_duplicate(job_bench& b, new_job const& j, std::uint32_t owner,
                             std::string const& why,
                             std::source_location at = std::source_location::current()) {
  auto const answer = enqueue(b, "queue", j);
  expect(answer.outcome == enqueue_outcome::duplicate && answer.other == numbered_job(owner),
         why + "; got " + to_text(answer), at);
  expect(!b.must(command::find_job{"queue", j.id}), "a duplicate is not in the queue", at);
}

inline void the_key_ends_with_its_job(job_bench& b) {
  using namespace std::string_view_literals;
  std::uint32_t n = 1;
  for (auto const s : until_ended) {
    for (auto const how : {"completed"sv, "buried"sv, "failed"sv, "crashed"sv, "cancelled"sv,
                           "cancelled running"sv}) {
      std::string const story{std::string{to_text(s)} + ", then " + std::string{how}};
      auto j = make_unique_job(n, s);
      j.max_attempts = 1;
      add(b, "queue", j);
      expect_duplicate(b, make_unique_job(n + 1, s), n,
                       story + ": the key is taken from the enqueue on");
      auto const owner = how == "cancelled"
                             ? leased_job{}
                             : claim(b, "queue", n, how == "crashed" ? b.brief() : b.lasting);
      if (how == "completed") expect_completed(b, "queue", owner);
      if (how == "buried") b.must(command::bury_job{"queue", owner.id, owner.fence, {}});
      if (how == "failed") b.must(command::requeue_job{"queue", owner.id, owner.fence, {}, {}});
      if (how == "cancelled") b.must(command::cancel_job{"queue", j.id, false});
      if (how == "cancelled running") b.must(command::cancel_job{"queue", j.id, true});
      if (how == "crashed") {
        b.pass(2 * b.brief());
        expect(dequeue(b, "queue", "holder", 1, b.lasting).dead_lettered == 1,
               story + ": it is dead-lettered");
      }
      auto const next = enqueue(b, "queue", make_unique_job(n + 2, s));
      expect(next.outcome == enqueue_outcome::enqueued,
             story + ": the key is free in the same step; got " + to_text(next));
      b.must(command::cancel_job{"queue", numbered_job(n + 2), false});
      n += 3;
    }
  }
}

inline void the_key_stays_while_the_job_does(job_bench& b) {
  auto const s = unique_strategy::until_executed;
  auto j = make_unique_job(1, s);
  j.max_attempts = 100;
  add(b, "queue", j);
  auto const still = [&](std::string const& why) {
    expect_duplicate(b, make_unique_job(2, s), 1, "the key is not lost when its job is " + why);
  };
  auto got = claim(b, "queue", 1);
  still("claimed");
  b.must(command::start_job{"queue", got.id, got.fence});
  still("started");
  b.must(command::requeue_job{"queue", got.id, got.fence, {}, {}});
  still("requeued");
  got = claim(b, "queue", 1);
  b.must(command::snooze_job{"queue", got.id, got.fence, {}, {}});
  still("snoozed");
  got = claim(b, "queue", 1);
  b.must(command::return_job{"queue", got.id, got.fence});
  still("returned");
  claim(b, "queue", 1, b.brief());
  b.pass(2 * b.brief());
  still("left by a dead holder");
}

inline void keys_given_up_at_the_start(job_bench& b) {
  auto const s = unique_strategy::until_executing;
  auto j = make_unique_job(1, s);
  j.max_attempts = 100;
  add(b, "queue", j);
  auto got = claim(b, "queue", 1);
  expect_duplicate(b, make_unique_job(2, s), 1, "a claimed job still has its key");
  expect(b.must(command::start_job{"queue", got.id, got.fence}).outcome == start_outcome::started,
         "it starts");
  expect(b.must(command::start_job{"queue", got.id, got.fence}).outcome == start_outcome::started,
         "and again");
  b.must(command::requeue_job{"queue", got.id, got.fence, b.lasting, {}});
  expect_duplicate(b, make_unique_job(2, s), 1, "a requeued job takes its key back");
  b.must(command::cancel_job{"queue", numbered_job(1), false});
  add(b, "queue", make_unique_job(3, s));
  got = claim(b, "queue", 3);
  b.must(command::start_job{"queue", got.id, got.fence});
  add(b, "queue", make_unique_job(4, s));
  b.must(command::requeue_job{"queue", got.id, got.fence, b.lasting, {}});
  expect_duplicate(b, make_unique_job(5, s), 4, "unless a newcomer has it meanwhile");
  expect_state(b, "queue", 3, job_state::pending);
}

inline void the_run_lock_ends_with_the_lease(job_bench& b) {
  using namespace std::string_view_literals;
  std::uint32_t n = 1;
  for (auto const how : {"completed"sv, "requeued"sv, "snoozed"sv, "returned"sv, "buried"sv,
                         "cancelled"sv, "dead"sv}) {
    std::string const story{"a run lock is free when its job's holder is done: " +
                            std::string{how}};
    auto first = make_unique_job(n, unique_strategy::while_executing);
    auto second = make_unique_job(n + 1, unique_strategy::while_executing);
    second.priority = 200;
    add(b, "queue", first);
    add(b, "queue", second);
    auto const runs = claim(b, "queue", n, how == "dead" ? b.brief() : b.lasting, "one");
    auto const waits = claim(b, "queue", n + 1, 2 * b.lasting, "two");
    auto const start = [&](leased_job const& j) {
      return b.must(command::start_job{"queue", j.id, j.fence});
    };
    expect(start(runs).outcome == start_outcome::started &&
               start(runs).outcome == start_outcome::started,
           "many may wait, one runs");
    if (how != "dead" || b.exact()) {
      auto const blocked = start(waits);
      expect(
          blocked.outcome == start_outcome::blocked && blocked.retry_after > duration::zero() &&
              blocked.retry_after <= b.lasting + b.slack() && blocked.other == numbered_job(n),
          "another of the same key is blocked, and told for how long at most, and by which; got " +
              to_text(blocked));
      expect_state(b, "queue", n + 1, job_state::leased);
    }
    if (how == "completed") expect_completed(b, "queue", runs);
    if (how == "requeued")
      b.must(command::requeue_job{"queue", runs.id, runs.fence, b.lasting, {}});
    if (how == "snoozed") b.must(command::snooze_job{"queue", runs.id, runs.fence, b.lasting, {}});
    if (how == "returned") b.must(command::return_job{"queue", runs.id, runs.fence});
    if (how == "buried") b.must(command::bury_job{"queue", runs.id, runs.fence, {}});
    if (how == "cancelled") b.must(command::cancel_job{"queue", runs.id, true});
    if (how == "dead") b.pass(2 * b.brief());
    expect(start(waits).outcome == start_outcome::started, story);
    expect_completed(b, "queue", waits);
    b.must(command::cancel_job{"queue", runs.id, true});
    n += 2;
  }
}

inline void a_lease_holds_no_run_lock_until_its_start(job_bench& b) {
  using namespace std::string_view_literals;
  std::uint32_t n = 1;
  for (auto const how :
       {"requeued"sv, "snoozed"sv, "returned"sv, "dead"sv, "dead, found again"sv}) {
    std::string const story{"a lease that was not started holds no run lock, also of a job that " +
                            std::string{"ran before: "} + std::string{how}};
    auto first = make_unique_job(n, unique_strategy::while_executing);
    auto second = make_unique_job(n + 1, unique_strategy::while_executing);
    second.priority = 200;
    first.max_attempts = second.max_attempts = 10;
    add(b, "queue", first);
    add(b, "queue", second);
    auto const dies = how.starts_with("dead");
    auto const ran = claim(b, "queue", n, dies ? b.brief() : b.lasting, "one");
    auto const waits = claim(b, "queue", n + 1, 2 * b.lasting, "two");
    auto const start = [&](leased_job const& j) {
      return b.must(command::start_job{"queue", j.id, j.fence}).outcome;
    };
    expect(start(ran) == start_outcome::started, "the first of a key starts");
    if (how == "requeued") b.must(command::requeue_job{"queue", ran.id, ran.fence, {}, {}});
    if (how == "snoozed") b.must(command::snooze_job{"queue", ran.id, ran.fence, {}, {}});
    if (how == "returned") b.must(command::return_job{"queue", ran.id, ran.fence});
    if (dies) b.pass(2 * b.brief());
    if (how == "dead") {
      claim(b, "queue", n, b.lasting, "three");
    } else {
      auto const again = b.must(command::obtain_lease{"queue", ran.id, "three", b.lasting});
      expect(again.has_value(), "it can be leased again");
    }
    expect(start(waits) == start_outcome::started, story);
    expect_completed(b, "queue", waits);
    b.must(command::cancel_job{"queue", ran.id, true});
    n += 2;
  }
}

inline void keys_that_time_frees(job_bench& b) {
  auto j = make_unique_job(1, unique_strategy::until_expired);
  j.unique_ttl = b.exact() ? 4 * b.brief() : 2 * b.brief();
  add(b, "queue", j);
  expect_completed(b, "queue", claim(b, "queue", 1));
  auto next = make_unique_job(2, unique_strategy::until_expired);
  if (b.exact()) {
    expect_duplicate(b, next, 1, "the end of the job does not free a key held until_expired");
    b.pass(4 * b.brief() - b.grain());
    expect_duplicate(b, next, 1, "nor does anything before its time");
    b.pass(b.grain() + b.slack());
  } else {
    b.pass(4 * b.brief());
  }
  add(b, "queue", next);
  expect_duplicate(b, make_unique_job(3, unique_strategy::until_executed), 2,
                   "the next one has it then");
}

/// A key held until_expired outlives the record of its job, whose id another job may have then.
inline void a_key_is_not_of_who_has_its_owners_id(job_bench& b) {
  using enum unique_strategy;
  using enum conflict_policy;
  std::uint32_t n = 1;
  for (auto const s : {none, while_executing, until_executed}) {
    for (bool const spent : {false, true}) {
      std::string const story{
          "the key is still that of the job that took it, not of one that has its "
          "id and " +
          (s == none ? "no key" : std::string{to_text(s)}) + (spent ? ", and cannot run" : "")};
      auto const key = "key" + std::to_string(n);
      auto letter = make_unique_job(n + 2, until_executed);
      letter.unique_key = key;
      add(b, "queue", letter);
      auto const dead = claim(b, "queue", n + 2);
      b.must(command::bury_job{"queue", dead.id, dead.fence, "it is hopeless"});
      auto first = make_unique_job(n, until_expired);
      first.unique_key = key;
      add(b, "queue", first);
      expect_completed(b, "queue", claim(b, "queue", n));
      expect(!find(b, "queue", n), "its record is gone");
      auto again = s == none ? make_job(n) : make_unique_job(n, s);
      if (s == while_executing) again.unique_key = key;
      again.max_attempts = 1;
      add(b, "queue", again);
      if (spent) {
        claim(b, "queue", n, b.brief());
        b.must(command::pause_queue{"queue"});
        b.pass(2 * b.brief());
      }
      for (auto const p : {reject, replace, reschedule}) {
        for (auto const newcomer : {until_expired, until_executed}) {
          auto j = make_unique_job(n + 1, newcomer, p);
          j.unique_key = key;
          j.delay = b.lasting;
          expect_duplicate(b, j, n, story + ", whatever a newcomer would do");
        }
      }
      auto const replayed = b.must(command::replay_dead_letter{"queue", dead.id, {}});
      expect(replayed.outcome == replay_outcome::conflict && replayed.other == numbered_job(n),
             story + ", also for a dead letter; got " + to_text(replayed));
      auto const j = expect_state(b, "queue", n, job_state::pending);
      expect(j.vests_in <= duration::zero(), story + ": that one is left alone; got " + to_text(j));
      b.must(command::resume_queue{"queue"});
      b.must(command::cancel_job{"queue", numbered_job(n), false});
      n += 3;
    }
  }
}

inline void a_conflict_concerns_its_own_job(job_bench& b) {
  add(b, "queue", make_unique_job(1, unique_strategy::until_executed));
  new_job const jobs[] = {
      make_job(2), make_unique_job(3, unique_strategy::until_executed, conflict_policy::reject),
      make_job(4), make_job(2)};
  auto const outcomes = b.must(command::enqueue_jobs{"queue", jobs});
  expect(outcomes.size() == 4 && outcomes[0].outcome == enqueue_outcome::enqueued &&
             outcomes[1].outcome == enqueue_outcome::duplicate &&
             outcomes[1].other == numbered_job(1) &&
             outcomes[2].outcome == enqueue_outcome::enqueued &&
             outcomes[3].outcome == enqueue_outcome::enqueued,
         "one conflict in a batch is one outcome; got " + to_text(outcomes));
  expect(stats(b, "queue").enqueued == 3, "the others are in the queue, each once");
  auto first = make_unique_job(5, unique_strategy::until_executed);
  auto second = make_unique_job(6, unique_strategy::until_executed);
  first.unique_key = second.unique_key = "within one batch";
  new_job const both[] = {first, second};
  auto const two = b.must(command::enqueue_jobs{"queue", both});
  expect(two[0].outcome == enqueue_outcome::enqueued &&
             two[1].outcome == enqueue_outcome::duplicate,
         "two of one batch conflict with each other, too; got " + to_text(two));
}

inline void newcomers_replace_and_reschedule(job_bench& b) {
  auto const s = unique_strategy::until_executed;
  auto old = make_unique_job(1, s);
  old.delay = b.lasting;
  add(b, "queue", old);
  auto const replaced = enqueue(b, "queue", make_unique_job(2, s, conflict_policy::replace));
  expect(replaced.outcome == enqueue_outcome::replaced && replaced.other == numbered_job(1),
         "a newcomer takes a waiting job's place; got " + to_text(replaced));
  auto moved = make_unique_job(3, s, conflict_policy::reschedule);
  moved.delay = b.brief();
  moved.priority = 7;
  moved.payload = "the newcomer's";
  auto const rescheduled = enqueue(b, "queue", moved);
  expect(rescheduled.outcome == enqueue_outcome::rescheduled &&
             rescheduled.other == numbered_job(2),
         "a waiting job takes a newcomer's time; got " + to_text(rescheduled));
  auto const waits = expect_state(b, "queue", 2, job_state::pending);
  expect(waits.payload == "payload" && waits.priority == 7 &&
             (waits.vests_in > duration::zero() || !b.exact()),
         "it keeps its payload; got " + to_text(waits));
  b.pass(2 * b.brief());
  expect(scanned(b, "queue"), "a scan finds it at its new time");
  auto const running = claim(b, "queue", 2);
  for (auto const p : {conflict_policy::replace, conflict_policy::reschedule,
                       conflict_policy::reject, conflict_policy::discard, conflict_policy::log}) {
    expect_duplicate(b, make_unique_job(4, s, p), 2, "a running job does not give way");
  }
  auto const stats_now = stats(b, "queue");
  expect(stats_now.cancelled == 1 && stats_now.leased == 1 && stats_now.enqueued == 2,
         "got " + to_text(stats_now));
  expect_completed(b, "queue", running);
}

/// Puts job `number` where no claim can come any more, in a queue that gives nothing out: its
/// attempts are spent and its lease is over, or its deadline is missed.
inline void leave_unclaimable(job_bench& b, std::uint32_t number, unique_strategy s, bool spent,
                              bool paused) {
  auto j = make_unique_job(number, s);
  j.max_attempts = 1;
  if (!spent) j.deadline = b.brief();
  if (!spent) j.delay = b.lasting;  // not even visible
  add(b, "queue", j);
  if (spent) {
    claim(b, "queue", number, b.brief());
    if (b.exact()) {
      expect_duplicate(b, make_unique_job(number + 1, s, conflict_policy::replace), number,
                       "a last attempt that still runs does not give way");
    }
  }
  if (paused) {
    b.must(command::pause_queue{"queue"});
  } else {
    b.must(command::snooze_queue{"queue", b.lasting});
  }
  b.pass(2 * b.brief());
  expect_nothing(b, "queue", "a queue that is held gives nothing out");
  expect_state(b, "queue", number, job_state::pending);
}

inline void the_key_of_a_job_that_cannot_run_is_free(job_bench& b) {
  struct way {
    unique_strategy strategy;
    conflict_policy policy;
    bool spent;   // or its deadline missed
    bool paused;  // or snoozed
  };
  using enum unique_strategy;
  using enum conflict_policy;
  std::uint32_t n = 1;
  for (auto const& w :
       {way{until_executed, reject, true, true}, way{until_executing, replace, false, true},
        way{until_and_while_executing, reschedule, true, false},
        way{until_executed, reschedule, false, false}}) {
    std::string const story{std::string{to_text(w.strategy)} + ", " +
                            std::string{to_text(w.policy)} +
                            (w.spent ? ", attempts spent" : ", deadline missed")};
    auto const before = stats(b, "queue");
    leave_unclaimable(b, n, w.strategy, w.spent, w.paused);
    auto const next = enqueue(b, "queue", make_unique_job(n + 2, w.strategy, w.policy));
    expect(next.outcome == enqueue_outcome::enqueued,
           story + ": a newcomer has its key, also in a queue that is held; got " + to_text(next));
    auto const letter = expect_state(b, "queue", n, job_state::dead);
    expect(!letter.reason.empty() && letter.holder.empty(),
           story + ": it is a dead letter, with the reason; got " + to_text(letter));
    auto const after = stats(b, "queue");
    expect(after.dead == before.dead + 1 && after.cancelled == before.cancelled &&
               after.pending == before.pending + 1,
           story + ": it counts as dead; got " + to_text(after));
    expect_duplicate(b, make_unique_job(n + 3, w.strategy), n + 2,
                     story + ": the newcomer has the key");
    b.must(command::resume_queue{"queue"});
    expect(scanned(b, "queue"), story + ": a scan finds the newcomer");
    expect_completed(b, "queue", claim(b, "queue", n + 2));
    n += 4;
  }
  leave_unclaimable(b, n, until_expired, true, true);
  if (b.exact()) {
    for (auto const p : {reject, replace, reschedule}) {
      expect_duplicate(b, make_unique_job(n + 1, until_expired, p), n,
                       "a key held until_expired is kept for its time, whatever its job can do");
    }
  }
}

inline void the_run_lock_of_a_job_that_cannot_run_is_free(job_bench& b) {
  auto first = make_unique_job(1, unique_strategy::while_executing);
  auto second = make_unique_job(2, unique_strategy::while_executing);
  first.max_attempts = 1;
  second.priority = 200;
  add(b, "queue", first);
  add(b, "queue", second);
  auto const dies = claim(b, "queue", 1, b.brief(), "one");
  auto const waits = claim(b, "queue", 2, 2 * b.lasting, "two");
  b.must(command::start_job{"queue", dies.id, dies.fence});
  b.must(command::pause_queue{"queue"});
  b.pass(2 * b.brief());
  expect(b.must(command::start_job{"queue", waits.id, waits.fence}).outcome ==
             start_outcome::started,
         "a run lock is free when its lease is over, also while its job can be neither claimed nor "
         "buried");
}

inline void keys_are_their_queues_own(job_bench& b) {
  add(b, "one", make_unique_job(1, unique_strategy::until_executed));
  add(b, "two", make_unique_job(1, unique_strategy::until_executed));
  auto other = make_unique_job(2, unique_strategy::until_executed);
  other.unique_key = "uniquE";
  add(b, "one", other);
  auto none = make_job(3);
  none.strategy = unique_strategy::while_executing;
  none.unique_key = "unique";
  add(b, "one", none);
}

inline void no_lock_without_a_job(job_bench& b) {
  b.need(static_cast<bool>(b.from().make_bounded), "the driver makes no bounded store");
  job_bench small{b.from(), b.source(), b.settings(), 2};
  add(small, "queue", make_job(1));
  add(small, "queue", make_job(2));
  auto const j = make_unique_job(3, unique_strategy::until_executed);
  small.refuses(command::enqueue_jobs{"queue", std::span{&j, 1}}, errc::store_full);
  expect(!find(small, "queue", 3), "a failed enqueue leaves no job");
  small.must(command::cancel_job{"queue", numbered_job(1), false});
  add(small, "queue", make_unique_job(4, unique_strategy::until_executed));
}

inline constexpr check<job_commands> unique_checks[] = {
    {"F14", "the end of a job frees its key, of whichever kind", &the_key_ends_with_its_job},
    {"F14", "a failed enqueue leaves no key behind", &no_lock_without_a_job},
    {"F15", "a key stays as long as its job does", &the_key_stays_while_the_job_does},
    {"R2", "a key held until_executing is given up at the start, and taken back",
     &keys_given_up_at_the_start},
    {"F16", "a run lock is free as soon as its job's lease is over",
     &the_run_lock_ends_with_the_lease},
    {"F16", "a lease that was not started holds no run lock",
     &a_lease_holds_no_run_lock_until_its_start},
    {"R2", "a key held until_expired is freed by time alone", &keys_that_time_frees},
    {"F106", "a key held until_expired is not of another job that has its owner's id",
     &a_key_is_not_of_who_has_its_owners_id},
    {"F18", "a conflict concerns its own job", &a_conflict_concerns_its_own_job},
    {"R2", "a newcomer replaces or reschedules what waits, never what runs",
     &newcomers_replace_and_reschedule},
    {"F14", "a job that cannot be claimed any more gives its key up, also in a held queue",
     &the_key_of_a_job_that_cannot_run_is_free},
    {"F16", "nor does it keep its run lock", &the_run_lock_of_a_job_that_cannot_run_is_free},
    {"R2", "a unique key is its queue's own", &keys_are_their_queues_own},
};

}  // namespace weir::testing::conformance

#endif
