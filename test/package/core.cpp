// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Takes weir without any store but memory, by its umbrella header.

#include "weir.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <optional>

static_assert(WEIR_VERSION ==
              10'000 * WEIR_VERSION_MAJOR + 100 * WEIR_VERSION_MINOR + WEIR_VERSION_PATCH);

int main() {
  boost::asio::io_context io;
  weir::memory_store store{io.get_executor()};
  weir::limiter limiter{store, {.limit = 1}};
  int granted = 0;
  auto const count = [&](weir::error_code ec, std::optional<weir::permit> permit) {
    if (!ec && permit) ++granted;
  };
  limiter.async_try_acquire("key", count);
  io.run();
  std::printf("weir %s: %d granted\n", WEIR_VERSION_STRING, granted);
  return granted == 1 ? 0 : 1;
}
