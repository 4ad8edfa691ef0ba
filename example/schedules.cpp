// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs that are enqueued again and again. docs/schedules.md explains it.

#include "weir/schedules.hpp"

#include "weir.hpp"
#include "weir/scheduler.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

namespace asio = boost::asio;
using namespace std::chrono_literals;

// begin: job
struct build_report {
  std::string what;
  std::string day;  // set to the tick by which the job was enqueued
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(build_report, what, day)

template <>
struct weir::job_traits<build_report> {
  static constexpr std::string_view kind = "build_report";
  static constexpr std::string_view queue = "reports";
};
// end: job

// begin: explain
void explain(std::string_view expression, std::string_view zone, weir::time_point from) {
  auto const when = weir::cron_expression::parse(expression).value();
  auto const where = weir::any_zone::load(zone).value();
  for (int i = 0; i != 4; ++i) {
    auto const tick = weir::next_tick(when, where, from);
    if (!tick) break;  // never again
    std::cout << to_string(*tick) << '\n';
    from = tick->at;
  }
}
// end: explain

asio::awaitable<void> tour(weir::memory_store store) {
  // begin: put
  weir::schedules schedules{store};
  build_report const sales{"sales", ""};
  weir::schedule const daily{.name = "daily sales",
                             .when = weir::cron{"30 2 * * *", "America/New_York"},
                             .overlap = weir::overlap_policy::allow,  // each day has its report
                             .catch_up = weir::catch_up_policy::all(7, 7 * 24h),
                             .tick_member = "day"};
  co_await schedules.async_put(daily, sales);
  // end: put

  // begin: trigger
  co_await schedules.async_trigger("daily sales");  // once more, now
  // end: trigger

  // begin: every
  build_report const pulse{"pulse", ""};
  weir::schedule const second{.name = "pulse", .when = weir::every{1s}, .tick_member = "day"};
  co_await schedules.async_put(second, pulse);
  // end: every

  asio::steady_timer pause{co_await asio::this_coro::executor, 2100ms};
  co_await pause.async_wait(asio::use_awaitable);

  // begin: list
  std::string cursor;
  do {
    auto const page = co_await schedules.async_list(100, cursor);
    for (auto const& s : page.schedules) {
      std::cout << s.definition.name << ": fired " << s.progress.fired << ", missed "
                << s.progress.missed << '\n';
    }
    cursor = page.cursor;
  } while (!cursor.empty());
  // end: list

  // begin: remove
  co_await schedules.async_remove("pulse");
  // end: remove
}

int main() {
  using namespace std::chrono;
  explain("30 2 * * *", "America/New_York", weir::time_point{sys_days{year{2026} / 3 / 7}});

  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  // begin: run
  weir::scheduler scheduler{store};  // enqueues the jobs of the ticks
  weir::worker worker{store};        // runs them
  worker.handle([](build_report const& r) { std::cout << "the " << r.what << " report\n"; });
  scheduler.async_run(weir::log::failures{"scheduler"});
  worker.async_run(weir::log::failures{"worker"});
  // end: run
  asio::cancellation_signal end;
  bool interrupted = false;
  asio::signal_set signals{io, SIGINT, SIGTERM};
  signals.async_wait([&](weir::error_code ec, int) {
    interrupted = !ec;
    if (interrupted) end.emit(asio::cancellation_type::terminal);
  });
  auto ended = [&](std::exception_ptr error) {
    signals.cancel();
    scheduler.stop();
    worker.stop();
    if (error && !interrupted) std::rethrow_exception(error);  // out of io.run()
  };
  asio::co_spawn(io, tour(store), asio::bind_cancellation_slot(end.slot(), ended));
  io.run();
}
