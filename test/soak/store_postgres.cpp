// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/engine.hpp"
#include "weir/store/postgres.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <libpq-fe.h>

#include <array>
#include <chrono>

namespace soak {

namespace {

class postgres_outbox final : public outbox {
 public:
  explicit postgres_outbox(opening o) : at_{std::move(o)} {}

  bool begin() override {
    if (!on_ || PQstatus(on_.get()) != CONNECTION_OK) {
      constexpr std::array words{"dbname", "connect_timeout", static_cast<char const*>(nullptr)};
      std::array const values{at_.url.c_str(), "2", static_cast<char const*>(nullptr)};
      on_.reset(PQconnectdbParams(words.data(), values.data(), 1));
    }
    if (!made_) made_ = done("create table if not exists soak_rows (id text)");
    if (!made_) return false;
    return done("begin");
  }
  weir::result<weir::command::enqueue_jobs::result> execute(
      weir::command::enqueue_jobs const& c) override {
    auto const id = boost::uuids::to_string(c.jobs.front().id);
    done("insert into soak_rows values ('" + id + "')");
    weir::postgres_options options;
    options.schema = at_.prefix;
    return weir::postgres_transaction{on_.get(), options}.execute(c);
  }
  outcome end(bool commit) override {
    if (!commit) {
      done("rollback");
      return outcome::rolled_back;  // with the connection, where that is lost
    }
    if (done("commit")) return said_ == "COMMIT" ? outcome::committed : outcome::rolled_back;
    return outcome::unknown;
  }
  std::vector<std::string> rows() override {
    std::vector<std::string> out;
    if (!begin()) return out;
    auto* const all = PQexec(on_.get(), "select id from soak_rows");
    for (int i = 0; i != PQntuples(all); ++i) out.emplace_back(PQgetvalue(all, i, 0));
    PQclear(all);
    (void)end(false);
    return out;
  }

 private:
  struct finish {
    void operator()(PGconn* c) const { PQfinish(c); }
  };

  bool done(std::string const& sql) {
    auto* const result = PQexec(on_.get(), sql.c_str());
    said_ = result == nullptr ? "" : PQcmdStatus(result);  // it may have been lost
    bool const ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return ok;
  }

  opening at_;
  std::unique_ptr<PGconn, finish> on_{};
  std::string said_{};
  bool made_ = false;
};

}  // namespace

std::unique_ptr<outbox> open_postgres_outbox(opening const& o) {
  return std::make_unique<postgres_outbox>(o);
}

void migrate_postgres(opening const& o) {
  boost::asio::io_context io;
  weir::postgres_options options;
  options.schema = o.prefix;
  weir::postgres_store const store{io.get_executor(), o.url, options};
  store.async_migrate([&](weir::error_code ec) {
    store.close();
    if (ec) throw boost::system::system_error{ec, "the schema"};
  });
  io.run();
}

std::shared_ptr<engine> open_postgres(boost::asio::any_io_executor const& ex, opening const& o) {
  weir::postgres_options options;
  options.schema = o.prefix;
  options.connections = 3;
  options.connect_timeout = std::chrono::seconds{2};
  options.command_timeout = std::chrono::seconds{5};
  weir::postgres_store const store{ex, o.url, options};
  return std::make_shared<engine_on<weir::postgres_store>>(store);
}

}  // namespace soak
