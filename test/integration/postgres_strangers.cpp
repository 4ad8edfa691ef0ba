// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Other roles of the database: what they make there, lock and listen to.

#include "patience.hpp"
#include "postgres_bed.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/postgres/transaction.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

/// A connection of a role that may do no more than connect.
connection stranger(connection& db, std::string const& database) {
  db.must(
      "DO $$BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END$$");
  return connection{"host=127.0.0.1 port=" + std::to_string(the_server().port()) +
                    " user=stranger dbname=" + database};
}

/// So many jobs with a unique key each, of which no two batches have one in common.
struct batch {
  batch(std::uint8_t which, std::size_t n) : keys(n), jobs(n) {
    for (std::size_t i = 0; i != n; ++i) {
      keys[i] = std::to_string(which) + "/" + std::to_string(i);
      jobs[i] = job_of(1, keys[i]);
      *jobs[i].id.begin() = which;
      *(jobs[i].id.begin() + 1) = static_cast<std::uint8_t>(i >> 8U);
      *(jobs[i].id.begin() + 2) = static_cast<std::uint8_t>(i);
    }
  }
  std::vector<std::string> keys;
  std::vector<new_job> jobs;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_strangers)

// The schema is there, with a state that says that it is migrated, and everything is a stranger's.
BOOST_AUTO_TEST_CASE(F89_a_schema_that_belongs_to_a_stranger_is_refused) {
  for (bool const looks_migrated : {false, true}) {
    auto const name = bed::fresh("");
    connection db{the_server().conninfo(name)};
    auto const theirs = stranger(db, name);
    db.must("CREATE SCHEMA weir AUTHORIZATION stranger; CREATE SEQUENCE public.ran; "
            "GRANT ALL ON SEQUENCE public.ran TO PUBLIC");
    if (looks_migrated) {
      db.must("SET ROLE stranger; CREATE FUNCTION weir.fires() RETURNS integer LANGUAGE plpgsql AS "
              "'BEGIN PERFORM nextval(''public.ran''); RETURN 1; END'; "
              "CREATE VIEW weir.state AS SELECT weir.fires() AS version, 1 AS shards; RESET ROLE; "
              "GRANT SELECT ON weir.state TO PUBLIC");
    }
    boost::asio::io_context io;
    postgres_store const store{io.get_executor(), the_server().conninfo(name), quick()};
    BOOST_TEST((migrate(io, store) == errc::store_foreign));
    BOOST_TEST(db.must("SELECT is_called FROM public.ran") == "f");
    weir::detail::postgres_result const said{
        PQexec(db.get(), postgres_migration_sql(quick()).c_str())};
    std::string_view const text = PQerrorMessage(db.get());
    BOOST_TEST((text.find("the schema weir belongs to the role stranger") != text.npos), text);
    db.must("ROLLBACK; ALTER SCHEMA weir OWNER TO postgres; DROP VIEW IF EXISTS weir.state");
    BOOST_TEST(!migrate(io, store));
  }
}

// All numbers that can be computed without reading what is in weir's schema, and of weir's
// functions what others can know.
BOOST_AUTO_TEST_CASE(F94_a_stranger_who_takes_locks_stops_nobody) {
  bed b;
  auto theirs = stranger(b.db, b.database);
  theirs.must(
      R"(SELECT pg_advisory_lock(hashtextextended('weir migration', 0)), count(pg_advisory_lock(
    hashtextextended(encode(q::bytea, 'hex') || '/' || encode(k::bytea, 'hex'), kind + 8 * o.oid::bigint)))
    FROM unnest('{0,1,2,3,4}'::bigint[]) kind, unnest('{"",q,j0}'::text[]) q, unnest('{"",key}'::text[]) k,
      (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'weir' UNION ALL SELECT 0::oid) o)");
  b.db.must("SELECT setval('weir.fences', 1)");  // so that it has to be raised
  BOOST_TEST(b(take_lock("k")).has_value());
  BOOST_TEST(!migrate(b.io, b.store));
  auto keyed = job_of(1, "key");
  keyed.strategy = unique_strategy::until_and_while_executing;
  std::vector<new_job> const jobs{keyed, job_of(2)};
  auto const added = b(command::enqueue_jobs{"q", jobs});
  BOOST_TEST(added.has_value());
  auto const taken = b(command::dequeue_jobs{"q", "h", 1, 2, 1h});
  BOOST_TEST_REQUIRE(taken->jobs.size() == 2U);
  BOOST_TEST(b(command::start_job{"q", taken->jobs[0].id, taken->jobs[0].fence}).has_value());
  BOOST_TEST(
      b(command::snooze_job{"q", taken->jobs[0].id, taken->jobs[0].fence, 1h, {}}).has_value());
  BOOST_TEST(b(command::bury_job{"q", taken->jobs[1].id, taken->jobs[1].fence, "why"}).has_value());
  BOOST_TEST(b(command::list_dead_letters{"q", 10, {}})->jobs.size() == 1U);
  BOOST_TEST(b(command::replay_dead_letter{"q", taken->jobs[1].id}).has_value());
  // A pointer is still moved, and no enqueue adds one of its own.
  for (std::uint8_t i = 3; i < 20; ++i) {
    std::vector<new_job> const more{job_of(i)};
    BOOST_TEST(b(command::enqueue_jobs{"q", more}).has_value());
  }
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.pointers") <= 3);
  BOOST_TEST(theirs.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
                           "AND pid = pg_backend_pid()") >= 30);
  // Nor can they read the seed of the others.
  for (std::string const what : {"last_value FROM weir.seed", "pg_sequence_last_value('weir.seed')",
                                 "secret FROM weir.state", "weir.queue_lock('q')"}) {
    weir::detail::postgres_result const r{PQexec(theirs.get(), ("SELECT " + what).c_str())};
    BOOST_TEST((PQresultStatus(r.get()) == PGRES_FATAL_ERROR), what);
  }
  BOOST_TEST(theirs.number("SELECT count(*) FROM pg_sequences WHERE schemaname = 'weir' AND "
                           "last_value IS NOT NULL") == 0);
}

// Anybody may read which advisory locks are taken.
BOOST_AUTO_TEST_CASE(F94_a_stranger_who_takes_the_locks_of_dead_letters_stops_none) {
  bed b;
  std::vector<new_job> const jobs{job_of(1), job_of(2)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  auto const taken = b(command::dequeue_jobs{"q", "h", 1, 2, 1h});
  BOOST_TEST_REQUIRE(taken->jobs.size() == 2U);
  connection application{the_server().conninfo(b.database)};
  application.must("BEGIN");
  postgres_transaction tx{application.get()};
  auto const bury = [&](std::size_t i) {
    return command::bury_job{"q", taken->jobs[i].id, taken->jobs[i].fence, "why"};
  };
  BOOST_TEST(tx.execute(bury(0)).has_value());
  auto theirs = stranger(b.db, b.database);
  std::string const seen =
      "FROM pg_locks l, generate_series(0, 50) n WHERE l.locktype = 'advisory' AND objsubid = 2 "
      "AND l.pid <> pg_backend_pid()";
  theirs.must(
      "SELECT pg_advisory_lock_shared(l.classid::bigint::integer, (l.objid::bigint)::integer) " +
      seen + " AND n = 0");
  theirs.must(
      "SELECT pg_advisory_lock(l.classid::bigint::integer, (l.objid::bigint + n)::integer) " +
      seen + " AND n > 0");
  application.must("COMMIT");
  auto const buried = b(bury(1));
  BOOST_TEST(buried.has_value(), buried.error().message());
  BOOST_TEST(b(command::list_dead_letters{"q", 10, {}})->jobs.size() == 2U);
}

// With the lock table that a server has by default, which all its databases share.
BOOST_AUTO_TEST_CASE(F94_large_batches_of_unique_jobs_leave_the_lock_table_to_others) {
  bed b;
  std::vector<std::unique_ptr<postgres_store>> stores;
  std::vector<batch> batches;
  for (std::uint8_t i = 0; i != 4; ++i) batches.emplace_back(i, limits::batch);
  std::vector<std::shared_ptr<std::optional<error_code>>> ended;
  for (auto const& each : batches) {
    stores.push_back(std::make_unique<postgres_store>(b.io.get_executor(),
                                                      the_server().conninfo(b.database), quick()));
    ended.push_back(start(*stores.back(), command::enqueue_jobs{"q", each.jobs}));
  }
  connection elsewhere{the_server().conninfo(bed::fresh(""))};
  for (auto const& each : ended) {
    finish(b.io, *each);
    BOOST_TEST(!**each, (*each)->message());
  }
  BOOST_TEST(b(command::read_queue_stats{"q"})->enqueued == 4U * limits::batch);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.guards") == 0);
  // The same in transactions that stay open.
  std::vector<std::unique_ptr<connection>> open;
  for (std::uint8_t i = 0; i != 4; ++i) {
    open.push_back(std::make_unique<connection>(the_server().conninfo(b.database)));
    open.back()->must("BEGIN");
    postgres_transaction tx{open.back()->get()};
    batch const more{static_cast<std::uint8_t>(10 + i), limits::batch};
    BOOST_TEST(tx.execute(command::enqueue_jobs{"q", more.jobs}).has_value());
  }
  BOOST_TEST(
      elsewhere.number("SELECT count(pg_try_advisory_lock(i)) FROM generate_series(1, 10000) i") ==
      10000);
}

// One call on 10,000 queues took as many places in the same table.
BOOST_AUTO_TEST_CASE(F94_stale_pointers_are_deleted_by_a_hundred_queues_at_a_time) {
  bed b;
  b.db.must("INSERT INTO weir.pointers SELECT 0, 0, convert_to('q' || i, 'UTF8') "
            "FROM generate_series(1, 1050) i");
  // Those that are snoozed stand before all others, and hide none of them.
  b.db.must("INSERT INTO weir.pointers SELECT 0, 0, convert_to('a' || i, 'UTF8') "
            "FROM generate_series(1, 150) i; INSERT INTO weir.queues (queue, shard, snoozed) "
            "SELECT queue, 0, 9223372036854775807 FROM weir.pointers WHERE queue < 'b'");
  command::gc_stale_pointers const collect{0, limits::batch, duration::zero()};
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN");
  postgres_transaction tx{own.get()};
  auto const first = tx.execute(collect);
  BOOST_TEST_REQUIRE(first.has_value(), first.error().message());
  BOOST_TEST(*first == weir::rule::pointers_per_step);
  BOOST_TEST(own.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND "
                        "pid = pg_backend_pid()") <= 100);
  own.must("COMMIT");
  // Whoever is given so many asks again.
  std::size_t calls = 0;
  constexpr auto many = weir::rule::pointers_per_step;
  for (auto n = many; n == many; ++calls) n = *b(collect);
  BOOST_TEST(calls == 10U);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.pointers") == 150);
}

// A notification, and what is in it, is for every role of the database.
BOOST_AUTO_TEST_CASE(F94_what_a_stranger_hears_names_no_key) {
  bed b;
  auto theirs = stranger(b.db, b.database);
  theirs.must("LISTEN weir");
  BOOST_TEST(b(command::acquire_permit{"secret", "h", 1, 1h})->granted);
  BOOST_TEST(!b(command::acquire_permit{"secret", "other", 1, 1h, 1h})->granted);
  auto const wait = start(b.store, command::await_permit{"secret", "other"});
  BOOST_TEST(b(command::release_permit{"secret", "h"})->freed);
  finish(b.io, *wait);
  std::string heard;
  BOOST_TEST(weir_test::happens([&] {
    theirs.must("SELECT 1");
    while (auto* const n = PQnotifies(theirs.get())) {
      heard += n->extra;
      PQfreemem(n);
    }
    return !heard.empty();
  }));
  BOOST_TEST(heard.size() == 33U);
  // Not the digest that a guess at the key has.
  for (std::string const guess :
       {"'secret'", "'secret' || 'other'", "int4send(6) || 'secret'::bytea || 'other'::bytea"}) {
    BOOST_TEST(heard != theirs.must("SELECT 'p' || left(encode(sha256((" + guess +
                                    ")::bytea), 'hex'), 32)"));
  }
  BOOST_TEST(heard == b.db.must("SELECT weir.turn_topic('secret', 'other')"));
}

// F72: in the order of the batch each would wait for what the other has inserted.
BOOST_AUTO_TEST_CASE(F72_keyed_batches_that_share_ids_do_not_block_each_other) {
  bed b;
  hold_second_inserts(b.db);
  postgres_store const other{b.io.get_executor(), the_server().conninfo(b.database), quick()};
  std::vector<new_job> const forth{job_of(1, "a"), job_of(2, "b"), job_of(3, "c")};
  std::vector<new_job> const back{job_of(3, "d"), job_of(2, "e"), job_of(1, "f")};
  auto const first = start(b.store, command::enqueue_jobs{"q", forth});
  auto const second = start(other, command::enqueue_jobs{"q", back});
  until_somebody_waits(b.io, b.database, 2);
  b.db.must("SELECT pg_advisory_unlock(4711)");
  finish(b.io, *first);
  finish(b.io, *second);
  BOOST_TEST(!**first, (*first)->message());
  BOOST_TEST(!**second, (*second)->message());
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 3);
}

// F101: the server's date was a year ahead while buckets were tidied, and is right again.
BOOST_AUTO_TEST_CASE(F101_a_mark_made_by_a_wrong_clock_denies_nobody_for_long) {
  bed b;
  auto const set_clock = [&](std::string const& ahead) {
    b.db.must("CREATE OR REPLACE FUNCTION weir.clock() RETURNS bigint LANGUAGE sql VOLATILE RETURN "
              "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000 + " +
              ahead);
  };
  std::vector<quota> const quotas{quota::per_second(1000)};
  set_clock("31536000000000000");
  BOOST_TEST(b(command::take{"a", quotas})->allowed);
  BOOST_TEST(weir_test::happens([&] {
    b.db.must("SELECT weir.tidy(100, NULL)");
    return b.db.number("SELECT count(*) FROM weir.buckets") == 0;
  }));
  set_clock("0");
  BOOST_TEST(!b(command::take{"never seen", quotas})->allowed);
  BOOST_TEST(!b(command::take{"a", quotas})->allowed);
  BOOST_TEST(b(command::reset_bucket{"a"}).has_value());
  BOOST_TEST(b(command::take{"a", quotas})->allowed);
  BOOST_TEST(!b(command::take{"never seen", quotas})->allowed);
  auto o = quick();
  o.tidy_interval = 10ms;
  postgres_store const tidies{b.io.get_executor(), the_server().conninfo(b.database), o};
  BOOST_TEST(weir_test::happens(
      [&] { return ask(b.io, tidies, command::take{"never seen", quotas})->allowed; }));
}

BOOST_AUTO_TEST_SUITE_END()
