// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_STAGE_HPP
#define WEIR_TEST_SOAK_STAGE_HPP

#include "soak/plan.hpp"
#include "soak/witness.hpp"
#include "weir/job_traits.hpp"
#include "weir/worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

// The means of scenarios.
namespace asio = boost::asio;

namespace soak {

/// As large as a scenario wants it.
struct sized_job {
  std::string filling{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(sized_job, filling)

}  // namespace soak

template <>
struct weir::job_traits<soak::sized_job> {
  static constexpr std::string_view kind = "sized";
  static constexpr weir::duration retention = std::chrono::hours{1};
};

namespace soak {

inline constexpr auto token = asio::as_tuple(asio::use_awaitable);
using weir::error_code;

/// The outcome of a scenario.
struct verdict {
  bool holds = true;
  std::string seen{};
  bool left_out = false;
};

struct stage {
  assignment const& given;
  store at;
  asio::any_io_executor ex;

  asio::awaitable<void> pause(weir::duration d) const {
    asio::steady_timer timer{ex, std::chrono::duration_cast<asio::steady_timer::duration>(d)};
    co_await timer.async_wait(token);
  }
  /// Has the coordinator do what a client cannot: `begin FAULT` and `end FAULT` of the engine,
  /// `count` what it stores, `largest` and `beginnings` as the target has them, `start SCENARIO` as
  /// another process.
  /// @return what it says; empty: that is not possible
  asio::awaitable<std::string> cue(std::string what) const;
  /// Does so many of something at once, each until it returns.
  asio::awaitable<void> crowd(std::size_t n,
                              std::function<asio::awaitable<void>(std::size_t)> each) const {
    auto const left = std::make_shared<std::size_t>(n);
    for (std::size_t i = 0; i != n; ++i) {
      asio::co_spawn(ex, each(i), [left](std::exception_ptr e) {
        --*left;
        if (e) std::rethrow_exception(e);
      });
    }
    while (*left != 0) co_await pause(5ms);
  }
  /// Runs a worker until `so`, or until this much time is over.
  asio::awaitable<void> work(std::uint32_t concurrency, std::function<std::string()> handler,
                             std::function<bool()> so, weir::duration patience) const {
    weir::worker worker{at, {.concurrency = concurrency, .lease = 10s, .poll = poll, .drain = 10s}};
    worker.handle<sized_job>([handler](sized_job const&) { return handler(); });
    bool ended = false;
    worker.async_run([&ended](error_code) { ended = true; });
    auto const until = boot_now() + ns_of(patience);
    while (!so() && boot_now() < until) co_await pause(5ms);
    worker.stop();
    while (!ended) co_await pause(5ms);
  }
};

[[nodiscard]] inline std::string text_of(double n) {
  std::ostringstream out;
  out.precision(n < 10 ? 2 : 0);
  out << std::fixed << n;
  return out.str();
}

[[nodiscard]] inline double per_second(std::size_t n, std::int64_t since) {
  return static_cast<double>(n) * 1e9 /
         static_cast<double>(std::max<std::int64_t>(boot_now() - since, 1));
}

// The scenarios, by what they are about.

asio::awaitable<verdict> waiters(stage const& s);
asio::awaitable<verdict> killed_waiters(stage const& s);
asio::awaitable<verdict> hints(stage const& s);
asio::awaitable<verdict> quota_range(stage const& s);
asio::awaitable<verdict> queues(stage const& s);
asio::awaitable<verdict> full(stage const& s);
asio::awaitable<verdict> payloads(stage const& s);
asio::awaitable<verdict> results(stage const& s);
asio::awaitable<verdict> snapshot(stage const& s);
asio::awaitable<verdict> pointers(stage const& s);
asio::awaitable<verdict> batches(stage const& s);
asio::awaitable<verdict> limits(stage const& s);
asio::awaitable<verdict> timeouts(stage const& s);
asio::awaitable<verdict> idle(stage const& s);
asio::awaitable<verdict> clocks(stage const& s);
asio::awaitable<verdict> fail_over(stage const& s);
asio::awaitable<verdict> far(stage const& s);
asio::awaitable<verdict> locked_rows(stage const& s);
asio::awaitable<verdict> power(stage const& s);
asio::awaitable<verdict> blocked(stage const& s);
asio::awaitable<verdict> outbox_scans(stage const& s);
asio::awaitable<verdict> flood(stage const& s);
asio::awaitable<verdict> newcomer(stage const& s);
asio::awaitable<verdict> first_answer(stage const& s);
asio::awaitable<verdict> emptied(stage const& s);
asio::awaitable<verdict> pieces(stage const& s);
asio::awaitable<verdict> old_answers(stage const& s);
asio::awaitable<verdict> moved(stage const& s);

}  // namespace soak

#endif
