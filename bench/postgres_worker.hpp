// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_POSTGRES_WORKER_HPP
#define WEIR_BENCH_POSTGRES_WORKER_HPP

#include "postgres_rig.hpp"
#include "weir/job_traits.hpp"
#include "weir/worker.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir_bench {

struct no_op {
  std::int64_t sent = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(no_op, sent)
};

}  // namespace weir_bench

template <>
struct weir::job_traits<weir_bench::no_op> {
  static constexpr std::string_view kind = "no_op";
};

namespace weir_bench {

inline weir::new_job no_op_job(weir::job_id const& id, std::string_view payload) {
  weir::new_job j;
  j.id = id;
  j.kind = "no_op";
  j.payload = payload;
  return j;
}

inline std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// Enqueues n jobs, a thousand at a time, so many commands in flight. Jobs in a second.
inline double enqueue_in_bulk(rig& r, std::uint64_t n, std::uint64_t in_flight,
                              std::function<weir::job_id()> const& id) {
  constexpr std::uint64_t size = 1000;
  static std::string const payload = R"({"sent":0})";
  return static_cast<double>(size) *
         r.together(n / size, in_flight, [&](std::uint64_t, std::function<void()> next) {
           std::vector<weir::new_job> jobs;
           for (std::uint64_t i = 0; i != size; ++i) jobs.push_back(no_op_job(id(), payload));
           r.store().async_execute(
               weir::command::enqueue_jobs{"queue", jobs},
               [next = std::move(next)](weir::error_code ec,
                                        weir::command::enqueue_jobs::result const&) {
                 if (ec) throw std::runtime_error{ec.message()};
                 next();
               });
         });
}

/// Lets a worker run the n jobs that wait. Jobs in a second.
inline double process(rig& r, std::uint64_t n, std::uint32_t concurrency) {
  std::uint64_t completed = 0;
  weir::worker_options options;
  options.concurrency = concurrency;
  weir::worker<weir::postgres_store> worker{r.store(), options};
  worker.handle<no_op>([](no_op const&) {});
  worker.on_event([&](weir::worker_event const& e) {
    if (e.kind == weir::worker_event_kind::completed) ++completed;
  });
  auto const start = std::chrono::steady_clock::now();
  worker.async_run(boost::asio::detached);
  r.io().restart();
  while (completed != n) r.io().run_one();
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
  worker.stop();
  r.io().restart();
  r.io().run_for(std::chrono::milliseconds{200});
  return static_cast<double>(n) / took.count();
}

/// From before a job is enqueued until its handler starts, when nothing else happens: milliseconds,
/// in their order.
inline std::vector<double> idle_latencies(rig& r, std::size_t n,
                                          std::function<weir::job_id()> const& id) {
  std::vector<double> out;
  weir::worker<weir::postgres_store> worker{r.store()};
  worker.handle<no_op>([&](no_op const& job) {
    out.push_back(static_cast<double>(nanoseconds_now() - job.sent) / 1e6);
  });
  worker.async_run(boost::asio::detached);
  boost::asio::steady_timer timer{r.io()};
  r.io().restart();
  for (std::size_t i = 0; i != n; ++i) {
    bool over = false;
    timer.expires_after(std::chrono::milliseconds{10});
    timer.async_wait([&](weir::error_code) { over = true; });
    while (!over) r.io().run_one();
    auto const payload = R"({"sent":)" + std::to_string(nanoseconds_now()) + "}";
    std::array const job{no_op_job(id(), payload)};
    r.store().async_execute(weir::command::enqueue_jobs{"queue", job},
                            [](weir::error_code ec, weir::command::enqueue_jobs::result const&) {
                              if (ec) throw std::runtime_error{ec.message()};
                            });
    while (out.size() == i) r.io().run_one();
  }
  worker.stop();
  r.io().restart();
  r.io().run_for(std::chrono::milliseconds{200});
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace weir_bench

#endif
