// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_CARRIED_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_CARRIED_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/steps.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

// Headers, progress and checkpoints: the texts of a job beside its payload.
namespace weir::testing::conformance {

inline void headers_go_with_their_job(job_bench& b) {
  std::string const headers = every_byte();
  std::string const large(10'000, 'p');
  std::array jobs{make_job(1), make_unique_job(2, unique_strategy::until_executed), make_job(3)};
  for (auto& j : jobs) j.headers = headers;
  jobs[0].retention = b.lasting;
  jobs[1].payload = large;
  jobs[2].headers = {};
  b.must(command::enqueue_jobs{"queue", jobs});
  auto const of = [&](auto const& found, std::uint32_t n, std::string const& what) {
    expect(found.headers == (n == 3 ? std::string{} : headers),
           what + " has its own headers; got " + to_text(found));
    expect(found.payload == jobs[n - 1].payload && found.kind == "kind", "and all else");
  };
  auto const peeked = b.must(command::peek_jobs{"queue", 10});
  expect(peeked.size() == 3, "three jobs wait");
  for (std::uint32_t n = 1; n <= 3; ++n) of(peeked[n - 1], n, "a job that waits");
  std::array<leased_job, 3> claimed;
  for (std::uint32_t n = 1; n <= 3; ++n) {
    auto const& j = claimed[n - 1] = claim(b, "queue", n);
    of(j, n, "a leased job");
    of(expect_state(b, "queue", n, job_state::leased), n, "a job that is looked at");
  }
  for (std::uint32_t n = 1; n <= 3; ++n) {
    auto const& j = claimed[n - 1];
    if (n == 1) {
      expect(complete(b, "queue", j.id, j.fence, "result") == complete_outcome::completed,
             "it is completed");
      auto const kept = expect_state(b, "queue", n, job_state::completed);
      of(kept, n, "a completed job");
      expect(kept.result == "result", "and its result");
    } else {
      b.must(command::bury_job{"queue", j.id, j.fence, "why"});
      b.must(command::replay_dead_letter{"queue", j.id, {}});
      of(claim(b, "queue", n), n, "a replayed job");
    }
  }
}

inline void checkpoints_outlast_leases(job_bench& b) {
  auto kept = make_job(1);
  kept.retention = b.lasting;
  add(b, "queue", kept);
  std::string const bytes = every_byte();
  auto const extend = [&](leased_job const& j, std::string_view progress,
                          std::string_view checkpoint) {
    b.must(command::extend_lease{"queue", j.id, j.fence, b.lasting, progress, checkpoint});
  };
  auto const has = [&](std::string_view progress, std::string_view checkpoint) {
    auto const j = expect_state(b, "queue", 1, job_state::leased);
    expect(j.progress == progress && j.checkpoint == checkpoint,
           "a job has the progress and the checkpoint that were noted last; got " + to_text(j));
  };
  auto next = [&, attempt = 0U](duration lease = job_bench::lasting) mutable {
    auto const j = claim(b, "queue", 1, lease);
    expect(j.checkpoint == (attempt++ == 0 ? std::string{} : bytes),
           "a claim gives the last checkpoint; got " + to_text(j));
    return j;
  };
  auto const first = next();
  extend(first, "1/3", "an early one");
  has("1/3", "an early one");
  extend(first, "", bytes);
  has("1/3", bytes);
  extend(first, "2/3", "");
  extend(first, "", "");
  has("2/3", bytes);

  b.must(command::requeue_job{"queue", first.id, first.fence, {}, "it failed"});
  auto const second = next();
  b.refuses(command::extend_lease{"queue", first.id, first.fence, b.lasting, "stale", "stale"},
            errc::lease_lost);
  has("2/3", bytes);
  b.must(command::snooze_job{"queue", second.id, second.fence, {}, "memo"});
  auto const third = next();
  expect(third.memo == "memo", "and the memo beside it");
  b.must(command::return_job{"queue", third.id, third.fence});
  auto const fourth = next(b.brief());
  b.pass(2 * b.brief());
  b.refuses(command::extend_lease{"queue", fourth.id, fourth.fence, b.lasting, "late", "too late"},
            errc::lease_lost);
  auto const fifth = next();
  b.must(command::bury_job{"queue", fifth.id, fifth.fence, "why"});
  auto const dead = expect_state(b, "queue", 1, job_state::dead);
  expect(dead.progress == "2/3" && dead.checkpoint == bytes && dead.reason == "why",
         "a dead letter says how far it came; got " + to_text(dead));
  b.must(command::replay_dead_letter{"queue", fifth.id, {}});
  auto const last = next();
  extend(last, "3/3", "");
  expect(complete(b, "queue", last.id, last.fence, "result") == complete_outcome::completed,
         "it is completed");
  auto const done = expect_state(b, "queue", 1, job_state::completed);
  expect(done.progress == "3/3" && done.result == "result" && done.memo == "memo",
         "nothing takes the place of another; got " + to_text(done));
}

inline void what_is_carried_is_bounded(job_bench& b) {
  std::string const text(limits::checkpoint_size + 1, 'c');
  auto const of = [&](std::size_t size) { return std::string_view{text}.substr(0, size); };
  auto j = make_job(1);
  j.headers = of(limits::headers_size + 1);
  b.refuses(command::enqueue_jobs{"queue", {&j, 1}}, errc::payload_too_large);
  j.headers = of(limits::headers_size);
  add(b, "queue", j);
  auto const l = claim(b, "queue", 1);
  expect(l.headers == j.headers, "headers of the largest size are kept");
  auto const extend = [&](std::size_t progress, std::size_t checkpoint) {
    return command::extend_lease{"queue", l.id, l.fence, b.lasting, of(progress), of(checkpoint)};
  };
  b.refuses(extend(limits::progress_size + 1, 0), errc::payload_too_large);
  b.refuses(extend(0, limits::checkpoint_size + 1), errc::payload_too_large);
  auto const before = expect_state(b, "queue", 1, job_state::leased);
  expect(before.progress.empty() && before.checkpoint.empty(), "what is refused is not kept");
  b.must(extend(limits::progress_size, limits::checkpoint_size));
  auto const after = expect_state(b, "queue", 1, job_state::leased);
  expect(after.progress == of(limits::progress_size) &&
             after.checkpoint == of(limits::checkpoint_size),
         "a checkpoint of the largest size is kept");
}

inline constexpr check<job_commands> carried_checks[] = {
    {"R4", "headers go with their job", &headers_go_with_their_job},
    {"F104", "checkpoints outlast leases, and only a live lease writes them",
     &checkpoints_outlast_leases},
    {"R8", "headers, progress and checkpoints are bounded", &what_is_carried_is_bounded},
};

}  // namespace weir::testing::conformance

#endif
