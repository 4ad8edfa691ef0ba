// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_BYTES_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_BYTES_HPP

#include "weir/command/jobs.hpp"
#include "weir/limits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/steps.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// The bounds in bytes of a command and of an answer.
namespace weir::testing::conformance {

/// Bytes of the texts of a job, enqueued, leased or read.
template <class Row>
[[nodiscard]] std::size_t text_bytes(Row const& r) {
  auto n = r.kind.size() + r.payload.size() + r.unique_key.size();
  if constexpr (requires { r.headers; }) n += r.headers.size();
  if constexpr (requires { r.memo; }) n += r.memo.size() + r.checkpoint.size();
  if constexpr (requires { r.result; }) {
    n += r.progress.size() + r.result.size() + r.reason.size();
  }
  return n;
}

/// Requires that an answer keeps to its bytes, and that one which ended for them is not a small
/// one: at least half of what it may have.
template <class Rows>
void expect_bounded(Rows const& rows, bool ended_early, std::string const& answer) {
  std::size_t bytes = 0;
  for (auto const& row : rows) bytes += text_bytes(row);
  auto const got = "; got " + std::to_string(rows.size()) + " with " + std::to_string(bytes);
  expect(bytes <= limits::answer_bytes, answer + " has up to limits::answer_bytes" + got);
  expect(!ended_early || bytes > limits::answer_bytes / 2,
         answer + " is as large as it may be" + got);
}

/// Enqueues `n` jobs like this one in as few commands as the store takes, from number 1 on.
inline void add_large(job_bench& b, std::string_view queue, std::uint32_t n, new_job const& like) {
  auto const most = static_cast<std::uint32_t>(b.can().batch_bytes / text_bytes(like));
  for (std::uint32_t first = 1; first <= n; first += most) {
    std::vector<new_job> jobs(std::min(most, n + 1 - first), like);
    for (std::uint32_t i = 0; i < jobs.size(); ++i) jobs[i].id = numbered_job(first + i);
    for (auto const& made : b.must(command::enqueue_jobs{queue, jobs})) {
      expect(made.outcome == enqueue_outcome::enqueued, "large jobs are enqueued together");
    }
  }
}

/// More jobs of the largest size than fit into two answers.
[[nodiscard]] inline std::uint32_t several_answers(job_bench const& b) {
  return static_cast<std::uint32_t>(5 * limits::answer_bytes / 2 / b.can().payload_size);
}

inline void large_jobs_come_by_and_by(job_bench& b) {
  std::string const text(b.can().payload_size, 'p');
  auto const n = several_answers(b);
  auto like = make_job(0);
  like.payload = text;
  like.retention = b.lasting;
  add_large(b, "queue", n, like);

  auto const peeked = b.must(command::peek_jobs{"queue", n});
  expect(!peeked.empty() && peeked.size() < n && peeked[0].id == numbered_job(1),
         "a peek gives the first of them");
  expect_bounded(peeked, true, "a peek");

  std::uint32_t listed = 0;
  std::string cursor;
  do {
    auto const page = b.must(command::list_jobs{"queue", job_state::pending, n, cursor});
    expect_bounded(page.jobs, false, "a page of jobs");
    for (auto const& j : page.jobs) expect(j.payload == text, "none is cut");
    listed += static_cast<std::uint32_t>(page.jobs.size());
    cursor = page.cursor;
  } while (!cursor.empty());
  expect(listed == n, "every job is listed");

  std::uint32_t next = 1;
  std::vector<leased_job> all;
  for (bool more = true; more;) {
    auto d = dequeue(b, "queue", "holder", n, b.lasting);
    expect(!d.jobs.empty(), "a dequeue that says more is followed by one that gives more");
    expect_bounded(d.jobs, d.more, "a dequeue");
    more = d.more;
    for (auto& j : d.jobs) {
      expect(j.id == numbered_job(next++) && j.payload == text, "none is left out or cut");
      all.push_back(std::move(j));
    }
  }
  expect(all.size() == n, "every job is given out");

  // Their results, in as few commands as the store takes.
  std::string const kept(b.can().payload_size, 'r');
  auto const most = b.can().batch_bytes / kept.size();
  for (std::size_t first = 0; first < all.size(); first += most) {
    std::vector<finished_job> done;
    for (auto i = first; i < std::min(first + most, all.size()); ++i) {
      done.push_back({all[i].id, all[i].fence, kept});
    }
    for (auto const outcome : b.must(command::complete_jobs{"queue", done})) {
      expect(outcome == complete_outcome::completed, "large results are stored together");
    }
  }
  expect(expect_state(b, "queue", n, job_state::completed).result == kept, "and none is cut");
}

inline void large_dead_letters_come_by_and_by(job_bench& b) {
  std::string const text(b.can().payload_size, 'p');
  auto const n = several_answers(b);
  auto like = make_job(0);
  like.payload = text;
  like.max_attempts = 1;
  add_large(b, "queue", n, like);
  for (std::uint32_t i = 1; i <= n; ++i) {
    auto const j = claim(b, "queue", i);
    b.must(command::bury_job{"queue", j.id, j.fence, "why"});
  }
  std::uint32_t next = 1;
  std::string cursor;
  do {
    auto const page = b.must(command::list_dead_letters{"queue", n, cursor});
    expect(!page.jobs.empty(), "a page has at least one");
    expect_bounded(page.jobs, !page.cursor.empty(), "a page of dead letters");
    for (auto const& j : page.jobs) {
      expect(j.id == numbered_job(next++) && j.payload == text, "none is left out or cut");
    }
    cursor = page.cursor;
  } while (!cursor.empty());
  expect(next == n + 1, "every dead letter is listed");
}

inline void long_names_come_by_and_by(job_bench& b) {
  constexpr std::size_t n = limits::answer_bytes / limits::key_size + 100;
  std::set<std::string> names;
  for (std::size_t i = 0; i < n; ++i) {
    auto name = std::to_string(i);
    name.resize(limits::key_size, '-');
    add(b, name, make_job(static_cast<std::uint32_t>(i + 1)));
    names.insert(std::move(name));
  }
  auto const bytes_of = [](std::vector<std::string> const& queues) {
    std::size_t bytes = 0;
    for (auto const& q : queues) bytes += q.size();
    return bytes;
  };
  std::set<std::string> listed;
  for (std::uint32_t shard = 0; shard < b.store().shard_count(); ++shard) {
    auto const due = b.must(command::scan_visible_queues{shard, limits::batch});
    expect(bytes_of(due.queues) <= limits::answer_bytes, "a scan is bounded");
    std::string cursor;
    do {
      auto const page = b.must(command::list_queues{shard, limits::batch, cursor});
      expect(bytes_of(page.queues) <= limits::answer_bytes, "a page of names is bounded");
      listed.insert(page.queues.begin(), page.queues.end());
      cursor = page.cursor;
    } while (!cursor.empty());
    bool const all = due.queues.size() * limits::key_size > limits::answer_bytes / 2;
    expect(b.store().shard_count() > 1 || (all && due.next_in && *due.next_in <= duration::zero()),
           "a scan that was ended says that there are more");
  }
  expect(listed == names, "every queue is listed");
}

inline void batches_are_bounded_in_bytes(job_bench& b) {
  std::string const text(limits::payload_size, 'p');
  constexpr std::uint32_t n = limits::batch_bytes / limits::payload_size;
  std::vector<new_job> jobs(n, make_job(0));
  std::vector<finished_job> done(n + 1);
  for (std::uint32_t i = 0; i < n; ++i) {
    jobs[i].id = numbered_job(i + 1);
    jobs[i].payload = text;
  }
  for (auto& d : done) d = {numbered_job(1), 1, text};
  // Their kinds are what is too much.
  b.refuses(command::enqueue_jobs{"queue", jobs}, errc::invalid_batch);
  b.refuses(command::complete_jobs{"queue", done}, errc::invalid_batch);
  expect(stats(b, "queue").enqueued == 0, "nothing was enqueued");
}

/// A codec's payload is no text, and begins with a zero.
inline void payloads_are_bytes(job_bench& b) {
  std::string const every = every_byte();
  auto job = make_job(1);
  job.payload = every;
  job.retention = b.lasting;
  add(b, "queue", job);
  auto const kept = [&](std::string const& payload, std::string const& what) {
    expect(payload == every, what + " has every byte of its payload");
  };
  kept(b.must(command::peek_jobs{"queue", 1}).at(0).payload, "a job that waits");
  auto const claimed = claim(b, "queue", 1);
  kept(claimed.payload, "a leased job");
  b.must(command::bury_job{"queue", claimed.id, claimed.fence, "why"});
  kept(b.must(command::list_dead_letters{"queue", 1, {}}).jobs.at(0).payload, "a dead letter");
  b.must(command::replay_dead_letter{"queue", claimed.id, {}});
  auto const again = claim(b, "queue", 1);
  kept(again.payload, "a replayed job");
  finished_job const done{again.id, again.fence, every};
  b.must(command::complete_jobs{"queue", {&done, 1}});
  auto const ended = b.must(command::find_job{"queue", again.id});
  expect(ended && ended->result == every, "a result has every byte");
  kept(ended ? ended->payload : std::string{}, "a completed job");
}

inline constexpr check<job_commands> byte_checks[] = {
    {"R4", "payloads and results are bytes, and no text", &payloads_are_bytes},
    {"F60", "jobs of any size are given out, as many at a time as one answer holds",
     &large_jobs_come_by_and_by},
    {"F60", "dead letters of any size are listed", &large_dead_letters_come_by_and_by},
    {"F60", "queue names of any length are listed", &long_names_come_by_and_by},
    {"F59", "a batch is bounded in bytes, too", &batches_are_bounded_in_bytes},
};

}  // namespace weir::testing::conformance

#endif
