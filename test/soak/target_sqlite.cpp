// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "integration/server_process.hpp"
#include "soak/target.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

namespace soak {

namespace {

class sqlite_target final : public target {
 public:
  explicit sqlite_target(wish const& w)
      : directory_{w.directory},
        max_bytes_{w.small ? 24U << 20U : 0U} {
    server_test::move_clock(directory_, 0);
  }
  [[nodiscard]] opening direct() const override {
    return {.url = "sqlite:" + path(), .prefix = {}, .max_bytes = max_bytes_};
  }
  [[nodiscard]] std::string preload() const override { return WEIR_FULL_DISK ":" WEIR_MOVED_CLOCK; }
  [[nodiscard]] std::vector<fault> faults() override {
    auto const done = [this] { held_.reset(); };
    auto const move = [this](std::int64_t by) {
      return [this, by] { server_test::move_clock(directory_, by); };
    };
    return {
        {"hold-snapshot", 5s, 15s, [this] { hold("begin; select * from sqlite_schema"); }, done},
        {"hold-write-lock", 500ms, 3s, [this] { hold("begin immediate"); }, done},
        {"full", 1s, 4s, [this] { std::ofstream{full()} << "soak.db"; },
         [this] { std::filesystem::remove(full()); }},
        {"clock-ahead", 2s, 2s, move(3600), move(0)},
        {"clock-back", 3s, 6s, move(-3600), move(0)}};
  }
  [[nodiscard]] std::optional<std::uint64_t> records() override {
    auto const on = open();
    std::uint64_t all = 0;
    sqlite3_exec(
        on.get(),
        "select (select count(*) from weir_jobs) + (select count(*) from weir_queues) + "
        "(select count(*) from weir_buckets) + (select count(*) from weir_locks) + "
        "(select count(*) from weir_permits)",
        [](void* to, int, char** columns, char**) {
          *static_cast<std::uint64_t*>(to) = std::stoull(columns[0]);
          return 0;
        },
        &all, nullptr);
    return all;
  }

 private:
  [[nodiscard]] std::string path() const { return directory_ + "/soak.db"; }
  [[nodiscard]] std::string full() const { return directory_ + "/full"; }

  using connection = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

  /// Another connection, as the application may have one.
  [[nodiscard]] connection open() const {
    sqlite3* db = nullptr;
    sqlite3_open(path().c_str(), &db);
    sqlite3_busy_timeout(db, 2000);
    sqlite3_exec(db, "pragma wal_autocheckpoint = 0", nullptr, nullptr, nullptr);
    return {db, &sqlite3_close};
  }
  void hold(char const* sql) {
    held_ = open();
    sqlite3_exec(held_->get(), sql, nullptr, nullptr, nullptr);
  }

  std::string directory_;
  std::uint64_t max_bytes_;
  std::optional<connection> held_{};
};

}  // namespace

std::unique_ptr<target> make_sqlite(wish const& w) { return std::make_unique<sqlite_target>(w); }

}  // namespace soak
