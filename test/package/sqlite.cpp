// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/sqlite.hpp"

#include "weir/limiter.hpp"

#include <boost/asio/io_context.hpp>

#include <sqlite3.h>

#include <cstdio>
#include <optional>

int main() {
  boost::asio::io_context io;
  weir::sqlite_store store{io.get_executor(), "package_test.db"};
  weir::limiter limiter{store, {.limit = 1}};
  weir::error_code outcome;
  bool granted = false;
  limiter.async_try_acquire("key", [&](weir::error_code ec, std::optional<weir::permit> permit) {
    outcome = ec;
    granted = permit.has_value();
  });
  io.run();
  std::printf("SQLite %s: %s, %s\n", sqlite3_libversion(), outcome.message().c_str(),
              granted ? "granted" : "refused");
  return !outcome && granted ? 0 : 1;
}
