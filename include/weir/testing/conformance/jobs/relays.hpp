// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_RELAYS_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_RELAYS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/testing/arena.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/operations.hpp"
#include "weir/testing/conformance/jobs/steps.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What is promised about jobs that end with others in their places, and about lists.
namespace weir::testing::conformance {

/// Relays by the payload: the job of the number 1 of `queue` to itself with another payload, and a
/// job of this number to the queue beside.
inline relayed relay(job_bench& b, std::string_view expected, std::string_view payload,
                     std::uint32_t added) {
  auto next = make_job(1);
  next.payload = payload;
  auto const job = make_job(added);
  auto const to = beside("queue");
  return b.must(command::relay_job{.queue = "queue",
                                   .id = numbered_job(1),
                                   .expected = expected,
                                   .next = std::span{&next, 1},
                                   .to = to,
                                   .jobs = std::span{&job, 1}});
}

inline void a_relay_is_one_step(job_bench& b) {
  auto const other = beside("queue");
  add(b, "queue", make_job(1));
  auto const held = claim(b, "queue", 1);
  auto next = make_job(2);
  next.delay = b.lasting;
  std::array const jobs{make_job(3), make_job(4)};
  command::relay_job c{.queue = "queue",
                       .id = held.id,
                       .fence = held.fence,
                       .next = std::span{&next, 1},
                       .to = other,
                       .jobs = jobs};
  auto const done = b.must(c);
  expect(done.outcome == relay_outcome::relayed && done.jobs.size() == 3 &&
             std::ranges::all_of(
                 done.jobs, [](auto const& e) { return e.outcome == enqueue_outcome::enqueued; }),
         "the holder relays its job; got " + to_text(done));
  expect(!find(b, "queue", 1), "the job has ended, and its record is not kept");
  expect_state(b, "queue", 2, job_state::pending);
  expect_state(b, other, 3, job_state::pending);
  expect_state(b, other, 4, job_state::pending);
  auto const here = stats(b, "queue");
  expect(here.completed == 1 && here.pending == 1 && here.enqueued == 2,
         "it counts as completed; got " + to_text(here));
  expect(stats(b, other).enqueued == 2, "and the others as enqueued");
  expect(scanned(b, other), "a scan finds the other queue");
  expect(!scanned(b, "queue"), "and not the first, whose job does not vest yet");
  b.refuses(c, errc::lease_lost);
  expect(stats(b, other).enqueued == 2, "asked again, it adds nothing");
  expect_lease_lost(b, "queue", held.id, held.fence);
}

inline void a_backlog_hides_no_schedule(job_bench& b) {
  for (std::uint32_t i = 0; i != 12; ++i) add(b, "queue" + std::to_string(i), make_job(i + 1));
  auto const other = beside("queue0");
  auto later = make_job(21);
  later.delay = b.brief();
  add(b, other, later);
  for (std::uint32_t shard = 0; shard < b.store().shard_count(); ++shard) {
    auto const due = b.must(command::scan_visible_queues{.shard = shard, .schedules = true});
    expect(due.queues.empty() && (!due.next_in || *due.next_in > duration::zero()),
           "no schedule is due, whatever jobs are; got " + to_text(due));
  }
  b.pass(b.brief() + b.grain());
  expect(scan(b, 1, 0, true) == std::vector{other}, "the first that is found is the schedule");
}

inline void one_of_many_relays_wins(job_bench& b) {
  auto const other = beside("queue");
  auto first = make_job(1);
  first.payload = "0";
  add(b, "queue", first);
  expect(relay(b, "0", "1", 2).outcome == relay_outcome::relayed, "the payload is as expected");
  auto const late = relay(b, "0", "1", 3);
  expect(late.outcome == relay_outcome::changed && late.jobs.empty(),
         "who relays from the same state again comes too late; got " + to_text(late));
  expect(!find(b, other, 3), "and has added nothing");
  expect(expect_state(b, "queue", 1, job_state::pending).payload == "1",
         "the successor has the id of the job that ended");
  auto const held = claim(b, "queue", 1);
  expect(relay(b, "1", "2", 4).outcome == relay_outcome::relayed, "a leased job is relayed, too");
  expect_lease_lost(b, "queue", held.id, held.fence);
  b.must(command::cancel_job{"queue", numbered_job(1)});
  auto const ended = relay(b, "2", "3", 5);
  expect(ended.outcome == relay_outcome::not_found && ended.jobs.empty(),
         "a job that has ended is not relayed; got " + to_text(ended));
  expect(stats(b, other).enqueued == 2, "each state was left once");
}

inline void a_successor_may_have_the_key(job_bench& b) {
  add(b, "queue", make_unique_job(1, unique_strategy::until_executed));
  auto const held = claim(b, "queue", 1);
  std::array const next{make_unique_job(2, unique_strategy::until_executed),
                        make_unique_job(3, unique_strategy::until_executed)};
  auto const done = b.must(
      command::relay_job{.queue = "queue", .id = held.id, .fence = held.fence, .next = next});
  expect(done.jobs.size() == 2 && done.jobs[0].outcome == enqueue_outcome::enqueued &&
             done.jobs[1].outcome == enqueue_outcome::duplicate &&
             done.jobs[1].other == numbered_job(2),
         "the key is free for the first successor; got " + to_text(done));
}

inline void relays_stay_in_a_shard(job_bench& b) {
  std::uint32_t refused = 0;
  for (std::uint32_t i = 1; i <= 64; ++i) {
    add(b, "queue", make_job(i));
    auto const job = make_job(1000 + i);
    auto const to = "elsewhere" + std::to_string(i);
    auto const answer = b.ask(command::relay_job{.queue = "queue",
                                                 .id = numbered_job(i),
                                                 .expected = "payload",
                                                 .to = to,
                                                 .jobs = std::span{&job, 1}});
    if (answer.has_value()) continue;
    ++refused;
    expect(answer.error() == errc::invalid_shard, "a queue of another shard is refused");
    expect_state(b, "queue", i, job_state::pending);
    expect(!find(b, to, 1000 + i), "and nothing was changed");
  }
  expect((refused != 0) == (b.store().shard_count() > 1), "where there are other shards");
}

inline void bad_relays_are_refused(job_bench& b) {
  add(b, "queue", make_job(1));
  auto const job = make_job(2);
  std::span const one{&job, 1};
  auto const other = beside("queue");
  std::string const long_text(limits::payload_size + 1, 'x');
  command::relay_job const good{
      .queue = "queue", .id = numbered_job(1), .expected = "payload", .next = one};
  auto with = [&](auto change) {
    auto c = good;
    change(c);
    return c;
  };
  b.refuses(with([](auto& c) { c.queue = {}; }), errc::invalid_queue);
  b.refuses(with([](auto& c) { c.fence = 1; }), errc::invalid_option);
  b.refuses(with([&](auto& c) { c.expected = long_text; }), errc::payload_too_large);
  b.refuses(with([&](auto& c) { c.jobs = one; }), errc::invalid_queue);
  b.refuses(with([&](auto& c) { c.to = other; }), errc::invalid_queue);
  b.refuses(with([&](auto& c) {
              c.to = "queue";
              c.jobs = one;
            }),
            errc::invalid_queue);
  auto nameless = job;
  nameless.id = {};
  b.refuses(with([&](auto& c) { c.next = std::span{&nameless, 1}; }), errc::invalid_option);
  b.refuses(with([&](auto& c) {
              c.to = other;
              c.jobs = std::span{&nameless, 1};
            }),
            errc::invalid_option);
  expect(expect_state(b, "queue", 1, job_state::pending).payload == "payload",
         "nothing was changed");
}

/// Every job in this state, page by page.
inline std::vector<job_id> listed(job_bench& b, std::string_view queue, job_state state,
                                  std::uint32_t limit) {
  std::vector<job_id> out;
  std::string cursor;
  do {
    auto const page = b.must(command::list_jobs{queue, state, limit, cursor});
    expect(page.jobs.size() <= limit, "a page is no longer than asked for");
    for (auto const& j : page.jobs) {
      expect(j.state == state, "a list of what is " + std::string{to_string(state)} +
                                   " has no other job; got " + to_text(j));
      out.push_back(j.id);
    }
    cursor = page.cursor;
  } while (!cursor.empty());
  std::ranges::sort(out);
  return out;
}

inline void jobs_are_listed_by_state(job_bench& b) {
  expect(listed(b, "queue", job_state::pending, 10).empty(), "a queue that is not there has none");
  constexpr std::uint32_t of_each = 7;
  for (std::uint32_t n = 1; n <= 5 * of_each; ++n) {
    auto j = make_job(n);
    j.retention = b.lasting;
    if (n <= of_each) j.delay = b.lasting;  // those wait
    add(b, "queue", j);
  }
  std::vector<job_id> leased;
  for (std::uint32_t n = of_each; n < 5 * of_each; ++n) {
    auto const d = dequeue(b, "queue", "holder", 1, b.lasting);
    expect(d.jobs.size() == 1, "each is given out");
    auto const& j = d.jobs[0];
    switch (n % 4) {
      case 0: expect_completed(b, "queue", j); break;
      case 1: b.must(command::bury_job{"queue", j.id, j.fence, "reason"}); break;
      case 2: b.must(command::cancel_job{"queue", j.id, true}); break;
      default: leased.push_back(j.id);
    }
  }
  std::ranges::sort(leased);
  for (std::uint32_t const limit : {1U, 3U, 100U}) {
    std::size_t all = 0;
    for (auto const s : {job_state::pending, job_state::leased, job_state::completed,
                         job_state::dead, job_state::cancelled}) {
      auto const ids = listed(b, "queue", s, limit);
      expect(std::ranges::adjacent_find(ids) == ids.end(), "each job is listed once");
      expect(ids.size() == of_each, "every job that is " + std::string{to_string(s)} +
                                        " is listed; got " + std::to_string(ids.size()));
      all += ids.size();
      if (s == job_state::leased) expect(ids == leased, "what is leased is listed as that");
    }
    expect(all == std::size_t{5} * of_each, "every job is in one state");
  }
  b.refuses(command::list_jobs{"queue", job_state::pending, 10, "no cursor"}, errc::invalid_option);
  b.refuses(command::list_jobs{"queue", job_state::dead, 0, {}}, errc::invalid_batch);
}

inline void long_lists_are_cut(job_bench& b) {
  constexpr std::uint32_t many = 2500;
  std::vector<new_job> jobs;
  for (std::uint32_t n = 1; n <= many; ++n) jobs.push_back(make_job(n));
  b.must(command::enqueue_jobs{"queue", jobs});
  claim(b, "queue", 1);
  expect(listed(b, "queue", job_state::leased, 10) == std::vector{numbered_job(1)},
         "one of many is found");
  expect(listed(b, "queue", job_state::pending, 1000).size() == many - 1, "and all the others");
}

inline constexpr check<job_commands> relay_checks[] = {
    {"R4", "a job ends and others come in its place in one step", &a_relay_is_one_step},
    {"R4", "of several relays from one state, one is done", &one_of_many_relays_wins},
    {"F39", "no backlog of jobs hides a schedule", &a_backlog_hides_no_schedule},
    {"F18", "a successor may have the key of the job that ended", &a_successor_may_have_the_key},
    {"R4", "a relay stays within a shard", &relays_stay_in_a_shard},
    {"R8", "a bad relay is refused, and changes nothing", &bad_relays_are_refused},
    {"R4", "jobs are listed by their states", &jobs_are_listed_by_state},
    {"R4", "a list of many jobs is cut into pages", &long_lists_are_cut},
};

/// Takes a job from one state to the next, whose number is its payload, and each time adds a job to
/// the queue beside. Several do so at once.
class relay_client final : public arena<job_commands>::client {
 public:
  static constexpr std::string_view queue = "queue";

  relay_client(arena<job_commands>& in, std::uint32_t number, std::size_t operations)
      : client{in},
        other_{beside(queue)},
        first_{number * 10'000},
        left_{operations} {}

  [[nodiscard]] std::uint64_t relays() const noexcept { return relays_; }
  [[nodiscard]] std::string const& failure() const noexcept { return failure_; }

  bool next() override {
    if (left_ == 0) return false;
    --left_;
    if (!std::exchange(looks_, !looks_)) {
      advance();
      return true;
    }
    ask(command::find_job{queue, numbered_job(1)},
        [this](auto const& a, std::uint64_t, std::uint64_t) {
          if (failed(a)) return;
          if (*a) {
            expected_ = (*a)->payload;
          } else {
            failure_ = "the job is gone";
          }
        });
    return true;
  }

 private:
  void advance() {
    payload_ = std::to_string(std::stoul(expected_) + 1);
    next_ = make_job(1);
    next_.payload = payload_;
    job_ = make_job(first_++);
    ask(command::relay_job{.queue = queue,
                           .id = numbered_job(1),
                           .expected = expected_,
                           .next = std::span{&next_, 1},
                           .to = other_,
                           .jobs = std::span{&job_, 1}},
        [this](auto const& a, std::uint64_t, std::uint64_t) {
          if (failed(a)) return;
          if (a->outcome == relay_outcome::relayed) ++relays_;
          if (a->outcome == relay_outcome::not_found) failure_ = "the job is gone";
        });
  }

  template <class Answer>
  bool failed(Answer const& a) {
    if (a.has_error() && failure_.empty()) failure_ = "a command failed: " + a.error().message();
    return a.has_error();
  }

  std::string other_;
  std::uint32_t first_;
  std::size_t left_;
  bool looks_ = false;
  std::string expected_ = "0";
  std::string payload_;
  new_job next_;
  new_job job_;
  std::uint64_t relays_ = 0;
  std::string failure_;
};

inline void relays_are_done_once(job_bench& b, std::uint64_t) {
  auto first = make_job(1);
  first.payload = "0";
  add(b, relay_client::queue, first);
  arena<job_commands> in{b};
  std::vector<std::shared_ptr<relay_client>> clients;
  for (std::uint32_t i = 1; i <= b.settings().clients; ++i) {
    clients.push_back(std::make_shared<relay_client>(in, i, b.settings().operations));
  }
  in.run({clients.begin(), clients.end()});
  std::uint64_t relays = 0;
  for (auto const& c : clients) {
    expect(c->failure().empty(), c->failure());
    relays += c->relays();
  }
  auto const last = expect_state(b, relay_client::queue, 1, job_state::pending);
  expect(last.payload == std::to_string(relays) && relays > 0,
         std::to_string(relays) + " were told that they relayed, but the job is at " +
             last.payload);
  expect(stats(b, beside(relay_client::queue)).enqueued == relays, "and each added one job");
}

inline void relay_concurrency(factory<job_commands> const& f, report& out, settings const& s) {
  check_concurrency(f, {"jobs", "R4", "of concurrent relays from one state, one is done"},
                    &relays_are_done_once, out, s);
}

}  // namespace weir::testing::conformance

#endif
