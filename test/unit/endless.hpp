// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_ENDLESS_HPP
#define WEIR_TEST_UNIT_ENDLESS_HPP

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>

namespace test {

/// Waits again and again, so that a cancellation may come at any moment of a wait: while it
/// begins, lasts or ends, and between two.
inline boost::asio::awaitable<void> wait_for_ever() {
  namespace asio = boost::asio;
  asio::steady_timer timer{co_await asio::this_coro::executor};
  for (;;) {
    timer.expires_after(std::chrono::seconds{0});
    co_await timer.async_wait(asio::use_awaitable);
    co_await asio::post(asio::use_awaitable);
  }
}

}  // namespace test

#endif
