// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_LIMITS_HPP
#define WEIR_BENCH_LIMITS_HPP

#include "../test/counting_store.hpp"
#include "report.hpp"
#include "weir/job_traits.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

// A backlog of jobs of which a concurrency limit lets one run at a time: is its permit used, and
// what does a worker ask the store for meanwhile (F73)?

namespace weir_bench {

/// Runs for 50 ms, one at a time of each key.
struct one_at_a_time {
  int key = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(one_at_a_time, key)
};

}  // namespace weir_bench

template <>
struct weir::job_traits<weir_bench::one_at_a_time> {
  static constexpr std::string_view kind = "one at a time";
  static constexpr std::uint32_t concurrency = 1;
  static std::string concurrency_key(weir_bench::one_at_a_time const& job) {
    return "key " + std::to_string(job.key);
  }
};

namespace weir_bench {

struct limited_run {
  double completed = 0;
  double refused = 0;  ///< for each that has completed
  double asked = 0;    ///< commands for each that has completed
};

/// Ten seconds of a worker with this many jobs for each of so many keys.
template <class Bed>
limited_run run_limited(int keys, int jobs) {
  using store_type = weir_test::counting_store<typename Bed::store_type>;
  Bed bed;
  constexpr int at_once = 20;  // of a key, one after the other
  for (int i = 0; i < keys * jobs; i += at_once) {
    weir::new_job job;
    job.kind = "one at a time";
    auto const payload = R"({"key":)" + std::to_string(i / at_once % keys) + "}";
    job.payload = payload;
    bed.fill("queue", at_once, job);
  }
  store_type const counted{bed.store()};
  weir::worker_options options;
  if (keys > 1) options.concurrency = options.quantum = static_cast<std::uint32_t>(4 * keys);
  weir::worker<store_type> worker{counted, options};
  worker.template handle<one_at_a_time>([&](one_at_a_time const&) -> boost::asio::awaitable<void> {
    boost::asio::steady_timer timer{bed.io(), std::chrono::milliseconds{50}};
    co_await timer.async_wait(boost::asio::use_awaitable);
  });
  limited_run out;
  worker.on_event([&](weir::worker_event const& e) {
    if (e.kind == weir::worker_event_kind::completed) ++out.completed;
    if (e.kind == weir::worker_event_kind::snoozed) ++out.refused;
  });
  bool ended = false;
  bool over = false;
  worker.async_run([&](weir::error_code) { ended = true; });
  boost::asio::steady_timer timer{bed.io(), std::chrono::seconds{10}};
  timer.async_wait([&](weir::error_code) { over = true; });
  bed.run_until([&] { return over; });
  auto const measured = limited_run{out.completed, out.refused / out.completed,
                                    static_cast<double>(counted.asked()) / out.completed};
  worker.stop();
  bed.run_until([&] { return ended; });
  return measured;
}

/// From an enqueue to the answer of a claim, one after the other: milliseconds.
template <class Bed>
double enqueue_to_claim() {
  constexpr int rounds = 100;
  Bed bed;
  auto const begin = std::chrono::steady_clock::now();
  for (int i = 0; i != rounds; ++i) {
    weir::new_job job;
    job.kind = "one at a time";
    bed.fill("queue", 1, job);
    bed.ask(weir::command::dequeue_jobs{"queue", "holder", 0, 1, std::chrono::seconds{30}});
  }
  std::chrono::duration<double, std::milli> const passed = std::chrono::steady_clock::now() - begin;
  return passed.count() / rounds;
}

template <class Bed>
int report_limits(char const* program) {
  report out{program};
  auto const store = std::string{Bed::name} + ", ";
  auto const bare = enqueue_to_claim<Bed>();
  auto const possible = 200 * 50 / (50 + 1.5 * bare);
  auto const one = run_limited<Bed>(1, 2000);
  out.add({.name = store + "one of 2,000 at a time, 50 ms each, run in 10 s",
           .unit = "jobs/s",
           .ours = one.completed / 10,
           .reference_name = "with 1.5 times enqueue + claim between them",
           .reference = possible / 10});
  out.add({.name = store + "  refused for each of them",
           .unit = "",
           .ours = one.refused,
           .goal = at_most(2)});
  out.add({.name = store + "  asked for each of them", .unit = "", .ours = one.asked});
  auto const many = run_limited<Bed>(50, 400);
  out.add({.name = store + "one of 400 at a time of each of 50 keys, in 10 s",
           .unit = "jobs/s",
           .ours = many.completed / 10,
           .reference_name = "with 1.5 times enqueue + claim between them",
           .reference = 50 * possible / 10});
  out.add({.name = store + "  refused for each of them, of 50 keys",
           .unit = "",
           .ours = many.refused,
           .goal = at_most(2)});
  out.add({.name = store + "  asked for each of them, of 50 keys", .unit = "", .ours = many.asked});
  out.finish();
  return 0;
}

}  // namespace weir_bench

#endif
