// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Every operation of the job queue and the worker under every kind of token.

#include "weir/clock/manual.hpp"
#include "weir/job_queue.hpp"
#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <future>
#include <string>
#include <tuple>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using memory = weir::basic_memory_store<weir::manual_clock>;

struct task {
  int n = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(task, n)

}  // namespace

template <>
struct weir::job_traits<task> {
  static constexpr std::string_view kind = "task";
};

namespace {

/// Calls `with` for every operation, as a function of its token.
template <class With>
void for_each_operation(weir::job_queue<memory>& queue, With with) {
  static task const job{};
  static std::vector<task> const jobs(2);
  weir::job_id const id{{1}};
  with([&](auto&& t) { return queue.async_enqueue(job, {}, t); });
  with([&](auto&& t) { return queue.async_enqueue_many(std::span<task const>{jobs}, {}, t); });
  with([&](auto&& t) { return queue.async_peek("default", 10, t); });
  with([&](auto&& t) { return queue.async_dequeue("default", "me", {}, t); });
  with([&](auto&& t) { return queue.async_obtain_lease("default", id, "me", 1s, t); });
  with([&](auto&& t) { return queue.async_find("default", id, t); });
  with([&](auto&& t) { return queue.async_cancel("default", id, false, t); });
  with([&](auto&& t) { return queue.async_min_vesting_time("default", t); });
  with([&](auto&& t) { return queue.async_scan_visible_queues(0, 10, t); });
  with([&](auto&& t) { return queue.async_update_queue_pointer("default", t); });
  with([&](auto&& t) { return queue.async_gc_stale_pointers(0, 10, 1min, t); });
  with([&](auto&& t) { return queue.async_obtain_queue_lease("default", "me", 1s, t); });
  with([&](auto&& t) { return queue.async_release_queue_lease("default", "me", 0, t); });
  with([&](auto&& t) { return queue.async_snooze_queue("default", 0s, t); });
  with([&](auto&& t) { return queue.async_pause("default", t); });
  with([&](auto&& t) { return queue.async_resume("default", t); });
  with([&](auto&& t) { return queue.async_stats("default", t); });
  with([&](auto&& t) { return queue.async_list_dead_letters("default", 10, "", t); });
  with([&](auto&& t) { return queue.async_replay("default", id, 0s, t); });
  with([&](auto&& t) { return queue.async_purge("default", id, t); });
  with([&](auto&& t) { return queue.async_list_queues(0, 10, "", t); });
}

/// And for those that end with `lease_lost`, since nothing is leased under this fence.
template <class With>
void for_each_refused_operation(weir::job_queue<memory>& queue, With with) {
  weir::job_id const id{{1}};
  with([&](auto&& t) { return queue.async_extend_lease("default", id, 1, 1s, t); });
  with([&](auto&& t) { return queue.async_complete("default", id, 1, "", t); });
  with([&](auto&& t) { return queue.async_requeue("default", id, 1, 0s, "", t); });
  with([&](auto&& t) { return queue.async_snooze("default", id, 1, 0s, "", t); });
  with([&](auto&& t) { return queue.async_return("default", id, 1, t); });
  with([&](auto&& t) { return queue.async_bury("default", id, 1, "", t); });
}

struct tokens_fixture {
  tokens_fixture() = default;

  weir::manual_clock clock;
  asio::io_context io;
  memory store{io.get_executor(), {}, clock};
  weir::job_queue<memory> queue{store};
  int operations = 0;
  int completed = 0;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(tokens_jobs, tokens_fixture)

BOOST_AUTO_TEST_CASE(callbacks_are_called_once_and_never_inline) {
  for_each_operation(queue, [&](auto start) {
    ++operations;
    start([&](weir::error_code ec, auto&&) {
      BOOST_TEST(!ec, ec.message());
      ++completed;
    });
    BOOST_TEST(completed == 0);
  });
  for_each_refused_operation(queue, [&](auto start) {
    ++operations;
    start([&](weir::error_code ec, auto&&) {
      BOOST_TEST((ec == weir::errc::lease_lost));
      ++completed;
    });
  });
  io.run();
  BOOST_TEST(operations == 27);
  BOOST_TEST(completed == operations);
}

BOOST_AUTO_TEST_CASE(awaited_bare_deferred_use_awaitable_and_as_tuple) {
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        co_await queue.async_stats("default");
        co_await queue.async_stats("default", asio::deferred);
        co_await queue.async_stats("default", asio::use_awaitable);
        auto const [ec, stats] = co_await queue.async_stats("", asio::as_tuple);
        BOOST_TEST((ec == weir::errc::invalid_queue));
        weir::error_code thrown;
        try {
          co_await queue.async_stats("");
        } catch (boost::system::system_error const& e) {
          thrown = e.code();
        }
        BOOST_TEST((thrown == weir::errc::invalid_queue));
        ++completed;
      },
      asio::detached);
  io.run();
  BOOST_TEST(completed == 1);
}

BOOST_AUTO_TEST_CASE(deferred_does_nothing_until_it_is_started) {
  auto later = queue.async_pause("default", asio::deferred);
  io.run();
  BOOST_TEST(!store.execute(weir::command::read_queue_stats{"default"}).value().paused);
  io.restart();
  std::move(later)([&](weir::error_code, weir::hint) { ++completed; });
  io.run();
  BOOST_TEST(completed == 1);
  BOOST_TEST(store.execute(weir::command::read_queue_stats{"default"}).value().paused);
}

BOOST_AUTO_TEST_CASE(futures) {
  for_each_operation(queue, [&](auto start) {
    auto future = start(asio::use_future);
    io.restart();
    io.run();
    future.get();
    ++operations;
  });
  for_each_refused_operation(queue, [&](auto start) {
    auto future = start(asio::use_future);
    io.restart();
    io.run();
    BOOST_CHECK_THROW(future.get(), boost::system::system_error);
    ++operations;
  });
  BOOST_TEST(operations == 27);
}

BOOST_AUTO_TEST_CASE(detached_and_cancel_after) {
  for_each_operation(queue, [&](auto start) {
    start(asio::detached);
    start(asio::cancel_after(1h, [&](weir::error_code ec, auto&&) {
      BOOST_TEST(!ec, ec.message());
      ++completed;
    }));
    ++operations;
  });
  io.run();
  BOOST_TEST(operations == 21);
  BOOST_TEST(completed == 21);
}

BOOST_AUTO_TEST_CASE(R7_destroying_the_context_with_every_operation_pending) {
  auto const alive = std::make_shared<int>(0);
  {
    weir::manual_clock time;
    asio::io_context context;
    memory pending_store{context.get_executor(), {}, time};
    weir::job_queue<memory> pending{pending_store};
    for_each_operation(pending, [&](auto start) {
      start([alive](weir::error_code, auto&&) { BOOST_TEST(false, "called"); });
    });
    BOOST_TEST(alive.use_count() == 22);
  }
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(the_worker_under_every_token) {
  weir::worker worker{store, {}, clock};
  auto const stop_soon = [&] {
    worker.stop();
    io.restart();
    io.run();
  };
  worker.async_run([&](weir::error_code ec) {
    BOOST_TEST(!ec);
    ++completed;
  });
  stop_soon();
  worker.async_run(asio::detached);
  stop_soon();
  auto future = worker.async_run(asio::use_future);
  stop_soon();
  future.get();
  worker.async_run(asio::cancel_after(1h, [&](weir::error_code ec) {
    BOOST_TEST(!ec);
    ++completed;
  }));
  stop_soon();
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        co_await worker.async_run();
        ++completed;
      },
      asio::detached);
  io.restart();
  io.poll();
  stop_soon();
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        auto const [ec] = co_await worker.async_run(asio::as_tuple(asio::use_awaitable));
        BOOST_TEST(!ec);
        ++completed;
      },
      asio::detached);
  io.restart();
  io.poll();
  stop_soon();
  BOOST_TEST(completed == 4);
}

BOOST_AUTO_TEST_SUITE_END()
