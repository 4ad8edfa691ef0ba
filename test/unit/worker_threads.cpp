// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Handlers that are told to stop while they run on other threads than the worker's. The
// interleavings are the threads' own: a crash shows them, and the thread sanitizer does.

#include "endless.hpp"
#include "worker_fixture.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

using namespace test;
using kind = weir::worker_event_kind;

namespace threads {

/// Its handler never ends by itself.
struct endless {
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(endless, number)

struct timed : endless {};
struct limited : endless {};
/// Leaves checkpoints, and fails at its first attempt.
struct noting : endless {};
/// Leaves checkpoints until its time is over.
struct noting_for_ever : endless {};

}  // namespace threads

using namespace threads;

template <>
struct weir::job_traits<endless> {
  static constexpr std::string_view kind = "endless";
};
template <>
struct weir::job_traits<timed> {
  static constexpr std::string_view kind = "timed";
  static constexpr duration timeout = std::chrono::milliseconds{5};
};
template <>
struct weir::job_traits<limited> {
  static constexpr std::string_view kind = "limited";
  static constexpr std::uint32_t concurrency = 1000;
  static std::string concurrency_key(limited const&) { return "key"; }
};

template <>
struct weir::job_traits<noting> {
  static constexpr std::string_view kind = "noting";
};
template <>
struct weir::job_traits<noting_for_ever> {
  static constexpr std::string_view kind = "noting for ever";
  static constexpr duration timeout = std::chrono::milliseconds{5};
};

namespace {

auto const permit_key = weir::job_policy<limited>::concurrency_key(limited{});

/// A worker on two threads, its handlers on four others, and a clock that this thread moves. It
/// moves as fast as it can: where no lease is to be lost, leases are long.
struct crowd {
  using worker_type = weir::worker<memory, weir::manual_clock, weir::constant_backoff>;
  static constexpr int jobs = 600;

  explicit crowd(weir::worker_options options)
      : worker{store, options, clock, weir::constant_backoff{1ms}, weir::id_source::seeded(1)} {
    worker.handle<endless>([](endless const&) { return wait_for_ever(); });
    worker.handle<timed>([](timed const&) { return wait_for_ever(); });
    worker.handle<limited>([](limited const&) { return wait_for_ever(); });
    worker.handle<noting>([this](noting const&, weir::job_context& c) -> asio::awaitable<void> {
      if (c.attempt() != 1) {
        found += c.last_checkpoint() == "last" ? 1 : 0;
        co_return;
      }
      c.progress(1, 2);
      co_await c.async_checkpoint("first");
      c.progress(2, 2);
      c.checkpoint("last");
      throw std::runtime_error{"failed"};
    });
    worker.handle<noting_for_ever>(
        [](noting_for_ever const&, weir::job_context& c) -> asio::awaitable<void> {
          for (std::uint64_t i = 1;; ++i) {
            c.progress(i, 0);
            co_await c.async_checkpoint("so far");
          }
        });
    worker.on_event([this](weir::worker_event const& e) {
      ++events.at(static_cast<std::size_t>(e.kind));
      if (on_event) on_event(e);
    });
  }

  void enqueue(std::string_view what, std::uint32_t max_attempts = 1) {
    auto ids = weir::id_source::seeded(2);
    for (int i = 0; i != jobs; ++i) {
      weir::new_job job;
      job.id = ids.job();
      job.kind = what;
      job.payload = R"({"number":1})";
      job.max_attempts = max_attempts;
      BOOST_TEST_REQUIRE(store.execute(weir::command::enqueue_jobs{"q", {&job, 1}}).has_value());
    }
  }

  /// Runs the worker until it has ended; `more` is called between two steps of the clock.
  void run(std::function<void()> const& more = {}) {
    std::atomic<bool> ended{false};
    worker.async_run(asio::bind_executor(
        pool.get_executor(), asio::bind_cancellation_slot(stop.slot(), [&](weir::error_code ec) {
          error = ec;
          ended.store(true);
        })));
    std::thread first{[this] { io.run(); }};
    std::thread second{[this] { io.run(); }};
    while (!ended) {
      clock.advance(1ms);
      if (more) more();
      std::this_thread::yield();
    }
    first.join();
    second.join();
    pool.join();
  }

  [[nodiscard]] int count(kind k) const { return events.at(static_cast<std::size_t>(k)); }

  weir::manual_clock clock;
  asio::io_context io;
  asio::thread_pool pool{4};
  memory store{io.get_executor(), {}, clock};
  asio::cancellation_signal stop;
  weir::error_code error;
  std::function<void(weir::worker_event const&)> on_event;
  std::array<std::atomic<int>, 16> events{};
  std::atomic<int> found{0};  ///< second attempts that had the last checkpoint of the first
  worker_type worker;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(worker_threads)

BOOST_AUTO_TEST_CASE(F56_handlers_that_time_out_on_other_threads) {
  crowd c{{.concurrency = 64, .lease = 24h}};
  c.enqueue("timed");
  c.on_event = [&](weir::worker_event const& e) {
    if (e.kind == kind::dead_lettered && c.count(kind::dead_lettered) == crowd::jobs) {
      c.worker.stop();
    }
  };
  c.run();
  BOOST_TEST(c.count(kind::dead_lettered) == crowd::jobs);
}

BOOST_AUTO_TEST_CASE(F56_handlers_that_lose_their_leases_on_other_threads) {
  crowd c{{.concurrency = 64, .lease = 20ms}};
  c.enqueue("endless");
  c.on_event = [&](weir::worker_event const& e) {
    if (e.kind == kind::lease_lost && c.count(kind::lease_lost) == crowd::jobs) c.worker.stop();
  };
  // Whatever runs is cancelled: its next renewal finds the lease lost.
  auto ids = weir::id_source::seeded(2);
  std::set<weir::job_id> left;
  for (int i = 0; i != crowd::jobs; ++i) left.insert(ids.job());
  c.run([&] {
    for (auto at = left.begin(); at != left.end();) {
      auto const j = c.store.execute(weir::command::find_job{"q", *at}).value();
      bool const runs = j && j->state == weir::job_state::leased;
      if (runs) c.store.execute(weir::command::cancel_job{"q", *at, true}).value();
      at = runs ? left.erase(at) : std::next(at);
    }
  });
  BOOST_TEST(c.count(kind::lease_lost) == crowd::jobs);
}

BOOST_AUTO_TEST_CASE(F56_handlers_that_lose_their_permits_on_other_threads) {
  crowd c{{.concurrency = 64, .lease = 20ms}};
  c.enqueue("limited", 1000);  // a job whose lease is lost comes again
  std::atomic<int> stopped{0};
  c.on_event = [&](weir::worker_event const& e) {
    bool const over = e.kind == kind::returned || e.kind == kind::lease_lost;
    if (over && ++stopped == 2 * crowd::jobs) c.worker.stop();
  };
  // Every permit is taken away again and again.
  c.run([&] {
    auto const held =
        c.store.execute(weir::command::inspect_permits{.key = permit_key, .limit = 100}).value();
    for (auto const& h : held.holders) {
      c.store.execute(weir::command::release_permit{permit_key, h.holder, 0}).value();
    }
  });
  BOOST_TEST(stopped >= 2 * crowd::jobs);
}

BOOST_AUTO_TEST_CASE(F56_handlers_that_a_shutdown_stops_on_other_threads) {
  for (int round = 0; round != 40; ++round) {
    crowd c{{.concurrency = 64, .lease = 24h, .drain = 1ms}};
    c.enqueue("endless");
    c.on_event = [&](weir::worker_event const& e) {
      if (e.kind == kind::started && c.count(kind::started) == 64) c.worker.stop();
    };
    c.run();
    BOOST_TEST(c.count(kind::returned) == c.count(kind::started));
  }
}

BOOST_AUTO_TEST_CASE(F104_checkpoints_of_handlers_that_fail_on_other_threads) {
  crowd c{{.concurrency = 64, .lease = 24h}};
  c.enqueue("noting", 2);
  c.on_event = [&](weir::worker_event const& e) {
    if (e.kind == kind::completed && c.count(kind::completed) == crowd::jobs) c.worker.stop();
  };
  c.run();
  BOOST_TEST(c.found == crowd::jobs);
}

BOOST_AUTO_TEST_CASE(F56_handlers_that_time_out_while_they_wait_for_a_checkpoint) {
  crowd c{{.concurrency = 64, .lease = 24h}};
  c.enqueue("noting for ever");
  c.on_event = [&](weir::worker_event const& e) {
    if (e.kind == kind::dead_lettered && c.count(kind::dead_lettered) == crowd::jobs) {
      c.worker.stop();
    }
  };
  c.run();
  BOOST_TEST(c.count(kind::dead_lettered) == crowd::jobs);
}

BOOST_AUTO_TEST_CASE(F56_handlers_of_a_run_that_another_thread_cancels) {
  for (int round = 0; round != 20; ++round) {
    crowd c{{.concurrency = 64, .lease = 24h, .drain = 1ms}};
    c.enqueue("endless");
    bool cancelled = false;
    c.run([&] {
      if (cancelled || c.count(kind::started) < 3 * round) return;
      cancelled = true;
      c.stop.emit(asio::cancellation_type::terminal);
    });
    BOOST_TEST((c.error == asio::error::operation_aborted));
    auto const left = c.store.execute(weir::command::read_queue_stats{"q"}).value();
    BOOST_TEST(left.pending == static_cast<std::uint64_t>(crowd::jobs));
  }
}

// On the threads of the bookkeeping, too: it does not wait for the first of them to be suspended.
BOOST_AUTO_TEST_CASE(F76_coroutines_that_compute_do_so_beside_each_other) {
  asio::thread_pool pool{3};
  weir::memory_store const store{pool.get_executor()};
  weir::worker w{store, {.concurrency = 2}};
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  int met = 0;
  w.handle<endless>([&](endless const&) -> asio::awaitable<void> {
    std::unique_lock lock{mutex};
    ++inside;
    changed.notify_all();
    met += changed.wait_for(lock, 30s, [&] { return inside == 2; }) ? 1 : 0;
    if (met == 2) w.stop();
    co_return;
  });
  auto const ids = weir::id_source::seeded(2);
  std::array<weir::new_job, 2> jobs;
  for (auto& job : jobs) {
    job.id = ids.job();
    job.kind = "endless";
    job.payload = R"({"number":1})";
  }
  BOOST_TEST_REQUIRE(store.execute(weir::command::enqueue_jobs{"q", jobs}).has_value());
  w.async_run([](weir::error_code) {});
  pool.join();
  BOOST_TEST(met == 2);
}

BOOST_AUTO_TEST_SUITE_END()
