// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "tokens_jobs.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <memory>

using namespace test;
namespace asio = boost::asio;

BOOST_FIXTURE_TEST_SUITE(tokens_jobs_calls, tokens_fixture)

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

BOOST_AUTO_TEST_SUITE_END()
