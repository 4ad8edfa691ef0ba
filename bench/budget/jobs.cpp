// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../memory_bed.hpp"
#include "count.hpp"
#include "weir/job_traits.hpp"
#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace weir_bench {

struct nothing {
  int value = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(nothing, value)
};

}  // namespace weir_bench

template <>
struct weir::job_traits<weir_bench::nothing> {
  static constexpr std::string_view kind = "nothing";
};

namespace weir_bench {
namespace {

using namespace weir;
using namespace std::chrono_literals;

void cycles() {
  memory_bed bed;
  auto const cycle = [&] {
    new_job j;
    j.id = bed.next_id();
    j.kind = "kind";
    j.payload = "payload of a job, 64 bytes, as many services have them in a queue";
    bed.ask(command::enqueue_jobs{"queue", {&j, 1}});
    auto const got = bed.ask(command::dequeue_jobs{"queue", "holder", 0, 1, 30s});
    must(got.jobs.size() == 1);
    std::array const ended{finished_job{got.jobs[0].id, got.jobs[0].fence, {}}};
    must(bed.ask(command::complete_jobs{"queue", ended})[0] == complete_outcome::completed);
  };
  count_each("job, enqueue + dequeue + complete", cycle);
  new_job like;
  like.kind = "kind";
  bed.fill("queue", 10'000, like);
  count_each("job, enqueue + dequeue + complete, 10,000 waiting", cycle);
}

void worker_jobs(char const* name, std::uint32_t concurrency) {
  memory_bed bed;
  worker_options o;
  o.concurrency = o.quantum = concurrency;
  o.poll = o.lease = 1h;  // valgrind is slow: nothing may depend on the time
  std::uint64_t completed = 0;
  bool ended = false;
  worker<memory_store> w{bed.store(), o};
  w.handle<nothing>([](nothing const&) {});
  w.on_event([&](worker_event const& e) {
    if (e.kind == worker_event_kind::completed) ++completed;
  });
  w.async_run([&](error_code) { ended = true; });
  new_job like;
  like.kind = "nothing";
  like.payload = R"({"value":1})";
  auto const drain = [&](std::uint64_t n) {
    bed.fill("queue", n, like);
    auto const until = completed + n;
    return [&bed, &completed, until] { bed.run_until([&] { return completed == until; }); };
  };
  drain(1000)();
  count(name, often, drain(often));
  w.stop();
  bed.run_until([&] { return ended; });
}

}  // namespace

void jobs() {
  cycles();
  worker_jobs("worker, a job that does nothing, 10 at once", 10);
  worker_jobs("worker, a job that does nothing, 100 at once", 100);
}

}  // namespace weir_bench
