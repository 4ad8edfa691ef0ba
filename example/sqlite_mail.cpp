// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir.hpp"
#include "weir/store/sqlite.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <nlohmann/json.hpp>

#include <iostream>

struct send_mail {
  std::string to;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(send_mail, to)
template <>
struct weir::job_traits<send_mail> {
  static constexpr std::string_view kind = "send_mail";
};

int main() {
  boost::asio::io_context io;
  // begin: store
  weir::sqlite_store store{io.get_executor(), "jobs.db"};
  // end: store
  auto const print = [](auto const& what, weir::error_code ec) {
    std::cout << what << (ec ? ": " + ec.message() : "") << std::endl;
  };

  weir::worker worker{store};
  worker.handle<send_mail>([](send_mail const& m) { std::cout << "to " << m.to << '\n'; });
  worker.on_event([=](weir::worker_event const& e) { print(to_string(e.kind), e.error); });
  worker.async_run([=](weir::error_code ec) { print("the worker has ended", ec); });

  weir::job_queue queue{store};
  send_mail const welcome{"ann@example.com"};
  queue.async_enqueue(welcome, {}, [=](auto ec, auto&&...) { print("enqueued", ec); });

  boost::asio::signal_set signals{io, SIGINT, SIGTERM};
  signals.async_wait([&](auto...) { worker.stop(); });
  io.run();
}
