// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The metrics of a service, for Prometheus: printed here; serve them by HTTP, as `/metrics`.
//
// usage: metrics [openmetrics]
#include "weir/job_queue.hpp"
#include "weir/limiter.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/prometheus.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct resize {
  std::string picture;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(resize, picture)

template <>
struct weir::job_traits<resize> {
  static constexpr std::string_view kind = "resize";
  static constexpr std::string_view queue = "pictures";
  static constexpr std::uint32_t max_attempts = 1;
  static constexpr weir::duration retention = 1h;
};

asio::awaitable<void> serve(weir::prometheus_metrics metrics, std::string_view format) {
  auto const executor = co_await asio::this_coro::executor;
  // begin: observe
  weir::observed store{weir::memory_store{executor}, metrics};  // every command
  weir::worker worker{store};
  worker.on_event(metrics.watch_worker());  // every job
  // end: observe
  weir::job_queue const queue{store};
  weir::limiter const limiter{store, {.limit = 1}};
  weir::rate_limiter const rate{store, weir::quota::per_hour(1)};

  worker.handle([](resize const& r) {
    if (r.picture.empty()) throw std::runtime_error{"no picture"};
  });
  worker.async_run([](weir::error_code) {});
  weir::enqueued_job last;
  for (auto const* const picture : {"a.png", "b.png", ""}) {
    resize const job{picture};
    last = co_await queue.async_enqueue(job);
  }
  co_await queue.async_wait("pictures", last.id);
  auto const permit = co_await limiter.async_try_acquire("model");
  auto const refused = co_await limiter.async_try_acquire("model");
  co_await rate.async_take("ann", {.wait = 0s});
  co_await rate.async_take("ann", {.wait = 0s});

  std::vector<std::string> const limits{"model"};
  // begin: collect
  co_await metrics.async_collect(store);  // the queues, every 15 s or so
  co_await metrics.async_collect_limits(limiter, limits);
  std::cout << (format == "openmetrics" ? metrics.openmetrics() : metrics.text());
  // end: collect
  worker.stop();
  if (!permit || refused) throw std::logic_error{"not as it should be"};
}

int main(int argc, char** argv) {
  asio::io_context io;
  asio::co_spawn(io, serve(weir::prometheus_metrics{}, argc > 1 ? argv[1] : "text"),
                 [](std::exception_ptr e) {
                   if (e) std::rethrow_exception(e);  // out of io.run()
                 });
  io.run();
}
