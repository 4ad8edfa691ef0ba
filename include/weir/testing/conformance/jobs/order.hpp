// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_ORDER_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_ORDER_HPP

#include "weir/command/jobs.hpp"
#include "weir/limits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/steps.hpp"
#include "weir/testing/keys.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What is promised about which job comes next, about counts, about hints and about input.
namespace weir::testing::conformance {

/// Enqueues `n` jobs in one step, from number `first` on.
inline void add_many(job_bench& b, std::string_view queue, std::uint32_t first, std::uint32_t n,
                     new_job like) {
  std::vector<new_job> jobs(n, like);
  for (std::uint32_t i = 0; i < n; ++i) jobs[i].id = numbered_job(first + i);
  expect(b.must(command::enqueue_jobs{queue, jobs}).size() == n,
         "a batch has an outcome for each job");
}

inline void best_first(job_bench& b) {
  bool const levels = b.can().priority_levels >= 3;
  auto const with_priority = [&](std::uint32_t n, std::uint8_t p) {
    auto j = make_job(n);
    j.priority = levels ? p : 100;
    return j;
  };
  add(b, "queue", with_priority(4, 100));
  b.pass(b.grain());
  new_job const same_time[] = {with_priority(3, 100), with_priority(2, 100)};
  b.must(command::enqueue_jobs{"queue", same_time});
  b.pass(b.grain());
  add(b, "queue", with_priority(9, 255));
  add(b, "queue", with_priority(8, 0));
  std::vector<std::uint32_t> const order = levels ? std::vector<std::uint32_t>{8, 4, 2, 3, 9}
                                                  : std::vector<std::uint32_t>{4, 2, 3, 9, 8};
  auto const peeked = b.must(command::peek_jobs{"queue", 10});
  auto const in_order = [&](auto const& jobs) {
    return std::equal(jobs.begin(), jobs.end(), order.begin(), order.end(),
                      [](auto const& j, auto n) { return j.id == numbered_job(n); });
  };
  expect(in_order(peeked),
         "jobs stand in the order of priority, vesting time and id; got " + to_text(peeked));
  auto const first = dequeue(b, "queue", "holder", 2, b.lasting);
  auto rest = dequeue(b, "queue", "holder", 10, b.lasting);
  expect(first.more && !rest.more, "a dequeue says whether more jobs are visible");
  rest.jobs.insert(rest.jobs.begin(), first.jobs.begin(), first.jobs.end());
  expect(in_order(rest.jobs), "and are given out in that order; got " + to_text(rest));
}

inline void not_before_its_time(job_bench& b) {
  auto later = make_job(1);
  later.delay = b.brief();
  add(b, "queue", later);
  auto much_later = make_job(2);
  much_later.delay = b.lasting;
  add(b, "queue", much_later);
  if (b.exact()) {
    auto const d = dequeue(b, "queue", "holder", 10, b.lasting);
    expect(d.jobs.empty() && !d.more && d.next_in == b.brief(),
           "it says when the next vests; got " + to_text(d));
    expect(!scanned(b, "queue"), "a queue is not due before its first job is");
    b.pass(b.brief() - b.grain());
    expect_nothing(b, "queue", "no job is claimed before its vesting time");
    b.pass(b.grain());
  } else {
    b.pass(2 * b.brief());
  }
  expect(scanned(b, "queue"), "a queue is due when its first job is");
  claim(b, "queue", 1);
  expect_nothing(b, "queue", "no job is claimed before its vesting time");
}

inline void crowds_hide_nobody(job_bench& b) {
  constexpr std::uint32_t crowd = 600;
  auto better = make_job(0);
  better.priority = b.can().priority_levels >= 2 ? 0 : 100;
  add_many(b, "queue", 1, crowd, better);
  expect(dequeue(b, "queue", "holder", crowd, b.lasting).jobs.size() == crowd,
         "a batch as large as asked for");
  auto future = better;
  future.delay = 2 * b.lasting;
  add_many(b, "queue", 1001, crowd, future);
  auto const waiting = b.must(command::min_vesting_time{"queue"});
  expect(waiting && *waiting <= b.lasting + b.slack(),
         "the first of the leases ends before the first of the others vests");
  add(b, "queue", make_job(9999));
  expect(b.must(command::peek_jobs{"queue", 1}).size() == 1,
         "a peek sees past leased and future jobs");
  expect(b.must(command::min_vesting_time{"queue"}) <= duration::zero(),
         "so does min_vesting_time");
  expect(scanned(b, "queue"), "so does a scan");
  claim(b, "queue", 9999);
  auto const s = stats(b, "queue");
  expect(s.leased == crowd + 1 && s.pending == crowd, "got " + to_text(s));
}

inline void counts_follow_time(job_bench& b) {
  add_many(b, "queue", 1, 20, make_job(0));
  dequeue(b, "queue", "holder", 8, b.brief());
  auto const kept = dequeue(b, "queue", "holder", 4, b.lasting);
  if (b.exact()) {
    auto const s = stats(b, "queue");
    expect(s.leased == 12 && s.pending == 8, "got " + to_text(s));
  }
  b.pass(2 * b.brief());
  auto const s = stats(b, "queue");
  expect(s.leased == kept.jobs.size() && s.pending == 16 && s.enqueued == 20,
         "leases that ended are not counted; got " + to_text(s));
  expect(s.next_in && *s.next_in <= duration::zero(), "and their jobs are due");
  expect(scanned(b, "queue"), "a queue is listed once, however many leases it has");
}

inline void peeking_leases_nothing(job_bench& b) {
  add(b, "queue", make_job(1));
  for (int i = 0; i < 3; ++i)
    expect(b.must(command::peek_jobs{"queue", 10}).size() == 1, "a peek leases nothing");
  expect(expect_state(b, "queue", 1, job_state::pending).attempts == 0, "and counts no attempt");
  expect(b.must(command::peek_jobs{"none", 10}).empty(), "a queue that never was has no jobs");
  auto const none = dequeue(b, "none", "holder", 10, b.lasting);
  expect(!none.more && !none.held && !none.next_in && stats(b, "none").enqueued == 0,
         "got " + to_text(none));
}

inline void enqueueing_again_adds_nothing(job_bench& b) {
  auto j = make_job(1);
  j.retention = b.lasting;
  add(b, "queue", j);
  add(b, "queue", j);
  expect(stats(b, "queue").enqueued == 1, "the same enqueue asked again adds nothing");
  auto const got = claim(b, "queue", 1);
  add(b, "queue", j);
  expect_completed(b, "queue", got);
  add(b, "queue", j);
  expect_nothing(b, "queue", "also when the job has run meanwhile");
  expect(stats(b, "queue").enqueued == 1, "and counts nothing");
  auto u = make_unique_job(2, unique_strategy::until_executed);
  add(b, "queue", u);
  add(b, "queue", u);
}

inline void hints_come(job_bench& b) {
  b.need(b.executes<command::await_jobs>(), "the store does not execute await_jobs");
  b.need(b.source() != time_source::told, "hints come by the store's own time");
  b.need(b.store().shard_count() == 1, "the store has several shards");
  command::await_jobs const c{};
  auto first = b.start(c);
  auto schedule = b.start(command::await_jobs{.schedules = true});
  b.pass(b.brief() / 2);
  expect(!first.done() && !schedule.done(), "nobody is told while nothing is due");
  add(b, "queue", make_job(1));
  b.eventually([&] { return first.done(); }, "whoever waits is told of a job");
  expect(!schedule.done(), "but not who waits for schedules");
  add(b, std::string{companion_prefix} + "queue", make_job(2));
  b.eventually([&] { return schedule.done(); }, "who is told of a schedule");
  auto at_once = b.start(c);
  b.eventually([&] { return at_once.done(); }, "and at once while one is due");
  claim(b, "queue", 1);
  auto cancelled = b.start(c);
  b.pass(b.brief() / 2);
  cancelled.cancel();
  b.eventually([&] { return cancelled.done(); }, "a cancelled wait ends");
  static_cast<void>(b.start(c));  // what still waits when the store and its context end must simply
                                  // go
}

inline void cancelled_holders_are_told(job_bench& b) {
  b.need(b.executes<command::await_cancel>(), "the store does not execute await_cancel");
  b.need(b.source() != time_source::told, "hints come by the store's own time");
  add(b, "queue", make_job(1));
  add(b, "queue", make_job(2));
  claim(b, "queue", 1);
  claim(b, "queue", 2);
  for (std::uint32_t const n : {1U, 2U}) {
    auto told = b.start(command::await_cancel{"holder"});
    b.pass(b.brief() / 2);  // until it waits: another process may be faster
    auto const outcome = b.must(command::cancel_job{"queue", numbered_job(n), true});
    expect(outcome == cancel_outcome::cancelled, "a job that runs is cancelled");
    b.eventually([&] { return told.done(); }, "whoever has a lease of it is told");
    expect(told.answer().has_value(), "without an error");
  }
  auto told = b.start(command::await_cancel{"holder"});
  told.cancel();
  b.eventually([&] { return told.done(); }, "a cancelled wait ends");
  static_cast<void>(b.start(command::await_cancel{"holder"}));  // goes when the store does
}

inline void queues_are_told_apart(job_bench& b) {
  auto const names = difficult_keys(b.can().any_bytes);
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    auto j = make_job(i + 1);
    j.kind = names[i];
    j.payload = names[i];
    j.strategy = unique_strategy::until_executed;
    j.unique_key = names[i];
    add(b, names[i], j);
  }
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    auto const d = dequeue(b, names[i], "holder", 10, b.lasting);
    expect(
        d.jobs.size() == 1 && d.jobs[0].id == numbered_job(i + 1) && d.jobs[0].kind == names[i] &&
            d.jobs[0].payload == names[i] && d.jobs[0].unique_key == names[i],
        "the queue " + in_quotes(names[i]) + " has its own job, byte for byte; got " + to_text(d));
  }
  std::string const everything = [] {
    std::string s;
    for (int i = 0; i < 512; ++i) s.push_back(static_cast<char>(i));
    return s;
  }();
  auto j = make_job(1);
  j.payload = everything;
  j.retention = b.lasting;
  add(b, "bytes", j);
  auto const got = claim(b, "bytes", 1);
  expect(got.payload == everything, "a payload comes back byte for byte");
  expect(complete(b, "bytes", got.id, got.fence, everything) == complete_outcome::completed,
         "completed");
  expect(find(b, "bytes", 1)->result == everything, "a result comes back byte for byte");
}

inline void ids_are_told_apart(job_bench& b) {
  // They differ in one byte each, and are in the order of their ids.
  std::vector<new_job> jobs;
  auto one_more = [&](std::size_t place, std::uint8_t byte) {
    jobs.push_back(make_job(1));
    jobs.back().id.data[place] = byte;
  };
  constexpr std::size_t bytes = 16;
  for (std::size_t i = 0; i < bytes; ++i) {
    auto const as_it_is = numbered_job(1).data[i];
    if (as_it_is > 0) one_more(i, as_it_is - 1);
    one_more(i, 0xff);
  }
  std::sort(jobs.begin(), jobs.end(), [](auto const& x, auto const& y) { return x.id < y.id; });
  auto const n = static_cast<std::uint32_t>(jobs.size());
  for (auto const& made : b.must(command::enqueue_jobs{"queue", jobs})) {
    expect(made.outcome == enqueue_outcome::enqueued, "jobs with other ids are other jobs");
  }
  auto const d = dequeue(b, "queue", "holder", n, b.lasting);
  bool const same = std::equal(d.jobs.begin(), d.jobs.end(), jobs.begin(), jobs.end(),
                               [](auto const& got, auto const& made) { return got.id == made.id; });
  expect(same, "each job comes once, byte for byte by its id, in that order; got " + to_text(d));
  for (auto const& j : jobs) {
    auto const kept = b.must(command::find_job{"queue", j.id});
    expect(kept.has_value() && kept->id == j.id, "a job is found by every byte of its id");
  }
}

inline void bad_job_input_is_refused(job_bench& b) {
  std::string const long_key(limits::key_size + 1, 'k');
  std::string const large(limits::payload_size + 1, 'p');
  auto const rejected = [&](auto const& spoil, errc wanted) {
    new_job jobs[] = {make_job(1), make_job(2)};
    spoil(jobs[1]);
    b.refuses(command::enqueue_jobs{"queue", jobs}, wanted);
  };
  rejected([](new_job& j) { j.id = {}; }, errc::invalid_option);
  rejected([](new_job& j) { j.kind = {}; }, errc::invalid_kind);
  rejected([&](new_job& j) { j.kind = long_key; }, errc::invalid_kind);
  rejected([&](new_job& j) { j.payload = large; }, errc::payload_too_large);
  rejected([](new_job& j) { j.delay = duration{-1}; }, errc::invalid_wait);
  rejected([](new_job& j) { j.delay = limits::span + duration{1}; }, errc::invalid_wait);
  rejected([](new_job& j) { j.max_attempts = 0; }, errc::invalid_attempts);
  rejected([](new_job& j) { j.max_attempts = limits::attempts + 1; }, errc::invalid_attempts);
  rejected([](new_job& j) { j.unique_key = "without strategy"; }, errc::invalid_unique_key);
  rejected([](new_job& j) { j.strategy = unique_strategy::until_executed; },
           errc::invalid_unique_key);
  rejected([](new_job& j) { j.deadline = duration{-1}; }, errc::invalid_wait);
  rejected([](new_job& j) { j.retention = duration{-1}; }, errc::invalid_wait);
  b.refuses(command::enqueue_jobs{"queue", {}}, errc::invalid_batch);
  auto const good = make_job(1);
  b.refuses(command::enqueue_jobs{"", std::span{&good, 1}}, errc::invalid_queue);
  b.refuses(command::enqueue_jobs{long_key, std::span{&good, 1}}, errc::invalid_queue);
  expect(stats(b, "queue").enqueued == 0, "a batch with one bad job adds none");
  b.refuses(command::dequeue_jobs{"queue", "", 0, 1, b.lasting}, errc::invalid_holder);
  b.refuses(command::dequeue_jobs{"queue", "h", 0, 0, b.lasting}, errc::invalid_batch);
  b.refuses(command::dequeue_jobs{"queue", "h", 0, limits::batch + 1, b.lasting},
            errc::invalid_batch);
  b.refuses(command::dequeue_jobs{"queue", "h", 0, 1, duration::zero()}, errc::invalid_ttl);
  b.refuses(command::peek_jobs{"queue", 0}, errc::invalid_batch);
  b.refuses(command::scan_visible_queues{b.store().shard_count(), 1, 0}, errc::invalid_shard);
  b.refuses(command::gc_stale_pointers{b.store().shard_count(), 1, {}}, errc::invalid_shard);
  b.refuses(command::list_queues{b.store().shard_count(), 1, {}}, errc::invalid_shard);
  b.refuses(command::scan_visible_queues{0, 0, 0}, errc::invalid_batch);

  add(b, "queue", make_job(1));
  auto const j = claim(b, "queue", 1);
  std::string const long_memo(limits::memo_size + 1, 'm');
  b.refuses(command::snooze_job{"queue", j.id, j.fence, {}, long_memo}, errc::payload_too_large);
  b.refuses(command::snooze_job{"queue", j.id, j.fence, duration{-1}, {}}, errc::invalid_wait);
  b.refuses(command::requeue_job{"queue", j.id, j.fence, duration{-1}, {}}, errc::invalid_wait);
  b.refuses(command::extend_lease{"queue", j.id, j.fence, duration::zero()}, errc::invalid_ttl);
  finished_job const f{j.id, j.fence, large};
  b.refuses(command::complete_jobs{"queue", std::span{&f, 1}}, errc::payload_too_large);
  expect_state(b, "queue", 1, job_state::leased);
  std::string const long_reason(2 * limits::reason_size, 'r');
  b.must(command::bury_job{"queue", j.id, j.fence, long_reason});
  auto const dead = expect_state(b, "queue", 1, job_state::dead);
  expect(dead.reason.size() <= limits::reason_size && dead.reason.size() + 4 > limits::reason_size,
         "a long reason is cut, not refused");
  auto largest = make_job(3);
  largest.payload = std::string_view{large}.substr(1);
  add(b, "queue", largest);
  expect(claim(b, "queue", 3).payload.size() == limits::payload_size,
         "the largest payload is accepted");
}

inline void transactions_are_the_applications(job_bench& b) {
  b.need(static_cast<bool>(b.transact()), "the driver does no transactions");
  b.need(b.source() != time_source::told, "an application's transaction has the store's own time");
  auto const one = make_unique_job(1, unique_strategy::until_executed);
  auto const undone = b.transact()(command::enqueue_jobs{"queue", std::span{&one, 1}}, false);
  expect(undone.has_value() && undone->size() == 1, "enqueueing in a transaction succeeds");
  expect(!find(b, "queue", 1) && stats(b, "queue").enqueued == 0, "what was rolled back never was");
  auto const two = make_unique_job(2, unique_strategy::until_executed);
  auto const done = b.transact()(command::enqueue_jobs{"queue", std::span{&two, 1}}, true);
  expect(done.has_value() && done->front().outcome == enqueue_outcome::enqueued,
         "a rolled back key is free");
  b.eventually([&] { return scanned(b, "queue"); }, "a scan finds what was committed");
  claim(b, "queue", 2);
}

inline void job_handlers_are_never_called_inline(job_bench& b) {
  b.need(b.source() != time_source::told,
         "told time is for tests: how its commands complete is not promised");
  auto const j = make_job(1);
  command::enqueue_jobs const c{"queue", std::span{&j, 1}};
  auto const p = b.start(c);
  expect(!p.done(), "a handler is not called before the function returns that was given it");
  b.eventually([&] { return p.done(); }, "an operation ends");
  expect(p.answer().has_value() && find(b, "queue", 1).has_value(),
         "and does what it was asked for");
}

inline constexpr check<job_commands> order_checks[] = {
    {"R4", "the best visible job first: priority, vesting time, id", &best_first},
    {"R4", "no job is claimed before its vesting time", &not_before_its_time},
    {"F30", "hundreds of leased and future jobs hide no ready one", &crowds_hide_nobody},
    {"F31", "counts follow time, and a queue is listed once", &counts_follow_time},
    {"R4", "peeking leases nothing", &peeking_leases_nothing},
    {"F45", "enqueueing a job again adds nothing", &enqueueing_again_adds_nothing},
    {"F38", "whoever waits for jobs is told", &hints_come},
    {"F6", "whoever runs a job that is cancelled is told", &cancelled_holders_are_told},
    {"F27", "no queue is taken for another, and bytes stay as they are", &queues_are_told_apart},
    {"F27", "no job is taken for another, by any byte of its id", &ids_are_told_apart},
    {"R8", "bad input is a typed error and changes nothing", &bad_job_input_is_refused},
    {"R4", "an enqueue in the application's transaction shares its fate",
     &transactions_are_the_applications},
    {"R7", "a handler is never called inline", &job_handlers_are_never_called_inline},
};

}  // namespace weir::testing::conformance

#endif
