// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Commands inside an application's own transaction, and what the statements cost that they are made
// of: here a test can get at them.

#include "sqlite_bed.hpp"

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace sqlite_test;

command::enqueue_jobs enqueue(std::string_view queue, std::vector<new_job> const& jobs) {
  return {queue, jobs};
}

/// A file with a store in it, a connection to it, and a table of the application's.
struct application : bed {
  application() {
    BOOST_TEST((*this)(command::inspect_lock{"open"}).has_value());
    db.emplace(home.file());
    db->must("CREATE TABLE mine (x)");
  }

  std::optional<connection> db;
};

/// The steps of SQLite's machine that a connection's statements have made since they were asked
/// last.
std::int64_t steps_of(sqlite3* db) {
  std::int64_t n = 0;
  for (auto* s = sqlite3_next_stmt(db, nullptr); s != nullptr; s = sqlite3_next_stmt(db, s)) {
    n += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
  }
  return n;
}

/// Interrupts a connection after so many of these steps: once, or from then on.
struct interrupter {
  interrupter(sqlite3* of, std::int64_t after, bool lasts) : db{of}, left{after}, goes_on{lasts} {
    sqlite3_progress_handler(
        db, 1,
        [](void* self) {
          auto& i = *static_cast<interrupter*>(self);
          --i.left;
          return i.left == 0 || (i.goes_on && i.left < 0) ? 1 : 0;
        },
        this);
  }
  interrupter(interrupter const&) = delete;
  interrupter& operator=(interrupter const&) = delete;
  ~interrupter() { sqlite3_progress_handler(db, 0, nullptr, nullptr); }

  sqlite3* db;
  std::int64_t left;
  bool goes_on;
};

/// Interrupts a connection at this step of the first statement that begins like this.
struct interrupter_in {
  interrupter_in(sqlite3* of, std::string_view begins, int step)
      : db{of},
        text{begins},
        left{step} {
    sqlite3_trace_v2(
        db, SQLITE_TRACE_STMT,
        [](unsigned, void* self, void*, void* sql) {
          auto& i = *static_cast<interrupter_in*>(self);
          bool const begins_so =
              std::string_view{static_cast<char const*>(sql)}.starts_with(i.text);
          if (begins_so) ++i.seen;
          i.here = begins_so && i.seen == 1;
          return 0;
        },
        this);
    sqlite3_progress_handler(
        db, 1,
        [](void* self) {
          auto& i = *static_cast<interrupter_in*>(self);
          return i.here && --i.left == 0 ? 1 : 0;
        },
        this);
  }
  interrupter_in(interrupter_in const&) = delete;
  interrupter_in& operator=(interrupter_in const&) = delete;
  ~interrupter_in() {
    sqlite3_progress_handler(db, 0, nullptr, nullptr);
    sqlite3_trace_v2(db, 0, nullptr, nullptr);
  }

  sqlite3* db;
  std::string_view text;
  int left;
  int seen = 0;
  bool here = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_transaction_)

BOOST_AUTO_TEST_CASE(jobs_are_enqueued_with_what_the_application_writes_or_not_at_all) {
  application a;
  std::vector<new_job> const jobs{job_of(1)};
  for (bool const commits : {false, true}) {
    a.db->must("BEGIN IMMEDIATE; INSERT INTO mine VALUES (1)");
    {
      sqlite_transaction tx{a.db->get()};
      BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
      BOOST_TEST(tx.execute(command::find_job{"q", id(1)})->has_value());
    }
    BOOST_TEST(sqlite3_next_stmt(a.db->get(), nullptr) == nullptr, "a statement was left behind");
    a.db->must(commits ? "COMMIT" : "ROLLBACK");
    BOOST_TEST(a.db->number("SELECT count(*) FROM mine") == (commits ? 1 : 0));
    BOOST_TEST(a(command::read_queue_stats{"q"})->enqueued == (commits ? 1U : 0U));
    BOOST_TEST(a(command::dequeue_jobs{"q", "h", 0, 10, 1h})->jobs.size() == (commits ? 1U : 0U));
  }
}

BOOST_AUTO_TEST_CASE(any_command_can_be_executed_there) {
  application a;
  std::array const quotas{quota::per_hour(1).burst(1)};
  a.db->must("BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{a.db->get()};
    BOOST_TEST(tx.execute(command::acquire_permit{"k", "h", 1, 1h, {}})->granted);
    BOOST_TEST(tx.execute(command::acquire_lock{"k", "h", 1h})->granted);
    BOOST_TEST(tx.execute(command::take{"k", quotas, 1, {}})->allowed);
    BOOST_TEST(tx.execute(command::acquire_lock{"", "h", 1h}).error() == errc::invalid_key);
  }
  a.db->must("COMMIT");
  BOOST_TEST(!a(command::acquire_permit{"k", "g", 1, 1h, {}})->granted);
  BOOST_TEST(!a(command::acquire_lock{"k", "g", 1h})->granted);
  BOOST_TEST(!a(command::take{"k", quotas, 1, {}})->allowed);
}

BOOST_AUTO_TEST_CASE(it_must_have_begun_immediate) {
  application a;
  std::vector<new_job> const jobs{job_of(1)};
  sqlite_transaction tx{a.db->get()};
  BOOST_TEST(tx.execute(enqueue("q", jobs)).error() == errc::not_in_transaction);
  a.db->must("BEGIN");
  BOOST_TEST(tx.execute(enqueue("q", jobs)).error() == errc::not_in_transaction);
  BOOST_TEST(a.db->number("SELECT count(*) FROM mine") == 0);
  BOOST_TEST(tx.execute(enqueue("q", jobs)).error() == errc::not_in_transaction);
  a.db->must("ROLLBACK; BEGIN EXCLUSIVE");
  BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
  a.db->must("COMMIT");
}

BOOST_AUTO_TEST_CASE(the_application_may_roll_back_to_a_savepoint_of_its_own) {
  application a;
  std::vector<new_job> const one{job_of(1)};
  std::vector<new_job> const two{job_of(2)};
  a.db->must("BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{a.db->get()};
    BOOST_TEST(tx.execute(enqueue("q", one)).has_value());
    a.db->must("SAVEPOINT mine");
    BOOST_TEST(tx.execute(enqueue("q", two)).has_value());
    a.db->must("ROLLBACK TO mine; RELEASE mine");
    BOOST_TEST(tx.execute(command::read_queue_stats{"q"})->enqueued == 1U);
    BOOST_TEST(tx.execute(enqueue("q", two)).has_value());
  }
  a.db->must("COMMIT");
  BOOST_TEST(a(command::read_queue_stats{"q"})->enqueued == 2U);
}

BOOST_AUTO_TEST_CASE(F53_a_command_that_fails_half_way_leaves_the_rest_of_the_transaction_alone) {
  application a;
  a.db->must("BEGIN IMMEDIATE; INSERT INTO mine VALUES (1)");
  auto const forbid = [](void*, int what, char const* table, char const*, char const*,
                         char const*) {
    bool const large = table != nullptr && std::string_view{table} == "weir_payloads";
    return what == SQLITE_INSERT && large ? SQLITE_DENY : SQLITE_OK;
  };
  sqlite3_set_authorizer(a.db->get(), forbid, nullptr);
  std::string const large(100'000, 'x');
  std::vector<new_job> jobs{job_of(1), job_of(2, large), job_of(3)};
  {
    sqlite_transaction tx{a.db->get()};
    BOOST_TEST(tx.execute(enqueue("q", jobs)).error() == errc::permission_denied);
    BOOST_TEST(!tx.execute(command::find_job{"q", id(1)})->has_value());
    jobs[1] = job_of(2);
    BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
  }
  sqlite3_set_authorizer(a.db->get(), nullptr, nullptr);
  a.db->must("COMMIT");
  BOOST_TEST(a.db->number("SELECT count(*) FROM mine") == 1);
  BOOST_TEST(a(command::read_queue_stats{"q"})->enqueued == 3U);
}

BOOST_AUTO_TEST_CASE(a_connection_that_may_only_read_reads) {
  application a;
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(a(enqueue("q", jobs)).has_value());
  a.db->must("BEGIN IMMEDIATE");
  auto const forbid = [](void*, int what, char const*, char const*, char const*, char const*) {
    bool const writes = what == SQLITE_INSERT || what == SQLITE_UPDATE || what == SQLITE_DELETE;
    return writes ? SQLITE_DENY : SQLITE_OK;
  };
  sqlite3_set_authorizer(a.db->get(), forbid, nullptr);
  {
    sqlite_transaction tx{a.db->get()};
    auto const found = tx.execute(command::find_job{"q", id(1)});
    BOOST_TEST((found.has_value() && found->has_value()));
    BOOST_TEST(tx.execute(enqueue("q", jobs)).error() == errc::permission_denied);
  }
  sqlite3_set_authorizer(a.db->get(), nullptr, nullptr);
  a.db->must("COMMIT");
}

// SQLite rolls the whole transaction back where a statement that writes was interrupted, and keeps
// it where one was that reads: also the one that would have undone the command.
BOOST_AUTO_TEST_CASE(F53_a_command_that_is_interrupted_anywhere_says_so_and_leaves_nothing) {
  application a;
  a.db->must("PRAGMA synchronous = OFF");
  std::vector<new_job> const jobs{job_of(1), job_of(2)};
  for (bool const lasts : {false, true}) {
    bool went_on = false;
    bool rolled_back = false;
    for (std::int64_t after = 1;; after += 3) {
      a.db->must("BEGIN IMMEDIATE; INSERT INTO mine VALUES (1)");
      result<command::enqueue_jobs::result> done = errc::closed;
      {
        sqlite_transaction tx{a.db->get()};
        interrupter const stop{a.db->get(), after, lasts};
        done = tx.execute(enqueue("q", jobs));
      }
      bool const open = sqlite3_get_autocommit(a.db->get()) == 0;
      if (done.has_value()) {
        a.db->must("ROLLBACK");
        break;
      }
      (open ? went_on : rolled_back) = true;
      BOOST_TEST((done.error() == boost::asio::error::operation_aborted),
                 after << ": " << done.error().message());
      if (open) a.db->must("COMMIT");
      BOOST_TEST_REQUIRE(a.db->number("SELECT count(*) FROM mine") == (open ? 1 : 0));
      BOOST_TEST_REQUIRE(a.db->number("SELECT count(*) FROM weir_jobs") == 0, after);
      BOOST_TEST_REQUIRE(a.db->number("SELECT count(*) FROM weir_queues") == 0, after);
      a.db->must("DELETE FROM mine");
    }
    BOOST_TEST(went_on);
    BOOST_TEST(rolled_back);
  }
}

// SQLite may have made a savepoint, or released it, when it says that it was interrupted.
BOOST_AUTO_TEST_CASE(F53_an_interrupted_command_undoes_nothing_that_came_before_it) {
  application a;
  std::vector<new_job> const jobs{job_of(1)};
  std::set<bool> undone;
  for (int first = 1; first != 8; ++first) {
    for (int second = 1; second != 8; ++second) {
      a.db->must("BEGIN IMMEDIATE");
      {
        sqlite_transaction tx{a.db->get()};
        interrupter_in const stop{a.db->get(), "SAVEPOINT", first};
        undone.insert(tx.execute(enqueue("q", jobs)).has_error());
      }
      bool const open = sqlite3_get_autocommit(a.db->get()) == 0;
      BOOST_TEST_REQUIRE(open);
      a.db->must("INSERT INTO mine VALUES (1)");
      {
        sqlite_transaction tx{a.db->get()};
        interrupter_in const stop{a.db->get(), "RELEASE", second};
        undone.insert(tx.execute(enqueue("q", jobs)).has_error());
      }
      if (sqlite3_get_autocommit(a.db->get()) != 0) continue;
      BOOST_TEST(a.db->number("SELECT count(*) FROM mine") == 1, first << ", " << second);
      a.db->must("ROLLBACK");
    }
  }
  BOOST_TEST(undone.size() == 2U);
}

BOOST_AUTO_TEST_CASE(F93_what_a_connection_puts_over_weir_s_tables_for_itself_is_foreign) {
  application a;
  std::vector<new_job> const jobs{job_of(1)};
  sqlite_transaction tx{a.db->get()};
  for (auto const& [makes, ends] : {
           std::pair{"CREATE TEMP TABLE weir_jobs AS SELECT * FROM main.weir_jobs",
                     "DROP TABLE temp.weir_jobs"},
           std::pair{"CREATE TEMP TRIGGER t BEFORE INSERT ON main.weir_jobs "
                     "BEGIN SELECT RAISE(IGNORE); END",
                     "DROP TRIGGER t"},
           std::pair{"PRAGMA case_sensitive_like = ON; CREATE TEMP TRIGGER t BEFORE INSERT ON "
                     "main.WEIR_JOBS BEGIN SELECT RAISE(IGNORE); END",
                     "DROP TRIGGER t"},
           std::pair{"CREATE TRIGGER main.t BEFORE INSERT ON WEIR_JOBS "
                     "BEGIN SELECT RAISE(IGNORE); END",
                     "DROP TRIGGER t"},
       }) {
    a.db->must(std::string{"BEGIN IMMEDIATE; "} + makes);
    auto const refused = tx.execute(enqueue("q", jobs));
    BOOST_TEST((refused.has_error() && refused.error() == errc::store_foreign));
    a.db->must(std::string{ends} + "; CREATE TEMP TABLE IF NOT EXISTS own (x)");
    BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
    a.db->must("COMMIT");
  }
  BOOST_TEST(a(command::read_queue_stats{"q"})->enqueued == 1U);
}

// Large jobs, which it cannot read, would be taken for damaged.
BOOST_AUTO_TEST_CASE(F93_a_connection_that_cannot_read_large_jobs_sets_none_aside) {
  application a;
  std::string const large(900'000, 'x');
  std::vector<new_job> const jobs{job_of(1, large)};
  BOOST_TEST(a(enqueue("q", jobs)).has_value());
  int const limit = sqlite3_limit(a.db->get(), SQLITE_LIMIT_LENGTH, 500'000);
  a.db->must("BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{a.db->get()};
    auto const refused = tx.execute(command::dequeue_jobs{"q", "h", 1, 10, 1h}).error();
    BOOST_TEST((refused == errc::invalid_option));
    BOOST_TEST((refused.message().find("SQLITE_LIMIT_LENGTH") != std::string::npos),
               refused.message());
    sqlite3_limit(a.db->get(), SQLITE_LIMIT_LENGTH, limit);
    BOOST_TEST(tx.execute(command::find_job{"q", id(1)})->has_value());
  }
  a.db->must("COMMIT");
  BOOST_TEST(a(command::read_queue_stats{"q"})->dead == 0U);
  BOOST_TEST(a(command::dequeue_jobs{"q", "h", 2, 10, 1h})->jobs.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_database_without_a_store_is_foreign) {
  directory const home;
  connection db{home.file()};
  db.must("CREATE TABLE mine (x); BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{db.get()};
    BOOST_TEST(tx.execute(command::inspect_lock{"k"}).error() == errc::store_foreign);
  }
  db.must("COMMIT");
}

BOOST_AUTO_TEST_CASE(a_store_may_live_in_the_application_s_own_database) {
  directory const home;
  connection db{home.file()};
  db.must("PRAGMA user_version = 12; PRAGMA application_id = 34; CREATE TABLE mine (x)");
  boost::asio::io_context io;
  auto o = quick();
  o.in_application_database = true;
  sqlite_store const store{io.get_executor(), home.file(), o};
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(ask(io, store, enqueue("q", jobs)).has_value());
  BOOST_TEST(db.number("PRAGMA user_version") == 12);
  BOOST_TEST(db.number("PRAGMA application_id") == 34);
  db.must("BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{db.get()};
    BOOST_TEST(tx.execute(command::read_queue_stats{"q"})->enqueued == 1U);
  }
  db.must("COMMIT; UPDATE weir_state SET schema = 99");
  sqlite_store const later{io.get_executor(), home.file(), o};
  BOOST_TEST(ask(io, later, enqueue("q", jobs)).error() == errc::schema_too_new);
}

// -------------------------------------------------------------------------------------- cost

BOOST_AUTO_TEST_CASE(F30_jobs_that_are_not_due_cost_a_dequeue_nothing) {
  application a;
  auto const fill = [&](std::string const& queue, std::uint8_t priority, duration delay,
                        std::uint64_t first, std::uint64_t n) {
    std::vector<new_job> jobs;
    for (auto i = first; i != first + n; ++i) {
      jobs.push_back(job_of(i));
      jobs.back().priority = priority;
      jobs.back().delay = delay;
    }
    BOOST_TEST_REQUIRE(a(enqueue(queue, jobs)).has_value());
  };
  fill("empty", 100, {}, 0, 20);
  fill("full", 100, {}, 0, 20);
  for (std::uint64_t i = 1; i != 4; ++i) fill("full", 1, 1h, i * 10'000, 10'000);
  fill("full", 100, 1h, 50'000, 10'000);

  a.db->must("BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{a.db->get()};
    std::uint64_t sequence = 0;
    auto const cost = [&](std::string const& queue) {
      steps_of(a.db->get());
      auto const d = *tx.execute(command::dequeue_jobs{queue, "h", ++sequence, 5, 1h});
      BOOST_TEST(d.jobs.size() == 5U);
      return steps_of(a.db->get());
    };
    cost("empty");  // prepares the statements
    auto const empty = cost("empty");
    auto const full = cost("full");
    BOOST_TEST(full <= empty + 100, full << " steps with 40,000 future jobs, " << empty
                                         << " without: another level, and no more");
  }
  a.db->must("COMMIT");
}

BOOST_AUTO_TEST_CASE(no_statement_reads_more_of_a_table_than_it_must) {
  application a;
  std::array const quotas{quota::per_hour(1).burst(5)};
  std::string const payload(1000, 'p');
  std::vector<new_job> jobs{job_of(1, payload), job_of(2), job_of(3), job_of(4)};
  jobs[1].strategy = unique_strategy::until_and_while_executing;
  jobs[1].unique_key = "k";
  jobs[2].strategy = unique_strategy::until_expired;
  jobs[2].unique_key = "l";
  jobs[2].unique_ttl = 1ms;
  jobs[2].retention = 1ms;
  a.db->must("BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{a.db->get()};
    auto const now = system_clock{}.system_now();
    auto const at = [&](auto const& c, duration later = {}) {
      auto answer = tx.execute(command::at{c, now + later});
      BOOST_TEST(answer.has_value());
      return answer;
    };
    for (auto const later : {0h, 10h}) {
      at(command::acquire_permit{"k", "h", 1, 1h, 1h}, later);
      at(command::acquire_permit{"k", "g", 1, 1h, 1h}, later);
      at(command::acquire_lock{"k", "h", 1h}, later);
      at(command::take{"k", quotas, 1, {}}, later);
      at(command::reap_buckets{}, later);
      at(enqueue("q", jobs), later);
      auto const d = *at(command::dequeue_jobs{"q", "h", 1, 3, 1h}, later);
      for (auto const& j : d.jobs) {
        at(command::start_job{"q", j.id, j.fence}, later);
        at(command::extend_lease{"q", j.id, j.fence, 2h}, later);
        std::array const finished{finished_job{j.id, j.fence, "result"}};
        at(command::complete_jobs{"q", finished}, later);
      }
      at(command::peek_jobs{"q", 10}, later);
      at(command::read_queue_stats{"q"}, later);
      at(command::cancel_job{"q", id(4)}, later);
      at(command::list_dead_letters{.queue = "q", .limit = 10, .cursor = {}}, later);
      at(command::scan_visible_queues{}, later);
      at(command::gc_stale_pointers{}, later);
      at(command::list_queues{}, later);
      at(command::pause_queue{"r" + std::to_string(later.count())}, later);
    }
    std::set<std::string> texts;
    auto* const db = a.db->get();
    for (auto* s = sqlite3_next_stmt(db, nullptr); s != nullptr; s = sqlite3_next_stmt(db, s)) {
      texts.insert(sqlite3_sql(s));
    }
    BOOST_TEST(texts.size() > 35U);
    for (auto const& text : texts) {
      if (text.find("PRAGMA") == 0 || text.find("sqlite_schema") != text.npos) continue;
      sqlite3_stmt* explain = nullptr;
      auto const wanted = "EXPLAIN QUERY PLAN " + text;
      BOOST_TEST_REQUIRE(sqlite3_prepare_v2(db, wanted.c_str(), -1, &explain, nullptr) ==
                         SQLITE_OK);
      while (sqlite3_step(explain) == SQLITE_ROW) {
        std::string const detail{reinterpret_cast<char const*>(sqlite3_column_text(explain, 3))};
        bool const one_row = detail.find("weir_state") != detail.npos;
        BOOST_TEST((one_row || detail.find("SCAN") == detail.npos), text << ": " << detail);
        bool const few = text.find("ORDER BY fence") != text.npos;  // those of one dequeue
        BOOST_TEST((few || detail.find("TEMP B-TREE") == detail.npos), text << ": " << detail);
        // No row is read to be counted.
        bool const counts = text.find("count(*) FROM weir_jobs") != text.npos;
        BOOST_TEST((!counts || detail.find("COVERING INDEX") != detail.npos),
                   text << ": " << detail);
      }
      sqlite3_finalize(explain);
    }
  }
  a.db->must("ROLLBACK");
}

BOOST_AUTO_TEST_SUITE_END()
