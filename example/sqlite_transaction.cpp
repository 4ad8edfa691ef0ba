// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A job in the application's own transaction: an order and the job that mails its receipt exist
// together or not at all, whatever fails in between.

#include "weir.hpp"
#include "weir/store/sqlite.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <nlohmann/json.hpp>

#include <sqlite3.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace asio = boost::asio;

struct mail_receipt {
  std::int64_t order;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(mail_receipt, order)

template <>
struct weir::job_traits<mail_receipt> {
  static constexpr std::string_view kind = "mail_receipt";
};

void run(sqlite3* db, char const* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error{sqlite3_errmsg(db)};
  }
}

// begin: order
void place_order(sqlite3* db, bool paid) {
  run(db, "BEGIN IMMEDIATE");
  run(db, "INSERT INTO orders DEFAULT VALUES");
  mail_receipt const receipt{sqlite3_last_insert_rowid(db)};
  {
    weir::sqlite_transaction transaction{db};
    weir::enqueue(transaction, receipt).value();  // throws what went wrong
  }
  run(db, paid ? "COMMIT" : "ROLLBACK");
}
// end: order

int main(int argc, char** argv) {
  std::string const path = argc > 1 ? argv[1] : "orders.db";
  asio::io_context io;
  // begin: store
  weir::sqlite_store store{io.get_executor(), path, {.in_application_database = true}};
  // end: store
  store.async_open([&](weir::error_code ec) {
    if (ec) throw boost::system::system_error{ec, path};
    sqlite3* db = nullptr;
    sqlite3_open(path.c_str(), &db);
    std::unique_ptr<sqlite3, decltype(&sqlite3_close)> const owner{db, &sqlite3_close};
    sqlite3_busy_timeout(db, 5'000);
    run(db, "PRAGMA wal_autocheckpoint = 0");  // the store sees to it
    run(db, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)");
    place_order(db, true);
    place_order(db, false);  // leaves neither an order nor a job
  });

  weir::worker worker{store};
  worker.handle<mail_receipt>(
      [&](mail_receipt const& r, weir::job_context&) -> asio::awaitable<void> {
        std::printf("a receipt for order %lld\n", static_cast<long long>(r.order));
        worker.stop();
        co_return;
      });
  asio::signal_set signals{io, SIGINT, SIGTERM};
  signals.async_wait([&](auto...) { worker.stop(); });
  worker.async_run([&](weir::error_code ec) {
    if (ec) std::fprintf(stderr, "the worker has ended: %s\n", ec.message().c_str());
    signals.cancel();
  });
  io.run();
}
