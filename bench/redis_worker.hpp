// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_REDIS_WORKER_HPP
#define WEIR_BENCH_REDIS_WORKER_HPP

#include "redis_rig.hpp"
#include "weir/job_traits.hpp"
#include "weir/worker.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
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

inline new_job no_op_job(job_id const& id, std::string_view payload) {
  new_job j;
  j.id = id;
  j.kind = "no_op";
  j.payload = payload;
  return j;
}

inline std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// Enqueues n jobs a thousand at a time, so many commands in flight.
inline figure enqueue_in_bulk(rig& r, std::uint64_t n, std::uint64_t in_flight) {
  constexpr std::uint64_t size = 1000;
  static std::string const payload = R"({"sent":0})";
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
  std::function<void()> const next = [&] {
    if (begun == n) return;
    std::vector<new_job> jobs;
    for (; begun != n && jobs.size() != size; ++begun) {
      jobs.push_back(no_op_job(rig::numbered('b', begun), payload));
    }
    auto const count = jobs.size();
    r.store().async_execute(command::enqueue_jobs{"queue", jobs},
                            [&, count](error_code ec, command::enqueue_jobs::result const&) {
                              if (ec) throw std::runtime_error{ec.message()};
                              ended += count;
                              next();
                            });
  };
  return r.measure(n, RUSAGE_SELF, [&] {
    for (std::uint64_t i = 0; i != in_flight; ++i) next();
    r.io().restart();
    while (ended != n) r.io().run_one();
  });
}

struct worked {
  figure speed;
  double scripts = 0;  ///< for each job
};

/// Lets a worker run the jobs that wait.
inline worked process(rig& r, std::uint64_t n, worker_options const& options) {
  std::uint64_t ran = 0;
  weir::worker<redis_store> worker{r.store(), options};
  worker.handle<no_op>([&](no_op const&) { ++ran; });
  std::uint64_t completed = 0;
  worker.on_event([&](worker_event const& e) {
    if (e.kind == worker_event_kind::completed) ++completed;
  });
  worked out;
  auto const before = r.scripts();
  out.speed = r.measure(n, RUSAGE_SELF, [&] {
    worker.async_run(boost::asio::detached);
    r.io().restart();
    while (completed != n) r.io().run_one();
  });
  out.scripts = static_cast<double>(r.scripts() - before) / static_cast<double>(n);
  if (ran != n) throw std::runtime_error{"a job ran twice"};
  worker.stop();
  r.io().restart();
  r.io().run_for(std::chrono::milliseconds{200});
  return out;
}

/// From before a job is enqueued until its handler starts, when nothing else happens: microseconds,
/// in their order.
inline std::vector<double> idle_latencies(rig& r, std::size_t n) {
  std::vector<double> out;
  weir::worker<redis_store> worker{r.store()};
  worker.handle<no_op>([&](no_op const& job) {
    out.push_back(static_cast<double>(nanoseconds_now() - job.sent) / 1000);
  });
  worker.async_run(boost::asio::detached);
  boost::asio::steady_timer timer{r.io()};
  r.io().restart();
  for (std::size_t i = 0; i != n; ++i) {
    bool over = false;
    timer.expires_after(std::chrono::milliseconds{5});
    timer.async_wait([&](error_code) { over = true; });
    while (!over) r.io().run_one();
    auto const payload = R"({"sent":)" + std::to_string(nanoseconds_now()) + "}";
    std::array const job{no_op_job(rig::numbered('l', i), payload)};
    r.store().async_execute(command::enqueue_jobs{"queue", job},
                            [](error_code ec, command::enqueue_jobs::result const&) {
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

/// What two round trips take that wait for each other, after the same pause: as many as lie between
/// an enqueue and its handler. Microseconds, in their order.
inline std::vector<double> idle_pings(rig& r, std::size_t n) {
  namespace asio = boost::asio;
  using asio::ip::tcp;
  tcp::socket socket{r.io()};
  socket.connect({asio::ip::address_v4::loopback(), r.port()});
  socket.set_option(tcp::no_delay{true});
  std::string const ping = "PING\r\n";
  std::string answer(std::string_view{"+PONG\r\n"}.size(), ' ');
  std::vector<double> out;
  for (std::size_t i = 0; i != n; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    auto const begin = nanoseconds_now();
    for (int trip = 0; trip != 2; ++trip) {
      asio::write(socket, asio::buffer(ping));
      asio::read(socket, asio::buffer(answer));
    }
    out.push_back(static_cast<double>(nanoseconds_now() - begin) / 1000);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace weir_bench

#endif
