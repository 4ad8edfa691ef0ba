// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What a rate limit costs in this process: `try_take` on the memory store, clock read and all,
// beside the bare operations that it consists of, measured in the same run. Two threads: the time
// of one operation is per thread, the items per second are of both together.

#include "weir/command/buckets.hpp"

#include "allocations.hpp"
#include "google.hpp"
#include "weir/clock/coarse.hpp"
#include "weir/clock/system.hpp"
#include "weir/key_policy.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/store/memory/bucket_key.hpp"
#include "weir/store/memory/buckets.hpp"

#include <benchmark/benchmark.h>
#include <boost/asio/system_executor.hpp>
#include <boost/unordered/concurrent_flat_map.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;

constexpr std::size_t million = 1'000'000;
constexpr std::size_t thousand = 1000;

// Granted a billion times before the first refusal.
constexpr auto generous = quota::per_second(100).burst(1'000'000'000);
constexpr auto hourly = quota::per_hour(1);

// 21 bytes each, on the heap.
std::vector<std::string> const& names() {
  static auto const made = [] {
    std::vector<std::string> out;
    out.reserve(million);
    for (std::size_t i = 0; i != million; ++i) {
      auto const digits = std::to_string(i);
      out.push_back("tenant/" + std::string(14 - digits.size(), '0') + digits);
    }
    return out;
  }();
  return made;
}

// An order in which to ask: all names, shuffled.
std::vector<std::uint32_t> const& order(std::size_t n) {
  static auto const shuffled = [](std::size_t size) {
    std::vector<std::uint32_t> out(size);
    std::iota(out.begin(), out.end(), 0U);
    std::shuffle(out.begin(), out.end(), std::mt19937{42});
    return out;
  };
  static auto const all = shuffled(million);
  static auto const few = shuffled(thousand);
  return n == million ? all : few;
}

// Goes through an order from a place of its own for each thread.
class walk {
 public:
  walk(benchmark::State const& state, std::size_t n)
      : order_{order(n)},
        next_{n / 2 * static_cast<std::size_t>(state.thread_index())} {}
  std::string const& next() {
    if (++next_ >= order_.size()) next_ = 0;
    return names()[order_[next_]];
  }

 private:
  std::vector<std::uint32_t> const& order_;
  std::size_t next_;
};

// ---------------------------------------------------------------------------- the bare operations

void bare_clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(system_clock::steady_now());
}
BENCHMARK(bare_clock)->Threads(1)->Threads(2)->UseRealTime();

void bare_key_touched_and_hashed(benchmark::State& state) {
  walk keys{state, static_cast<std::size_t>(state.range(0))};
  for (auto _ : state) benchmark::DoNotOptimize(detail::bucket_key{keys.next()}.hash());
}
BENCHMARK(bare_key_touched_and_hashed)->Arg(thousand)->Arg(million);

void bare_sha256(benchmark::State& state) {
  walk keys{state, thousand};
  for (auto _ : state) benchmark::DoNotOptimize(sha256_key{}(keys.next()).view());
}
BENCHMARK(bare_sha256);

alignas(64) std::atomic<std::int64_t> word{0};

void bare_clock_and_cas(benchmark::State& state) {
  for (auto _ : state) {
    auto const now = system_clock::steady_now().time_since_epoch().count();
    auto seen = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(seen, std::max(seen, now) + 1)) {
    }
  }
}
BENCHMARK(bare_clock_and_cas)->Threads(1)->Threads(2)->UseRealTime();

void bare_coarse_clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(coarse_clock::steady_now());
}
BENCHMARK(bare_coarse_clock)->Threads(1)->Threads(2)->UseRealTime();

// The least that a table of keys can be: a digest and an arrival side by side, found by looking at
// one place after the other. It forgets nothing, does not grow and knows one quota.
class flat_table {
 public:
  explicit flat_table(std::size_t n) : entries_(std::bit_ceil(n * 3 / 2)) {}

  [[nodiscard]] std::size_t home(std::uint64_t digest) const noexcept {
    return digest & (entries_.size() - 1);
  }
  void prefetch(std::uint64_t digest) const noexcept {
    __builtin_prefetch(&entries_[home(digest)]);
  }
  bool take(std::uint64_t digest, std::int64_t now) noexcept {
    auto i = home(digest);
    for (;; i = (i + 1) & (entries_.size() - 1)) {
      auto seen = entries_[i].digest.load(std::memory_order_acquire);
      if (seen == digest) break;
      if (seen == 0 && entries_[i].digest.compare_exchange_strong(seen, digest)) break;
    }
    auto& arrival = entries_[i].arrival;
    auto seen = arrival.load(std::memory_order_acquire);
    do {
      if (seen > now + (std::int64_t{1} << 60)) return false;
    } while (!arrival.compare_exchange_weak(seen, std::max(seen, now) + 10));
    return true;
  }

 private:
  struct entry {
    std::atomic<std::uint64_t> digest{0};
    std::atomic<std::int64_t> arrival{0};
  };
  std::vector<entry> entries_;
};
std::unique_ptr<flat_table> table;

void open_table(benchmark::State const& state) {
  auto const n = static_cast<std::size_t>(state.range(0));
  table = std::make_unique<flat_table>(n);
  for (std::size_t i = 0; i != n; ++i) table->take(detail::bucket_key{names()[i]}.hash(), 0);
}
void close_table(benchmark::State const&) { table.reset(); }

template <class Clock>
void bare_flat_table(benchmark::State& state) {
  walk keys{state, static_cast<std::size_t>(state.range(0))};
  for (auto _ : state) {
    auto const now = Clock::steady_now().time_since_epoch().count();
    benchmark::DoNotOptimize(table->take(detail::bucket_key{keys.next()}.hash(), now));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(bare_flat_table<system_clock>)
    ->Setup(open_table)
    ->Teardown(close_table)
    ->Arg(thousand)
    ->Arg(million)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();
BENCHMARK(bare_flat_table<coarse_clock>)
    ->Setup(open_table)
    ->Teardown(close_table)
    ->Arg(thousand)
    ->Arg(million)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

void bare_flat_table_at_once(benchmark::State& state) {
  constexpr std::size_t batch = 32;
  walk keys{state, static_cast<std::size_t>(state.range(0))};
  std::array<std::string_view, batch> asked;
  std::array<std::uint64_t, batch> digests{};
  while (state.KeepRunningBatch(batch)) {
    for (auto& key : asked) key = keys.next();
    for (auto const& key : asked) __builtin_prefetch(key.data());
    for (std::size_t i = 0; i != batch; ++i) {
      digests[i] = detail::bucket_key{asked[i]}.hash();
      table->prefetch(digests[i]);
    }
    auto const now = system_clock::steady_now().time_since_epoch().count();
    for (auto const digest : digests) benchmark::DoNotOptimize(table->take(digest, now));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(bare_flat_table_at_once)
    ->Setup(open_table)
    ->Teardown(close_table)
    ->Arg(thousand)
    ->Arg(million)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

using flat_map = boost::concurrent_flat_map<std::string, std::int64_t>;
std::unique_ptr<flat_map> map;

void open_map(benchmark::State const& state) {
  auto const n = static_cast<std::size_t>(state.range(0));
  map = std::make_unique<flat_map>(n);
  for (std::size_t i = 0; i != n; ++i) map->emplace(names()[i], 0);
}
void close_map(benchmark::State const&) { map.reset(); }

void bare_clock_and_flat_map(benchmark::State& state) {
  walk keys{state, static_cast<std::size_t>(state.range(0)) == million ? million : thousand};
  bool const one = state.range(0) == 1;
  for (auto _ : state) {
    auto const& key = one ? names()[0] : keys.next();
    auto const now = system_clock::steady_now().time_since_epoch().count();
    map->visit(key, [now](auto& entry) {
      std::atomic_ref<std::int64_t> const arrival{entry.second};
      auto seen = arrival.load(std::memory_order_relaxed);
      while (!arrival.compare_exchange_weak(seen, std::max(seen, now) + 1)) {
      }
    });
  }
}
BENCHMARK(bare_clock_and_flat_map)
    ->Setup(open_map)
    ->Teardown(close_map)
    ->Arg(1)
    ->Arg(thousand)
    ->Arg(million)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

// ---------------------------------------------------------------------------- takes

using raw_limiter = rate_limiter<memory_store, system_clock, raw_key>;
using digest_limiter = rate_limiter<memory_store>;

std::unique_ptr<memory_store> store;

void open(benchmark::State const&) {
  store = std::make_unique<memory_store>(boost::asio::system_executor{});
}
void close(benchmark::State const&) { store.reset(); }

using coarse_store = basic_memory_store<coarse_clock>;
using coarse_limiter = rate_limiter<coarse_store, system_clock, raw_key>;
std::unique_ptr<coarse_store> late_store;

void open_coarse(benchmark::State const& state) {
  late_store = std::make_unique<coarse_store>(boost::asio::system_executor{});
  coarse_limiter const limiter{*late_store, generous};
  for (std::size_t i = 0; i != static_cast<std::size_t>(state.range(0)); ++i) {
    (void)limiter.try_take(names()[i]);
  }
}
void close_coarse(benchmark::State const&) { late_store.reset(); }

template <class Limiter>
void open_filled(benchmark::State const& state) {
  open(state);
  Limiter const limiter{*store, generous};
  for (std::size_t i = 0; i != static_cast<std::size_t>(state.range(0)); ++i) {
    (void)limiter.try_take(names()[i]);
  }
}

void one_key_accept(benchmark::State& state) {
  raw_limiter const limiter{*store, generous};
  for (auto _ : state) benchmark::DoNotOptimize(limiter.try_take("tenant/1"));
}
BENCHMARK(one_key_accept)->Setup(open)->Teardown(close)->Threads(1)->Threads(2)->UseRealTime();

void one_key_accept_at_an_odd_rate(benchmark::State& state) {
  raw_limiter const limiter{*store, quota::per_second(1'001'001).burst(1'000'000'000)};
  for (auto _ : state) benchmark::DoNotOptimize(limiter.try_take("tenant/1"));
}
BENCHMARK(one_key_accept_at_an_odd_rate)->Setup(open)->Teardown(close);

void one_key_refuse(benchmark::State& state) {
  raw_limiter const limiter{*store, hourly};
  (void)limiter.try_take("tenant/1");
  for (auto _ : state) benchmark::DoNotOptimize(limiter.try_take("tenant/1"));
}
BENCHMARK(one_key_refuse)->Setup(open)->Teardown(close)->Threads(1)->Threads(2)->UseRealTime();

// The bucket of a key that is asked again and again is kept.
template <class Limiter>
void one_bucket(benchmark::State& state) {
  bool const refuse = state.range(0) == 0;
  auto const bucket = Limiter{*store, refuse ? hourly : generous}.bucket("tenant/1");
  (void)bucket.try_take();
  for (auto _ : state) benchmark::DoNotOptimize(bucket.try_take());
}
BENCHMARK(one_bucket<raw_limiter>)
    ->Setup(open)
    ->Teardown(close)
    ->ArgName("accept")
    ->Arg(1)
    ->Arg(0)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();
BENCHMARK(one_bucket<digest_limiter>)
    ->Setup(open)
    ->Teardown(close)
    ->ArgName("accept")
    ->Arg(1)
    ->UseRealTime();

// Without the clock: the step alone.
void one_key_step(benchmark::State& state) {
  detail::memory_buckets buckets{memory_options{}};
  bool const refuse = state.range(0) == 0;
  auto const& q = refuse ? hourly : generous;
  time_point const now{1'700'000'000s};
  command::take const c{.key = "tenant/1", .quotas = std::span{&q, 1}, .cost = 1, .max_wait = {}};
  (void)buckets.apply(c, now);
  for (auto _ : state) benchmark::DoNotOptimize(buckets.apply(c, now));
}
BENCHMARK(one_key_step)->ArgName("accept")->Arg(1)->Arg(0);

void one_key_two_quotas(benchmark::State& state) {
  quota const both[] = {generous, quota::per_minute(6000).burst(1'000'000'000)};
  raw_limiter const limiter{*store, std::span<quota const>{both}};
  for (auto _ : state) benchmark::DoNotOptimize(limiter.try_take("tenant/1"));
}
BENCHMARK(one_key_two_quotas)->Setup(open)->Teardown(close)->Threads(1)->Threads(2)->UseRealTime();

template <class Limiter>
void string_keys(benchmark::State& state) {
  Limiter const limiter{*store, generous};
  walk keys{state, static_cast<std::size_t>(state.range(0))};
  for (auto _ : state) benchmark::DoNotOptimize(limiter.try_take(keys.next()));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(string_keys<raw_limiter>)
    ->Setup(open_filled<raw_limiter>)
    ->Teardown(close)
    ->Arg(thousand)
    ->Arg(million)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();
BENCHMARK(string_keys<digest_limiter>)
    ->Setup(open_filled<digest_limiter>)
    ->Teardown(close)
    ->Arg(thousand)
    ->Arg(million)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

void string_keys_coarse(benchmark::State& state) {
  coarse_limiter const limiter{*late_store, generous};
  walk keys{state, static_cast<std::size_t>(state.range(0))};
  for (auto _ : state) benchmark::DoNotOptimize(limiter.try_take(keys.next()));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(string_keys_coarse)
    ->Setup(open_coarse)
    ->Teardown(close_coarse)
    ->Arg(thousand)
    ->Arg(million)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

// A batch of 32 keys a call; the time is that of one key.
template <class Limiter>
void string_keys_at_once(benchmark::State& state) {
  constexpr std::size_t batch = 32;
  Limiter const limiter{*store, generous};
  walk keys{state, static_cast<std::size_t>(state.range(0))};
  std::array<std::string_view, batch> asked;
  std::vector<result<decision>> answers(batch);
  while (state.KeepRunningBatch(batch)) {
    for (auto& key : asked) key = keys.next();
    limiter.try_take_many(asked, answers);
    benchmark::DoNotOptimize(answers.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(string_keys_at_once<raw_limiter>)
    ->Setup(open_filled<raw_limiter>)
    ->Teardown(close)
    ->Arg(thousand)
    ->Arg(million)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

// ---------------------------------------------------------------------------- the table's life

// A million new keys, one after the other, and what each of them took of memory; the slowest few
// thousandths, too.
void new_keys(benchmark::State& state) {
  std::vector<std::uint32_t> took(million);
  std::size_t bytes = 0;
  for (auto _ : state) {
    auto const before = weir_bench::allocations::held.load();
    detail::memory_buckets buckets{memory_options{}};
    time_point now{1'700'000'000s};
    for (std::size_t i = 0; i != million; ++i) {
      auto const begin = system_clock::steady_now();
      command::take const c{.key = names()[i], .quotas = {&hourly, 1}, .cost = 1, .max_wait = {}};
      if (!buckets.apply(c, now)->allowed) return state.SkipWithError("shed");
      took[i] = static_cast<std::uint32_t>((system_clock::steady_now() - begin).count());
      now += 100ns;
    }
    bytes = weir_bench::allocations::held.load() - before;
  }
  std::ranges::sort(took);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(million));
  state.counters["bytes_per_key"] = static_cast<double>(bytes) / million;
  state.counters["p99.9_ns"] = took[million - million / 1000];
  state.counters["p99.999_ns"] = took[million - 10];
  state.counters["max_ns"] = took.back();
}
BENCHMARK(new_keys)->Unit(benchmark::kMillisecond)->Iterations(3);

// The table is full of spent keys, and a flood of new ones comes: each is turned away.
void flood(benchmark::State& state) {
  detail::memory_buckets buckets{memory_options{.max_buckets = million / 2}};
  time_point now{1'700'000'000s};
  auto const take = [&](std::string_view key) {
    command::take const c{.key = key, .quotas = {&hourly, 1}, .cost = 1, .max_wait = {}};
    return buckets.apply(c, now);
  };
  for (std::size_t i = 0; i != million / 2; ++i) (void)take(names()[i]);
  std::size_t i = million / 2;
  std::uint64_t worst = 0;
  for (auto _ : state) {
    auto const begin = system_clock::steady_now();
    if (!take(names()[i])->shed) return state.SkipWithError("not shed");
    worst =
        std::max(worst, static_cast<std::uint64_t>((system_clock::steady_now() - begin).count()));
    i = i + 1 == million ? million / 2 : i + 1;
    now += 1us;
  }
  state.counters["max_ns"] = static_cast<double>(worst);
}
BENCHMARK(flood);

// Keys that come, refill and are forgotten as others come: 100,000 of them live at a time.
void churn(benchmark::State& state) {
  detail::memory_buckets buckets{memory_options{}};
  auto const q = quota::per(1, 1s);
  time_point now{1'700'000'000s};
  std::string key = "tenant/00000000000000";
  std::uint64_t n = 0;
  std::uint64_t worst = 0;
  for (auto _ : state) {
    auto digits = ++n;
    for (auto at = key.size(); digits != 0; digits /= 10)
      key[--at] = static_cast<char>('0' + digits % 10);
    command::take const c{.key = key, .quotas = {&q, 1}, .cost = 1, .max_wait = {}};
    auto const begin = system_clock::steady_now();
    benchmark::DoNotOptimize(buckets.apply(c, now));
    worst =
        std::max(worst, static_cast<std::uint64_t>((system_clock::steady_now() - begin).count()));
    now += 10us;
  }
  state.counters["max_ns"] = static_cast<double>(worst);
  state.counters["kept"] = static_cast<double>(buckets.apply(command::reap_buckets{}, now)->kept);
}
BENCHMARK(churn);

// One command over a table of a million buckets, none of which is full.
void reap(benchmark::State& state) {
  detail::memory_buckets buckets{memory_options{}};
  time_point const now{1'700'000'000s};
  for (auto const& name : names()) {
    (void)buckets.apply(
        command::take{.key = name, .quotas = {&hourly, 1}, .cost = 1, .max_wait = {}}, now);
  }
  for (auto _ : state) benchmark::DoNotOptimize(buckets.apply(command::reap_buckets{}, now));
}
BENCHMARK(reap)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_google(
      argc, argv, "buckets",
      {
          {.benchmark = "one_key_accept/real_time/threads:1",
           .reference = "bare_clock/real_time/threads:1",
           .goal = reference_plus(6),
           .note = "the key is looked up, too: a hash, a slot, a quota"},
          {.benchmark = "one_key_refuse/real_time/threads:2",
           .reference = "bare_clock/real_time/threads:2",
           .goal = reference_plus(1),
           .note = "nothing is stored; of two threads, so half of each one's time"},
          {.benchmark = "one_bucket<raw_limiter>/accept:1/real_time/threads:1",
           .reference = "bare_clock/real_time/threads:1",
           .goal = reference_plus(6),
           .note = "bare_clock_and_cas is the least that a limiter can do"},
          {.benchmark = "one_bucket<raw_limiter>/accept:0/real_time/threads:2",
           .reference = "bare_clock/real_time/threads:2",
           .goal = reference_plus(1)},
          {.benchmark = "one_bucket<digest_limiter>/accept:1/real_time",
           .reference = "one_bucket<raw_limiter>/accept:1/real_time/threads:1",
           .note = "the key was digested once"},
          {.benchmark = "string_keys<raw_limiter>/1000/real_time/threads:1",
           .reference = "bare_flat_table<system_clock>/1000/real_time/threads:1"},
          {.benchmark = "string_keys_coarse/1000/real_time/threads:1",
           .reference = "bare_flat_table<coarse_clock>/1000/real_time/threads:1",
           .goal = at_most(30)},
          {.benchmark = "string_keys_at_once<raw_limiter>/1000/real_time/threads:1",
           .reference = "bare_flat_table_at_once/1000/real_time/threads:1"},
          {.benchmark = "string_keys<raw_limiter>/1000/real_time/threads:2",
           .reference = "bare_flat_table<system_clock>/1000/real_time/threads:2"},
          {.benchmark = "string_keys_coarse/1000/real_time/threads:2",
           .reference = "bare_flat_table<coarse_clock>/1000/real_time/threads:2",
           .goal = at_most(25)},
          {.benchmark = "string_keys_at_once<raw_limiter>/1000/real_time/threads:2",
           .reference = "bare_flat_table_at_once/1000/real_time/threads:2"},
          {.benchmark = "string_keys<raw_limiter>/1000000/real_time/threads:1",
           .reference = "bare_flat_table<system_clock>/1000000/real_time/threads:1"},
          {.benchmark = "string_keys_coarse/1000000/real_time/threads:1",
           .reference = "bare_flat_table<coarse_clock>/1000000/real_time/threads:1",
           .goal = at_most(320)},
          {.benchmark = "string_keys_at_once<raw_limiter>/1000000/real_time/threads:1",
           .reference = "bare_flat_table_at_once/1000000/real_time/threads:1",
           .goal = at_most(60)},
          {.benchmark = "string_keys<raw_limiter>/1000000/real_time/threads:2",
           .reference = "bare_flat_table<system_clock>/1000000/real_time/threads:2"},
          {.benchmark = "string_keys_coarse/1000000/real_time/threads:2",
           .reference = "bare_flat_table<coarse_clock>/1000000/real_time/threads:2",
           .goal = at_most(154)},
          {.benchmark = "string_keys_at_once<raw_limiter>/1000000/real_time/threads:2",
           .reference = "bare_flat_table_at_once/1000000/real_time/threads:2",
           .goal = at_most(33)},
          {.benchmark = "string_keys<digest_limiter>/1000000/real_time/threads:1",
           .reference = "string_keys<raw_limiter>/1000000/real_time/threads:1",
           .note = "the difference is one SHA-256 (bare_sha256)"},
          {.benchmark = "new_keys/iterations:3",
           .goal = at_most(64),
           .counter = "bytes_per_key",
           .unit = "bytes",
           .name = "memory of a key"},
          {.benchmark = "new_keys/iterations:3",
           .counter = "p99.999_ns",
           .unit = "ns",
           .name = "a new key, the slowest of 100,000"},
          {.benchmark = "new_keys/iterations:3",
           .goal = at_most(50'000),
           .note = "the scheduler's pauses among them",
           .counter = "max_ns",
           .unit = "ns",
           .name = "a new key, the slowest of a million"},
      });
}
