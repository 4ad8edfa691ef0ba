// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Two requests a second for each API key, with a burst of three; then work that waits for its turn.

#include "weir.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <exception>
#include <string_view>

namespace asio = boost::asio;
using namespace std::chrono_literals;

using rate_limiter = weir::rate_limiter<weir::memory_store>;
using bucket = weir::bucket<weir::memory_store>;

// begin: serve
// In process a check is a synchronous call. The key is stored as its SHA-256, which takes most of
// the time.
void serve(rate_limiter& limiter, char const* api_key) {
  weir::decision const d = limiter.try_take(api_key).value();
  if (d.allowed) {
    std::printf("200 RateLimit: %s\n", weir::http::ratelimit(d, "api").c_str());
  } else {
    std::printf("429 Retry-After: %s\n", weir::http::retry_after(d).c_str());
  }
}
// end: serve

// begin: work
// The bucket of a key that is asked again and again is kept. This reserves ahead and waits: one
// step of the store, no polling.
asio::awaitable<void> work(bucket const& upstream, int number) {
  weir::decision const d = co_await upstream.async_take({.wait = 5s});
  std::printf("work %d %s\n", number, d.allowed ? "starts" : "is refused");
}
// end: work

// begin: away
asio::awaitable<bool> may_pass(rate_limiter limiter, std::string_view key) {
  auto const d = co_await limiter.async_take(key, {.while_away = weir::while_away::allow});
  co_return d.allowed;
}
// end: away

int main() {
  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  // begin: limiter
  rate_limiter limiter{store, weir::quota::per_second(2).burst(3)};
  // end: limiter
  for (int i = 0; i != 5; ++i) serve(limiter, "secret-key-of-ann");
  auto const upstream = limiter.bucket("upstream");
  for (int i = 1; i <= 5; ++i) asio::co_spawn(io, work(upstream, i), weir::log::failures{"work"});
  asio::co_spawn(io, may_pass(limiter, "ann"), [](std::exception_ptr, bool passes) {
    std::printf("one more %s\n", passes ? "passes" : "is refused");
  });
  io.run();
}
