// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A long job: it says how far it is, goes on where a failed attempt has stopped, carries what it
// belongs to, and somebody waits for its result.
#include "weir.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <charconv>
#include <chrono>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct import_rows {
  std::string file;
  std::uint64_t rows = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(import_rows, file, rows)
struct import_result {
  std::uint64_t imported = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(import_result, imported)

template <>
struct weir::job_traits<import_rows> {
  static constexpr std::string_view kind = "import_rows";
  static constexpr std::string_view queue = "imports";
  static constexpr weir::duration retention = 24h;
  static constexpr weir::constant_backoff backoff{10ms};
};

std::uint64_t number_of(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

asio::awaitable<void> import_row(std::uint64_t) {
  asio::steady_timer work{co_await asio::this_coro::executor, 1ms};
  co_await work.async_wait(asio::use_awaitable);
}

using job_queue = weir::job_queue<weir::memory_store>;

asio::awaitable<void> watch(job_queue queue, weir::job_id id) {
  asio::steady_timer pause{co_await asio::this_coro::executor};
  for (std::optional<weir::job> job; !job || !weir::is_terminal(job->state);) {
    // begin: watch
    job = co_await queue.async_find("imports", id);
    if (auto const p = job ? weir::job_progress::of(job->progress) : std::nullopt) {
      std::cout << p->done << " of " << p->total << ' ' << p->note << '\n';
    }
    // end: watch
    pause.expires_after(20ms);
    co_await pause.async_wait(asio::use_awaitable);
  }
}

asio::awaitable<void> ask_for_it(job_queue queue) {
  // begin: headers
  weir::job_headers const headers{
      {"tenant", "acme"},
      {"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}};
  import_rows const rows{"rows.csv", 60};
  auto const sent = co_await queue.async_enqueue(rows, {.headers = headers});
  // end: headers
  asio::co_spawn(co_await asio::this_coro::executor, watch(queue, sent.id),
                 [](std::exception_ptr e) {
                   if (e) std::rethrow_exception(e);
                 });
  // begin: wait
  auto const ended = co_await queue.async_wait("imports", sent.id);
  if (ended && ended->state == weir::job_state::completed) {
    auto const result = weir::result_as<import_result>(*ended).value();
    std::cout << result.imported << " rows in " << ended->attempts << " attempts\n";
  }
  // end: wait
  if (!ended || ended->attempts != 2) throw std::logic_error{"not as it should be"};
}

int main() {
  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  weir::worker worker{store};

  // begin: handler
  worker.handle([](import_rows const& i, weir::job_context& job) -> asio::awaitable<import_result> {
    std::cout << "for " << job.headers().find("tenant").value_or("nobody") << '\n';
    auto row = number_of(job.last_checkpoint());  // 0: this is the first attempt
    for (std::uint64_t const first = row; row != i.rows; ++row) {
      co_await import_row(row);
      job.progress(row + 1, i.rows, i.file);
      if (row % 10 == 9) co_await job.async_checkpoint(std::to_string(row + 1));
      if (first == 0 && row == 34) throw std::runtime_error{"the database is away"};
    }
    co_return import_result{row};
  });
  // end: handler

  worker.on_event([](weir::worker_event const& e) {
    if (e.kind == weir::worker_event_kind::retried) std::cout << "retried: " << e.reason << '\n';
  });
  worker.async_run([](weir::error_code ec) {
    if (ec) std::cerr << "the worker has ended: " << ec.message() << '\n';
  });
  asio::co_spawn(io, ask_for_it(job_queue{store}), [&](std::exception_ptr e) {
    worker.stop();
    if (e) std::rethrow_exception(e);  // out of io.run()
  });
  io.run();
}
