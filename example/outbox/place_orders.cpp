// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The application: it knows SQL and its own tables, and of weir no more than `enqueue`.

#include "orders.hpp"
#include "weir/enqueue.hpp"

#include <boost/asio/io_context.hpp>

#include <sqlite3.h>

#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>

namespace outbox {

namespace {

using database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

void run(database const& db, std::string const& sql) {
  if (sqlite3_exec(db.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error{sqlite3_errmsg(db.get())};
  }
}

database open(std::string const& file) {
  sqlite3* handle = nullptr;
  auto const opened = sqlite3_open(file.c_str(), &handle);
  database db{handle, &sqlite3_close};
  if (opened != SQLITE_OK) throw std::runtime_error{file + ": " + sqlite3_errstr(opened)};
  sqlite3_busy_timeout(handle, 30'000);
  run(db, "PRAGMA wal_autocheckpoint = 0");  // the store sees to it
  run(db, "PRAGMA synchronous = FULL");
  run(db, "CREATE TABLE IF NOT EXISTS orders (reference TEXT PRIMARY KEY) STRICT");
  return db;
}

/// The order and its delivery are written by one transaction. Without that, whoever is killed
/// between the two has an order that nobody delivers, or delivers one that nobody has made.
void place(database const& db, std::string const& reference, bool changes_their_mind) {
  run(db, "BEGIN IMMEDIATE");
  run(db, "INSERT INTO orders (reference) VALUES ('" + reference + "')");
  {
    weir::sqlite_transaction transaction{db.get(), store_options()};
    deliver_order const job{reference};
    weir::enqueue(transaction, job).value();  // throws what went wrong
  }
  run(db, changes_their_mind ? "ROLLBACK" : "COMMIT");
}

}  // namespace

void make_store(std::string const& file) {
  boost::asio::io_context io;
  weir::sqlite_store const store{io.get_executor(), file, store_options()};
  weir::error_code opened;
  store.async_open([&](weir::error_code ec) { opened = ec; });
  io.run();
  if (opened) throw std::runtime_error{file + ": " + opened.message()};
}

void place_orders(std::string const& file, std::uint32_t count) {
  make_store(file);
  auto const db = open(file);
  auto const run_number = std::random_device{}();
  std::uint32_t placed = 0;
  for (std::uint32_t i = 1; i <= count; ++i) {
    char reference[32];
    std::snprintf(reference, sizeof reference, "%08x-%u", run_number, i);
    bool const changes_their_mind = i % 3 == 0;
    place(db, reference, changes_their_mind);
    if (!changes_their_mind) ++placed;
  }
  std::printf("%u orders placed, %u rolled back\n", placed, count - placed);
}

}  // namespace outbox
