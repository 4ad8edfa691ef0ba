// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The four primitives on one store, a call of each.

#include "weir.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <exception>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct send_mail {
  std::string to;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(send_mail, to)

template <>
struct weir::job_traits<send_mail> {
  static constexpr std::string_view kind = "send_mail";
};

asio::awaitable<void> ask_the_model() {
  std::puts("asks the model");
  co_return;
}

asio::awaitable<void> charge() {
  std::puts("charges");
  co_return;
}

asio::awaitable<void> serve(weir::memory_store store) {
  weir::limiter model{store, {.limit = 10, .ttl = 30s}};
  weir::uniqueness once{store};
  weir::rate_limiter rate{store, weir::quota::per_second(100).burst(200)};
  weir::job_queue queue{store};
  send_mail const receipt{"ann@example.com"};

  // begin: calls
  co_await model.async_with_permit("gpt", ask_the_model);               // ten at once, in all
  if (co_await once.async_claim("payment 17", 24h)) co_await charge();  // not twice in a day
  if (!(co_await rate.async_try_take("ann")).allowed) co_return;        // 100 a second for each
  co_await queue.async_enqueue(receipt);                                // later, with retries
  // end: calls

  auto const waiting = co_await queue.async_stats("default");
  std::printf("%u job waits\n", static_cast<unsigned>(waiting.pending));
}

int main() {
  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  asio::co_spawn(io, serve(store), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);  // out of io.run()
  });
  io.run();
}
