// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What a job costs in the memory store, one thread, one job per command unless said, payloads of 64
// bytes. "Waiting" is how many other jobs the queue has. The reference does the same steps on what
// one would write in an afternoon: a std::set in order and a std::unordered_map by id, behind a
// std::mutex, without keys, retries, counters or pointers.

#include "weir/store/memory/jobs.hpp"

#include "google.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;

constexpr std::string_view payload =
    "{\"to\":\"someone@example.com\",\"template\":\"welcome\",\"language\":\"en\"}";
constexpr duration lease = 30s;

/// Ids as version 7 makes them: growing in time, random below. Shuffled: random all over.
class id_source {
 public:
  job_id operator()() noexcept {
    ++count_;
    auto x = count_ * 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
    job_id id;
    for (std::size_t i = 0; i < 8; ++i) {
      id.data[i] = static_cast<std::uint8_t>((shuffled ? x * 31 : count_) >> (8 * (7 - i)));
      id.data[8 + i] = static_cast<std::uint8_t>(x >> (8 * i));
    }
    return id;
  }

  bool shuffled = false;

  [[nodiscard]] std::uint64_t random() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t state_ = 88172645463325252U;
};

struct bed {
  explicit bed(std::uint32_t shards = 1) : jobs{options(shards)} {}

  static memory_options options(std::uint32_t shards) {
    memory_options o;
    o.shards = shards;
    return o;
  }

  new_job make(duration delay = {}) {
    new_job j;
    j.id = ids();
    j.kind = "send_mail";
    j.payload = payload;
    j.delay = delay;
    return j;
  }

  void enqueue(std::string_view queue, duration delay = {}) {
    now += 1us;
    auto const j = make(delay);
    command::enqueue_jobs const c{.queue = queue, .jobs = {&j, 1}};
    benchmark::DoNotOptimize(jobs.apply(c, now));
  }

  dequeued dequeue(std::string_view queue, std::uint32_t limit = 1) {
    now += 1us;
    command::dequeue_jobs const c{.queue = queue,
                                  .holder = "worker-1",
                                  .sequence = ++sequence,
                                  .limit = limit,
                                  .lease = lease};
    return jobs.apply(c, now).value();
  }

  void complete(std::string_view queue, job_id id, std::uint64_t fence) {
    now += 1us;
    finished_job const f{.id = id, .fence = fence, .result = {}};
    command::complete_jobs const c{.queue = queue, .jobs = {&f, 1}};
    benchmark::DoNotOptimize(jobs.apply(c, now));
  }

  void fill(std::string_view queue, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) enqueue(queue);
  }

  void cycle(std::string_view queue) {
    enqueue(queue);
    auto const got = dequeue(queue);
    complete(queue, got.jobs.front().id, got.jobs.front().fence);
  }

  detail::memory_jobs jobs;
  id_source ids;
  time_point now{1'800'000'000s};
  std::uint64_t sequence = 0;
};

void enqueue_dequeue_complete(benchmark::State& state) {
  bed b;
  b.fill("mail", state.range(0));
  for (auto _ : state) b.cycle("mail");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(enqueue_dequeue_complete)->ArgName("waiting")->Arg(10)->Arg(1'000)->Arg(1'000'000);

void with_ids_at_random(benchmark::State& state) {
  bed b;
  b.ids.shuffled = true;
  b.fill("mail", state.range(0));
  for (auto _ : state) b.cycle("mail");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(with_ids_at_random)->ArgName("waiting")->Arg(10)->Arg(1'000)->Arg(1'000'000);

void in_batches_of_100(benchmark::State& state) {
  bed b;
  b.fill("mail", state.range(0));
  std::vector<new_job> batch(100);
  std::vector<finished_job> done(100);
  for (auto _ : state) {
    for (auto& j : batch) j = b.make();
    b.now += 1us;
    benchmark::DoNotOptimize(
        b.jobs.apply(command::enqueue_jobs{.queue = "mail", .jobs = batch}, b.now));
    auto const got = b.dequeue("mail", 100);
    for (std::size_t i = 0; i < 100; ++i) done[i] = {got.jobs[i].id, got.jobs[i].fence, {}};
    benchmark::DoNotOptimize(
        b.jobs.apply(command::complete_jobs{.queue = "mail", .jobs = done}, b.now));
  }
  state.SetItemsProcessed(100 * state.iterations());
}
BENCHMARK(in_batches_of_100)->ArgName("waiting")->Arg(10)->Arg(1'000)->Arg(1'000'000);

void with_a_million_future_jobs(benchmark::State& state) {
  bed b;
  for (int i = 0; i < 1'000'000; ++i) {
    b.enqueue("mail", 1h + std::chrono::milliseconds{b.ids.random() % 86'400'000});
  }
  b.fill("mail", state.range(0));
  for (auto _ : state) b.cycle("mail");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(with_a_million_future_jobs)->ArgName("waiting")->Arg(10);

void a_hundred_thousand_queues(benchmark::State& state) {
  bed b;
  std::vector<std::string> queues;
  for (int i = 0; i < 100'000; ++i) queues.push_back("tenant-" + std::to_string(i));
  for (auto const& q : queues) b.fill(q, state.range(0));
  for (auto _ : state) b.cycle(queues[b.ids.random() % queues.size()]);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(a_hundred_thousand_queues)->ArgName("waiting")->Arg(10);

// One operation at a time: in chunks, of which only that operation is timed.

enum class operation { enqueue, dequeue, complete };

void one(benchmark::State& state, operation which) {
  constexpr std::size_t chunk = 512;
  using clock = std::chrono::steady_clock;
  bed b;
  b.fill("mail", state.range(0));
  std::vector<std::pair<job_id, std::uint64_t>> claimed(chunk);
  for (auto _ : state) {
    std::array<clock::time_point, 4> at;
    at[0] = clock::now();
    for (std::size_t i = 0; i < chunk; ++i) b.enqueue("mail");
    at[1] = clock::now();
    for (auto& c : claimed) {
      auto const got = b.dequeue("mail");
      c = {got.jobs.front().id, got.jobs.front().fence};
    }
    at[2] = clock::now();
    for (auto const& [id, fence] : claimed) b.complete("mail", id, fence);
    at[3] = clock::now();
    auto const i = static_cast<std::size_t>(which);
    state.SetIterationTime(std::chrono::duration<double>{at[i + 1] - at[i]}.count());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(chunk) * state.iterations());
}
BENCHMARK_CAPTURE(one, enqueue, operation::enqueue)
    ->ArgName("waiting")
    ->Arg(10)
    ->Arg(1'000)
    ->Arg(1'000'000)
    ->UseManualTime();
BENCHMARK_CAPTURE(one, dequeue, operation::dequeue)
    ->ArgName("waiting")
    ->Arg(10)
    ->Arg(1'000)
    ->Arg(1'000'000)
    ->UseManualTime();
BENCHMARK_CAPTURE(one, complete, operation::complete)
    ->ArgName("waiting")
    ->Arg(10)
    ->Arg(1'000)
    ->Arg(1'000'000)
    ->UseManualTime();

// ----------------------------------------------------------------------------------------
// reference

class plain_queue {
 public:
  void enqueue(job_id id, std::uint8_t priority, time_point vesting) {
    std::lock_guard const lock{mutex_};
    order_.emplace(priority, vesting, id);
    records_.emplace(id, record{priority, vesting, 0, "send_mail", std::string{payload}});
  }

  std::pair<job_id, std::string> dequeue(time_point now, time_point until) {
    std::lock_guard const lock{mutex_};
    auto node = order_.extract(order_.begin());
    auto& [priority, vesting, id] = node.value();
    if (now < vesting) return {};
    auto& r = records_.find(id)->second;
    vesting = r.vesting = until;
    ++r.attempts;
    std::pair<job_id, std::string> out{id, r.payload};
    order_.insert(std::move(node));
    return out;
  }

  void complete(job_id id) {
    std::lock_guard const lock{mutex_};
    auto const it = records_.find(id);
    order_.erase({it->second.priority, it->second.vesting, id});
    records_.erase(it);
  }

 private:
  struct record {
    std::uint8_t priority;
    time_point vesting;
    std::uint32_t attempts;
    std::string kind;
    std::string payload;
  };

  std::mutex mutex_;
  std::set<std::tuple<std::uint8_t, time_point, job_id>> order_;
  std::unordered_map<job_id, record> records_;
};

void reference_set_and_map(benchmark::State& state) {
  plain_queue q;
  id_source ids;
  time_point now{1'800'000'000s};
  for (std::int64_t i = 0; i < state.range(0); ++i) q.enqueue(ids(), 100, now += 1us);
  for (auto _ : state) {
    q.enqueue(ids(), 100, now += 1us);
    auto const got = q.dequeue(now, now + lease);
    benchmark::DoNotOptimize(got);
    q.complete(got.first);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(reference_set_and_map)->ArgName("waiting")->Arg(10)->Arg(1'000)->Arg(1'000'000);

}  // namespace

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_google(argc, argv, "jobs",
                    {
                        {.benchmark = "enqueue_dequeue_complete/waiting:10",
                         .reference = "reference_set_and_map/waiting:10",
                         .goal = at_most(500)},
                        {.benchmark = "enqueue_dequeue_complete/waiting:1000",
                         .reference = "reference_set_and_map/waiting:1000",
                         .goal = at_most(500)},
                        {.benchmark = "enqueue_dequeue_complete/waiting:1000000",
                         .reference = "reference_set_and_map/waiting:1000000",
                         .goal = at_most(500)},
                        {.benchmark = "with_a_million_future_jobs/waiting:10",
                         .reference = "enqueue_dequeue_complete/waiting:10",
                         .goal = ratio_at_most(1.5)},
                    });
}
