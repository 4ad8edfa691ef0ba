// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What can be done with jobs, one thing after the other. docs/jobs.md explains it.

#include "weir.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <csignal>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

// begin: job
struct send_mail {
  std::string to, subject;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(send_mail, to, subject)

template <>
struct weir::job_traits<send_mail> {
  static constexpr std::string_view kind = "send_mail";
  static constexpr std::string_view queue = "mail";
  static constexpr std::uint32_t max_attempts = 5;
  static constexpr weir::exponential_backoff backoff{100ms};  // 100 ms, 200 ms, 400 ms …
  static constexpr weir::duration timeout = 30s;              // of one attempt
  static constexpr weir::duration retention = 24h;            // of the result
};
// end: job

// begin: unique
struct build_report {
  int customer;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(build_report, customer)

template <>
struct weir::job_traits<build_report> {
  static constexpr std::string_view kind = "build_report";
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::discard;
  static std::string unique_key(build_report const& r) { return std::to_string(r.customer); }
};
// end: unique

// begin: limits
struct ask_model {
  std::string tenant, question;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ask_model, tenant, question)

template <>
struct weir::job_traits<ask_model> {
  static constexpr std::string_view kind = "ask_model";
  static std::string queue(ask_model const& a) { return a.tenant; }
  static constexpr std::uint32_t concurrency = 4;  // run at once, in all processes
  static constexpr weir::quota rate = weir::quota::per_second(50).burst(10);
  static std::string rate_key(ask_model const& a) { return a.tenant; }
};
// end: limits

using job_queue = weir::job_queue<weir::memory_store>;

asio::awaitable<void> tour(job_queue queue) {
  // begin: enqueue
  send_mail const welcome{"ann@example.com", "welcome"};
  auto const sent = co_await queue.async_enqueue(welcome);
  auto const later = co_await queue.async_enqueue(welcome, {.delay = 1h});
  co_await queue.async_enqueue(welcome, {.queue = "bulk mail", .priority = 200});
  // end: enqueue

  // begin: many
  std::vector<send_mail> const newsletter{{"bob@example.com", "news"}, {"", "news"}};
  auto const each = co_await queue.async_enqueue_many(newsletter);
  // end: many

  // begin: twice
  build_report const report{17};
  co_await queue.async_enqueue(report);
  auto const again = co_await queue.async_enqueue(report);
  if (again.outcome == weir::enqueue_outcome::duplicate) std::cout << "it is on its way\n";
  // end: twice

  // begin: cancel
  auto const outcome = co_await queue.async_cancel("mail", later.id);
  if (outcome == weir::cancel_outcome::cancelled) std::cout << "it will not be sent\n";
  // end: cancel

  ask_model const question{"acme", "why?"};
  co_await queue.async_enqueue(question);
  for (auto const& one : each) co_await queue.async_wait("mail", one.id);

  // begin: result
  std::optional<weir::job> const job = co_await queue.async_wait("mail", sent.id);
  if (job && job->state == weir::job_state::completed) {
    std::cout << "sent as " << job->result << " in " << job->attempts << " attempts\n";
  }
  // end: result

  // begin: dead letters
  weir::job_page page;
  do {
    page = co_await queue.async_list_dead_letters("mail", 100, page.cursor);
    for (auto const& dead : page.jobs) {
      std::cout << "not sent: " << dead.reason << '\n';
      co_await queue.async_replay("mail", dead.id, 1h);  // or async_purge: forget it
    }
  } while (!page.cursor.empty());
  // end: dead letters

  // begin: pause
  co_await queue.async_pause("mail");
  co_await queue.async_resume("mail");
  // end: pause

  // begin: stats
  weir::queue_stats const mail = co_await queue.async_stats("mail");
  std::cout << mail.pending << " wait, " << mail.leased << " run, " << mail.dead << " are dead\n";
  // end: stats
  if (mail.pending != 1) throw std::logic_error{"not as it should be"};
}

int main() {
  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  weir::worker worker{store, {.concurrency = 20, .drain = 10s}};

  // begin: handler
  worker.handle<send_mail>(
      [](send_mail const& m, weir::job_context& job) -> asio::awaitable<std::string> {
        if (m.to.empty()) throw weir::give_up{"no address"};              // dead at once
        if (job.snoozes() == 0) throw weir::snooze_for{50ms};             // no attempt is lost
        if (job.attempt() == 1) throw std::runtime_error{"server away"};  // tried again
        co_return "message 17";                                           // the job's result
      });
  // end: handler
  worker.handle<build_report>([](build_report const& r) { return r.customer; });

  // begin: blocking
  worker.handle<ask_model>([](ask_model const&, weir::job_context& job) {
    for (int step = 0; step != 3; ++step) {
      if (job.stop_requested()) throw std::runtime_error{"told to stop"};  // it is not completed
      std::this_thread::sleep_for(10ms);                                   // what blocks
    }
  });
  // end: blocking

  // begin: events
  worker.on_event([](weir::worker_event const& e) {
    std::cout << to_string(e.kind) << ' ' << e.queue << ": " << e.reason;
    if (e.job) std::cout << " (" << e.job->kind << ", attempt " << e.job->attempt << ')';
    if (e.error) std::cout << ' ' << e.error.message();
    std::cout << '\n';
  });
  // end: events

  // begin: threads
  asio::thread_pool threads{4};  // for handlers; all else stays in io's thread
  worker.async_run(asio::bind_executor(threads, [](weir::error_code ec) {
    if (ec) std::cerr << "the worker has ended: " << ec.message() << '\n';
  }));
  // end: threads

  asio::cancellation_signal end;
  bool interrupted = false;
  asio::signal_set signals{io, SIGINT, SIGTERM};
  signals.async_wait([&](weir::error_code ec, int) {
    interrupted = !ec;
    if (interrupted) end.emit(asio::cancellation_type::terminal);
  });
  auto ended = [&](std::exception_ptr error) {
    signals.cancel();
    worker.stop();
    if (error && !interrupted) std::rethrow_exception(error);  // out of io.run()
  };
  asio::co_spawn(io, tour(job_queue{store}), asio::bind_cancellation_slot(end.slot(), ended));
  io.run();
}
