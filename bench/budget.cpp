// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The hot paths, each a fixed number of times, for bench/budget.py to count their instructions:
// these depend on the code and the compiler, and not on what else the machine does. Alone, it only
// runs. Prints the compiler, then what it did and how often.

#include "memory_bed.hpp"
#include "weir/job_traits.hpp"
#include "weir/key_policy.hpp"
#include "weir/limiter.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <valgrind/callgrind.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr std::uint64_t often = 10'000;
constexpr std::string_view key = "tenant/00000000000001";
constexpr auto generous = quota::per_second(100).burst(1'000'000'000);

/// Counts `work`, which does `n` things.
template <class Work>
void count(char const* name, std::uint64_t n, Work&& work) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  work();
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
  std::printf("%s\t%llu\n", name, static_cast<unsigned long long>(n));
  std::fflush(stdout);
}

/// Counts a step, after as many that make everything warm.
template <class Step>
void count_each(char const* name, Step&& step) {
  auto const all = [&] {
    for (std::uint64_t i = 0; i != often; ++i) step();
  };
  all();
  count(name, often, all);
}

void must(bool fine) {
  if (!fine) throw std::runtime_error{"a step did not do what is to be counted"};
}

// ------------------------------------------------------------------------------------------ nouns

using raw_limiter = rate_limiter<memory_store, system_clock, raw_key>;

void buckets() {
  asio::io_context io;
  memory_store const store{io.get_executor()};
  raw_limiter const limiter{store, generous};
  count_each("take, accepted", [&] { must(limiter.try_take(key)->allowed); });
  raw_limiter const strict{store, quota::per_hour(1)};
  (void)strict.try_take("spent");
  count_each("take, refused", [&] { must(!strict.try_take("spent")->allowed); });
  rate_limiter const digesting{store, generous};
  count_each("take, accepted, key digested", [&] { must(digesting.try_take(key)->allowed); });
  std::vector<std::string> keys;
  for (int i = 0; i != 1000; ++i) keys.push_back("tenant/" + std::to_string(i));
  std::size_t next = 0;
  count_each("take, accepted, one of 1,000 keys",
             [&] { must(limiter.try_take(keys[next++ % keys.size()])->allowed); });
}

asio::awaitable<void> take_often(raw_limiter const& limiter) {
  for (std::uint64_t i = 0; i != often; ++i) {
    must((co_await limiter.async_try_take(key, asio::use_awaitable)).allowed);
  }
}

void awaited() {
  asio::io_context io;
  raw_limiter const limiter{memory_store{io.get_executor()}, generous};
  auto const all = [&] {
    asio::co_spawn(io, take_often(limiter), asio::detached);
    io.restart();
    io.run();
  };
  all();
  count("take, accepted, awaited", often, all);
}

void permits() {
  asio::io_context io;
  memory_store const store{io.get_executor()};
  count_each("permit, acquire + release, the store's steps", [&] {
    auto const grant = store.execute(command::acquire_permit{key, "holder", 2, 30s, {}});
    must(grant->granted);
    (void)store.execute(command::release_permit{key, "holder", grant->fence});
  });
  limiter const l{store, limiter_options{}};
  count_each("permit, acquire + release", [&] {
    must(l.try_acquire(key)->has_value());
    // A permit that ends gives itself back on the executor.
    io.restart();
    io.poll();
  });
}

void jobs() {
  weir_bench::memory_bed bed;
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

}  // namespace

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

namespace {

// ------------------------------------------------------------------------------------------ worker

void worker_jobs(char const* name, std::uint32_t concurrency) {
  weir_bench::memory_bed bed;
  worker_options o;
  o.concurrency = o.quantum = concurrency;
  o.poll = o.lease = 1h;  // valgrind is slow: nothing may depend on the time
  std::uint64_t completed = 0;
  bool ended = false;
  worker<memory_store> w{bed.store(), o};
  w.handle<weir_bench::nothing>([](weir_bench::nothing const&) {});
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

int main() {
#ifdef __clang__
  std::printf("compiler\tclang %d\n", __clang_major__);
#else
  std::printf("compiler\tg++ %d\n", __GNUC__);
#endif
  buckets();
  awaited();
  permits();
  jobs();
  worker_jobs("worker, a job that does nothing, 10 at once", 10);
  worker_jobs("worker, a job that does nothing, 100 at once", 100);
}
