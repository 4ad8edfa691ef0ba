// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A limiter on Redis, with a body that runs while a permit is held.

#include "weir/limiter.hpp"

#include "weir/store/redis.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>

namespace asio = boost::asio;

asio::awaitable<void> call(weir::limiter<weir::redis_store> limiter) {
  auto work = [](weir::permit const& permit) -> asio::awaitable<void> {
    std::printf("%u in use\n", permit.in_use());
    co_return;
  };
  co_await limiter.async_with_permit("calls", {.wait = std::chrono::seconds{10}}, work);
}

int main() {
  asio::io_context io;
  weir::redis_store store{io.get_executor()};
  store.async_run(asio::detached);
  weir::limiter limiter{store, {.limit = 10}};
  asio::co_spawn(io, call(limiter), [&](std::exception_ptr) { store.close(); });
  io.run();
}
