// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Files that somebody else has written to (F93, F97): what cannot be read is set aside or told, and
// is no matter of other queues and keys; nothing that others have put into a schema is run.

#include "sqlite_bed.hpp"
#include "weir/clock/manual.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/schema.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace sqlite_test;

std::array const ten_each_second{quota::per_second(10)};

/// Writes as somebody who has the file, whatever the CHECK constraints say.
void write(std::string const& path, std::string const& sql) {
  connection db{path};
  db.must("PRAGMA ignore_check_constraints = ON");
  db.must(sql);
}

/// The same, whatever types the table takes.
void write_any_type(std::string const& path, std::string const& sql) {
  write(path, "PRAGMA writable_schema = ON; CREATE TABLE saved AS SELECT name AS n, sql AS s FROM "
              "sqlite_schema WHERE name = 'weir_jobs'; UPDATE sqlite_schema SET sql = "
              "replace(sql, 'STRICT, ', '') WHERE name = 'weir_jobs'");
  write(path, sql);
  write(path, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = (SELECT s FROM saved) "
              "WHERE name = 'weir_jobs'; DROP TABLE saved");
}

error_code opened(std::string const& path, sqlite_options const& o = quick()) {
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), path, o};
  return ask(io, store, command::inspect_lock{"k"}).error();
}

new_job unique_job(std::uint64_t n, std::string_view key) {
  auto j = job_of(n);
  j.unique_key = key;
  j.strategy = unique_strategy::until_executed;
  return j;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_damage)

// ------------------------------------------------------------------------------------------ jobs

BOOST_AUTO_TEST_CASE(F93_a_damaged_job_is_set_aside_and_its_queue_goes_on) {
  for (std::string const damage : {"priority = 256",
                                   "priority = -1",
                                   "priority = 9223372036854775807",
                                   "state = 7",
                                   "attempts = -1",
                                   "max_attempts = 0",
                                   "snoozes = 4294967296",
                                   "fence = -1",
                                   "holder = zeroblob(129)",
                                   "strategy = 6",
                                   "policy = 5",
                                   "deadline = -1",
                                   "retention = 9223372036854775807",
                                   "kind = x''",
                                   "memo = zeroblob(1025)",
                                   "headers = zeroblob(4097)",
                                   "progress = zeroblob(1025)",
                                   "checkpoint = zeroblob(65537)",
                                   "reason = zeroblob(4097)",
                                   "payload = zeroblob(1048577)",
                                   "body = 77",
                                   "kept = 1",
                                   "death = 1",
                                   "payload = zeroblob(5000000)",
                                   "id = x'00'"}) {
    BOOST_TEST_CONTEXT(damage) {
      bed b;
      std::array const jobs{unique_job(1, "key"), job_of(2)};
      BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
      write(b.home.file(), "UPDATE weir_jobs SET " + damage + " WHERE length(unique_key) <> 0");

      command::dequeue_jobs const c{.queue = "q", .holder = "h", .limit = 10, .lease = 1min};
      auto const taken = b(c);
      BOOST_TEST_REQUIRE(taken.has_value(), taken.error().message());
      BOOST_TEST(taken->damaged == 1U);
      BOOST_TEST_REQUIRE(taken->jobs.size() == 1U);
      BOOST_TEST(taken->jobs[0].id == id(2));
      BOOST_TEST(b(c)->damaged == 0U, "it is told once");

      auto const letters = b(command::list_dead_letters{"q", 10, {}});
      BOOST_TEST_REQUIRE(letters->jobs.size() == 1U);
      auto const& letter = letters->jobs[0];
      BOOST_TEST(letter.reason.starts_with(damaged_record));
      BOOST_TEST(letter.payload.size() <= limits::payload_size);
      if (!damage.starts_with("id")) BOOST_TEST(letter.id == id(1));
      auto const stats = *b(command::read_queue_stats{"q"});
      BOOST_TEST(stats.dead == 1U);
      BOOST_TEST(stats.enqueued == stats.pending + stats.leased + stats.dead);

      // Where its id can be read, its unique key is free.
      std::array const next{unique_job(3, "key")};
      auto const free = b(command::enqueue_jobs{"q", next});
      if (!damage.starts_with("id")) {
        BOOST_TEST_REQUIRE(free.has_value());
        BOOST_TEST(((*free)[0].outcome == enqueue_outcome::enqueued));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(F93_a_job_that_cannot_be_written_back_is_set_aside_and_its_queue_goes_on) {
  std::string const apart(1000, 'p');  // which is kept elsewhere, so that it can be read
  for (bool const leased : {false, true}) {
    command::dequeue_jobs const numbered{
        .queue = "q", .holder = "h", .sequence = 1, .limit = 1, .lease = 1min};
    bed b;
    auto hurt = job_of(1);
    hurt.payload = apart;
    std::array const jobs{hurt, job_of(2)};
    BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
    if (leased) BOOST_TEST(b(numbered)->jobs.size() == 1U);
    write_any_type(b.home.file(),
                   "UPDATE weir_jobs SET payload = 7 WHERE id = (SELECT min(id) FROM "
                   "weir_jobs)");
    auto again = numbered;
    again.sequence = 2;  // the jobs of the one before are not given again
    auto const got = b(again);
    BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
    BOOST_TEST(got->damaged == (leased ? 0U : 1U));
    BOOST_TEST_REQUIRE(got->jobs.size() == 1U);
    BOOST_TEST((got->jobs[0].id == id(2)));
  }
}

BOOST_AUTO_TEST_CASE(F93_one_step_sets_a_hundred_aside_and_says_that_there_are_more) {
  bed b;
  std::vector<new_job> jobs;
  for (std::uint64_t i = 1; i != 152; ++i) jobs.push_back(job_of(i));
  BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
  write(b.home.file(), "UPDATE weir_jobs SET priority = 300 + abs(random()) % 9");
  command::dequeue_jobs const c{.queue = "q", .holder = "h", .limit = 10, .lease = 1min};
  auto const first = b(c);
  BOOST_TEST(first->damaged == rule::burials_per_dequeue);
  BOOST_TEST(first->more);
  auto const second = b(c);
  BOOST_TEST(second->damaged == 51U);
  BOOST_TEST(!second->more);
  BOOST_TEST(!second->next_in.has_value());
}

BOOST_AUTO_TEST_CASE(F93_a_damaged_job_is_no_error_of_what_is_asked_with_it) {
  bed b;
  std::array const jobs{unique_job(1, "key"), job_of(2), job_of(3)};
  BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
  auto const taken =
      b(command::dequeue_jobs{.queue = "q", .holder = "h", .limit = 2, .lease = 1min});
  BOOST_TEST_REQUIRE(taken->jobs.size() == 2U);
  write(b.home.file(),
        "UPDATE weir_jobs SET strategy = 9 WHERE id = (SELECT min(id) FROM weir_jobs)");
  BOOST_TEST(b(command::find_job{"q", id(1)}).error() == errc::store_corrupt);
  std::array const done{finished_job{taken->jobs[0].id, taken->jobs[0].fence, {}},
                        finished_job{taken->jobs[1].id, taken->jobs[1].fence, {}}};
  auto const ended = b(command::complete_jobs{"q", done});
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST(((*ended)[0] == complete_outcome::lease_lost));
  BOOST_TEST(((*ended)[1] == complete_outcome::completed));
  BOOST_TEST(b(command::peek_jobs{"q", 10})->size() == 1U);
  // Its key does not keep a newcomer out for as long as nobody dequeues.
  std::array const next{unique_job(4, "key")};
  BOOST_TEST(((*b(command::enqueue_jobs{"q", next}))[0].outcome == enqueue_outcome::enqueued));
  BOOST_TEST(b(command::list_dead_letters{"q", 10, {}})->jobs.size() == 1U);
}

BOOST_AUTO_TEST_CASE(F93_a_damaged_queue_is_counted_anew) {
  for (std::string const damage :
       {"waiting = -1", "dead = 4611686018427387905", "enqueued = -5", "paused = 2",
        "lease_holder = zeroblob(500)", "idle = -1", "deaths = -9223372036854775808"}) {
    BOOST_TEST_CONTEXT(damage) {
      bed b;
      std::array const jobs{job_of(1), job_of(2)};
      BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
      write(b.home.file(), "UPDATE weir_queues SET pointer = 9223372036854775807, " + damage);
      auto const stats = b(command::read_queue_stats{"q"});
      BOOST_TEST_REQUIRE(stats.has_value(), stats.error().message());
      BOOST_TEST(stats->pending == 2U);
      BOOST_TEST(stats->enqueued == 2U);
      if (stats->paused) BOOST_TEST(b(command::resume_queue{"q"}).has_value());
      auto const taken =
          b(command::dequeue_jobs{.queue = "q", .holder = "h", .limit = 10, .lease = 1min});
      BOOST_TEST_REQUIRE(taken->jobs.size() == 2U);
      connection db{b.home.file()};
      BOOST_TEST(db.number("SELECT count(*) FROM pragma_quick_check('weir_queues') "
                           "WHERE quick_check <> 'ok'") == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(F97_counters_stop_at_nothing) {
  bed b;
  std::array const jobs{job_of(1)};
  BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
  BOOST_TEST(b(command::acquire_lock{"k", "h", 1h})->granted);
  write(b.home.file(),
        "UPDATE weir_queues SET waiting = 0; UPDATE weir_state SET jobs = 0, locks = 0");
  auto const taken =
      b(command::dequeue_jobs{.queue = "q", .holder = "h", .limit = 10, .lease = 1min});
  BOOST_TEST_REQUIRE(taken->jobs.size() == 1U);
  std::array const done{finished_job{taken->jobs[0].id, taken->jobs[0].fence, {}}};
  BOOST_TEST(b(command::complete_jobs{"q", done}).has_value());
  BOOST_TEST(b(command::release_lock{.key = "k", .holder = "h"})->freed);
  connection db{b.home.file()};
  BOOST_TEST(db.number("SELECT jobs + locks FROM weir_state") == 0);
  BOOST_TEST(db.number("SELECT waiting FROM weir_queues") == 0);
}

BOOST_AUTO_TEST_CASE(F97_a_fence_without_room_to_grow_is_corrupt) {
  bed b;
  BOOST_TEST(b(command::acquire_lock{"k", "h", 1h})->granted);
  write(b.home.file(), "UPDATE weir_state SET fence = 9223372036854775807");
  BOOST_TEST(b(command::acquire_lock{"l", "h", 1h}).error() == errc::store_corrupt);
}

// ------------------------------------------------------------------------- keys, and their loops

BOOST_AUTO_TEST_CASE(F93_a_damaged_key_is_corrupt_and_the_others_are_served) {
  bed b;
  auto const all = [&](std::string_view key) {
    std::array<error_code, 3> out;
    out[0] = b(command::acquire_lock{key, "h", 1h}).error();
    out[1] = b(command::acquire_permit{.key = key, .holder = "h", .limit = 2, .ttl = 1h}).error();
    out[2] = b(command::take{.key = key, .quotas = ten_each_second}).error();
    return out;
  };
  BOOST_TEST((all("hurt") == std::array<error_code, 3>{}));
  write(b.home.file(), "UPDATE weir_locks SET fence = -1; UPDATE weir_permits SET lim = 0; "
                       "UPDATE weir_buckets SET h0 = 9223372036854775807");
  for (auto const ec : all("hurt")) BOOST_TEST(ec == errc::store_corrupt);
  for (auto const ec : all("well")) BOOST_TEST(!ec, ec.message());
}

BOOST_AUTO_TEST_CASE(F93_what_cannot_be_named_goes_with_its_time_and_holds_nobody_up) {
  auto o = quick();
  o.max_permits = o.max_locks = o.max_buckets = 1;
  o.max_jobs = 2;
  manual_clock const clock;
  basic_bed<manual_clock> b{o, clock};
  BOOST_TEST(b(command::acquire_permit{.key = "a", .holder = "h", .limit = 1, .ttl = 1s})->granted);
  BOOST_TEST(b(command::acquire_lock{"a", "h", 1s})->granted);
  BOOST_TEST(b(command::take{.key = "a", .quotas = ten_each_second})->allowed);
  auto j = job_of(1);
  j.unique_key = "key";
  j.strategy = unique_strategy::until_expired;
  j.unique_ttl = 1s;
  BOOST_TEST(b(command::enqueue_jobs{"q", std::span{&j, 1}}).has_value());
  write(b.home.file(), "UPDATE weir_permits SET ticket = 2, key = zeroblob(2000); "
                       "UPDATE weir_locks SET key = zeroblob(2000); "
                       "UPDATE weir_buckets SET key = zeroblob(2000), quotas = x'00'; "
                       "UPDATE weir_keys SET run = 2, queue = 99");
  auto later = clock;
  later.advance(1min);
  // Each of these needs the room that is there once what is over is gone.
  BOOST_TEST(b(command::acquire_permit{.key = "b", .holder = "h", .limit = 1, .ttl = 1s})->granted);
  BOOST_TEST(b(command::acquire_lock{"b", "h", 1s})->granted);
  BOOST_TEST(b(command::take{.key = "b", .quotas = ten_each_second})->allowed);
  auto const next = job_of(2);
  BOOST_TEST(b(command::enqueue_jobs{"q", std::span{&next, 1}}).has_value());
  BOOST_TEST(b(command::enqueue_jobs{"q", std::array{job_of(3)}}).error() == errc::store_full);
}

// ------------------------------------------------------------------------------------- the schema

BOOST_AUTO_TEST_CASE(F93_a_file_with_something_of_others_on_weir_s_tables_is_foreign) {
  for (std::string const planted :
       {"CREATE TRIGGER t AFTER INSERT ON weir_locks BEGIN DELETE FROM weir_jobs; END",
        "CREATE VIEW weir_view AS SELECT * FROM weir_jobs", "CREATE TABLE weir_more (x)",
        "CREATE INDEX more ON weir_locks (abs(fence))",
        "CREATE TRIGGER weir_t AFTER INSERT ON theirs BEGIN DELETE FROM weir_jobs; END",
        "DROP TABLE weir_keys; CREATE VIEW weir_keys AS SELECT 1 AS queue",
        "ALTER TABLE weir_locks ADD COLUMN more INTEGER AS (1) CHECK (random())",
        "DROP TABLE weir_payloads; CREATE TABLE weir_payloads (body INTEGER PRIMARY KEY, "
        "payload)"}) {
    BOOST_TEST_CONTEXT(planted) {
      bed b;
      BOOST_TEST(b(command::acquire_lock{"k", "h", 1h})->granted);
      {
        connection db{b.home.file()};
        db.must("CREATE TABLE theirs (x)");
        if (db.run(planted) != SQLITE_OK) continue;  // SQLite itself refuses it
      }
      BOOST_TEST(opened(b.home.file()) == errc::store_foreign);
    }
  }
}

BOOST_AUTO_TEST_CASE(F93_a_trigger_that_is_planted_under_an_open_store_is_not_run) {
  bed b;
  BOOST_TEST(b(command::acquire_lock{"k", "h", 1h})->granted);
  connection db{b.home.file()};
  db.must("CREATE TABLE ran (x)");
  db.must("CREATE TRIGGER t AFTER INSERT ON weir_locks BEGIN INSERT INTO ran VALUES (1); END");
  BOOST_TEST(b(command::acquire_lock{"l", "h", 1h})->granted);
  BOOST_TEST(db.number("SELECT count(*) FROM ran") == 0);

  db.must("BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{db.get()};
    BOOST_TEST(tx.execute(command::acquire_lock{"m", "h", 1h}).error() == errc::store_foreign);
  }
  db.must("COMMIT");
  BOOST_TEST(db.number("SELECT count(*) FROM ran") == 0);
}

BOOST_AUTO_TEST_CASE(F93_a_transaction_leaves_the_connection_s_settings_alone) {
  bed b;
  BOOST_TEST(b(command::acquire_lock{"k", "h", 1h})->granted);
  connection db{b.home.file()};
  auto const settings = [&] {
    std::array<int, 5> out{};
    std::size_t i = 0;
    for (int const what : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                           SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_DEFENSIVE}) {
      sqlite3_db_config(db.get(), what, -1, &out[i++]);
    }
    out[i] = sqlite3_limit(db.get(), SQLITE_LIMIT_LENGTH, -1);
    return out;
  };
  auto const before = settings();
  db.must("BEGIN IMMEDIATE");
  {
    sqlite_transaction tx{db.get()};
    BOOST_TEST(tx.execute(command::acquire_lock{"m", "h", 1h})->granted);
  }
  db.must("COMMIT");
  BOOST_TEST((settings() == before));
}

BOOST_AUTO_TEST_CASE(F93_others_cannot_write_by_mistake_what_weir_would_not_have_written) {
  bed b;
  std::array const jobs{job_of(1)};
  BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
  connection db{b.home.file()};
  for (std::string const damage :
       {"weir_jobs SET priority = 256", "weir_jobs SET vesting = NULL", "weir_jobs SET id = x'00'",
        "weir_queues SET waiting = -1", "weir_state SET fence = -1"}) {
    BOOST_TEST(db.run("UPDATE " + damage) == SQLITE_CONSTRAINT, damage);
  }
}

// A list after IN would be a table of its own, with a page cache, for each row that is written.
BOOST_AUTO_TEST_CASE(F93_what_holds_rows_sound_makes_no_table_for_each_row) {
  bed b;
  BOOST_TEST_REQUIRE(b(command::inspect_lock{"k"}).has_value());
  connection db{b.home.file()};
  for (std::string const table :
       {"state", "permits", "locks", "buckets", "queues", "jobs", "payloads", "keys"}) {
    auto const sql = "EXPLAIN INSERT INTO weir_" + table + " DEFAULT VALUES";
    std::string steps;
    auto const note = [](void* to, int, char** row, char**) {
      *static_cast<std::string*>(to) += std::string{row[1]} + ' ';
      return 0;
    };
    BOOST_TEST_REQUIRE(sqlite3_exec(db.get(), sql.c_str(), note, &steps, nullptr) == SQLITE_OK);
    BOOST_TEST(steps.find("Halt") != steps.npos);
    BOOST_TEST(steps.find("OpenEphemeral") == steps.npos, table << ": " << steps);
  }
}

BOOST_AUTO_TEST_SUITE_END()
