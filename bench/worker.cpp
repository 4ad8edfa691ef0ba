// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker on the memory store: one thread for the store, the bookkeeping and the handlers.

#include "worker.hpp"

#include "memory_bed.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/prometheus.hpp"

#include <cstdint>
#include <cstdlib>

namespace {

/// The time of a job that does nothing, 256 at once, counted for Prometheus or not at all:
/// nanoseconds.
template <bool Counted>
double each_of(std::uint64_t jobs) {
  weir_bench::memory_bed bed;
  weir::prometheus_metrics const metrics;
  auto const work = [&](auto store) {
    weir::worker worker{store, weir_bench::hands(256, 128)};
    if constexpr (Counted) worker.on_event(metrics.watch_worker());
    std::uint64_t begun = 0;
    worker.template handle<weir_bench::nothing>([&](weir_bench::nothing const&) { ++begun; });
    bed.fill("queue", jobs, weir_bench::job_of_nothing());
    bool ended = false;
    auto const took = weir_bench::nanoseconds_of([&] {
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

}  // namespace

int main() {
  weir_bench::report out{"worker"};
  weir_bench::report_worker<weir_bench::memory_bed>(out, 100'000, 5, weir_bench::at_least(1e6));
  auto const counted = weir_bench::in_turn(
      25, {[] { return each_of<true>(100'000); }, [] { return each_of<false>(100'000); }});
  out.add({.name = "memory, a job that does nothing, counted for Prometheus",
           .unit = "ns",
           .ours = counted[0],
           .reference_name = "not counted",
           .reference = counted[1],
           .goal = weir_bench::reference_plus(60)});
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
