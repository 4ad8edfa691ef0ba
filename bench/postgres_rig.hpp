// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_POSTGRES_RIG_HPP
#define WEIR_BENCH_POSTGRES_RIG_HPP

#include "../test/integration/postgres_server.hpp"
#include "weir/store/postgres.hpp"

#include <boost/asio/io_context.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

namespace weir_bench {

/// A connection that blocks.
class session {
 public:
  session(postgres_test::server const& s, std::string const& database)
      : db_{PQconnectdb(s.conninfo(database).c_str())} {
    PQsetNoticeReceiver(db_.get(), [](void*, PGresult const*) {}, nullptr);
  }

  /// Executes statements. The first field of the last one's answer.
  std::string ask(std::string const& sql) {
    weir::detail::postgres_result const r{PQexec(db_.get(), sql.c_str())};
    auto const status = PQresultStatus(r.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      throw std::runtime_error{sql.substr(0, 200) + ": " + PQerrorMessage(db_.get())};
    }
    return PQntuples(r.get()) > 0 ? PQgetvalue(r.get(), 0, 0) : "";
  }

 private:
  std::unique_ptr<PGconn, weir::detail::postgres_finish> db_;
};

/// A database of its own, migrated, and a store on it.
class rig {
 public:
  rig(postgres_test::server const& server, std::string const& database, std::uint32_t connections)
      : server_{server},
        database_{database},
        connections_{connections},
        db_{create(server, database)},
        store_{io_.get_executor(), server.conninfo(database), options(connections)} {
    db_.ask(weir::postgres_migration_sql({}));
  }
  rig(rig const&) = delete;
  rig& operator=(rig const&) = delete;
  ~rig() {
    store_.close();
    io_.restart();
    io_.run();
  }

  [[nodiscard]] weir::postgres_store const& store() const noexcept { return store_; }
  [[nodiscard]] session& db() noexcept { return db_; }
  [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }

  /// Runs chains, in each of which one follows the other, until there were enough. `one(n, next)`
  /// does the n-th, and calls `next`. Returns how many there were in a second.
  double together(std::uint64_t n, std::uint64_t in_flight,
                  std::function<void(std::uint64_t, std::function<void()>)> const& one) {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::function<void()> next = [&] {
      if (begun != n)
        one(begun++, [&] {
          ++ended;
          next();
        });
    };
    auto const start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i != in_flight; ++i) next();
    io_.restart();
    while (ended != n) io_.run_one();
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
    return static_cast<double>(n) / took.count();
  }

  /// Transactions of pgbench in a second, of this script, on as many connections as the store has.
  double pgbench(std::string const& script, std::uint64_t transactions) const {
    auto const out = run_pgbench(script, transactions, "");
    auto const at = out.find("tps = ");
    if (at == out.npos) throw std::runtime_error{"pgbench says: " + out};
    return std::strtod(out.c_str() + at + 6, nullptr);
  }

  /// How long pgbench waits for the first `n` statements of this script together, each time after a
  /// pause in which the server falls idle: microseconds, the mean.
  double pgbench_idle(std::string const& script, int n, std::uint64_t transactions) const {
    auto const out = run_pgbench("\\sleep 10 ms\n" + script, transactions, " -r");
    std::istringstream lines{out.substr(std::min(out.find("statement latencies"), out.size()))};
    double sum = 0;
    std::string line;
    for (int skipped = 0; skipped != 2; ++skipped) std::getline(lines, line);  // with the pause
    for (; n != 0 && std::getline(lines, line); --n) sum += std::strtod(line.c_str(), nullptr);
    if (n != 0 || sum == 0) throw std::runtime_error{"pgbench says: " + out};
    return sum * 1000;
  }

 private:
  [[nodiscard]] std::string run_pgbench(std::string const& script, std::uint64_t transactions,
                                        std::string const& options) const {
    auto const file = (std::filesystem::temp_directory_path() / ("weir-" + database_ + ".sql"));
    std::ofstream{file} << script;
    auto const line = postgres_test::program::find("pgbench") + " -h 127.0.0.1 -p " +
                      std::to_string(server_.port()) + " -U postgres -n -M prepared -j 1 -c " +
                      std::to_string(connections_) + " -t " +
                      std::to_string(std::max<std::uint64_t>(transactions / connections_, 1)) +
                      options + " -f '" + file.string() + "' " + database_ + " 2>&1";
    std::string out;
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error{"pgbench cannot be run"};
    std::array<char, 4096> buffer{};
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
      out.append(buffer.data(), got);
    }
    int const status = ::pclose(pipe);
    std::filesystem::remove(file);
    if (status != 0) throw std::runtime_error{"pgbench says: " + out};
    return out;
  }

  static session create(postgres_test::server const& server, std::string const& database) {
    session{server, "postgres"}.ask("CREATE DATABASE " + database);
    return {server, database};
  }
  static weir::postgres_options options(std::uint32_t connections) {
    weir::postgres_options o;
    o.connections = connections;
    return o;
  }

  postgres_test::server const& server_;
  std::string database_;
  std::uint32_t connections_;
  session db_;
  boost::asio::io_context io_{};
  weir::postgres_store store_;
};

}  // namespace weir_bench

#endif
