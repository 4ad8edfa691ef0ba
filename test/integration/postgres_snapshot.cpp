// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F79: while somebody holds an old snapshot, a backup for example, nothing that is dead is
// vacuumed. Work costs the same all the same, and no job is lost behind a floor
// (schema/queues.sql).

#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace postgres_test;

std::string const enqueue_one =
    "SELECT count(*) FROM weir.enqueue_jobs('q', 0, true, ARRAY[gen_random_uuid()], "
    "ARRAY['k'::bytea], ARRAY['p'::bytea], ARRAY[''::bytea], ARRAY[0], ARRAY[9], ARRAY[0], "
    "ARRAY[0], ARRAY[0::bigint], ARRAY[0::bigint], ARRAY[0::bigint], ARRAY[0::bigint], "
    "ARRAY[''::bytea], true, NULL)";

/// One job with this number, in an application's transaction.
std::string enqueue(int number, std::chrono::seconds delay = 0s) {
  return "SELECT count(*) FROM weir.enqueue_jobs('q', 0, true, ARRAY[md5('" +
         std::to_string(number) +
         "')::uuid], ARRAY['k'::bytea], ARRAY['p'::bytea], ARRAY[''::bytea], ARRAY[0], ARRAY[9], "
         "ARRAY[0], ARRAY[0], ARRAY[" +
         std::to_string(delay.count()) +
         "000000000], ARRAY[0::bigint], ARRAY[0::bigint], ARRAY[0::bigint], ARRAY[''::bytea], "
         "false, NULL)";
}

/// Claims one job. Its id and its lease's number, or nothing.
std::string const dequeue = "SELECT id || ' ' || fence FROM weir.dequeue_jobs('q', 0, "
                            "ARRAY['h'::bytea], ARRAY[1], 0, 30000000000, true, "
                            "NULL) WHERE id IS NOT NULL";

/// Completes what was claimed. Is it 1 job?
std::string complete(std::string const& claimed) {
  auto const gap = claimed.find(' ');
  return "SELECT count(*) FROM weir.complete_jobs('q', 0, ARRAY['" + claimed.substr(0, gap) +
         "'::uuid], ARRAY[" + claimed.substr(gap + 1) +
         "], ARRAY[''::bytea], true, NULL) c(done) WHERE c.done";
}

std::string const is_due =
    "SELECT count(*) FROM weir.scan_visible_queues(0, 1, 0, NULL) WHERE queue IS NOT NULL";

void cycle(connection& db) {
  db.must(enqueue_one);
  auto const job = db.must(dequeue);
  BOOST_TEST_REQUIRE(!job.empty());
  BOOST_TEST_REQUIRE(db.number(complete(job)) == 1);
}

/// The time of the server, as weir sees it, from now on by hand.
void stop_the_clock(connection& db) {
  // A sequence: every transaction sees what it is now.
  db.must("CREATE SEQUENCE public.clock; SELECT setval('public.clock', weir.clock())");
  db.must("CREATE OR REPLACE FUNCTION weir.clock() RETURNS bigint LANGUAGE sql VOLATILE "
          "RETURN pg_sequence_last_value('public.clock')");
}
void move_clock(connection& db, std::chrono::nanoseconds by) {
  db.must("SELECT setval('public.clock', weir.clock() + " + std::to_string(by.count()) + ")");
}

/// A database whose floors are raised by every dequeue.
struct raised : bed {
  raised() {
    stop_the_clock(db);
    raise_always(true);
  }
  void raise_always(bool yes) {
    db.must(std::string{"CREATE OR REPLACE FUNCTION weir.worth_a_floor(dead_ bigint) "
                        "RETURNS boolean LANGUAGE sql VOLATILE RETURN "} +
            (yes ? "true" : "false"));
  }
  void run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      cycle(db);
      move_clock(db, 1ms);
    }
  }
  [[nodiscard]] bool has_floor_after(std::string const& vesting) {
    return db.must("SELECT count(*) FROM weir.floors f WHERE f.scan = -1 AND f.floors[1] > " +
                   vesting) == "1";
  }
  /// A worker finds the queue due, and claims this job next.
  [[nodiscard]] bool finds(int number) {
    if (db.number(is_due) != 1) return false;
    claimed = db.must(dequeue);
    return claimed.starts_with(db.must("SELECT md5('" + std::to_string(number) + "')::uuid"));
  }
  void complete_it() { BOOST_TEST_REQUIRE(db.number(complete(claimed)) == 1); }

  std::string claimed{};
};

/// A part of a function of the schema that is left out, or changed.
struct change {
  char const* function = nullptr;
  char const* part = nullptr;
  char const* instead = nullptr;
};

void make(connection& db, change const& c) {
  if (c.function == nullptr) return;
  auto const text = std::string{"pg_get_functiondef('weir."} + c.function + "'::regproc)";
  auto const part = std::string{"$x$"} + c.part + "$x$";
  BOOST_TEST_REQUIRE(db.number("SELECT position(" + part + " IN " + text + ")") > 0, c.part);
  db.must("DO $do$ BEGIN EXECUTE replace(" + text + ", " + part + ", $x$" + c.instead +
          "$x$); END $do$");
}

// Each of these says whether a job that is hard to see is found.

/// It is committed long after later ones were claimed.
bool late(std::string const& isolation, change const& c) {
  raised b;
  make(b.db, c);
  b.run(10);
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN ISOLATION LEVEL " + isolation);
  own.must(enqueue(1));
  auto const vesting = b.db.must("SELECT weir.clock()");
  move_clock(b.db, 1ms);
  b.run(1000);
  own.must("COMMIT");
  if (!b.finds(1)) return false;
  b.complete_it();
  b.run(10);
  BOOST_TEST(b.has_floor_after(vesting));
  return true;
}

/// Its transaction has begun before the floors were raised, and it comes after that.
bool begun_before(change const& c) {
  raised b;
  make(b.db, c);
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weir.jobs");
  b.run(20);
  BOOST_TEST(b.has_floor_after("0"));
  own.must(enqueue(1));
  move_clock(b.db, 1ms);
  b.run(20);
  own.must("COMMIT");
  return b.finds(1);
}

/// It is given back to the place that it had, which the floor has passed.
bool returned(change const& c) {
  raised b;
  make(b.db, c);
  b.run(5);
  b.db.must(enqueue(1));
  auto const vesting = b.db.must("SELECT weir.clock()");
  BOOST_TEST_REQUIRE(b.finds(1));
  move_clock(b.db, 1ms);
  b.run(20);
  BOOST_TEST(b.has_floor_after(vesting));
  b.db.must("SELECT weir.end_lease('q', 0, j.id, j.fence, 2, 0, '', true, NULL) FROM weir.jobs j");
  return b.finds(1);
}

/// Whoever has claimed it never comes back.
bool abandoned(change const& c) {
  raised b;
  make(b.db, c);
  b.run(20);
  move_clock(b.db, 31s);
  BOOST_TEST_REQUIRE(b.db.must(dequeue).empty());  // no pointer is left of the leases before
  b.db.must(enqueue(1));
  BOOST_TEST_REQUIRE(b.finds(1));
  b.run(20);
  move_clock(b.db, 31s);
  return b.finds(1);
}

/// It came in one batch with another that was due at once.
bool delayed(change const& c) {
  raised b;
  make(b.db, c);
  b.run(20);
  b.db.must(
      "SELECT count(*) FROM weir.enqueue_jobs('q', 0, true, ARRAY[md5('0')::uuid, md5('1')::uuid], "
      "ARRAY['k', 'k']::bytea[], ARRAY['p', 'p']::bytea[], ARRAY['', '']::bytea[], ARRAY[0, 0], "
      "ARRAY[9, 9], ARRAY[0, 0], ARRAY[0, 0], ARRAY[0, 10000000000], ARRAY[0, 0]::bigint[], "
      "ARRAY[0, 0]::bigint[], ARRAY[0, 0]::bigint[], ARRAY['', '']::bytea[], true, NULL)");
  BOOST_TEST_REQUIRE(b.finds(0));
  b.complete_it();
  b.run(20);
  if (b.db.number(is_due) != 0) b.db.must(dequeue);  // by a pointer that nothing is behind any more
  BOOST_TEST(b.db.number(is_due) == 0);
  move_clock(b.db, 11s);
  return b.finds(1);
}

/// The clock was ahead for a while, and is again when the job is looked for.
bool after_a_step(change const& c) {
  raised b;
  make(b.db, c);
  b.run(20);
  b.raise_always(false);
  move_clock(b.db, -30s);
  b.db.must(enqueue(1));
  if (!b.finds(1)) return false;
  b.db.must(enqueue(2));
  move_clock(b.db, 31s);
  return b.finds(2);
}

/// Entries of weir's indexes that a statement goes through, dead ones included.
std::int64_t entries(connection& db, std::string const& sql, std::string* answer = nullptr) {
  std::string const count = "SELECT sum(pg_stat_get_xact_tuples_returned(c.oid)) FROM pg_class c "
                            "WHERE c.relnamespace = 'weir'::regnamespace AND c.relkind = 'i'";
  db.must("BEGIN");
  auto const before = db.number(count);
  auto const said = db.must(sql);
  if (answer != nullptr) *answer = said;
  auto const out = db.number(count) - before;
  db.must("COMMIT");
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_snapshot)

// On the average: once in a lease all that vests later is looked through, and once a minute all
// that there is. Each cycle leaves two dead entries in the order of jobs, and more beside it.
BOOST_AUTO_TEST_CASE(F79_a_cycle_costs_the_same_under_an_old_snapshot) {
  constexpr int cycles = 1500;
  bed b;
  stop_the_clock(b.db);
  connection backup{the_server().conninfo(b.database)};
  backup.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weir.jobs");
  std::int64_t claims = 0;
  std::int64_t others = 0;
  for (int i = 0; i < 2 * cycles; ++i) {
    move_clock(b.db, 21ms);
    if (i < cycles) {
      cycle(b.db);
      continue;
    }
    std::string job;
    others += entries(b.db, enqueue_one) + entries(b.db, is_due);
    claims += entries(b.db, dequeue, &job);
    BOOST_TEST_REQUIRE(!job.empty());
    others += entries(b.db, complete(job));
  }
  BOOST_TEST(claims / cycles < 500);
  BOOST_TEST(others / cycles < 500);
  backup.must("COMMIT");
}

BOOST_AUTO_TEST_CASE(F79_no_job_is_lost_behind_a_floor) {
  BOOST_TEST(late("READ COMMITTED", {}));
  BOOST_TEST(late("REPEATABLE READ", {}));
  BOOST_TEST(begun_before({}));
  BOOST_TEST(returned({}));
  BOOST_TEST(abandoned({}));
  BOOST_TEST(delayed({}));
  BOOST_TEST(after_a_step({}));
}

BOOST_AUTO_TEST_CASE(F79_each_part_of_the_floors_is_needed) {
  change const no_wait{"raise_floor", "IF f.horizon > pg_snapshot_xmin(pg_current_snapshot()) THEN",
                       "f.horizon := '0'; IF false THEN"};
  BOOST_TEST(!late("READ COMMITTED", no_wait));
  BOOST_TEST(!returned(
      {"end_lease", "\"weir\".floor_for(queue_, j.priority, j.unclaimed, l.now)", "j.unclaimed"}));
  BOOST_TEST(
      !abandoned({"dequeue_jobs", "IF ends IS NOT NULL AND NOT moved THEN", "IF false THEN"}));
  BOOST_TEST(!delayed({"enqueue_jobs", "IF later > vests THEN", "IF false THEN"}));
  BOOST_TEST(!after_a_step({"relied_on", "RETURN ", "RETURN since_ IS NOT NULL OR "}));
  BOOST_TEST(!after_a_step({"dequeue_jobs", "stale := true;", ""}));
}

// Transactions that end in any order, and consumers at the same time: each job is done once.
BOOST_AUTO_TEST_CASE(F79_enqueues_and_claims_at_once_while_floors_are_raised) {
  constexpr int applications = 4;
  constexpr int each = 250;
  bed b;
  b.db.must("CREATE OR REPLACE FUNCTION weir.worth_a_floor(dead_ bigint) RETURNS boolean "
            "LANGUAGE sql VOLATILE RETURN true");
  auto const conninfo = the_server().conninfo(b.database);
  std::atomic<int> enqueueing = applications;
  std::atomic<int> done = 0;
  std::atomic<int> wrong = 0;
  auto const run = [&](auto const& f) {
    return [&] {
      std::unique_ptr<PGconn, weir::detail::postgres_finish> const db{
          PQconnectdb(conninfo.c_str())};
      f([&](std::string const& sql) -> std::string {
        weir::detail::postgres_result const r{PQexec(db.get(), sql.c_str())};
        auto const status = PQresultStatus(r.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) ++wrong;
        return status == PGRES_TUPLES_OK && PQntuples(r.get()) > 0 ? PQgetvalue(r.get(), 0, 0) : "";
      });
    };
  };
  std::atomic<int> number = 0;
  auto const application = run([&](auto const& ask) {
    for (int i = 0; i < each; ++i) {
      ask(i % 3 == 0 ? "BEGIN ISOLATION LEVEL REPEATABLE READ" : "BEGIN");
      ask(enqueue(++number));
      ask("SELECT pg_sleep(" + std::to_string(i % 7) + " / 1000.0)");
      ask(i % 10 == 9 ? "ROLLBACK" : "COMMIT");
    }
    --enqueueing;
  });
  auto const consumer = run([&](auto const& ask) {
    for (int idle = 0; idle < 2;) {
      bool const last = enqueueing == 0;
      auto const job = ask(dequeue);
      if (!job.empty()) done += ask(complete(job)) == "1" ? 1 : 0;
      idle = last && job.empty() ? idle + 1 : 0;
    }
  });
  std::vector<std::thread> all;
  for (int i = 0; i < applications; ++i) all.emplace_back(application);
  for (int i = 0; i < 3; ++i) all.emplace_back(consumer);
  for (auto& t : all) t.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(done == applications * each * 9 / 10);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 0);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.floors WHERE floors[1] > 0") == 2);
}

BOOST_AUTO_TEST_SUITE_END()
