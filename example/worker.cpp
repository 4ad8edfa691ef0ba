// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker that serves some queues, by weight, with something around its handlers, of which one
// computes in threads of its own. It has a name, by which it stands in the register of workers.
#include "weir/worker.hpp"

#include "weir/job_queue.hpp"
#include "weir/registered_worker.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

namespace asio = boost::asio;

struct mail {
  std::string to;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(mail, to)
struct invoice {
  std::string tenant;
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(invoice, tenant, number)

template <>
struct weir::job_traits<mail> {
  static constexpr std::string_view kind = "mail";
  static constexpr std::string_view queue = "mail";
};
template <>
struct weir::job_traits<invoice> {
  static constexpr std::string_view kind = "invoice";
  static std::string queue(invoice const& i) { return "tenant/" + i.tenant; }
  static constexpr duration timeout = std::chrono::minutes{1};
};

/// As a tracer would.
struct span {
  explicit span(std::string_view what) : name{what} {}
  span(span const&) = delete;
  span& operator=(span const&) = delete;
  ~span() { std::printf("%s has ended\n", name.c_str()); }
  std::string name;
};

asio::awaitable<void> show_workers(weir::job_queue<weir::memory_store> queue) {
  // begin: register
  auto const page =
      co_await queue.async_list(std::string{weir::workers_queue}, weir::job_state::pending);
  for (auto const& record : page.jobs) {
    auto const w = weir::registered_worker_of(record);
    std::printf("%s: %u of %u hands are busy\n", w.name.c_str(), w.busy, w.concurrency);
  }
  // end: register
}

int main() {
  asio::io_context io;
  asio::thread_pool pool{2};
  weir::memory_store store{io.get_executor()};
  weir::job_queue queue{store};

  // begin: queues
  weir::worker worker{store,
                      {.concurrency = 20,
                       .queues = {{.name = "mail", .weight = 3},            // three mails
                                  {.prefix = "tenant/", .concurrency = 5},  // for each of these
                                  {.name = "bulk", .weight = 1}},           // and of these
                       .name = "mailer on host 1"}};
  // end: queues

  int left = 2;
  auto const done = [&] {
    asio::post(io, [&] {
      if (--left != 0) return;
      asio::co_spawn(io, show_workers(queue), [&](std::exception_ptr const&) { worker.stop(); });
    });
  };
  // begin: around
  worker.around([](weir::job_context& job, weir::next_handler next) -> asio::awaitable<void> {
    span const measured{job.kind()};
    co_await next();  // what the handler throws comes through here
  });
  // end: around

  worker.handle([&](mail const& m) {
    std::printf("to %s\n", m.to.c_str());
    done();
  });
  // begin: pool
  worker.handle(asio::bind_executor(pool, [&](invoice const& i, weir::job_context& job) {
    for (int page = 0; page != 3; ++page) {
      if (job.stop_requested()) throw std::runtime_error{"told to stop"};  // it is not completed
      std::this_thread::sleep_for(std::chrono::milliseconds{5});           // what computes
    }
    bool const in_time = job.time_left() > weir::duration{};
    std::printf("invoice %d of %s%s\n", i.number, i.tenant.c_str(), in_time ? ", in time" : "");
    done();
  }));
  // end: pool

  queue.async_enqueue(mail{"ada@example.com"}, {}, asio::detached);
  queue.async_enqueue(invoice{"acme", 7}, {}, asio::detached);
  weir::error_code ended;
  worker.async_run([&](weir::error_code ec) { ended = ec; });
  io.run();
  pool.join();
  return ended || left != 0 ? 1 : 0;
}
