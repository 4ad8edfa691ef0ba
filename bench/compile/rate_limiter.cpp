// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A rate limiter in memory, asked at once and awaited.

#include "weir/rate_limiter.hpp"

#include "weir/store/memory.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>

namespace asio = boost::asio;

asio::awaitable<void> serve(weir::rate_limiter<weir::memory_store> limiter) {
  if (limiter.try_take("client").value().allowed) std::puts("served at once");
  auto const d = co_await limiter.async_take("client", {});
  if (d.allowed) std::puts("served in turn");
}

int main() {
  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  asio::co_spawn(io, serve(weir::rate_limiter{store, weir::quota::per_second(10)}), asio::detached);
  io.run();
}
