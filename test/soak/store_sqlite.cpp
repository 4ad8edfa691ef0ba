// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/engine.hpp"
#include "weir/store/sqlite.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <sqlite3.h>

#include <chrono>
#include <string>
#include <string_view>

namespace soak {

namespace {

constexpr std::string_view scheme = "sqlite:";

class sqlite_outbox final : public outbox {
 public:
  explicit sqlite_outbox(std::string const& path) {
    sqlite3* db = nullptr;
    sqlite3_open(path.c_str(), &db);
    on_.reset(db);
    sqlite3_busy_timeout(db, 2000);
  }

  bool begin() override {
    if (!made_) made_ = done("create table if not exists soak_rows (id)");
    return made_ && done("begin immediate");
  }
  weir::result<weir::command::enqueue_jobs::result> execute(
      weir::command::enqueue_jobs const& c) override {
    auto const id = boost::uuids::to_string(c.jobs.front().id);
    whole_ = done("insert into soak_rows values ('" + id + "')");
    return weir::sqlite_transaction{on_.get()}.execute(c);
  }
  /// A transaction that cannot be committed is rolled back: this file is on this machine.
  outcome end(bool commit) override {
    if (commit && whole_ && done("commit")) return outcome::committed;
    done("rollback");
    return outcome::rolled_back;
  }
  std::vector<std::string> rows() override {
    std::vector<std::string> out;
    sqlite3_stmt* s = nullptr;
    sqlite3_prepare_v2(on_.get(), "select id from soak_rows", -1, &s, nullptr);
    while (sqlite3_step(s) == SQLITE_ROW) {
      out.emplace_back(reinterpret_cast<char const*>(sqlite3_column_text(s, 0)));
    }
    sqlite3_finalize(s);
    return out;
  }

 private:
  struct close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };

  bool done(std::string const& sql) {
    return sqlite3_exec(on_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  std::unique_ptr<sqlite3, close> on_{};
  bool made_ = false;
  bool whole_ = false;
};

}  // namespace

std::unique_ptr<outbox> open_sqlite_outbox(opening const& o) {
  return std::make_unique<sqlite_outbox>(o.url.substr(scheme.size()));
}

std::shared_ptr<engine> open_sqlite(boost::asio::any_io_executor const& ex, opening const& o) {
  weir::sqlite_options options;
  options.durable = weir::durability::process_crash;  // the power does not fail here
  options.busy_timeout = std::chrono::seconds{2};
  options.max_bytes = o.max_bytes;
  weir::sqlite_store const store{ex, o.url.substr(scheme.size()), options};
  return std::make_shared<engine_on<weir::sqlite_store>>(store);
}

}  // namespace soak
