// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The share of each of many who want the same key: see crowd.hpp. And what hundreds of idle workers
// cost others: a limiter that they have nothing to do with, and a job that one of them runs.
//
//     bench_crowd_redis [rounds]

#include "../test/integration/redis_process.hpp"
#include "crowd.hpp"
#include "report.hpp"
#include "weir/job_traits.hpp"
#include "weir/store/redis.hpp"
#include "weir/worker.hpp"

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace weir_bench {

struct nothing {
  int number = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(nothing, number)
};

}  // namespace weir_bench

template <>
struct weir::job_traits<weir_bench::nothing> {
  static constexpr std::string_view kind = "nothing";
};

namespace {

using namespace weir_bench;

/// Workers that have nothing to do, each with a store of its own, as processes have them.
class idle_workers {
 public:
  idle_workers(redis_test::server& s, std::size_t n) : server_{s} {
    for (std::size_t i = 0; i != n; ++i) all_.emplace_back(io_, s, ran_);
    thread_ = std::thread{[this] { io_.run(); }};
    // Each listens to a channel of its own.
    while (static_cast<std::size_t>(std::ranges::count(
               server_.ask("pubsub channels '{weir:0}:hints:*'") + "\n", '\n')) != n) {
      std::this_thread::sleep_for(100ms);
    }
    std::this_thread::sleep_for(warm_up);
  }
  idle_workers(idle_workers const&) = delete;
  idle_workers& operator=(idle_workers const&) = delete;
  ~idle_workers() {
    asio::post(io_, [this] {
      for (auto& each : all_) each.worker.stop();
    });
    thread_.join();
  }

  struct cost {
    double scripts = 0;
    double server_us = 0;
  };
  /// A job's cost to the server, from its enqueue until all who heard of it are idle again, less
  /// the cost of as long a time without it.
  cost cost_of_a_job() {
    constexpr int jobs = 40;
    constexpr auto each = 100ms;
    auto const idle = server_used([&] { std::this_thread::sleep_for(jobs * each); });
    asio::io_context io;
    weir::redis_store const store{io.get_executor(), server_.address()};
    store.async_run(asio::detached);
    auto busy = server_used([&] {
      for (int i = 0; i != jobs; ++i) {
        weir::new_job j;
        j.id.data[0] = static_cast<std::uint8_t>(1 + i);
        j.kind = "nothing";
        j.payload = R"({"number":0})";
        auto const before = ran_.load();
        auto const until = steady_clock::now() + each;
        bool done = false;
        store.async_execute(weir::command::enqueue_jobs{"queue", {&j, 1}},
                            [&](weir::error_code ec, auto const&) {
                              if (ec) throw std::runtime_error{ec.message()};
                              done = true;
                            });
        while (!done) io.run_one();
        while (ran_ == before || steady_clock::now() < until) {
          std::this_thread::sleep_for(1ms);
        }
      }
    });
    store.close();
    io.run();
    return {std::max(busy.scripts - idle.scripts, 0.) / jobs,
            std::max(busy.server_us - idle.server_us, 0.) / jobs};
  }

 private:
  struct one {
    one(asio::io_context& io, redis_test::server& s, std::atomic<long>& ran)
        : store{io.get_executor(), s.address()},
          worker{store} {
      store.async_run(asio::detached);
      worker.handle<nothing>([&ran](nothing const&) { ++ran; });
      worker.async_run([this](weir::error_code) { store.close(); });
    }
    weir::redis_store store;
    weir::worker<weir::redis_store> worker;
  };

  template <class Work>
  cost server_used(Work const& work) {
    auto const before = used();
    work();
    auto const after = used();
    return {after.scripts - before.scripts, after.server_us - before.server_us};
  }
  [[nodiscard]] cost used() const {
    auto const said = server_.ask("info all");
    auto const number = [&](std::string_view name) {
      auto const at = said.find(name);
      return at == said.npos ? 0. : std::strtod(said.c_str() + at + name.size(), nullptr);
    };
    constexpr double us = 1e6;
    return {number("cmdstat_evalsha:calls="),
            us * (number("used_cpu_sys:") + number("used_cpu_user:"))};
  }

  redis_test::server& server_;
  asio::io_context io_{1};
  std::atomic<long> ran_{0};
  std::deque<one> all_;
  std::thread thread_;
};

void show_idle(report& out, int rounds) {
  constexpr std::size_t many = 500;
  samples alone;
  samples beside;
  std::array<samples, 2> scripts;
  std::array<samples, 2> server_us;
  for (int i = 0; i != rounds; ++i) {
    redis_test::server server;
    auto const make = [&](auto executor) { return weir::redis_store{executor, server.address()}; };
    auto const grants = [&] {
      return run(make, 1, 10,
                 [](auto const& store, std::size_t n, tally& all) {
                   return wait_in_line(store, n, all);
                 })
          .rate;
    };
    auto const note = [&](std::size_t which, idle_workers& crowd) {
      auto const cost = crowd.cost_of_a_job();
      scripts[which].push_back(cost.scripts);
      server_us[which].push_back(cost.server_us);
    };
    alone.push_back(grants());
    {
      idle_workers one{server, 1};
      note(0, one);
    }
    idle_workers crowd{server, many};
    beside.push_back(grants());
    note(1, crowd);
  }
  out.add({.name = "limit 10, held for 2 ms: 10 waiters, beside 500 idle workers",
           .unit = "grants/s",
           .ours = beside,
           .reference_name = "without them",
           .reference = alone,
           .goal = ratio_at_least(0.9)});
  out.add({.name = "a job that one of 500 idle workers runs: the server's time",
           .unit = "us",
           .ours = server_us[1],
           .reference_name = "with one worker",
           .reference = server_us[0]});
  out.add({.name = "  the server's scripts",
           .unit = "scripts",
           .ours = scripts[1],
           .reference_name = "with one worker",
           .reference = scripts[0]});
}

}  // namespace

int main(int argc, char** argv) {
  // Each store has two connections, of which the server has the other ends.
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  report out{"crowd_redis"};
  auto const rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  auto const fresh = [](int) {
    return [server = std::make_shared<redis_test::server>()](auto executor) {
      return weir::redis_store{executor, server->address()};
    };
  };
  show_idle(out, rounds);
  show(out, fresh, rounds);
  out.finish();
}
