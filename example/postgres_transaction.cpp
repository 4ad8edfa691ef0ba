// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A job that exists if and only if the order that it belongs to does: both are written in the
// application's own PostgreSQL transaction. A worker runs it.
//
//     postgres_transaction "host=127.0.0.1 dbname=shop user=shop"
//
// It makes a table `orders`, and weir's schema if it is not there.

#include "printable.hpp"
#include "weir/enqueue.hpp"
#include "weir/store/postgres.hpp"
#include "weir/worker.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include <libpq-fe.h>

#include <csignal>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

struct pack {
  std::string what;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(pack, what)

template <>
struct weir::job_traits<pack> {
  static constexpr std::string_view kind = "pack";
  static std::string queue(pack const&) { return "packing"; }
};

namespace {

using connection = std::unique_ptr<PGconn, decltype([](PGconn* c) { PQfinish(c); })>;

void run(connection const& db, std::string const& sql) {
  auto* const r = PQexec(db.get(), sql.c_str());
  auto const status = PQresultStatus(r);
  PQclear(r);
  if (status != PGRES_COMMAND_OK) throw std::runtime_error{PQerrorMessage(db.get())};
}

// begin: order
void order(connection const& db, std::string const& what, bool changes_their_mind) {
  run(db, "BEGIN");
  run(db, "INSERT INTO orders (what) VALUES ('" + what + "')");
  pack const job{what};
  weir::postgres_transaction transaction{db.get()};
  weir::enqueue(transaction, job).value();  // throws what went wrong
  run(db, changes_their_mind ? "ROLLBACK" : "COMMIT");
}
// end: order

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: postgres_transaction CONNINFO\n";
    return 2;
  }
  boost::asio::io_context io;
  // begin: store
  weir::postgres_store store{io.get_executor(), argv[1]};
  auto migrated = store.async_migrate(boost::asio::use_future);
  io.run();
  migrated.get();
  // end: store

  connection const db{PQconnectdb(argv[1])};
  if (PQstatus(db.get()) != CONNECTION_OK) throw std::runtime_error{PQerrorMessage(db.get())};
  run(db, "CREATE TABLE IF NOT EXISTS orders (what text)");
  order(db, "a kettle", false);
  order(db, "two chairs", true);

  // begin: worker
  weir::worker worker{store, {.concurrency = 4}};
  worker.handle<pack>([&worker](pack const& p) {
    std::cout << "packed: " << example::printable(p.what) << '\n';
    worker.stop();  // a service goes on until SIGTERM
  });
  boost::asio::signal_set signals{io, SIGINT, SIGTERM};
  signals.async_wait([&](weir::error_code const& cancelled, int) {
    if (!cancelled) worker.stop();  // what has begun is finished
  });
  weir::error_code why;
  worker.async_run([&](weir::error_code const& ec) {
    why = ec;
    signals.cancel();
  });
  io.restart();
  io.run();
  // end: worker
  if (why) throw std::runtime_error{why.message()};
  return 0;
} catch (std::exception const& e) {
  std::cerr << example::printable(e.what()) << '\n';
  return 1;
}
