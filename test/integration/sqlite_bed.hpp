// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_SQLITE_BED_HPP
#define WEIR_TEST_INTEGRATION_SQLITE_BED_HPP

#include "directory.hpp"
#include "store_fixture.hpp"
#include "weir/store/sqlite.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sqlite_test {

using namespace weir;
using namespace std::chrono_literals;

using weir_test::directory;

/// As of all stores, on a context that must not run out of work meanwhile.
template <class Store, class C>
[[nodiscard]] result<typename C::result> ask(boost::asio::io_context& io, Store const& store,
                                             C const& c) {
  return weir_test::ask_by(store, c, [&](auto ended) {
    io.restart();
    while (!ended() && io.run_one() != 0) {
    }
  });
}

/// The options of most tests: nothing here is about power losses, and an fsync takes its time.
[[nodiscard]] inline sqlite_options quick() {
  sqlite_options o;
  o.durable = durability::process_crash;
  o.busy_timeout = 1min;  // nobody is given up because a machine is slow
  return o;
}

/// A fresh store.
template <class Clock = system_clock>
struct basic_bed {
  explicit basic_bed(sqlite_options const& o = quick(), Clock const& clock = Clock{})
      : options{o},
        store{io.get_executor(), home.file(), o, clock} {}

  template <class C>
  [[nodiscard]] result<typename C::result> operator()(C const& c) {
    return ask(io, store, c);
  }

  directory home{};
  sqlite_options options;
  boost::asio::io_context io{};
  basic_sqlite_store<Clock> store;
};

using bed = basic_bed<>;

/// A connection of the test's own.
class connection {
 public:
  explicit connection(std::string const& path) {
    BOOST_TEST_REQUIRE(sqlite3_open(path.c_str(), &db_) == SQLITE_OK);
    sqlite3_busy_timeout(db_, 60'000);
  }
  connection(connection const&) = delete;
  connection& operator=(connection const&) = delete;
  ~connection() { BOOST_TEST(sqlite3_close(db_) == SQLITE_OK, "a statement was left behind"); }

  [[nodiscard]] sqlite3* get() const noexcept { return db_; }

  int run(std::string const& sql) {
    return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  void must(std::string const& sql) {
    BOOST_TEST_REQUIRE(run(sql) == SQLITE_OK, sql << ": " << sqlite3_errmsg(db_));
  }

  /// The first column of the first row; empty: there is none.
  [[nodiscard]] std::string text(std::string const& sql) {
    sqlite3_stmt* s = nullptr;
    BOOST_TEST_REQUIRE(sqlite3_prepare_v2(db_, sql.c_str(), -1, &s, nullptr) == SQLITE_OK,
                       sql << ": " << sqlite3_errmsg(db_));
    std::string out;
    if (sqlite3_step(s) == SQLITE_ROW) {
      auto const* const t = reinterpret_cast<char const*>(sqlite3_column_text(s, 0));
      if (t != nullptr) out = t;
    }
    sqlite3_finalize(s);
    return out;
  }
  [[nodiscard]] std::int64_t number(std::string const& sql) {
    auto const t = text(sql);
    return t.empty() ? 0 : std::stoll(t);
  }

 private:
  sqlite3* db_ = nullptr;
};

/// The n-th job id.
[[nodiscard]] inline job_id id(std::uint64_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 8; ++i) out.data[15 - i] = static_cast<std::uint8_t>(n >> (8 * i));
  out.data[0] = 1;
  return out;
}

[[nodiscard]] inline new_job job_of(std::uint64_t n, std::string_view payload = "{}") {
  new_job j;
  j.id = id(n);
  j.kind = "kind";
  j.payload = payload;
  return j;
}

}  // namespace sqlite_test

#endif
