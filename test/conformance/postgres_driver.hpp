// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_POSTGRES_DRIVER_HPP
#define WEIR_TEST_CONFORMANCE_POSTGRES_DRIVER_HPP

#include "conformance/memory_driver.hpp"
#include "conformance/suite.hpp"
#include "documented.hpp"
#include "integration/postgres_bed.hpp"
#include "integration/postgres_pooler.hpp"
#include "weir/command/jobs.hpp"
#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

#include <boost/algorithm/string/replace.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing {

/// Several stores on one database, each of which executes some of the commands: as several
/// processes would.
class postgres_cluster {
 public:
  using executor_type = postgres_store::executor_type;

  postgres_cluster(boost::asio::any_io_executor const& ex, std::string const& conninfo,
                   postgres_options const& o) {
    for (int i = 0; i < 2; ++i) stores_.emplace_back(ex, conninfo, o);
  }

  [[nodiscard]] executor_type get_executor() const noexcept { return stores_[0].get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return stores_[0].shard_count(); }

  template <class C, class Token>
    requires executes<postgres_store, C>
  auto async_execute(C const& c, Token&& token) const {
    return stores_[(*next_)++ % stores_.size()].async_execute(c, std::forward<Token>(token));
  }

  void close() const {
    for (auto const& s : stores_) s.close();
  }

 private:
  std::vector<postgres_store> stores_;
  std::shared_ptr<std::atomic<std::size_t>> next_ = std::make_shared<std::atomic<std::size_t>>();
};

/// Stops the server's time, as weir's functions have it.
inline void stop_clock(postgres_test::connection& db) {
  db.must("CREATE TABLE weir.stopped (t bigint); "
          "INSERT INTO weir.stopped VALUES (1780272000000000000); "
          "CREATE OR REPLACE FUNCTION weir.clock() RETURNS bigint LANGUAGE sql VOLATILE AS "
          "'SELECT t FROM weir.stopped'");
}
inline void advance_clock(postgres_test::connection& db, duration d) {
  db.must("UPDATE weir.stopped SET t = t + " + std::to_string(d.count()));
}

/// Makes the role `least`, that has what SECURITY.md says that one needs, and nothing else.
inline void grant_least(postgres_test::connection& db) {
  db.must("CREATE ROLE least NOLOGIN");
  db.must(boost::algorithm::replace_all_copy(
      weir_test::documented("SECURITY.md", "GRANT USAGE ON SCHEMA weir"), "TO app", "TO least"));
}

/// Stores in a database of the driver's own, emptied before each. The server's time, as weir's
/// functions have it, stands still until it is moved.
class postgres_driver {
 public:
  using store = postgres_cluster;

  /// @param settings of the database
  /// @param through  a pooler in front of it
  explicit postgres_driver(std::string const& settings = "",
                           postgres_test::pooler const* through = nullptr)
      : bed_{postgres_test::quick(), settings},
        through_{through} {
    // Notifications do not come through it.
    if (through != nullptr) bed_.options.listen_conninfo = direct_;
    // Whether it outlives the server is not the subject here.
    bed_.db.must("ALTER DATABASE " + bed_.database + " SET synchronous_commit = off");
    prepare();
  }

  /// Stops the clock, and lets locks take long: how busy the machine is, is not the subject either.
  /// To be called again when the schema was made anew.
  void prepare() {
    postgres_test::let_locks_take_long(bed_.db);
    stop_clock(bed_.db);
  }
  void advance(duration d) { advance_clock(bed_.db, d); }

  /// Connects from now on as a role that has what it is said to need, and nothing else.
  void give_up_privileges() {
    grant_least(bed_.db);
    direct_ += " options='-c role=least'";
  }

  [[nodiscard]] capabilities declared() const {
    capabilities c;
    c.ends_are_final = false;  // a step that only reads writes nothing down
    return c;
  }

  store make(boost::asio::any_io_executor const& ex) {
    if (through_ != nullptr) let_answers_go();
    postgres_test::empty_tables(bed_.db);
    return store{ex, conninfo(), bed_.options};
  }

  result<command::enqueue_jobs::result> transact(store&, command::enqueue_jobs const& c,
                                                 bool commit) {
    postgres_test::connection own{conninfo()};
    own.must("BEGIN");
    postgres_transaction tx{own.get(), bed_.options};
    auto answer = tx.execute(c);
    own.must(commit ? "COMMIT" : "ROLLBACK");
    return answer;
  }

  /// A connection to the database.
  [[nodiscard]] postgres_test::connection& db() noexcept { return bed_.db; }

 private:
  [[nodiscard]] std::string conninfo() const {
    return through_ == nullptr ? direct_ : through_->conninfo(bed_.database);
  }

  /// Waits until nothing is under way that stores before have left. A pooler that assigns a
  /// connection to somebody else before it has answered would pass the answer on to them.
  void let_answers_go() {
    int quiet = 0;  // looks in a row
    BOOST_TEST_REQUIRE(weir_test::happens([&] {
      bool const busy =
          bed_.db.number("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND "
                         "datname = current_database() AND pid <> pg_backend_pid()") != 0;
      quiet = busy ? 0 : quiet + 1;
      return quiet == 3;
    }));
  }

  postgres_test::bed bed_;
  std::string direct_ = postgres_test::the_server().conninfo(bed_.database);
  postgres_test::pooler const* through_;
};

/// Why the suite may leave something out here.
inline constexpr std::string_view own_time =
    "an application's transaction has the store's own time";
inline constexpr std::string_view too_slow = "the store was too slow for its precision to judge";

/// Nothing fails, and what is left out is left out because of how time passes, or because the store
/// has no bound but the disk.
inline void require_postgres(report const& r) {
  require_all(r,
              {no_hints, told_only, no_way_back, not_known, passes, own_time, too_slow, no_bound});
}

/// A text in weir's schema, and what it is replaced by: a defect put back.
struct sql_mutant {
  std::string_view failure;  ///< the known failure, or the promise broken, that it brings back
  std::string_view text;
  std::string_view instead;
};

/// @param configuration of the database
template <class Commands>
void postgres_keeps_every_promise(std::string const& configuration = "", settings const& s = {}) {
  postgres_driver driver{configuration};
  report found;
  suite::of<Commands>(driver, found, s);
  require_postgres(found);
}

/// The isolation of weir's own transactions does not depend on the database.
template <class Commands>
void postgres_keeps_every_promise_by_its_own_transactions() {
  settings s;
  s.only = "concurrent";  // where it matters
  s.concurrent = 8;
  postgres_keeps_every_promise<Commands>("default_transaction_isolation = 'serializable'", s);
}

/// Runs the suite on the schema with each of the defects. Fails for every one that survives.
template <class Suite>
void hunt(std::span<sql_mutant const> mutants, Suite&& suite) {
  settings s;
  s.concurrent = 8;  // where it is a race that is put back
  s.operations = 120;
  s.shrinking = 0;
  s.until_first_failure = true;
  for (auto const& m : mutants) {
    auto sql = postgres_migration_sql({});
    auto const at = sql.find(m.text);
    BOOST_TEST_REQUIRE((at != std::string::npos), m.text << ": is no part of the schema");
    sql.replace(at, m.text.size(), m.instead);
    postgres_driver driver;
    driver.db().must("DROP SCHEMA weir CASCADE");
    driver.db().must(sql);
    driver.prepare();
    // What looks for this failure comes first, and then all the rest. A race is not met at once.
    std::string by;
    for (int i = 0; i != 10 && by.empty(); ++i) {
      report found;
      s.seed += 1;
      s.only = i == 0 ? m.failure : "";
      suite(driver, found, s);
      for (auto const& f : found.findings()) {
        if (f.outcome == verdict::failed && by.empty()) by = f.number + ": " + f.promise;
      }
    }
    std::cout << "  " << m.failure << "  " << m.instead << "\n      "
              << (by.empty() ? "SURVIVED" : by) << std::endl;
    BOOST_TEST(!by.empty(), "the suite does not find " << m.failure << ": " << m.instead);
  }
}

}  // namespace weir::testing

#endif
