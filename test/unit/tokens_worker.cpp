// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "tokens_jobs.hpp"
#include "weir/worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

using namespace test;
namespace asio = boost::asio;

BOOST_FIXTURE_TEST_SUITE(tokens_worker, tokens_fixture)

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
