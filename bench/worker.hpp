// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_WORKER_HPP
#define WEIR_BENCH_WORKER_HPP

#include "../test/counting_store.hpp"
#include "paired.hpp"
#include "report.hpp"
#include "weir/codec.hpp"
#include "weir/job_traits.hpp"
#include "weir/worker.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What a worker makes of a store: how many jobs that do nothing it gets done, what it asks the
// store for meanwhile, and how soon it starts a job when nothing else happens.

namespace weir_bench {

struct nothing {
  std::int64_t sent = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(nothing, sent)
};

/// The same without JSON, whose reading is a third of such a job.
struct raw_nothing {
  std::int64_t sent = 0;
};

}  // namespace weir_bench

template <>
struct weir::job_traits<weir_bench::nothing> {
  static constexpr std::string_view kind = "nothing";
};
template <>
struct weir::job_traits<weir_bench::raw_nothing> {
  static constexpr std::string_view kind = "nothing";
  static constexpr weir::raw_codec codec{};
};

namespace weir_bench {

inline weir::new_job job_of_nothing(std::string_view payload = R"({"sent":0})") {
  weir::new_job j;
  j.kind = "nothing";
  j.payload = payload;
  return j;
}

inline std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// A worker on a store of this kind, both on the thread that asks.
template <class Bed, class Job = nothing>
class worker_bed {
 public:
  using store_type = weir_test::counting_store<typename Bed::store_type>;

  explicit worker_bed(weir::worker_options const& options)
      : counted_{bed_.store()},
        worker_{counted_, options} {
    worker_.template handle<Job>([this](Job const& job) {
      if (job.sent != 0) {
        latencies_.push_back(static_cast<double>(nanoseconds_now() - job.sent) / 1000);
      }
    });
    worker_.on_event([this](weir::worker_event const& e) {
      if (e.kind == weir::worker_event_kind::completed) ++completed_;
    });
  }
  worker_bed(worker_bed const&) = delete;
  worker_bed& operator=(worker_bed const&) = delete;
  ~worker_bed() {
    if (!started_) return;
    worker_.stop();
    bed_.run_until([this] { return ended_; });
  }

  /// Jobs in a second, of `n` that wait.
  double busy(std::uint64_t n) {
    auto const payload = weir::encode(Job{}).value();
    bed_.fill("queue", n, job_of_nothing(payload));
    counted_.forget();
    auto const before = completed_;
    return per_second(n, [&] {
      start();
      bed_.run_until([&] { return completed_ == before + n; });
    });
  }

  /// From before a job is enqueued until its handler starts, one after the other, with a pause in
  /// which the worker falls idle: microseconds.
  samples idle(std::size_t n) {
    start();
    boost::asio::steady_timer timer{bed_.io()};
    counted_.forget();
    latencies_ = {};
    auto const before = completed_;
    for (std::size_t i = 0; i != n; ++i) {
      bool over = false;
      timer.expires_after(std::chrono::milliseconds{10});
      timer.async_wait([&](weir::error_code) { over = true; });
      bed_.run_until([&] { return over; });
      auto const payload = R"({"sent":)" + std::to_string(nanoseconds_now()) + "}";
      bed_.fill("queue", 1, job_of_nothing(payload));
      bed_.run_until([&] { return completed_ == before + i + 1; });
    }
    return latencies_;
  }

  [[nodiscard]] store_type const& counted() const noexcept { return counted_; }

 private:
  void start() {
    if (std::exchange(started_, true)) return;
    worker_.async_run([this](weir::error_code) { ended_ = true; });
  }

  Bed bed_;
  store_type counted_;
  weir::worker<store_type> worker_;
  samples latencies_;
  std::uint64_t completed_ = 0;
  bool started_ = false;
  bool ended_ = false;
};

inline weir::worker_options hands(std::uint32_t concurrency, std::uint32_t quantum) {
  weir::worker_options o;
  o.concurrency = concurrency;
  o.quantum = quantum;
  return o;
}

/// The least that is asked for these jobs: dequeues and completes of `together` each. Jobs in a
/// second.
template <class Bed>
double bare_steps(std::uint64_t n, std::uint32_t together) {
  Bed bed;
  bed.fill("queue", n, job_of_nothing());
  std::vector<weir::finished_job> ended;
  return per_second(n, [&] {
    for (std::uint64_t done = 0; done < n; done += ended.size()) {
      auto const got = bed.ask(
          weir::command::dequeue_jobs{"queue", "holder", 0, together, std::chrono::seconds{30}});
      ended.clear();
      for (auto const& j : got.jobs) ended.push_back({j.id, j.fence, {}});
      bed.ask(weir::command::complete_jobs{"queue", ended});
    }
  });
}

/// All rows of one kind of store.
///
/// @param jobs how many each run gets done
template <class Bed>
void report_worker(report& out, std::uint64_t jobs, std::size_t rounds,
                   std::optional<target> goal = {}) {
  auto const store = std::string{Bed::name} + ", ";
  samples asked;
  samples dequeues;
  samples completes;
  auto const worked = [&](std::uint32_t concurrency, std::uint32_t quantum) {
    return [&, concurrency, quantum] {
      worker_bed<Bed> w{hands(concurrency, quantum)};
      auto const rate = w.busy(jobs);
      auto const each = static_cast<double>(jobs);
      if (concurrency != 10) {
        asked.push_back(static_cast<double>(w.counted().asked()) / each);
        dequeues.push_back(
            static_cast<double>(w.counted().template asked_for<weir::command::dequeue_jobs>()) /
            each);
        completes.push_back(
            static_cast<double>(w.counted().template asked_for<weir::command::complete_jobs>()) /
            each);
      }
      return rate;
    };
  };
  auto const all = in_turn(rounds, {worked(10, 10), [&] { return bare_steps<Bed>(jobs, 10); },
                                    worked(256, 128), [&] { return bare_steps<Bed>(jobs, 128); }});
  out.add({.name = store + "jobs that do nothing, 10 at once",
           .unit = "jobs/s",
           .ours = all[0],
           .reference_name = "dequeue + complete, 10 each",
           .reference = all[1]});
  out.add({.name = store + "jobs that do nothing, 256 at once",
           .unit = "jobs/s",
           .ours = all[2],
           .reference_name = "dequeue + complete, 128 each",
           .reference = all[3],
           .goal = goal});
  out.add({.name = store + "round trips for each job, 256 at once", .unit = "", .ours = asked});
  out.add({.name = store + "  of them dequeues", .unit = "", .ours = dequeues});
  out.add({.name = store + "  of them completes", .unit = "", .ours = completes});

  worker_bed<Bed> alone{hands(10, 10)};
  auto const latencies = alone.idle(500);
  out.add({.name = store + "enqueue to handler, idle, p50",
           .unit = "us",
           .ours = latencies,
           .note = "its longest wait without a hint: 1,000,000 us"});
  out.add({.name = store + "enqueue to handler, idle, p99",
           .unit = "us",
           .ours = latencies.quantile(0.99)});
  out.add({.name = store + "round trips for each job, one at a time",
           .unit = "",
           .ours = static_cast<double>(alone.counted().asked()) / 500});
}

}  // namespace weir_bench

#endif
