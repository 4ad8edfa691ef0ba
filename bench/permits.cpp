// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What a permit costs in memory. One iteration is an acquire and the release that belongs to it, so
// two steps, unless the name says otherwise. The clock stands still: reading one costs 20 to 25 ns
// more per step.

#include "weir/store/memory/permits.hpp"

#include "google.hpp"
#include "weir/store/memory/locks.hpp"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;

constexpr time_point start{1'700'000'000s};
constexpr std::size_t million = 1'000'000;

std::vector<std::string> numbered(std::string const& prefix, std::size_t n) {
  std::vector<std::string> names;
  names.reserve(n);
  for (std::size_t i = 0; i < n; ++i) names.push_back(prefix + std::to_string(i));
  return names;
}

std::vector<std::string> const& many_keys() {
  static auto const keys = numbered("tenant/", million);
  return keys;
}

std::string holder_of(benchmark::State const& state) {
  return "holder-" + std::to_string(state.thread_index());
}

// A store that all threads of a run share; made and filled by the first of them.
std::unique_ptr<detail::memory_permits> permits;

void open(benchmark::State const&) {
  permits = std::make_unique<detail::memory_permits>(memory_options{.max_permits = 4 * million});
}
void close(benchmark::State const&) { permits.reset(); }

void acquire_and_release(benchmark::State& state, std::string const& key, std::string const& holder,
                         std::uint32_t limit) {
  auto const grant = permits->apply(
      command::acquire_permit{.key = key, .holder = holder, .limit = limit, .ttl = 30s}, start);
  if (!grant || !grant->granted) return state.SkipWithError("refused");
  benchmark::DoNotOptimize(
      permits->apply(command::release_permit{key, holder, grant->fence}, start));
}

// ---------------------------------------------------------------------------- one key

// The least that any table behind a lock must do.
std::mutex bare_mutex;
std::unordered_map<std::string, int> bare_table;

void bare_mutex_and_map(benchmark::State& state) {
  std::string const key = "tenant/1";
  for (auto _ : state) {
    {
      std::lock_guard const lock{bare_mutex};
      benchmark::DoNotOptimize(++bare_table[key]);
    }
    std::lock_guard const lock{bare_mutex};
    auto const found = bare_table.find(key);
    if (--found->second == 0) bare_table.erase(found);
  }
}
BENCHMARK(bare_mutex_and_map)->Threads(1)->Threads(2)->UseRealTime();

void one_key(benchmark::State& state) {
  auto const holder = holder_of(state);
  for (auto _ : state) acquire_and_release(state, "tenant/1", holder, 2);
}
BENCHMARK(one_key)->Setup(open)->Teardown(close)->Threads(1)->Threads(2)->UseRealTime();

void long_key_and_holder(benchmark::State& state) {
  std::string const key(64, 'k');
  std::string const holder(36, 'h');
  for (auto _ : state) acquire_and_release(state, key, holder, 1);
}
BENCHMARK(long_key_and_holder)->Setup(open)->Teardown(close);

void one_key_refused(benchmark::State& state) {
  (void)permits->apply(command::acquire_permit{"tenant/1", "other", 1, 30s, 0s}, start);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        permits->apply(command::acquire_permit{"tenant/1", "holder", 1, 30s, 0s}, start));
  }
}
BENCHMARK(one_key_refused)->Setup(open)->Teardown(close);

void one_key_renewed(benchmark::State& state) {
  auto const grant =
      permits->apply(command::acquire_permit{"tenant/1", "holder", 1, 30s, 0s}, start);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        permits->apply(command::renew_permit{"tenant/1", "holder", grant->fence, 30s}, start));
  }
}
BENCHMARK(one_key_renewed)->Setup(open)->Teardown(close);

// ---------------------------------------------------------------------------- a crowded key

// All permits but one are taken by others. Time goes on, so each lease ends later than those before
// it.
void crowded_key(benchmark::State& state) {
  auto const limit = static_cast<std::uint32_t>(state.range(0));
  auto const others = numbered("other-", limit - 1);
  auto now = start;
  for (auto const& holder : others) {
    (void)permits->apply(command::acquire_permit{"tenant/1", holder, limit, 24h, 0s}, now += 1us);
  }
  std::mt19937 random{1};
  std::vector<std::uint64_t> fences;
  for (auto _ : state) {
    // One of them, wherever it stands, gives its permit back and takes one again.
    auto const& holder = others[random() % others.size()];
    now += 1us;
    benchmark::DoNotOptimize(permits->apply(command::release_permit{"tenant/1", holder, 0}, now));
    benchmark::DoNotOptimize(
        permits->apply(command::acquire_permit{"tenant/1", holder, limit, 24h, 0s}, now));
  }
}
BENCHMARK(crowded_key)
    ->Setup(open)
    ->Teardown(close)
    ->Arg(10)
    ->Arg(100)
    ->Arg(10'000)
    ->Arg(1'000'000);

// As many wait as have one: each refusal tells the place in line, and which expiry to wait for.
void crowded_line_refused(benchmark::State& state) {
  auto const limit = static_cast<std::uint32_t>(state.range(0));
  auto const others = numbered("other-", std::size_t{2} * limit);
  auto now = start;
  for (auto const& holder : others) {
    (void)permits->apply(command::acquire_permit{"tenant/1", holder, limit, 24h, 24h}, now += 1us);
  }
  std::mt19937 random{1};
  for (auto _ : state) {
    auto const& holder = others[limit + random() % limit];
    benchmark::DoNotOptimize(
        permits->apply(command::acquire_permit{"tenant/1", holder, limit, 24h, 24h}, now += 1us));
  }
}
BENCHMARK(crowded_line_refused)->Setup(open)->Teardown(close)->Arg(10)->Arg(10'000);

// As many wait in line for one permit; each iteration the holder releases, the first in line gets
// it, and whoever had it goes to the end of the line: what a hand-over costs, however long the
// line.
void hand_over(benchmark::State& state) {
  auto const waiters = numbered("waiter-", static_cast<std::size_t>(state.range(0)) + 1);
  auto now = start;
  auto const ask = [&](std::string const& holder) {
    return permits->apply(command::acquire_permit{"tenant/1", holder, 1, 24h, 24h}, now += 1us);
  };
  for (auto const& w : waiters) (void)ask(w);
  std::size_t turn = 0;
  for (auto _ : state) {
    auto const& holder = waiters[turn];
    turn = turn + 1 == waiters.size() ? 0 : turn + 1;
    benchmark::DoNotOptimize(
        permits->apply(command::release_permit{"tenant/1", holder, 0}, now += 1us));
    auto const next = ask(waiters[turn]);
    if (!next || !next->granted) return state.SkipWithError("out of line");
    benchmark::DoNotOptimize(ask(holder));
  }
}
BENCHMARK(hand_over)->Setup(open)->Teardown(close)->Arg(1)->Arg(100)->Arg(10'000);

// ---------------------------------------------------------------------------- many keys

void bare_many_keys(benchmark::State& state) {
  auto const& keys = many_keys();
  std::mt19937_64 random{static_cast<std::uint64_t>(state.thread_index())};
  for (auto _ : state) {
    auto const& key = keys[random() % million];
    {
      std::lock_guard const lock{bare_mutex};
      benchmark::DoNotOptimize(++bare_table[key]);
    }
    std::lock_guard const lock{bare_mutex};
    auto const found = bare_table.find(key);
    if (--found->second == 0) bare_table.erase(found);
  }
}
BENCHMARK(bare_many_keys)->Threads(1)->Threads(2)->UseRealTime();

void many_keys_free(benchmark::State& state) {
  auto const& keys = many_keys();
  auto const holder = holder_of(state);
  std::mt19937_64 random{static_cast<std::uint64_t>(state.thread_index())};
  for (auto _ : state) acquire_and_release(state, keys[random() % million], holder, 2);
}
BENCHMARK(many_keys_free)->Setup(open)->Teardown(close)->Threads(1)->Threads(2)->UseRealTime();

// Every key has a holder already, so that the table is as large as it gets.
void many_keys_held(benchmark::State& state) {
  auto const& keys = many_keys();
  auto const holder = holder_of(state);
  std::mt19937_64 random{static_cast<std::uint64_t>(state.thread_index())};
  for (auto _ : state) acquire_and_release(state, keys[random() % million], holder, 3);
}
void open_and_hold_all(benchmark::State const& state) {
  open(state);
  for (auto const& key : many_keys()) {
    (void)permits->apply(command::acquire_permit{key, "somebody", 1, 30s, 0s}, start);
  }
}
BENCHMARK(many_keys_held)
    ->Setup(open_and_hold_all)
    ->Teardown(close)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

// ---------------------------------------------------------------------------- locks

void one_lock(benchmark::State& state) {
  detail::memory_locks locks{memory_options{}};
  for (auto _ : state) {
    auto const grant = locks.apply(command::acquire_lock{"tenant/1", "holder", 30s}, start);
    benchmark::DoNotOptimize(
        locks.apply(command::release_lock{"tenant/1", "holder", grant->fence}, start));
  }
}
BENCHMARK(one_lock);

}  // namespace

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_google(
      argc, argv, "permits",
      {
          {.benchmark = "one_key/real_time/threads:1",
           .reference = "bare_mutex_and_map/real_time/threads:1",
           .goal = ratio_at_most(4)},
          {.benchmark = "one_key/real_time/threads:2",
           .reference = "bare_mutex_and_map/real_time/threads:2"},
          {.benchmark = "one_lock", .reference = "bare_mutex_and_map/real_time/threads:1"},
          {.benchmark = "many_keys_free/real_time/threads:1",
           .reference = "bare_many_keys/real_time/threads:1"},
          {.benchmark = "many_keys_free/real_time/threads:2",
           .reference = "bare_many_keys/real_time/threads:2"},
          {.benchmark = "hand_over/100", .reference = "hand_over/1", .goal = ratio_at_most(2)},
          {.benchmark = "hand_over/10000", .reference = "hand_over/1", .goal = ratio_at_most(4)},
      });
}
