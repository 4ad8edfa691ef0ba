// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "stores.hpp"

#ifdef CONSOLE_WITH_SQLITE

#include "weir/store/sqlite.hpp"

#include <sqlite3.h>

#include <memory>
#include <string>

namespace console {

namespace {

/// A store makes its tables where they are missing, so it is opened only where they are. Throws
/// `failure`.
void look_for_store(std::string const& path) {
  sqlite3* opened = nullptr;
  int const status = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> const db{opened, &sqlite3_close};
  if (status != SQLITE_OK) {
    throw failure{unusable, path + ": " + sqlite3_errstr(status) + ": is it there?"};
  }
  sqlite3_busy_timeout(opened, 1000);
  sqlite3_stmt* made = nullptr;
  sqlite3_prepare_v2(opened, "SELECT 1 FROM sqlite_master WHERE name = 'weir_state'", -1, &made,
                     nullptr);
  std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> const query{made, &sqlite3_finalize};
  // A file that cannot be read is left to the store, which explains it.
  if (made != nullptr && sqlite3_step(made) == SQLITE_DONE) {
    throw failure{unusable, path + ": there is no weir store in it"};
  }
}

}  // namespace

std::optional<any_store> open_sqlite(asio::any_io_executor const& executor, options const& o) {
  auto const path = o.store.substr(o.store.find(':') + 1);
  look_for_store(path);
  weir::sqlite_store const store{
      executor,
      path,
      {.busy_timeout = o.patience, .in_application_database = true, .shards = o.shards}};
  return any_store{store.with_patience(o.patience)};
}

}  // namespace console

#else

namespace console {

std::optional<any_store> open_sqlite(asio::any_io_executor const&, options const&) {
  return std::nullopt;
}

}  // namespace console

#endif
