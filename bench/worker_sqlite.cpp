// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker on the SQLite store: one thread for the bookkeeping and the handlers, the store's own
// for the file. Last, one whose jobs come from another process.

#include "sqlite_bed.hpp"
#include "worker.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <sys/resource.h>
#include <sys/wait.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace weir_bench;
using namespace std::chrono_literals;

constexpr std::size_t jobs = 300;
constexpr auto idle_for = 3s;

/// Enqueues jobs, with a pause before each in which the worker falls idle.
void enqueue_all(std::string const& file) {
  boost::asio::io_context io;
  weir::sqlite_store const store{io.get_executor(), file, sqlite_bed::options()};
  std::this_thread::sleep_for(2 * idle_for);
  for (std::size_t n = 0; n != jobs; ++n) {
    std::this_thread::sleep_for(10ms);
    auto const payload = R"({"sent":)" + std::to_string(nanoseconds_now()) + "}";
    auto job = job_of_nothing(payload);
    job.id.data[0] = 1;
    for (std::size_t i = 0; i != 4; ++i) {
      job.id.data[15 - i] = static_cast<std::uint8_t>((n + 1) >> (8 * i));
    }
    std::array const one{job};
    store.async_execute(weir::command::enqueue_jobs{"queue", one}, [](weir::error_code ec, auto) {
      if (ec) ::_exit(1);
    });
    io.restart();
    io.run();
  }
}

double processor_seconds() {
  ::rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto const seconds = [](::timeval t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// @param other the process that enqueues
void report_two_processes(report& out, std::string const& file, ::pid_t other) {
  boost::asio::io_context io;
  weir::sqlite_store const store{io.get_executor(), file, sqlite_bed::options()};
  weir::worker<weir::sqlite_store> worker{store, hands(10, 10)};
  samples latencies;
  worker.handle<nothing>([&](nothing const& job) {
    latencies.push_back(static_cast<double>(nanoseconds_now() - job.sent) / 1000);
    if (latencies.size() == jobs) worker.stop();
  });
  worker.async_run([&](weir::error_code) { io.stop(); });
  boost::asio::steady_timer deadline{io, 2min};
  deadline.async_wait([&](weir::error_code ec) {
    if (!ec) throw std::runtime_error{"the other process's jobs did not come"};
  });
  boost::asio::steady_timer timer{io};
  double before = 0;
  double share = 0;
  timer.expires_after(1s);
  timer.async_wait([&](weir::error_code) {
    before = processor_seconds();
    timer.expires_after(idle_for);
    timer.async_wait([&](weir::error_code) {
      share =
          100 * (processor_seconds() - before) / std::chrono::duration<double>(idle_for).count();
    });
  });
  io.run();
  int status = 0;
  ::waitpid(other, &status, 0);
  if (status != 0) throw std::runtime_error{"the other process has failed"};
  out.add({.name = "sqlite, enqueue to handler of another process, idle, p50",
           .unit = "us",
           .ours = latencies,
           .goal = at_most(1000)});
  out.add({.name = "sqlite, enqueue to handler of another process, idle, p99",
           .unit = "us",
           .ours = latencies.quantile(0.99)});
  out.add({.name = "sqlite, an idle worker's share of a core",
           .unit = "%",
           .ours = share,
           .goal = at_most(1)});
}

}  // namespace

int main() {
  weir_test::directory const home{std::filesystem::current_path()};
  auto const other = ::fork();  // while there is one thread
  if (other == 0) {
    std::this_thread::sleep_for(500ms);
    enqueue_all(home.file());
    ::_exit(0);
  }
  report out{"worker_sqlite"};
  report_two_processes(out, home.file(), other);
  report_worker<sqlite_bed>(out, 10'000, 5);
  out.finish();
}
