// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_GROWTH_HPP
#define WEIR_BENCH_GROWTH_HPP

#include "bed.hpp"
#include "paired.hpp"
#include "report.hpp"
#include "weir/command/buckets.hpp"
#include "weir/quota.hpp"
#include "worker.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// How the cost of a step grows with what else a store holds, with how many workers there are, and
// with how many tenants: of any kind of store, for which a bed is given.

namespace weir_bench {

/// How far to go.
struct growth_range {
  std::uint64_t most = 1'000'000;      ///< jobs of a state, keys; from a thousand in tenfold steps
  std::uint64_t tenants = 100'000;     ///< queues
  std::uint64_t worker_jobs = 20'000;  ///< that each number of workers shares
  std::string only{};                  ///< of "dequeue", "take", "workers", "tenants"; empty: all

  [[nodiscard]] bool has(std::string_view part) const { return only.empty() || only == part; }

  /// `--most N`, `--full` (10^7), `--quick` (10^4) and `--only PART` of a command line.
  static growth_range of(int argc, char** argv, growth_range usual) {
    for (int i = 1; i < argc; ++i) {
      std::string_view const option = argv[i];
      if (option == "--full") usual.most = 10'000'000;
      if (option == "--quick") usual.most = 10'000, usual.tenants = 1'000;
      if (option == "--most" && i + 1 < argc) usual.most = std::stoull(argv[++i]);
      if (option == "--only" && i + 1 < argc) usual.only = argv[++i];
    }
    return usual;
  }
};

namespace growth {

using namespace std::chrono_literals;

inline std::string const payload(100, 'p');

inline weir::new_job job() {
  weir::new_job j;
  j.kind = "kind";
  j.payload = payload;
  return j;
}

/// Gives jobs back to the queue, with their attempts.
template <class Bed>
void give_back(Bed& bed, weir::dequeued const& got) {
  for (auto const& j : got.jobs) bed.ask(weir::command::return_job{"queue", j.id, j.fence});
}

/// The time of a dequeue of ten, which are given back outside of it: microseconds.
template <class Bed>
double dequeue(Bed& bed) {
  weir::dequeued got;
  auto const time = nanoseconds_of(
      [&] { got = bed.ask(weir::command::dequeue_jobs{"queue", "holder", 0, 10, 1h}); });
  if (got.jobs.size() != 10) throw std::runtime_error{"no jobs"};
  give_back(bed, got);
  return time / 1000;
}

/// The time of a take of one of `keys` keys: microseconds, the mean of ten.
template <class Bed>
class taking {
 public:
  explicit taking(Bed& bed) : bed_{bed} {}

  void make(std::uint64_t n) {
    while (keys_ != n) {
      std::vector<std::string> keys;
      while (keys_ != n && keys.size() != 100) keys.push_back(key_of(keys_++));
      std::vector<weir::command::take> takes;
      for (auto const& key : keys) takes.push_back(taking_of(key));
      bed_.ask_all(takes);
    }
  }
  double operator()() {
    return nanoseconds_each(10, [&] { take(random_() % keys_); }) / 1000;
  }

 private:
  void take(std::uint64_t n) {
    auto const key = key_of(n);
    bed_.ask(taking_of(key));
  }
  static std::string key_of(std::uint64_t n) { return "tenant/" + std::to_string(n); }
  static weir::command::take taking_of(std::string const& key) {
    static auto const hourly = weir::quota::per_hour(1).burst(1000);
    return {.key = key, .quotas = {&hourly, 1}, .cost = 1, .max_wait = {}};
  }

  Bed& bed_;
  std::uint64_t keys_ = 0;
  std::mt19937_64 random_{1};
};

inline std::string thousands(std::uint64_t n) {
  auto out = std::to_string(n);
  for (auto at = out.size(); at > 3;) out.insert(at -= 3, 1, ',');
  return out;
}

/// Measures at a thousand, ten thousand and so on, beside a store with (almost) nothing in it.
///
/// @param counted of what there are so many
/// @param grow    fills the store up to so many
template <class Grow, class Measure, class Bare>
void tenfold(report& out, std::string const& chart, std::string const& line,
             std::string const& counted, std::uint64_t most, std::string const& reference,
             std::optional<target> goal, Grow&& grow, Measure&& measure, Bare&& bare) {
  for (std::uint64_t n = 1000; n <= most; n *= 10) {
    grow(n);
    auto const both = in_turn(300, {measure, bare});
    out.add(
        {.name = chart + ", " + line + ", " + thousands(n),
         .unit = "us",
         .ours = both[0],
         .reference_name = reference,
         .reference = both[1],
         .goal = goal,
         .plot = {{.chart = chart, .line = line, .x = static_cast<double>(n), .counts = counted}}});
  }
}

template <class Bed>
void report_dequeue(report& out, growth_range const& range) {
  auto const chart = std::string{Bed::name} + ", dequeue of 10";
  auto later = job();
  later.delay = 24h;
  later.priority = 1;  // before the ones that are due
  auto const grown = [&](std::string const& line, auto grow) {
    Bed empty;
    Bed full;
    empty.fill("queue", 10, job());
    // A level costs, however many jobs are on it.
    bool const two_levels = line == "future jobs";
    if (two_levels) empty.fill("queue", 1, later);
    std::uint64_t there = 0;
    tenfold(
        out, chart, line, "jobs", range.most,
        two_levels ? "10 jobs, 1 on the other level" : "a queue with 10 jobs", ratio_at_most(1.5),
        [&](std::uint64_t n) {
          grow(full, n - there);
          there = n;
        },
        [&] { return dequeue(full); }, [&] { return dequeue(empty); });
  };
  grown("waiting jobs", [](Bed& bed, std::uint64_t n) { bed.fill("queue", n, job()); });
  grown("future jobs", [&later, first = true](Bed& bed, std::uint64_t n) mutable {
    if (std::exchange(first, false)) bed.fill("queue", 10, job());
    bed.fill("queue", n, later);
  });
  grown("completed jobs", [first = true](Bed& bed, std::uint64_t n) mutable {
    auto kept = job();
    kept.retention = 24h;
    kept.priority = 1;
    for (std::uint64_t left = n; left != 0;) {
      auto const some = std::min<std::uint64_t>(left, weir::limits::batch);
      bed.fill("queue", some, kept);
      auto const got = bed.ask(
          weir::command::dequeue_jobs{"queue", "holder", 0, static_cast<std::uint32_t>(some), 1h});
      std::vector<weir::finished_job> ended;
      for (auto const& j : got.jobs) ended.push_back({j.id, j.fence, {}});
      bed.ask(weir::command::complete_jobs{"queue", ended});
      left -= some;
    }
    if (std::exchange(first, false)) bed.fill("queue", 10, job());
    if constexpr (requires { bed.settle(); }) bed.settle();
  });
}

template <class Bed>
void report_take(report& out, growth_range const& range) {
  Bed empty;
  Bed full;
  taking<Bed> few{empty};
  taking<Bed> many{full};
  few.make(100);
  tenfold(
      out, std::string{Bed::name} + ", take", "keys", "keys", range.most, "100 keys", std::nullopt,
      [&](std::uint64_t n) { many.make(n); }, [&] { return many(); }, [&] { return few(); });
}

/// Workers of ten hands each that share one queue, all on one thread.
template <class Bed>
void report_workers(report& out, growth_range const& range) {
  auto const chart = std::string{Bed::name} + ", workers on one queue";
  auto const run = [&](std::size_t workers) {
    return [&, workers] {
      Bed bed;
      std::deque<weir::worker<typename Bed::store_type>> all;
      std::uint64_t completed = 0;
      std::size_t ended = 0;
      bed.fill("queue", range.worker_jobs, job_of_nothing());
      for (std::size_t i = 0; i != workers; ++i) {
        auto& w = all.emplace_back(bed.store());
        w.template handle<nothing>([](nothing const&) {});
        w.on_event([&](weir::worker_event const& e) {
          if (e.kind == weir::worker_event_kind::completed) ++completed;
        });
      }
      auto const rate = per_second(range.worker_jobs, [&] {
        for (auto& w : all) w.async_run([&](weir::error_code) { ++ended; });
        bed.run_until([&] { return completed == range.worker_jobs; });
      });
      for (auto& w : all) w.stop();
      bed.run_until([&] { return ended == workers; });
      return rate;
    };
  };
  std::vector<std::size_t> const numbers{1, 2, 4, 8, 16, 32, 64};
  std::vector<std::function<double()>> measurements;
  for (auto const n : numbers) measurements.push_back(run(n));
  auto const rates = in_turn(3, measurements);
  for (std::size_t i = 0; i != numbers.size(); ++i) {
    out.add({.name = chart + ", " + std::to_string(numbers[i]),
             .unit = "jobs/s",
             .ours = rates[i],
             .reference_name = "one worker",
             .reference = rates[0],
             .plot = {{.chart = chart,
                       .line = "workers",
                       .x = static_cast<double>(numbers[i]),
                       .counts = "workers"}}});
  }
}

/// A tenant that enqueues one job in a while, among others as quiet, and beside one who always has
/// a hundred jobs waiting: from before the enqueue until its handler starts.
template <class Bed>
class crowd {
 public:
  crowd(std::uint64_t tenants, bool neighbour) : tenants_{tenants}, neighbour_{neighbour} {
    auto later = job_of_nothing();
    later.delay = 24h;
    for (std::uint64_t i = 0; i != tenants; ++i) bed_.fill(name(i), 1, later);
    worker_.template handle<nothing>([this](nothing const& job) {
      if (job.sent == 0) return;
      latency_ = static_cast<double>(nanoseconds_now() - job.sent) / 1000;
      heard_ = true;
    });
    worker_.on_event([this](weir::worker_event const& e) {
      if (e.kind == weir::worker_event_kind::completed && e.queue == "neighbour") --waiting_;
    });
    worker_.async_run([this](weir::error_code) { ended_ = true; });
  }
  crowd(crowd const&) = delete;
  crowd& operator=(crowd const&) = delete;
  ~crowd() {
    worker_.stop();
    bed_.run_until([this] { return ended_; });
  }

  /// Microseconds.
  double operator()() {
    heard_ = false;
    refill();
    auto const text = R"({"sent":)" + std::to_string(nanoseconds_now()) + "}";
    bed_.fill(name(random_() % tenants_), 1, job_of_nothing(text));
    while (!heard_) {
      refill();
      bed_.io().run_one();
    }
    return latency_;
  }

 private:
  static constexpr std::int64_t busy = 100;

  static std::string name(std::uint64_t n) { return "tenant/" + std::to_string(n); }

  void refill() {
    if (!neighbour_ || waiting_ > busy) return;
    waiting_ += busy;
    bed_.fill("neighbour", busy, job_of_nothing());
  }

  Bed bed_;
  weir::worker<typename Bed::store_type> worker_{bed_.store()};
  std::uint64_t tenants_;
  bool neighbour_;
  std::int64_t waiting_ = 0;
  double latency_ = 0;
  bool heard_ = false;
  bool ended_ = false;
  std::mt19937_64 random_{1};
};

template <class Bed>
void report_tenants(report& out, growth_range const& range) {
  auto const chart = std::string{Bed::name} + ", a quiet tenant waits";
  for (std::uint64_t n = 1; n <= range.tenants; n *= 10) {
    crowd<Bed> beside{n, true};
    crowd<Bed> without{n, false};
    auto const both = in_turn(200, {[&] { return beside(); }, [&] { return without(); }});
    std::pair<char const*, double> const shares[] = {{"p50", 0.5}, {"p99", 0.99}};
    for (auto const& [share, at] : shares) {
      out.add({.name = chart + ", " + share + ", " + thousands(n) + " tenants",
               .unit = "us",
               .ours = both[0].quantile(at),
               .reference_name = "without the busy neighbour",
               .reference = both[1].quantile(at),
               .plot = {{.chart = chart,
                         .line = share + std::string{", busy neighbour"},
                         .x = static_cast<double>(n),
                         .counts = "tenants"}}});
    }
  }
}

}  // namespace growth

/// All of it, of one kind of store.
template <class Bed>
int report_growth(std::string const& bench, growth_range const& range) {
  report out{bench};
  if (range.has("dequeue")) growth::report_dequeue<Bed>(out, range);
  if (range.has("take")) growth::report_take<Bed>(out, range);
  if (range.has("workers")) growth::report_workers<Bed>(out, range);
  if (range.has("tenants")) growth::report_tenants<Bed>(out, range);
  out.finish();
  return 0;
}

}  // namespace weir_bench

#endif
