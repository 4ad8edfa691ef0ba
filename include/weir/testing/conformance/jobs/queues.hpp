// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_QUEUES_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_QUEUES_HPP

#include "weir/command/jobs.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/steps.hpp"
#include "weir/testing/dice.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

// What is promised about pointers, holds, queue leases and dead letters.
namespace weir::testing::conformance {

inline void pointers_are_never_late(job_bench& b) {
  auto late = make_job(1);
  late.delay = b.lasting;
  add(b, "queue", late);
  auto const told = b.must(command::update_queue_pointer{"queue"});
  expect(told && *told > b.brief() && *told <= b.lasting + b.slack(),
         "the pointer is the first vesting time");
  add(b, "queue", make_job(2));
  expect(scanned(b, "queue"), "an enqueue makes the pointer earlier");
  auto const j = claim(b, "queue", 2);
  b.must(command::update_queue_pointer{"queue"});
  expect(!scanned(b, "queue"), "a pointer that was updated is not early");
  b.must(command::snooze_job{"queue", j.id, j.fence, {}, {}});
  expect(scanned(b, "queue"), "a snooze makes it earlier");
  auto const again = claim(b, "queue", 2);
  b.must(command::requeue_job{"queue", again.id, again.fence, b.brief(), {}});
  b.must(command::update_queue_pointer{"queue"});
  b.pass(2 * b.brief());
  expect(scanned(b, "queue"), "a retry is found when its delay is over");
  auto const last = claim(b, "queue", 2, b.lasting);
  b.must(command::update_queue_pointer{"queue"});
  b.must(command::extend_lease{"queue", last.id, last.fence, b.brief()});
  b.pass(2 * b.brief());
  expect(scanned(b, "queue"), "a lease that was made shorter is found when it is over");
}

inline void collected_pointers_orphan_nobody(job_bench& b) {
  auto const collect = [&] {
    std::uint32_t n = 0;
    for (std::uint32_t shard = 0; shard < b.store().shard_count(); ++shard) {
      n += b.must(command::gc_stale_pointers{shard, 100, duration::zero()});
    }
    return n;
  };
  add(b, "leased", make_job(1));
  claim(b, "leased", 1, 2 * b.brief());
  auto future = make_job(2);
  future.delay = 2 * b.brief();
  add(b, "future", future);
  add(b, "ready", make_job(3));
  std::string const schedules = std::string{companion_prefix} + "empty";
  for (auto const& queue : {std::string{"empty"}, schedules}) {
    add(b, queue, make_job(4));
    expect_completed(b, queue, claim(b, queue, 4));
    b.must(command::update_queue_pointer{queue});
  }
  collect();
  expect(scanned(b, "ready"), "the pointer of a queue with a waiting job is not collected");
  b.pass(4 * b.brief());
  collect();
  collect();
  expect(scanned(b, "leased") && scanned(b, "future") && scanned(b, "ready"),
         "the pointer of a queue with jobs is not collected, however long it is due");
  expect(!scanned(b, "empty") && !scanned(b, schedules), "an empty queue leaves the scan");
  add(b, "empty", make_job(5));
  expect(scanned(b, "empty"), "and a job brings it back");
  expect(stats(b, "empty").enqueued == 2, "its counters are as they were");
}

inline void scans_find_everyone(job_bench& b) {
  constexpr std::uint32_t queues = 12;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < queues; ++i) {
    names.push_back("queue" + std::to_string(i));
    add(b, names.back(), make_job(i + 1));
    b.pass(b.exact() ? b.brief() : b.grain());
  }
  auto all = scan(b);
  if (b.store().shard_count() == 1) {
    expect(all == names, "without entropy a scan lists the longest due first");
    expect(scan(b, 1) == std::vector<std::string>{"queue0"}, "and no more than asked for");
  }
  dice d{b.settings().seed};
  std::set<std::string> seen;
  for (int i = 0; i < 400 && seen.size() < queues; ++i) {
    for (auto const& q : scan(b, 1, d.bits() | 1U)) seen.insert(q);
  }
  expect(seen.size() == queues,
         "with entropy every backlogged queue is found some time, and not only " +
             std::to_string(seen.size()) + " of " + std::to_string(queues));
  for (int i = 0; i < 20; ++i) {
    auto spread = scan(b, 100, d.bits() | 1U);
    std::sort(spread.begin(), spread.end());
    std::sort(all.begin(), all.end());
    expect(spread == all,
           "a scan that has room lists all that are due, each once, wherever it begins");
  }
}

inline void held_queues_give_nothing_out(job_bench& b) {
  add(b, "queue", make_job(1));
  add(b, "queue", make_job(2));
  auto const running = claim(b, "queue", 1);
  auto const is_held = [&](std::string const& why) {
    expect(!scanned(b, "queue"), why + " queue leaves the scan");
    auto const d = dequeue(b, "queue", "holder", 10, b.lasting);
    expect(d.held && d.jobs.empty() && !d.more,
           why + " queue gives nothing out; got " + to_text(d));
    expect(!b.must(command::obtain_lease{"queue", numbered_job(2), "holder", b.lasting}),
           "not even one that is asked for");
  };
  b.must(command::pause_queue{"queue"});
  is_held("a paused");
  expect(stats(b, "queue").paused, "statistics say that it is paused");
  add(b, "queue", make_job(3));
  expect(!scanned(b, "queue"), "an enqueue does not end a pause");
  expect_completed(b, "queue", running);
  b.must(command::resume_queue{"queue"});
  expect(scanned(b, "queue") && !stats(b, "queue").paused, "a resumed queue is back");
  b.must(command::snooze_queue{"queue", b.lasting});
  is_held("a snoozed");
  b.must(command::snooze_queue{"queue", b.brief(), true});
  b.must(command::snooze_queue{"queue", duration::zero(), true});
  b.pass(2 * b.brief());
  is_held("a queue that was snoozed for at least less is one, a snoozed");
  b.must(command::snooze_queue{"queue", duration::zero()});
  expect(scanned(b, "queue"), "a snooze of nothing ends a snooze");
  b.must(command::snooze_queue{"queue", b.brief()});
  b.must(command::snooze_queue{"queue", b.lasting, true});
  b.pass(2 * b.brief());
  is_held("a queue that was snoozed for at least more is one, a snoozed");
  b.must(command::snooze_queue{"queue", b.lasting});
  b.must(command::resume_queue{"queue"});
  expect(scanned(b, "queue"), "so does a resumption");
  b.must(command::snooze_queue{"queue", b.brief()});
  b.pass(2 * b.brief());
  expect(scanned(b, "queue"), "and time");
  claim(b, "queue", 2);
  b.must(command::pause_queue{"never used"});
  expect(dequeue(b, "never used", "holder", 1, b.lasting).held,
         "a queue may be paused before it has jobs");
}

inline void queue_leases_are_advisory(job_bench& b) {
  add(b, "queue", make_job(1));
  using command::obtain_queue_lease;
  using command::release_queue_lease;
  auto const mine = b.must(obtain_queue_lease{"queue", "mine", b.lasting});
  expect(mine.granted && mine.fence > 0, "a free queue lease is granted; got " + to_text(mine));
  auto const again = b.must(obtain_queue_lease{"queue", "mine", b.lasting});
  expect(again.granted && again.fence == mine.fence, "its holder that asks again has the same");
  auto const other = b.must(obtain_queue_lease{"queue", "other", b.lasting});
  expect(!other.granted && other.holder == "mine",
         "another is refused, and told whose it is; got " + to_text(other));
  expect(!b.must(release_queue_lease{"queue", "other", 0}).freed, "another cannot release it");
  expect(!b.must(release_queue_lease{"queue", "mine", mine.fence + 1}).freed,
         "nor can another fence");
  auto const j = claim(b, "queue", 1, b.lasting, "other");
  expect_completed(b, "queue", j);
  expect(b.must(release_queue_lease{"queue", "mine", mine.fence}).freed, "its holder releases it");
  auto const brief = b.must(obtain_queue_lease{"queue", "other", b.brief()});
  expect(brief.granted && brief.fence > mine.fence, "and the next has a greater fence");
  b.pass(2 * b.brief());
  expect(b.must(obtain_queue_lease{"queue", "mine", b.lasting}).granted, "it ends by time, too");
  expect(!b.must(release_queue_lease{"queue", "other", brief.fence}).freed,
         "a late release frees no successor's");
}

inline void queues_are_listed(job_bench& b) {
  std::vector<std::string> names{"alpha", "beta", "delta", "gamma"};
  for (auto const& name : names) add(b, name, make_job(1));
  std::vector<std::string> listed;
  for (std::uint32_t shard = 0; shard < b.store().shard_count(); ++shard) {
    std::string cursor;
    std::size_t const before = listed.size();
    do {
      auto const page = b.must(command::list_queues{shard, 1, cursor});
      expect(page.queues.size() <= 1, "a page is no longer than asked for");
      listed.insert(listed.end(), page.queues.begin(), page.queues.end());
      cursor = page.cursor;
    } while (!cursor.empty() && listed.size() < 100);
    expect(std::is_sorted(listed.begin() + static_cast<std::ptrdiff_t>(before), listed.end()),
           "queues are listed by name");
  }
  std::sort(listed.begin(), listed.end());
  expect(listed == names, "every queue is listed once");
}

inline std::vector<job> dead_letters(job_bench& b, std::string_view queue,
                                     std::uint32_t page_size) {
  std::vector<job> out;
  std::string cursor;
  do {
    auto page = b.must(command::list_dead_letters{queue, page_size, cursor});
    expect(page.jobs.size() <= page_size, "a page is no longer than asked for");
    for (auto& j : page.jobs) out.push_back(std::move(j));
    cursor = page.cursor;
  } while (!cursor.empty() && out.size() < 1000);
  return out;
}

inline void dead_letters_are_listed_replayed_and_purged(job_bench& b) {
  constexpr std::uint32_t letters = 7;
  for (std::uint32_t n = letters; n > 0; --n) {
    auto j = make_job(n);
    j.max_attempts = 3;
    add(b, "queue", j);
    auto got = claim(b, "queue", n);
    b.must(command::requeue_job{"queue", got.id, got.fence, {}, "once"});
    got = claim(b, "queue", n);
    b.must(command::snooze_job{"queue", got.id, got.fence, {}, {}});
    got = claim(b, "queue", n);
    b.must(command::bury_job{"queue", got.id, got.fence, "reason " + std::to_string(n)});
    b.pass(b.grain());
  }
  auto const all = dead_letters(b, "queue", 3);
  expect(all.size() == letters,
         "every dead letter is listed once; got " + std::to_string(all.size()));
  for (std::uint32_t i = 0; i < letters; ++i) {
    expect(all[i].id == numbered_job(letters - i) &&
               all[i].reason == "reason " + std::to_string(letters - i) &&
               all[i].state == job_state::dead && all[i].payload == "payload",
           "the oldest first, each with its reason; got " + to_text(all[i]));
  }
  using command::replay_dead_letter;
  expect(b.must(replay_dead_letter{"queue", numbered_job(1), b.brief()}).outcome ==
             replay_outcome::replayed,
         "a dead letter is replayed");
  auto const fresh = expect_state(b, "queue", 1, job_state::pending);
  expect(fresh.attempts == 0 && fresh.snoozes == 0,
         "with no attempts spent; got " + to_text(fresh));
  expect(b.must(replay_dead_letter{"queue", numbered_job(1), {}}).outcome ==
             replay_outcome::not_found,
         "once");
  expect(b.must(replay_dead_letter{"queue", numbered_job(99), {}}).outcome ==
             replay_outcome::not_found,
         "and no other");
  if (b.exact()) expect_nothing(b, "queue", "a replayed job waits for its delay");
  b.pass(2 * b.brief());
  expect(scanned(b, "queue"), "a scan finds a replayed job");
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    auto const got = claim(b, "queue", 1);
    expect(got.attempt == attempt, "a replayed job has all its attempts; got " + to_text(got));
    b.must(command::requeue_job{"queue", got.id, got.fence, {}, {}});
  }
  expect_state(b, "queue", 1, job_state::dead);
  expect(b.must(command::purge_job{"queue", numbered_job(2)}), "a dead letter is purged");
  expect(!b.must(command::purge_job{"queue", numbered_job(2)}) && !find(b, "queue", 2),
         "and then it is gone");
  add(b, "queue", make_job(50));
  expect(!b.must(command::purge_job{"queue", numbered_job(50)}),
         "what has not ended is not purged");
  auto const s = stats(b, "queue");
  expect(s.dead == letters - 1 && s.purged == 1 && s.enqueued == letters + 1, "got " + to_text(s));
  expect(dead_letters(b, "queue", 100).back().id == numbered_job(1),
         "who died again is the youngest");
}

inline void replaying_respects_keys(job_bench& b) {
  auto const s = unique_strategy::until_executed;
  add(b, "queue", make_unique_job(1, s));
  auto const j = claim(b, "queue", 1);
  b.must(command::bury_job{"queue", j.id, j.fence, {}});
  add(b, "queue", make_unique_job(2, s));
  using command::replay_dead_letter;
  auto const refused = b.must(replay_dead_letter{"queue", numbered_job(1), {}});
  expect(
      refused.outcome == replay_outcome::conflict && refused.other == numbered_job(2),
      "a dead letter whose key was taken meanwhile is not replayed, and the answer names the job "
      "that has it; got " +
          to_text(refused));
  expect_state(b, "queue", 1, job_state::dead);
  expect_completed(b, "queue", claim(b, "queue", 2));
  expect(b.must(replay_dead_letter{"queue", numbered_job(1), {}}).outcome ==
             replay_outcome::replayed,
         "once it is free it is");
  auto const taken = enqueue(b, "queue", make_unique_job(3, s));
  expect(taken.outcome == enqueue_outcome::duplicate && taken.other == numbered_job(1),
         "and has its key again");
}

inline void replaying_takes_the_key_of_what_cannot_run(job_bench& b) {
  auto const s = unique_strategy::until_executed;
  add(b, "queue", make_unique_job(1, s));
  auto const dead = claim(b, "queue", 1);
  b.must(command::bury_job{"queue", dead.id, dead.fence, {}});
  auto other = make_unique_job(2, s);
  other.max_attempts = 1;
  add(b, "queue", other);
  claim(b, "queue", 2, b.brief());
  b.must(command::pause_queue{"queue"});
  using command::replay_dead_letter;
  if (b.exact()) {
    auto const running = b.must(replay_dead_letter{"queue", numbered_job(1), {}});
    expect(running.outcome == replay_outcome::conflict && running.other == numbered_job(2),
           "a job on its last attempt has its key; got " + to_text(running));
  }
  b.pass(2 * b.brief());
  expect(b.must(replay_dead_letter{"queue", numbered_job(1), {}}).outcome ==
             replay_outcome::replayed,
         "once nobody can claim it any more it gives its key up, also in a queue that is held");
  expect_state(b, "queue", 1, job_state::pending);
  expect_state(b, "queue", 2, job_state::dead);
  auto const counts = stats(b, "queue");
  expect(counts.dead == 1 && counts.pending == 1, "got " + to_text(counts));
  auto const taken = enqueue(b, "queue", make_unique_job(3, s));
  expect(taken.outcome == enqueue_outcome::duplicate && taken.other == numbered_job(1),
         "and the replayed one has it; got " + to_text(taken));
  b.must(command::resume_queue{"queue"});
  expect(scanned(b, "queue"), "a scan finds the replayed one");
  expect_completed(b, "queue", claim(b, "queue", 1));
}

inline constexpr check<job_commands> queue_checks[] = {
    {"F48", "pointers are never later than the first job", &pointers_are_never_late},
    {"F41", "collecting pointers orphans no job", &collected_pointers_orphan_nobody},
    {"F39", "a scan finds every queue, whoever has a backlog", &scans_find_everyone},
    {"R4", "held queues give nothing out, and go on otherwise", &held_queues_give_nothing_out},
    {"F32", "a queue lease lasts, and nothing depends on it", &queue_leases_are_advisory},
    {"R4", "queues are listed by name", &queues_are_listed},
    {"F40", "dead letters are listed, replayed with all their attempts, and purged",
     &dead_letters_are_listed_replayed_and_purged},
    {"F40", "a replayed dead letter needs its key", &replaying_respects_keys},
    {"F14", "a job that cannot be claimed any more gives its key up to a replayed dead letter",
     &replaying_takes_the_key_of_what_cannot_run},
};

}  // namespace weir::testing::conformance

#endif
