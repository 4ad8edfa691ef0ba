// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Ten requests, three at a time, wherever in the cluster they run.

#include "weir.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdio>

namespace asio = boost::asio;
using namespace std::chrono_literals;

// begin: ask
asio::awaitable<void> ask_the_model(weir::limiter<weir::memory_store> llm, int number) {
  // Waits in line, first come first served, and renews the permit for as long as the body runs.
  // If the permit were lost after all, the body would be cancelled.
  auto body = [number](weir::permit const& permit) -> asio::awaitable<int> {
    std::printf("request %d runs, %u in use\n", number, permit.in_use());
    asio::steady_timer work{co_await asio::this_coro::executor, 50ms};
    co_await work.async_wait(asio::use_awaitable);
    co_return number* number;
  };
  int const answer = co_await llm.async_with_permit("gpt", {.wait = 3s}, body);
  std::printf("request %d: %d\n", number, answer);
}
// end: ask

int main() {
  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  // begin: limiter
  weir::limiter llm{store, {.limit = 3, .ttl = 30s}};
  // end: limiter
  for (int i = 1; i <= 10; ++i)
    asio::co_spawn(io, ask_the_model(llm, i), weir::log::failures{"ask"});
  io.run();
}
