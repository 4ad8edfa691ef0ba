// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A report that must not be built twice at once, and a webhook that must not be handled twice a
// day.

#include "weir.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdio>

namespace asio = boost::asio;
using namespace std::chrono_literals;

// begin: report
asio::awaitable<void> build_report(weir::uniqueness<weir::memory_store> once, int who) {
  auto body = [who]() -> asio::awaitable<void> {
    std::printf("%d builds the report\n", who);
    asio::steady_timer work{co_await asio::this_coro::executor, 50ms};
    co_await work.async_wait(asio::use_awaitable);
  };
  bool const built = co_await once.async_with_lock("report", body);
  if (!built) std::printf("%d leaves it to another\n", who);
}
// end: report

// begin: webhook
asio::awaitable<void> handle_webhook(weir::uniqueness<weir::memory_store> once, int delivery) {
  bool const first = co_await once.async_claim("payment 17", 24h);
  std::printf("delivery %d: %s\n", delivery, first ? "handled" : "seen before");
}
// end: webhook

int main() {
  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  // begin: uniqueness
  weir::uniqueness once{store, {.ttl = 30s, .on_conflict = weir::conflict_policy::discard}};
  // end: uniqueness
  for (int who = 1; who <= 3; ++who)
    asio::co_spawn(io, build_report(once, who), weir::log::failures{"report"});
  for (int d = 1; d <= 2; ++d)
    asio::co_spawn(io, handle_webhook(once, d), weir::log::failures{"webhook"});
  io.run();
}
