// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Asio alone: a coroutine that waits for a timer.

#include <boost/asio.hpp>

namespace asio = boost::asio;

asio::awaitable<void> wait() {
  asio::steady_timer timer{co_await asio::this_coro::executor};
  timer.expires_after(std::chrono::milliseconds{1});
  co_await timer.async_wait(asio::deferred);
}

int main() {
  asio::io_context io;
  asio::co_spawn(io, wait(), asio::detached);
  io.run();
}
