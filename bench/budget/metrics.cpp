// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../memory_bed.hpp"
#include "count.hpp"
#include "weir/job_traits.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/prometheus.hpp"
#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

namespace weir_bench {

struct counted_job {
  int value = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(counted_job, value)
};

}  // namespace weir_bench

template <>
struct weir::job_traits<weir_bench::counted_job> {
  static constexpr std::string_view kind = "counted";
};

namespace weir_bench {
namespace {

using namespace weir;
using namespace std::chrono_literals;

/// A job from its enqueue to its completion.
template <class Store>
void whole_jobs(char const* name, memory_bed& bed, Store const& store, worker_observer observer) {
  worker_options o;
  o.concurrency = o.quantum = 100;
  o.poll = o.lease = 1h;  // valgrind is slow: nothing may depend on the time
  std::uint64_t begun = 0;
  bool ended = false;
  worker<Store> w{store, o};
  w.template handle<counted_job>([&](counted_job const&) { ++begun; });
  if (observer) w.on_event(std::move(observer));
  w.async_run([&](error_code) { ended = true; });
  new_job job;
  job.kind = "counted";
  job.payload = R"({"value":1})";
  auto const all = [&] {
    for (std::uint64_t i = 0; i != often; ++i) {
      job.id = bed.next_id();
      must(store.execute(command::enqueue_jobs{"queue", {&job, 1}}).has_value());
    }
    auto const until = begun + often;
    bed.run_until([&] { return begun == until; });
  };
  all();
  count(name, often, all);
  w.stop();
  bed.run_until([&] { return ended; });
}

}  // namespace

void metrics() {
  {
    memory_bed bed;
    whole_jobs("worker, a job from its enqueue on, 100 at once", bed, bed.store(), {});
  }
  memory_bed bed;
  prometheus_metrics const counts;
  whole_jobs("worker, a job from its enqueue on, 100 at once, counted", bed,
             observed{bed.store(), counts}, counts.watch_worker());
}

}  // namespace weir_bench
