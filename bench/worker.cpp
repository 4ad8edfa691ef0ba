// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker on the memory store: one thread for the store, the bookkeeping and the handlers.

#include "worker.hpp"

#include "memory_bed.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/prometheus.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

/// The time of a job that does nothing, from its enqueue to its completion, 256 at once, counted
/// for Prometheus or not at all: nanoseconds.
///
/// @param together jobs of one enqueue
template <bool Counted>
double each_of(std::uint64_t jobs, std::size_t together) {
  weir_bench::memory_bed bed;
  weir::prometheus_metrics const metrics;
  auto const work = [&](auto store) {
    weir::worker worker{store, weir_bench::hands(256, 128)};
    if constexpr (Counted) worker.on_event(metrics.watch_worker());
    std::uint64_t begun = 0;
    worker.template handle<weir_bench::nothing>([&](weir_bench::nothing const&) { ++begun; });
    std::vector<weir::new_job> batch(together, weir_bench::job_of_nothing());
    bool ended = false;
    auto const took = weir_bench::nanoseconds_of([&] {
      for (std::uint64_t n = 0; n != jobs; n += together) {
        for (auto& job : batch) job.id = bed.next_id();
        if (!store.execute(weir::command::enqueue_jobs{"queue", batch})) std::abort();
      }
      worker.async_run([&](weir::error_code) { ended = true; });
      bed.run_until([&] { return begun == jobs; });
    });
    worker.stop();
    bed.run_until([&] { return ended; });
    return took / static_cast<double>(jobs);
  };
  if constexpr (Counted) return work(weir::observed{bed.store(), metrics});
  return work(bed.store());
}

void report_counted(weir_bench::report& out, std::string const& how, std::size_t together) {
  // Short runs, and many: what else the machine does falls on both of a pair.
  auto const times = weir_bench::in_turn(201, {[&] { return each_of<true>(10'000, together); },
                                               [&] { return each_of<false>(10'000, together); }});
  out.add({.name = "memory, a job counted for Prometheus, " + how,
           .unit = "ns",
           .ours = times[0],
           .reference_name = "not counted",
           .reference = times[1],
           .goal = weir_bench::reference_plus(60)});
}

void report_raw(weir_bench::report& out) {
  auto const worked = [](std::uint32_t concurrency, std::uint32_t quantum) {
    return [concurrency, quantum] {
      weir_bench::worker_bed<weir_bench::memory_bed, weir_bench::raw_nothing> bed{
          weir_bench::hands(concurrency, quantum)};
      return bed.busy(100'000);
    };
  };
  auto const all = weir_bench::in_turn(5, {worked(10, 10), worked(256, 128)});
  out.add({.name = "memory, jobs that do nothing, without JSON, 10 at once",
           .unit = "jobs/s",
           .ours = all[0],
           .goal = weir_bench::at_least(1.2e6)});
  out.add({.name = "memory, jobs that do nothing, without JSON, 256 at once",
           .unit = "jobs/s",
           .ours = all[1],
           .goal = weir_bench::at_least(2e6)});
}

/// How soon a handler starts after a thread that does nothing else has enqueued its job, beside
/// what such a thread has posted, with pauses in which the thread of the worker falls asleep.
void report_start(weir_bench::report& out) {
  constexpr int times = 500;
  boost::asio::io_context io;
  weir::memory_store const store{io.get_executor()};
  weir::worker worker{store, weir_bench::hands(10, 10)};
  std::int64_t sent = 0;
  std::atomic<int> begun = 0;
  weir_bench::samples posted;
  weir_bench::samples enqueued;
  auto const begin = [&](weir_bench::samples& into) {
    into.push_back(static_cast<double>(weir_bench::nanoseconds_now() - sent) / 1000);
    ++begun;
    begun.notify_one();
  };
  worker.handle<weir_bench::nothing>([&](weir_bench::nothing const&) { begin(enqueued); });
  worker.async_run(boost::asio::detached);
  std::thread thread{[&] { io.run(); }};
  auto const after_a_pause = [&](auto const& ask) {
    auto const before = begun.load();
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    sent = weir_bench::nanoseconds_now();
    ask();
    begun.wait(before);
  };
  std::vector<weir::new_job> one{weir_bench::job_of_nothing()};
  for (int i = 0; i != times; ++i) {
    one[0].id.data[0] = 1;
    one[0].id.data[1] = static_cast<std::uint8_t>(i);
    one[0].id.data[2] = static_cast<std::uint8_t>(i >> 8);
    after_a_pause([&] {
      if (!store.execute(weir::command::enqueue_jobs{"queue", one})) std::abort();
    });
    after_a_pause([&] { boost::asio::post(io, [&] { begin(posted); }); });
  }
  boost::asio::post(io, [&] { worker.stop(); });
  thread.join();
  out.add({.name = "memory, enqueue in another thread to handler, idle",
           .unit = "us",
           .ours = enqueued,
           .reference_name = "a post",
           .reference = posted,
           .goal = weir_bench::ratio_at_most(2.5)});
}

}  // namespace

int main() {
  weir_bench::report out{"worker"};
  weir_bench::report_worker<weir_bench::memory_bed>(out, 100'000, 5, weir_bench::at_least(1e6));
  report_start(out);
  report_raw(out);
  report_counted(out, "enqueued alone", 1);
  report_counted(out, "enqueued with 99 others", 100);
  // What no worker can do without, and has no say in.
  auto const decoded =
      weir_bench::in_turn(5, {[] {
                            return weir_bench::per_second(100'000, [] {
                              for (int i = 0; i != 100'000; ++i) {
                                if (!weir::decode<weir_bench::nothing>(R"({"sent":0})").ok)
                                  std::abort();
                              }
                            });
                          }});
  out.add(
      {.name = "decoding the payload of such a job alone", .unit = "jobs/s", .ours = decoded[0]});
  out.finish();
}
