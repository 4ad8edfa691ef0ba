// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// There is no server here: what is shown is that the store is compiled, linked and says so.

#include "weir/store/postgres.hpp"

#include "weir/limiter.hpp"

#include <boost/asio/io_context.hpp>

#include <libpq-fe.h>

#include <cstdio>
#include <optional>

int main() {
  boost::asio::io_context io;
  weir::postgres_store store{io.get_executor(), "host=127.0.0.1 port=1 dbname=none"};
  weir::limiter limiter{store, {.limit = 1}};
  weir::error_code outcome;
  limiter.async_try_acquire("key", [&](weir::error_code ec, std::optional<weir::permit> const&) {
    outcome = ec;
    store.close();
  });
  io.run();
  std::printf("libpq %d: %s\n", PQlibVersion(), outcome.message().c_str());
  return outcome == weir::errc::store_unavailable ? 0 : 1;
}
