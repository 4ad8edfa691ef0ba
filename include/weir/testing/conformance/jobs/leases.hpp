// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_LEASES_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_LEASES_HPP

#include "weir/command/jobs.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/steps.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

// What is promised to and about whoever has claimed a job.
namespace weir::testing::conformance {

inline void dead_holders_job_is_visible_again(job_bench& b) {
  add(b, "queue", make_job(1));
  auto const first = claim(b, "queue", 1, b.brief(), "dead");
  auto const leased = expect_state(b, "queue", 1, job_state::leased);
  expect(leased.holder == "dead" && leased.fence == first.fence,
         "a lease says whose it is; got " + to_text(leased));
  if (b.exact()) {
    expect_nothing(b, "queue", "a leased job is not given out");
    expect(b.must(command::peek_jobs{"queue", 10}).empty(), "a leased job is not visible");
    b.pass(b.brief() - b.grain());
    expect_state(b, "queue", 1, job_state::leased);
    b.pass(b.grain() + b.slack());
  } else {
    b.pass(2 * b.brief());
  }
  expect_state(b, "queue", 1, job_state::pending);
  expect(scanned(b, "queue"), "a scan finds a queue whose lease has ended");
  auto const second = claim(b, "queue", 1, b.lasting, "successor");
  expect(second.attempt == 2 && second.fence > first.fence,
         "the next claim is a new attempt with a new fence");
  expect_lease_lost(b, "queue", first.id, first.fence);
  expect_state(b, "queue", 1, job_state::leased);
  expect_completed(b, "queue", second);
}

inline void completion_ends_an_extended_job(job_bench& b) {
  add(b, "queue", make_job(1));
  auto const j = claim(b, "queue", 1, b.brief());
  auto const extended = b.must(command::extend_lease{"queue", j.id, j.fence, b.lasting});
  expect(extended.expires_in > b.brief() && extended.expires_in <= b.lasting + b.slack(),
         "an extension says how long the lease lasts from now");
  b.pass(2 * b.brief());
  expect_nothing(b, "queue", "an extended lease lives on");
  b.must(command::extend_lease{"queue", j.id, j.fence, 2 * b.lasting});
  expect_completed(b, "queue", j);
  auto const s = stats(b, "queue");
  expect(s.completed == 1 && s.pending + s.leased == 0 && !s.next_in,
         "nothing of it is left to run; got " + to_text(s));
  if (b.exact()) b.pass(3 * b.lasting);
  expect_nothing(b, "queue", "a completed job does not come back");
  expect(!b.must(command::min_vesting_time{"queue"}).has_value(),
         "an empty queue has no vesting time");
}

inline void late_holders_change_nothing(job_bench& b) {
  auto kept = make_job(1);
  kept.retention = b.lasting;
  add(b, "queue", kept);
  auto const late = claim(b, "queue", 1, b.brief(), "late");
  b.pass(2 * b.brief());
  expect_lease_lost(b, "queue", late.id, late.fence);
  expect_state(b, "queue", 1, job_state::pending);
  auto const now = claim(b, "queue", 1, b.lasting, "successor");
  expect_lease_lost(b, "queue", late.id, late.fence);
  expect_lease_lost(b, "queue", now.id, now.fence + 1);
  expect_lease_lost(b, "queue", now.id, 0);
  auto const still = expect_state(b, "queue", 1, job_state::leased);
  expect(still.fence == now.fence && still.holder == "successor" && still.memo.empty() &&
             still.reason.empty() && still.attempts == 2,
         "a stale holder changes nothing about its successor's job; got " + to_text(still));
  expect(complete(b, "queue", now.id, now.fence, "result") == complete_outcome::completed,
         "the successor completes it");
  expect_lease_lost(b, "queue", late.id, late.fence);
  expect(expect_state(b, "queue", 1, job_state::completed).result == "result",
         "the result is the successor's");
}

inline void job_fences_grow(job_bench& b) {
  std::uint64_t last = 0;
  auto j = make_job(1);
  j.max_attempts = 1000;
  add(b, "queue", j);
  for (int i = 0; i < 8; ++i) {
    auto const got = claim(b, "queue", 1, i % 4 == 0 ? b.brief() : b.lasting);
    expect(got.fence > last,
           "fence " + std::to_string(got.fence) + " came after " + std::to_string(last));
    last = got.fence;
    if (i % 4 == 0) b.pass(2 * b.brief());
    if (i % 4 == 1) b.must(command::return_job{"queue", got.id, got.fence});
    if (i % 4 == 2) b.must(command::requeue_job{"queue", got.id, got.fence, {}, {}});
    if (i % 4 == 3) b.must(command::snooze_job{"queue", got.id, got.fence, {}, {}});
  }
  expect_lease_lost(b, "queue", numbered_job(1), last);
  auto const end = claim(b, "queue", 1);
  expect_completed(b, "queue", end);
  add(b, "queue", make_job(1));
  expect(claim(b, "queue", 1).fence > end.fence, "fences grow also across the end of the job");
  if (!b.can().fences_follow_time || b.source() != time_source::told) return;
  add(b, "other", make_job(2));
  b.pass(24 * b.lasting);
  auto const micros =
      std::chrono::floor<std::chrono::microseconds>(b.now()).time_since_epoch().count();
  expect(claim(b, "other", 2).fence >= static_cast<std::uint64_t>(micros),
         "a fence is at least the store's microseconds");
}

inline void crashes_count(job_bench& b) {
  auto poison = make_job(1);
  poison.max_attempts = 2;
  add(b, "queue", poison);
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    auto const j = claim(b, "queue", 1, b.brief());
    expect(j.attempt == attempt, "an attempt is counted when it is claimed; got " + to_text(j));
    expect(expect_state(b, "queue", 1, job_state::leased).attempts == attempt, "and at once");
    b.pass(2 * b.brief());
  }
  auto const d = dequeue(b, "queue", "holder", 10, b.lasting);
  expect(d.jobs.empty() && d.dead_lettered == 1,
         "a job whose holders all died is not given out again; got " + to_text(d));
  auto const dead = expect_state(b, "queue", 1, job_state::dead);
  expect(!dead.reason.empty(), "a dead letter says why");
  expect(stats(b, "queue").dead == 1, "and is counted");
}

inline void failures_are_retried_and_end(job_bench& b) {
  auto j = make_job(1);
  j.max_attempts = 2;
  add(b, "queue", j);
  auto const first = claim(b, "queue", 1);
  expect(b.must(command::requeue_job{"queue", first.id, first.fence, b.brief(), "first"}) ==
             requeue_outcome::requeued,
         "a failed job with attempts left is requeued");
  b.refuses(command::requeue_job{"queue", first.id, first.fence, {}, "again"}, errc::lease_lost);
  auto const waiting = expect_state(b, "queue", 1, job_state::pending);
  expect(waiting.attempts == 1 && waiting.reason == "first",
         "it keeps its attempt and its reason; got " + to_text(waiting));
  if (b.exact()) expect_nothing(b, "queue", "it waits for its delay");
  b.pass(2 * b.brief());
  auto const second = claim(b, "queue", 1);
  expect(second.attempt == 2, "the second attempt");
  expect(b.must(command::requeue_job{"queue", second.id, second.fence, {}, "second"}) ==
             requeue_outcome::dead_lettered,
         "a job that failed for the last time is dead-lettered");
  expect(expect_state(b, "queue", 1, job_state::dead).reason == "second", "with its last reason");
  expect_nothing(b, "queue", "a dead job is not given out");
}

inline void snoozing_is_no_failure(job_bench& b) {
  auto j = make_job(1);
  j.max_attempts = 1;
  add(b, "queue", j);
  for (std::uint32_t n = 0; n < 5; ++n) {
    auto const got = claim(b, "queue", 1);
    expect(got.attempt == 1 && got.snoozes == n,
           "a snooze gives the attempt back and is counted; got " + to_text(got));
    expect(n == 0 || got.memo == "memo " + std::to_string(n - 1),
           "the memo is there at the next claim");
    b.must(command::snooze_job{"queue", got.id, got.fence, n == 2 ? b.brief() : duration::zero(),
                               "memo " + std::to_string(n)});
    b.refuses(command::snooze_job{"queue", got.id, got.fence, {}, {}}, errc::lease_lost);
    if (n != 2) continue;
    if (b.exact()) expect_nothing(b, "queue", "a snoozed job waits for its delay");
    b.pass(2 * b.brief());
  }
  expect(expect_state(b, "queue", 1, job_state::pending).attempts == 0, "no attempt is spent");
}

inline void a_returned_job_is_as_before(job_bench& b) {
  add(b, "queue", make_job(1));
  b.pass(b.brief());
  add(b, "queue", make_job(2));
  auto const snoozed = claim(b, "queue", 1);
  b.pass(b.grain());
  b.must(command::snooze_job{"queue", snoozed.id, snoozed.fence, {}, "memo"});
  auto const second = claim(b, "queue", 2);
  b.must(command::return_job{"queue", second.id, second.fence});
  expect_lease_lost(b, "queue", second.id, second.fence);
  auto const again = claim(b, "queue", 2);
  expect(again.attempt == 1, "a returned job has its attempt back; got " + to_text(again));
  auto const first = claim(b, "queue", 1);
  b.must(command::return_job{"queue", first.id, first.fence});
  auto const kept = expect_state(b, "queue", 1, job_state::pending);
  expect(kept.memo == "memo" && kept.snoozes == 1 && kept.attempts == 0,
         "and its memo; got " + to_text(kept));
}

inline void a_lost_dequeue_can_be_repeated(job_bench& b) {
  for (std::uint32_t n = 1; n <= 5; ++n) add(b, "queue", make_job(n));
  auto const first = dequeue(b, "queue", "holder", 2, b.lasting, 7);
  auto const again = dequeue(b, "queue", "holder", 2, b.lasting, 7);
  auto const same = [](dequeued const& x, dequeued const& y) {
    return std::equal(x.jobs.begin(), x.jobs.end(), y.jobs.begin(), y.jobs.end(),
                      [](auto const& l, auto const& r) {
                        return l.id == r.id && l.fence == r.fence && l.attempt == r.attempt;
                      });
  };
  expect(first.jobs.size() == 2 && same(first, again),
         "the same dequeue asked again gives the same leases; got " + to_text(first) + " and " +
             to_text(again));
  expect_completed(b, "queue", first.jobs[0]);
  auto const rest = dequeue(b, "queue", "holder", 2, b.lasting, 7);
  expect(rest.jobs.size() == 1 && rest.jobs[0].id == first.jobs[1].id,
         "what is left of them; got " + to_text(rest));
  expect(dequeue(b, "queue", "other", 2, b.lasting, 7).jobs.size() == 2,
         "another holder's number is another");
  auto const next = dequeue(b, "queue", "holder", 2, b.lasting, 8);
  expect(next.jobs.size() == 1 && next.jobs[0].attempt == 1,
         "the next number gives more; got " + to_text(next));
  expect(stats(b, "queue").leased == 4, "four are leased, one is completed");
}

inline void one_job_can_be_obtained(job_bench& b) {
  auto later = make_job(2);
  later.delay = b.lasting;
  add(b, "queue", make_job(1));
  add(b, "queue", later);
  auto const obtain = [&](std::uint32_t n, std::string_view holder) {
    return b.must(command::obtain_lease{"queue", numbered_job(n), holder, b.lasting});
  };
  auto const mine = obtain(1, "mine");
  expect(mine.has_value() && mine->attempt == 1 && mine->payload == "payload",
         "a visible job can be obtained");
  auto const again = obtain(1, "mine");
  expect(again && again->fence == mine->fence && again->attempt == 1,
         "its holder that asks again has the same lease");
  expect(!obtain(1, "other"), "a leased job cannot be obtained by another");
  expect(!obtain(2, "mine"), "nor one that has not vested");
  expect(!obtain(3, "mine"), "nor one that is not there");
  expect_completed(b, "queue", *mine);
  expect(!obtain(1, "mine"), "nor one that has ended");
}

inline void one_job_can_be_brought_forward(job_bench& b) {
  auto const obtain = [&](std::uint32_t n, std::string_view holder) {
    command::obtain_lease c{"queue", numbered_job(n), holder, b.brief()};
    c.early = true;
    return b.must(c);
  };
  auto later = make_job(1);
  later.delay = b.lasting;
  later.max_attempts = 2;
  add(b, "queue", later);
  auto const first = obtain(1, "mine");
  expect(first && first->attempt == 1 && first->payload == "payload",
         "a delayed job can be obtained before its vesting time");
  expect(!obtain(1, "other"), "but not by another while it is leased");
  auto const again = obtain(1, "mine");
  expect(again && again->fence == first->fence, "its holder that asks again has the same lease");

  b.must(command::return_job{"queue", numbered_job(1), first->fence});
  expect(dequeue(b, "queue", "holder", 10, b.lasting).jobs.empty(),
         "given back, it waits for its own time");
  auto const second = obtain(1, "other");
  expect(second && second->attempt == 1 && second->fence > first->fence,
         "given back, it can be brought forward again");
  b.must(command::snooze_job{"queue", numbered_job(1), second->fence, b.lasting, "a memo"});
  b.must(command::update_queue_pointer{"queue"});
  auto const third = obtain(1, "mine");
  expect(third && third->snoozes == 1 && third->memo == "a memo", "so can a snoozed job");

  b.pass(2 * b.brief());
  expect(scanned(b, "queue"), "when its lease is over, a scan finds its queue");
  auto const last = claim(b, "queue", 1);
  expect(last.attempt == 2, "and it is claimed as any other; got " + std::to_string(last.attempt));

  b.must(command::pause_queue{"queue"});
  later.id = numbered_job(2);
  add(b, "queue", later);
  expect(!obtain(2, "mine"), "nothing is brought forward in a queue that is held");
  b.must(command::resume_queue{"queue"});
  expect(!obtain(3, "mine"), "nor what is not there");
}

inline void deadlines_end_jobs(job_bench& b) {
  auto j = make_job(1);
  j.deadline = b.brief();
  add(b, "queue", j);
  auto in_time = make_job(2);
  in_time.deadline = b.lasting;
  add(b, "queue", in_time);
  b.pass(2 * b.brief());
  auto const d = dequeue(b, "queue", "holder", 10, b.lasting);
  expect(d.dead_lettered == 1 && d.jobs.size() == 1 && d.jobs[0].id == numbered_job(2),
         "a job that is claimed too late is dead-lettered instead; got " + to_text(d));
  expect(d.jobs[0].deadline_in && *d.jobs[0].deadline_in > duration::zero(),
         "a claim says what is left until the deadline");
  expect(!expect_state(b, "queue", 1, job_state::dead).reason.empty(), "and says why");
}

inline void cancelling_spares_the_running(job_bench& b) {
  auto kept = make_job(1);
  kept.retention = b.lasting;
  for (std::uint32_t n = 1; n <= 3; ++n) {
    kept.id = numbered_job(n);
    add(b, "queue", kept);
  }
  auto const cancel = [&](std::uint32_t n, bool running = false) {
    return b.must(command::cancel_job{"queue", numbered_job(n), running});
  };
  auto const first = claim(b, "queue", 1);
  expect(cancel(1) == cancel_outcome::running, "a leased job is left alone");
  expect(cancel(2) == cancel_outcome::cancelled && cancel(2) == cancel_outcome::cancelled,
         "a waiting one is cancelled");
  expect(cancel(9) == cancel_outcome::not_found, "an unknown one is not found");
  expect(cancel(1, true) == cancel_outcome::cancelled,
         "a leased one is cancelled if that is asked for");
  expect_lease_lost(b, "queue", first.id, first.fence);
  auto const third = claim(b, "queue", 3);
  expect_completed(b, "queue", third);
  expect(cancel(3) == cancel_outcome::ended, "a completed one has ended");
  auto const s = stats(b, "queue");
  expect(s.cancelled == 2 && s.completed == 1 && s.pending + s.leased == 0, "got " + to_text(s));
  expect_state(b, "queue", 2, job_state::cancelled);
}

inline void results_stay_as_long_as_asked(job_bench& b) {
  auto kept = make_job(1);
  kept.retention = b.brief();
  add(b, "queue", kept);
  add(b, "queue", make_job(2));
  auto const first = claim(b, "queue", 1);
  expect(complete(b, "queue", first.id, first.fence, "result") == complete_outcome::completed,
         "completed");
  if (b.exact()) {
    expect(complete(b, "queue", first.id, first.fence) == complete_outcome::completed,
           "completing again is harmless");
    expect(expect_state(b, "queue", 1, job_state::completed).result == "result",
           "the first result stays");
    b.pass(b.brief() - b.grain());
    expect_state(b, "queue", 1, job_state::completed);
  }
  b.pass(2 * b.brief());
  expect(!find(b, "queue", 1), "until its retention is over");
  auto const second = claim(b, "queue", 2);
  expect_completed(b, "queue", second);
  expect(!find(b, "queue", 2), "without retention there is no record of a completed job");
  auto const s = stats(b, "queue");
  expect(s.completed == 2 && s.enqueued == 2, "but it is still counted; got " + to_text(s));
}

/// With each of what a store may keep apart from the record: a long payload, and notes.
inline void an_id_is_free_when_its_record_is_gone(job_bench& b) {
  constexpr std::size_t sizes[] = {7, 300};
  std::uint32_t n = 0;
  for (auto const s : {unique_strategy::none, unique_strategy::until_executed}) {
    for (auto const size : sizes) {
      for (std::string_view const result : {"", "result"}) {
        auto j = s == unique_strategy::none ? make_job(++n) : make_unique_job(++n, s);
        std::string const payload(size, 'p');
        j.payload = payload;
        j.retention = b.brief();
        for (int i = 0; i < 2; ++i) {
          add(b, "queue", j);
          auto const got = claim(b, "queue", n);
          expect(got.attempt == 1 && got.payload == payload,
                 "an id is as good as new when its record's retention is over; got " +
                     to_text(got));
          complete(b, "queue", got.id, got.fence, result);
          b.pass(2 * b.brief());
        }
      }
    }
  }
  auto const s = stats(b, "queue");
  expect(s.enqueued == 2 * n && s.completed == 2 * n, "each is counted; got " + to_text(s));
}

/// Of so many that they are sorted otherwise than a few are.
inline void a_repeated_id_is_added_once(job_bench& b) {
  constexpr std::uint32_t ids = 50;
  std::vector<new_job> jobs;
  for (std::uint32_t i = 0; i < 4 * ids; ++i) {
    jobs.push_back(make_job(1 + i % ids));
    jobs.back().payload = i < ids ? "first" : "later";
  }
  b.must(command::enqueue_jobs{"queue", jobs});
  for (auto const& j : b.must(command::peek_jobs{"queue", 4 * ids})) {
    expect(j.payload == "first", "of several with one id, the first is added; got " + to_text(j));
  }
  expect(stats(b, "queue").enqueued == ids, "and no other one");
}

inline constexpr check<job_commands> lease_checks[] = {
    {"F28", "a dead holder's job is visible again by itself", &dead_holders_job_is_visible_again},
    {"F29", "completion ends a job whose lease was extended", &completion_ends_an_extended_job},
    {"F34", "a stale holder changes nothing, whatever became of its job",
     &late_holders_change_nothing},
    {"F35", "fences grow, and a returned lease's is worth nothing", &job_fences_grow},
    {"F36", "attempts are counted when claimed, so that crashes count", &crashes_count},
    {"R4", "failures are retried, and end in the dead letters", &failures_are_retried_and_end},
    {"F33", "snoozing is no failure", &snoozing_is_no_failure},
    {"R4", "a returned job is as if it had not been claimed", &a_returned_job_is_as_before},
    {"F54", "a dequeue whose answer was lost can be repeated", &a_lost_dequeue_can_be_repeated},
    {"R4", "one job can be obtained, once", &one_job_can_be_obtained},
    {"F73", "one job can be brought forward", &one_job_can_be_brought_forward},
    {"R4", "a job that is claimed after its deadline is dead-lettered", &deadlines_end_jobs},
    {"R4", "cancelling ends what waits, and what runs only if asked",
     &cancelling_spares_the_running},
    {"R4", "results stay as long as asked for", &results_stay_as_long_as_asked},
    {"F107", "an id is free again when the record of its job is gone",
     &an_id_is_free_when_its_record_is_gone},
    {"R4", "of jobs that one enqueue gives the same id, the first is added",
     &a_repeated_id_is_added_once},
};

}  // namespace weir::testing::conformance

#endif
