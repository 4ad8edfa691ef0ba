// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// There is no server here: what is shown is that the store is compiled, linked and says so.

#include "weir/store/nats.hpp"

#include "weir/limiter.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <nats/nats.h>

#include <cstdio>
#include <optional>

int main() {
  boost::asio::io_context io;
  weir::nats_options options;
  options.offline_patience = {};
  weir::nats_store store{io.get_executor(), weir::nats_address::parse("nats://127.0.0.1:1").value(),
                         options};
  store.async_run(boost::asio::detached);
  weir::limiter limiter{store, {.limit = 1}};
  weir::error_code outcome;
  limiter.async_try_acquire("key", [&](weir::error_code ec, std::optional<weir::permit> const&) {
    outcome = ec;
    store.close();
  });
  io.run();
  std::printf("NATS C client %s: %s\n", nats_GetVersion(), outcome.message().c_str());
  return outcome == weir::errc::store_unavailable ? 0 : 1;
}
