// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_STEPS_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_STEPS_HPP

#include "weir/command/jobs.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/conformance/jobs/operations.hpp"
#include "weir/testing/fields.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What most checks of queues do. Jobs are known by their numbers (`numbered_job`).
namespace weir::testing::conformance {

using job_bench = bench<job_commands>;

[[nodiscard]] inline new_job make_job(std::uint32_t number) noexcept {
  new_job j;
  j.id = numbered_job(number);
  j.kind = "kind";
  j.payload = "payload";
  return j;
}

[[nodiscard]] inline new_job make_unique_job(
    std::uint32_t number, unique_strategy s,
    conflict_policy p = conflict_policy::discard) noexcept {
  auto j = make_job(number);
  j.strategy = s;
  j.on_conflict = p;
  j.unique_key = "unique";
  if (s == unique_strategy::until_expired) j.unique_ttl = job_bench::lasting;
  return j;
}

[[nodiscard]] inline std::string every_byte() {
  std::string out;
  for (int i = 0; i != 256; ++i) out += static_cast<char>(i);
  return out;
}

/// Enqueues one job and gives the store's answer.
inline enqueued enqueue(job_bench& b, std::string_view queue, new_job const& j) {
  command::enqueue_jobs const c{queue, std::span{&j, 1}};
  auto const answer = b.must(c);
  expect(answer.size() == 1, to_text(c) + " should have one outcome; got " + to_text(answer));
  return answer.front();
}

/// Enqueues one job that nothing stands in the way of.
inline void add(job_bench& b, std::string_view queue, new_job const& j,
                std::source_location at = std::source_location::current()) {
  auto const answer = enqueue(b, queue, j);
  expect(answer.outcome == enqueue_outcome::enqueued,
         "job " + to_text(j.id) + " should have been enqueued; got " + to_text(answer), at);
}

inline dequeued dequeue(job_bench& b, std::string_view queue, std::string_view holder,
                        std::uint32_t limit, duration lease, std::uint64_t sequence = 0) {
  command::dequeue_jobs const c{queue, holder, sequence, limit, lease};
  auto const d = b.must(c);
  expect(d.jobs.size() <= limit, to_text(c) + " gave out more than asked for: " + to_text(d));
  for (auto const& j : d.jobs) {
    expect(j.fence > 0 && j.attempt > 0 && j.attempt <= j.max_attempts &&
               j.expires_in > duration::zero() && j.expires_in <= lease + b.slack() + b.grain(),
           to_text(c) + " gave out a lease that makes no sense: " + to_text(j));
  }
  return d;
}

/// Claims one job, which must be this one.
inline leased_job claim(job_bench& b, std::string_view queue, std::uint32_t number,
                        duration lease = job_bench::lasting, std::string_view holder = "holder",
                        std::source_location at = std::source_location::current()) {
  auto const d = dequeue(b, queue, holder, 1, lease);
  expect(d.jobs.size() == 1 && d.jobs[0].id == numbered_job(number),
         "job " + to_text(numbered_job(number)) + " should be given out; got " + to_text(d), at);
  return d.jobs[0];
}

inline void expect_nothing(job_bench& b, std::string_view queue, std::string const& why,
                           std::source_location at = std::source_location::current()) {
  auto const d = dequeue(b, queue, "nobody", 10, b.lasting);
  expect(d.jobs.empty(), why + "; got " + to_text(d), at);
}

inline std::optional<job> find(job_bench& b, std::string_view queue, std::uint32_t number) {
  return b.must(command::find_job{queue, numbered_job(number)});
}

/// Requires that the job is in this state, and gives it.
inline job expect_state(job_bench& b, std::string_view queue, std::uint32_t number, job_state state,
                        std::source_location at = std::source_location::current()) {
  auto const j = find(b, queue, number);
  expect(j.has_value() && j->state == state,
         "job " + to_text(numbered_job(number)) + " should be " + std::string{to_string(state)} +
             ", but the store says: " + to_text(j),
         at);
  return *j;
}

inline complete_outcome complete(job_bench& b, std::string_view queue, job_id const& id,
                                 std::uint64_t fence, std::string_view with = {}) {
  finished_job const f{id, fence, with};
  auto const answer = b.must(command::complete_jobs{queue, std::span{&f, 1}});
  expect(answer.size() == 1, "completing one job has one outcome; got " + to_text(answer));
  return answer.front();
}

inline void expect_completed(job_bench& b, std::string_view queue, leased_job const& j,
                             std::source_location at = std::source_location::current()) {
  expect(complete(b, queue, j.id, j.fence) == complete_outcome::completed,
         "the holder of " + to_text(j.id) + " should be able to complete it", at);
}

inline queue_stats stats(job_bench& b, std::string_view queue) {
  auto const s = b.must(command::read_queue_stats{queue});
  expect(s.enqueued == s.pending + s.leased + s.completed + s.dead + s.cancelled + s.purged,
         "every enqueued job is in exactly one state; got " + to_text(s));
  return s;
}

/// Every queue of every shard that a scan lists.
inline std::vector<std::string> scan(job_bench& b, std::uint32_t limit = 100,
                                     std::uint64_t entropy = 0, bool schedules = false) {
  std::vector<std::string> out;
  for (std::uint32_t shard = 0; shard < b.store().shard_count(); ++shard) {
    auto const found = b.must(command::scan_visible_queues{shard, limit, entropy, schedules});
    expect(found.queues.size() <= limit, "a scan lists no more than asked for");
    out.insert(out.end(), found.queues.begin(), found.queues.end());
  }
  return out;
}

inline bool scanned(job_bench& b, std::string_view queue) {
  bool const schedules = queue.starts_with(companion_prefix);
  auto const found = scan(b, 100, 0, schedules);
  auto const n = std::count(found.begin(), found.end(), queue);
  auto const others = scan(b, 100, 0, !schedules);
  expect(std::count(others.begin(), others.end(), queue) == 0, "schedules are found apart");
  expect(n <= 1, "a scan lists a queue once");
  return n == 1;
}

/// Requires that whoever names this fence is told that its lease is lost.
inline void expect_lease_lost(job_bench& b, std::string_view queue, job_id const& id,
                              std::uint64_t fence,
                              std::source_location at = std::source_location::current()) {
  b.refuses(command::extend_lease{queue, id, fence, b.lasting}, errc::lease_lost, at);
  b.refuses(command::start_job{queue, id, fence}, errc::lease_lost, at);
  b.refuses(command::requeue_job{queue, id, fence, {}, "late"}, errc::lease_lost, at);
  b.refuses(command::snooze_job{queue, id, fence, {}, "late"}, errc::lease_lost, at);
  b.refuses(command::return_job{queue, id, fence}, errc::lease_lost, at);
  b.refuses(command::bury_job{queue, id, fence, "late"}, errc::lease_lost, at);
  auto const next = make_job(1'000'000);
  if (fence != 0) {
    b.refuses(command::relay_job{.queue = queue, .id = id, .fence = fence, .next = {&next, 1}},
              errc::lease_lost, at);
  }
  expect(complete(b, queue, id, fence) == complete_outcome::lease_lost,
         "completing " + to_text(id) + " with a lost lease says lease_lost", at);
}

}  // namespace weir::testing::conformance

#endif
