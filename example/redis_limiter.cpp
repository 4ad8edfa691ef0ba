// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Calls, ten at a time, however many processes make them: redis_limiter redis://127.0.0.1:6379 40

#include "weir.hpp"
#include "weir/store/redis.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> call(weir::limiter<weir::redis_store> limiter) {
  auto work = [](weir::permit const& permit) -> asio::awaitable<void> {
    std::printf("%u in use\n", permit.in_use());  // by all processes, when this permit was given
    asio::steady_timer timer{co_await asio::this_coro::executor, 200ms};
    co_await timer.async_wait(asio::use_awaitable);
  };
  co_await limiter.async_with_permit("calls", {.wait = 10s}, work);
}

int main(int argc, char** argv) try {
  int left = argc == 3 ? std::atoi(argv[2]) : 0;
  if (left < 1) throw std::runtime_error{"usage: redis_limiter REDIS_URL CALLS"};
  asio::io_context io;
  // begin: store
  weir::redis_store store{io.get_executor(), argv[1]};
  // Keeps the connection, and io busy, until the store is closed.
  store.async_run(weir::log::failures{"redis"});
  // end: store
  weir::limiter limiter{store, {.limit = 10, .ttl = 30s}};

  for (int i = left; i > 0; --i) {
    asio::co_spawn(io, call(limiter), [&](std::exception_ptr error) {
      if (error) std::rethrow_exception(error);  // out of io.run()
      if (--left == 0) store.close();
    });
  }
  io.run();
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
