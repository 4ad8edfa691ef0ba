// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A job service on STORE, which STORE_HEADER has: a type of job with its policies, who enqueues and
// who works.

#include "weir/job_queue.hpp"
#include "weir/worker.hpp"

#include STORE_HEADER

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct send_mail {
  std::string to, subject;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(send_mail, to, subject)

template <>
struct weir::job_traits<send_mail> {
  static constexpr std::string_view kind = "send_mail";
  static constexpr std::uint32_t max_attempts = 5;
  static constexpr weir::exponential_backoff backoff{100ms};
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::discard;
  static std::string unique_key(send_mail const& m) { return m.to + ": " + m.subject; }
  static constexpr weir::quota rate = weir::quota::per_second(50).burst(10);
};

asio::awaitable<void> enqueue(weir::job_queue<STORE> queue) {
  send_mail const welcome{"ann@example.com", "welcome"};
  co_await queue.async_enqueue(welcome);
  auto const again = co_await queue.async_enqueue(welcome);
  if (again.outcome == weir::enqueue_outcome::duplicate) std::puts("the second is a duplicate");
}

STORE connect(asio::any_io_executor executor);

int main() {
  asio::io_context io;
  STORE store = connect(io.get_executor());
  weir::job_queue queue{store};
  weir::worker worker{store};
  worker.handle<send_mail>(
      [&](send_mail const& m, weir::job_context& job) -> asio::awaitable<void> {
        std::printf("attempt %u: %s\n", job.attempt(), m.to.c_str());
        if (job.attempt() < 3) throw std::runtime_error{"the mail server is away"};
        worker.stop();
        co_return;
      });
  asio::co_spawn(io, enqueue(queue), asio::detached);
  worker.async_run(asio::detached);
  io.run();
}
