// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

// The promises with several threads at work. What is asserted is the end, and what no thread may
// ever see.

namespace {

using namespace test;
namespace asio = boost::asio;

constexpr int threads = 4;

void run_in_threads(auto&& body) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back([&body, t] { body(t); });
  for (auto& t : all) t.join();
}

struct common_clock {
  std::atomic<std::int64_t> micros{1'800'000'000'000'000};
  time_point tick() {
    return time_point{std::chrono::microseconds{micros.fetch_add(1, std::memory_order_relaxed)}};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_threads)

BOOST_AUTO_TEST_CASE(R4_every_job_is_completed_once_whoever_claims_it) {
  constexpr int per_thread = 1500;
  for (std::uint32_t const shards : {1U, 4U}) {
    detail::memory_jobs jobs{memory_options{.max_jobs = 100'000, .shards = shards}};
    common_clock clock;
    std::array<std::string, 6> queues;
    for (std::size_t i = 0; i < queues.size(); ++i) queues[i] = "queue-" + std::to_string(i);
    std::vector<std::atomic<int>> completions(threads * per_thread);
    std::atomic<int> wrong{0};

    run_in_threads([&](int t) {
      std::mt19937 random{static_cast<std::uint32_t>(t)};
      auto const holder = "holder-" + std::to_string(t);
      std::uint64_t sequence = 0;
      auto const work = [&](std::string const& queue, duration lease) {
        auto const got = jobs.apply(command::dequeue_jobs{.queue = queue,
                                                          .holder = holder,
                                                          .sequence = ++sequence,
                                                          .limit = 3,
                                                          .lease = lease},
                                    clock.tick());
        for (auto const& j : got.value().jobs) {
          switch (random() % 8) {
            case 0:
              (void)jobs.apply(command::return_job{.queue = queue, .id = j.id, .fence = j.fence},
                               clock.tick());
              break;
            case 1:
              (void)jobs.apply(
                  command::snooze_job{
                      .queue = queue, .id = j.id, .fence = j.fence, .delay = 5us, .memo = "m"},
                  clock.tick());
              break;
            case 2: break;  // crashes
            default: {
              finished_job const f{.id = j.id, .fence = j.fence, .result = {}};
              auto const done =
                  jobs.apply(command::complete_jobs{.queue = queue, .jobs = {&f, 1}}, clock.tick())
                      .value();
              if (done.front() == complete_outcome::completed) ++completions[number_of(j.id) - 1];
            }
          }
        }
      };
      for (int i = 0; i < per_thread; ++i) {
        auto j = make_job(static_cast<std::uint64_t>(t * per_thread + i + 1));
        j.max_attempts = 1'000'000;
        auto const& queue = queues[random() % queues.size()];
        if (!jobs.apply(command::enqueue_jobs{.queue = queue, .jobs = {&j, 1}}, clock.tick())
                 .has_value())
          ++wrong;
        work(queues[random() % queues.size()], 20us);
        auto const s = jobs.apply(command::read_queue_stats{.queue = queue}, clock.tick()).value();
        if (s.enqueued != s.pending + s.leased + s.completed + s.dead) ++wrong;
      }
      for (;;) {  // until nothing is left
        bool empty = true;
        for (auto const& queue : queues) {
          work(queue, 50us);
          empty =
              empty && !jobs.apply(command::min_vesting_time{.queue = queue}, clock.tick()).value();
        }
        if (empty) break;
      }
    });

    BOOST_TEST(wrong == 0);
    int once = 0;
    for (auto const& c : completions) once += c == 1 ? 1 : 0;
    BOOST_TEST(once == threads * per_thread);
    std::uint64_t completed = 0;
    for (auto const& queue : queues) {
      completed +=
          jobs.apply(command::read_queue_stats{.queue = queue}, clock.tick()).value().completed;
    }
    BOOST_TEST(completed == static_cast<std::uint64_t>(threads * per_thread));
  }
}

BOOST_AUTO_TEST_CASE(R2_F17_concurrent_twins_leave_one) {
  detail::memory_jobs jobs{memory_options{}};
  common_clock clock;
  constexpr std::uint64_t rounds = 500;
  std::vector<std::atomic<int>> winners(rounds);
  run_in_threads([&](int t) {
    for (std::uint64_t r = 0; r < rounds; ++r) {
      auto const key = "key-" + std::to_string(r);
      auto const j = unique_job(r * threads + static_cast<std::uint64_t>(t) + 1,
                                unique_strategy::until_executed, conflict_policy::discard, key);
      auto const out =
          jobs.apply(command::enqueue_jobs{.queue = "q", .jobs = {&j, 1}}, clock.tick()).value();
      if (out.front().outcome == enqueue_outcome::enqueued) ++winners[r];
    }
  });
  for (auto const& w : winners) BOOST_TEST(w == 1);
}

BOOST_AUTO_TEST_CASE(R2_one_runs_at_a_time) {
  detail::memory_jobs jobs{memory_options{}};
  common_clock clock;
  constexpr std::uint64_t count = 400;
  for (std::uint64_t n = 1; n <= count; ++n) {
    auto const j = unique_job(n, unique_strategy::while_executing);
    (void)jobs.apply(command::enqueue_jobs{.queue = "q", .jobs = {&j, 1}}, clock.tick());
  }
  std::atomic<int> running{0};
  std::atomic<int> overlaps{0};
  std::atomic<std::uint64_t> done{0};
  run_in_threads([&](int t) {
    auto const holder = "holder-" + std::to_string(t);
    while (done < count) {
      auto const got =
          jobs.apply(
                  command::dequeue_jobs{
                      .queue = "q", .holder = holder, .sequence = 0, .limit = 1, .lease = 1h},
                  clock.tick())
              .value();
      for (auto const& j : got.jobs) {
        auto const start =
            jobs.apply(command::start_job{.queue = "q", .id = j.id, .fence = j.fence}, clock.tick())
                .value();
        if (start.outcome == start_outcome::blocked) {
          (void)jobs.apply(command::return_job{.queue = "q", .id = j.id, .fence = j.fence},
                           clock.tick());
          continue;
        }
        if (running.fetch_add(1) != 0) ++overlaps;
        running.fetch_sub(1);
        finished_job const f{.id = j.id, .fence = j.fence, .result = {}};
        if (jobs.apply(command::complete_jobs{.queue = "q", .jobs = {&f, 1}}, clock.tick())
                .has_value())
          ++done;
      }
    }
  });
  BOOST_TEST(overlaps == 0);
  BOOST_TEST(done == count);
}

BOOST_AUTO_TEST_CASE(R8_the_bound_holds_across_shards) {
  constexpr std::size_t most = 2000;
  detail::memory_jobs jobs{memory_options{.max_jobs = most, .shards = 16}};
  common_clock clock;
  std::atomic<std::int64_t> present{0};
  std::atomic<int> exceeded{0};
  run_in_threads([&](int t) {
    std::mt19937 random{static_cast<std::uint32_t>(t)};
    std::vector<std::pair<std::string, job_id>> mine;
    for (std::uint64_t i = 1; i <= 6000; ++i) {
      auto const j = make_job(static_cast<std::uint64_t>(t) * 10'000 + i);
      auto const queue = "queue-" + std::to_string(random() % 40);
      if (jobs.apply(command::enqueue_jobs{.queue = queue, .jobs = {&j, 1}}, clock.tick())
              .has_value()) {
        if (present.fetch_add(1) >= static_cast<std::int64_t>(most)) ++exceeded;
        mine.emplace_back(queue, j.id);
      }
      if (!mine.empty() && random() % 5 < 2) {
        present.fetch_sub(1);
        (void)jobs.apply(command::cancel_job{.queue = mine.back().first,
                                             .id = mine.back().second,
                                             .running = false},
                         clock.tick());
        mine.pop_back();
      }
    }
  });
  BOOST_TEST(exceeded == 0);
  BOOST_TEST(present <= static_cast<std::int64_t>(most));
}

BOOST_AUTO_TEST_CASE(R7_waits_are_woken_and_cancelled_from_all_sides) {
  detail::memory_jobs jobs{memory_options{.shards = 2}};
  common_clock clock;
  std::atomic<int> ended{0};
  int started = 0;
  {
    asio::io_context context;
    auto guard = asio::make_work_guard(context);
    std::thread runner{[&] { context.run(); }};
    std::mutex mutex;
    run_in_threads([&](int t) {
      for (std::uint64_t i = 0; i < 500; ++i) {
        asio::cancellation_signal signal;
        auto const done = std::make_shared<std::atomic<bool>>(false);
        jobs.await(command::await_jobs{.shard = static_cast<std::uint32_t>(i % 2)}, clock.tick(),
                   asio::bind_cancellation_slot(signal.slot(),
                                                [&ended, done](error_code, hint) {
                                                  ++ended;
                                                  *done = true;
                                                }),
                   context.get_executor());
        {
          std::lock_guard const lock{mutex};
          ++started;
        }
        auto const j = make_job(static_cast<std::uint64_t>(t) * 1000 + i + 1);
        auto const queue = "queue-" + std::to_string(i % 7);
        (void)jobs.apply(command::enqueue_jobs{.queue = queue, .jobs = {&j, 1}}, clock.tick());
        (void)jobs.apply(command::cancel_job{.queue = queue, .id = j.id, .running = true},
                         clock.tick());
        (void)jobs.apply(command::update_queue_pointer{.queue = queue}, clock.tick());
        signal.emit(asio::cancellation_type::total);
        while (!*done) std::this_thread::yield();
      }
    });
    guard.reset();
    runner.join();
  }
  BOOST_TEST(ended == started);
}

BOOST_AUTO_TEST_SUITE_END()
