// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_WORKER_FIXTURE_HPP
#define WEIR_TEST_UNIT_WORKER_FIXTURE_HPP

#include "weir/backoff/constant.hpp"
#include "weir/clock/manual.hpp"
#include "weir/job_queue.hpp"
#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace test {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using memory = weir::basic_memory_store<weir::manual_clock>;

/// Text and a number: the job of these tests. What it does is the handler's business.
struct note {
  std::string text;
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(note, text, number)

/// A worker on a memory store, all on one manual clock and one thread.
struct worker_fixture {
  using worker_type = weir::worker<memory, weir::manual_clock, weir::constant_backoff>;

  worker_fixture() = default;

  worker_type make_worker(weir::worker_options options = {}) {
    worker_type w{store, options, clock, weir::constant_backoff{10s},
                  weir::id_source::seeded(++workers)};
    w.on_event([this](weir::worker_event const& e) {
      ++events[e.kind];
      reasons.emplace_back(e.reason);
      delays.push_back(e.delay);
    });
    return w;
  }

  /// Starts a worker; `ended` has its error once it has drained.
  template <class Worker>
  void start(Worker& w) {
    w.async_run(
        asio::bind_cancellation_slot(stop.slot(), [this](weir::error_code ec) { ended = ec; }));
    settle();
  }
  void cancel() {
    stop.emit(asio::cancellation_type::terminal);
    settle();
  }

  /// Runs everything that can run without time passing.
  void settle() {
    io.restart();
    while (io.poll() != 0) {
    }
  }

  asio::awaitable<void> sleep(weir::duration d) {
    return clock.async_wait_until(io.get_executor(), clock.steady_now() + d, asio::use_awaitable);
  }
  /// Lets time pass, deadline by deadline.
  void pass(weir::duration d) {
    auto const end = clock.steady_now() + d;
    settle();
    while (clock.next_deadline() && *clock.next_deadline() <= end) {
      clock.advance_to_next();
      settle();
    }
    clock.set(end);
    settle();
  }

  template <class Command>
  typename Command::result ask(Command const& c) {
    return store.execute(c).value();
  }
  weir::queue_stats stats(std::string const& queue = "default") {
    return ask(weir::command::read_queue_stats{queue});
  }

  weir::new_job new_job(std::string_view kind, std::string_view payload) {
    weir::new_job job;
    job.id = ids.job();
    job.kind = kind;
    job.payload = payload;
    return job;
  }
  weir::job_id enqueue(std::string_view kind, std::string_view payload,
                       std::string_view queue = "default", std::uint32_t max_attempts = 3) {
    auto job = new_job(kind, payload);
    job.max_attempts = max_attempts;
    job.retention = 1h;
    ask(weir::command::enqueue_jobs{queue, {&job, 1}});
    return job.id;
  }
  template <class Job>
  void enqueue(Job const& job, weir::enqueue_options options = {}) {
    weir::job_queue queue{store, ids};
    weir::error_code failed;
    queue.async_enqueue(job, options,
                        [&](weir::error_code ec, weir::enqueued_job) { failed = ec; });
    settle();
    BOOST_TEST_REQUIRE(!failed, failed.message());
  }
  std::optional<weir::job> find(weir::job_id id, std::string const& queue = "default") {
    return ask(weir::command::find_job{queue, id});
  }
  std::vector<weir::job> dead(std::string const& queue = "default") {
    return ask(weir::command::list_dead_letters{queue, 100, {}}).jobs;
  }

  // The clock outlives the context, as a store may.
  weir::manual_clock clock;
  asio::io_context io;
  memory store{io.get_executor(), {}, clock};
  std::uint64_t workers = 0;  // each has its own seed, since each must be a holder of its own
  weir::id_source ids = weir::id_source::seeded(1000);
  asio::cancellation_signal stop;
  std::optional<weir::error_code> ended;
  std::map<weir::worker_event_kind, int> events;
  std::vector<std::string> reasons;
  std::vector<weir::duration> delays;
};

}  // namespace test

template <>
struct weir::job_traits<test::note> {
  static constexpr std::string_view kind = "note";
  static constexpr std::uint32_t max_attempts = 3;
  static constexpr duration retention = std::chrono::hours{1};
};

#endif
