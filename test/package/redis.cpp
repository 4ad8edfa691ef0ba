// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// There is no server here: what is shown is that the store is compiled, linked and says so.

#include "weir/store/redis.hpp"

#include "weir/limiter.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdio>
#include <optional>

int main() {
  boost::asio::io_context io;
  auto const nowhere = weir::redis_address::parse("redis://127.0.0.1:1").value();
  weir::redis_store store{
      io.get_executor(), nowhere, {.offline_patience = std::chrono::milliseconds{100}}};
  store.async_run([](weir::error_code) {});
  weir::limiter limiter{store, {.limit = 1}};
  weir::error_code outcome;
  limiter.async_try_acquire("key", [&](weir::error_code ec, std::optional<weir::permit> const&) {
    outcome = ec;
    store.close();
  });
  io.run();
  std::printf("Redis: %s\n", outcome.message().c_str());
  return outcome == weir::errc::store_unavailable ? 0 : 1;
}
