// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What an asynchronous operation on the memory store adds to the step that it is: time, and
// allocations from the heap. The reference is the step alone, or what Asio itself takes to post a
// handler.

#include "allocations.hpp"
#include "google.hpp"
#include "weir/limiter.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"

#include <benchmark/benchmark.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <optional>

namespace {

using namespace weir;
using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr auto generous = quota::per_second(100).burst(1'000'000'000);

struct bed {
  asio::io_context io{1};
  memory_store store{io.get_executor()};
  rate_limiter<memory_store, system_clock, raw_key> rate{store, generous};
  limiter<memory_store> permits{store, {.limit = 2, .ttl = 30s}};
};

/// Runs `step` once for each iteration and tells how often it allocated.
template <class Step>
void measure(benchmark::State& state, Step&& step) {
  step();
  auto const before = weir_bench::allocations::made.load();
  for (auto _ : state) step();
  state.counters["allocations"] =
      static_cast<double>(weir_bench::allocations::made.load() - before) /
      static_cast<double>(state.iterations());
}

void post(benchmark::State& state) {
  bed b;
  measure(state, [&] {
    asio::post(b.io, [] {});
    b.io.poll();
    b.io.restart();
  });
}
BENCHMARK(post);

void take_now(benchmark::State& state) {
  bed b;
  measure(state, [&] { benchmark::DoNotOptimize(b.rate.try_take("tenant/1")); });
}
BENCHMARK(take_now);

void take_with_callback(benchmark::State& state) {
  bed b;
  measure(state, [&] {
    b.rate.async_try_take("tenant/1",
                          [](error_code, decision d) { benchmark::DoNotOptimize(d.allowed); });
    b.io.poll();
    b.io.restart();
  });
}
BENCHMARK(take_with_callback);

// In one coroutine: an iteration is one co_await.
void take_awaited(benchmark::State& state) {
  bed b;
  auto const loop = [](bed& in, benchmark::State& s) -> asio::awaitable<void> {
    co_await in.rate.async_try_take("tenant/1", asio::use_awaitable);
    auto const before = weir_bench::allocations::made.load();
    for (auto _ : s) {
      auto const d = co_await in.rate.async_try_take("tenant/1", asio::use_awaitable);
      benchmark::DoNotOptimize(d.allowed);
    }
    s.counters["allocations"] = static_cast<double>(weir_bench::allocations::made.load() - before) /
                                static_cast<double>(s.iterations());
  };
  asio::co_spawn(b.io, loop(b, state), asio::detached);
  b.io.run();
}
BENCHMARK(take_awaited);

void permit_steps(benchmark::State& state) {
  bed b;
  measure(state, [&] {
    auto const grant = b.store.execute(
        command::acquire_permit{.key = "gpt", .holder = "somebody", .limit = 2, .ttl = 30s});
    benchmark::DoNotOptimize(
        b.store.execute(command::release_permit{"gpt", "somebody", grant->fence}));
  });
}
BENCHMARK(permit_steps);

void permit_with_callback(benchmark::State& state) {
  bed b;
  measure(state, [&] {
    b.permits.async_try_acquire("gpt", [](error_code, std::optional<permit> p) { p.reset(); });
    b.io.poll();
    b.io.restart();
  });
}
BENCHMARK(permit_with_callback);

}  // namespace

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_google(
      argc, argv, "overhead",
      {
          {.benchmark = "take_with_callback", .reference = "take_now"},
          {.benchmark = "take_with_callback", .counter = "allocations", .unit = "allocations"},
          {.benchmark = "take_awaited", .reference = "take_now"},
          {.benchmark = "take_awaited", .counter = "allocations", .unit = "allocations"},
          {.benchmark = "permit_with_callback", .reference = "permit_steps"},
          {.benchmark = "permit_with_callback", .counter = "allocations", .unit = "allocations"},
      });
}
