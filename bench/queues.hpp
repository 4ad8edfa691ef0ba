// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_QUEUES_HPP
#define WEIR_BENCH_QUEUES_HPP

#include "paired.hpp"
#include "report.hpp"
#include "weir/command/jobs.hpp"
#include "worker.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

// A worker of 100 hands, and as many jobs that do nothing: each in a queue of its own, or all of
// them in one (F74).

namespace weir_bench {

struct queues_run {
  double rate = 0;   ///< jobs in a second
  double asked = 0;  ///< commands for each
};

/// @tparam Store as the worker has it: the bed's own, or one that counts
template <class Store, class Bed>
queues_run run_queues(Bed& bed, std::size_t jobs, std::size_t queues) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i != queues; ++i) names.push_back("tenant/" + std::to_string(i));
  std::vector<weir::new_job> each(jobs, job_of_nothing());
  for (auto& job : each) job.id = bed.next_id();
  constexpr std::size_t together = 1000;
  for (std::size_t i = 0; i != jobs;) {
    std::vector<weir::command::enqueue_jobs> all;
    for (; i != jobs && all.size() != together; ++i) {
      all.push_back({names[i % queues], {&each[i], 1}});
    }
    bed.ask_all(all);
  }

  Store const store{bed.store()};
  weir::worker<Store> worker{store, {.concurrency = 100}};
  worker.template handle<nothing>([](nothing const&) {});
  std::size_t completed = 0;
  worker.on_event([&](weir::worker_event const& e) {
    if (e.kind == weir::worker_event_kind::completed) ++completed;
    if (e.kind == weir::worker_event_kind::lease_lost) throw std::runtime_error{"a lease is lost"};
  });
  bool ended = false;
  queues_run out;
  out.rate = per_second(jobs, [&] {
    worker.async_run([&](weir::error_code) { ended = true; });
    bed.run_until([&] { return completed == jobs; });
  });
  if constexpr (requires { store.asked(); }) {
    out.asked = static_cast<double>(store.asked()) / static_cast<double>(jobs);
  }
  worker.stop();
  bed.run_until([&] { return ended; });
  return out;
}

/// @param make     a bed, at a distance or not
/// @param distance in words; empty: none
/// @param goal     of the rate with many queues
template <class Make>
void report_queues(report& out, std::string const& store, std::string const& distance,
                   std::size_t jobs, std::optional<target> goal, Make&& make) {
  using store_type = typename std::remove_cvref_t<decltype(*make())>::store_type;
  auto const rate = [&](std::size_t queues) {
    return std::function<double()>{[&, queues] {
      auto const bed = make();
      return run_queues<store_type>(*bed, jobs, queues).rate;
    }};
  };
  auto const rates = in_turn(3, {rate(jobs), rate(1)});
  auto const of = store + ", " + std::to_string(jobs) + " queues of one job" + distance;
  out.add({.name = of,
           .unit = "jobs/s",
           .ours = rates[0],
           .reference_name = "one queue of them",
           .reference = rates[1],
           .goal = goal});
  auto const bed = make();
  auto const counted = run_queues<weir_test::counting_store<store_type>>(*bed, jobs, jobs);
  out.add({.name = of + ", asked for each", .unit = "", .ours = counted.asked});
}

/// The rows of a store on a server: 4 ms away, for which there is a goal, and near.
template <class Bed>
void report_server_queues(report& out, target goal) {
  report_queues(out, Bed::name, ", 4 ms away", 20'000, goal,
                [] { return std::make_unique<Bed>(std::chrono::milliseconds{4}); });
  report_queues(out, Bed::name, "", 20'000, {}, [] { return std::make_unique<Bed>(); });
}

/// All rows of a store on a server.
template <class Bed>
int report_queues_of_server(char const* program, target goal) {
  report out{program};
  report_server_queues<Bed>(out, goal);
  out.finish();
  return 0;
}

/// The rows of a store in this process.
template <class Bed>
int report_queues_here(char const* program) {
  report out{program};
  report_queues(out, Bed::name, "", 20'000, ratio_at_least(0.5),
                [] { return std::make_unique<Bed>(); });
  out.finish();
  return 0;
}

}  // namespace weir_bench

#endif
