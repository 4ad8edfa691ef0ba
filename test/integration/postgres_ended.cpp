// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Ended jobs are in tables of their own: their ids stay taken, whoever moves a job there meanwhile;
// they are removed while others look at them for long; and those that version 4 had in the jobs'
// table are moved.

#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

new_job kept_job(std::uint8_t n, std::string_view unique_key = {}, duration retention = 1h) {
  auto out = job_of(n, unique_key);
  out.retention = retention;
  return out;
}

result<command::enqueue_jobs::result> enqueue(bed& b, std::vector<new_job> const& jobs) {
  return b(command::enqueue_jobs{"q", jobs});
}

/// Claims the first job.
leased_job claim(bed& b) {
  auto const got = b(command::dequeue_jobs{"q", "h", 0, 1, 1h});
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST_REQUIRE(got->jobs.size() == 1U);
  return got->jobs[0];
}

void complete(bed& b, leased_job const& j, std::string_view with = {}) {
  std::vector<finished_job> const ended{{j.id, j.fence, with}};
  auto const done = b(command::complete_jobs{"q", ended});
  BOOST_TEST_REQUIRE(done.has_value());
  BOOST_TEST_REQUIRE((done->at(0) == complete_outcome::completed));
}

void bury(bed& b, leased_job const& j) {
  BOOST_TEST_REQUIRE(b(command::bury_job{"q", j.id, j.fence, "why"}).has_value());
}

/// How many jobs there are, how many dead letters, and how many records.
std::string counts(bed& b) {
  return b.db.must("SELECT concat_ws(' ', (SELECT count(*) FROM weir.jobs), "
                   "(SELECT count(*) FROM weir.dead_letters), (SELECT count(*) FROM weir.ended))");
}

std::int64_t pending(bed& b) {
  auto const said = b(command::read_queue_stats{"q"});
  BOOST_TEST_REQUIRE(said.has_value());
  return static_cast<std::int64_t>(said->pending);
}

/// Jobs in one way in which an enqueue adds them: one, several, with keys, several with keys.
std::vector<new_job> one_way(int way, std::uint8_t first) {
  std::vector<new_job> out{kept_job(first)};
  if (way % 2 == 1) out.push_back(kept_job(static_cast<std::uint8_t>(first + 1)));
  static constexpr std::string_view keys[] = {"a", "b"};
  for (std::size_t i = 0; way >= 2 && i != out.size(); ++i) {
    out[i] = kept_job(static_cast<std::uint8_t>(first + i), keys[i]);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_ended)

BOOST_AUTO_TEST_CASE(the_id_of_what_has_ended_is_taken_until_it_is_forgotten) {
  for (int way = 0; way != 4; ++way) {
    BOOST_TEST_CONTEXT("way " << way) {
      bed b;
      auto const jobs = one_way(way, 1);
      BOOST_TEST_REQUIRE(enqueue(b, jobs).has_value());
      bury(b, claim(b));
      for (auto i = jobs.size(); i != 1; --i) complete(b, claim(b));
      auto const before = counts(b);
      BOOST_TEST(before == "0 1 " + std::to_string(jobs.size() - 1));
      // Alone, and with one that is new.
      auto more = jobs;
      BOOST_TEST(enqueue(b, more).has_value());
      BOOST_TEST(counts(b) == before);
      BOOST_TEST(pending(b) == 0);
      more.push_back(kept_job(9, way >= 2 ? "c" : ""));
      BOOST_TEST(enqueue(b, more).has_value());
      BOOST_TEST(counts(b) == "1" + before.substr(1));
      BOOST_TEST(pending(b) == 1);
      complete(b, claim(b));
      // A letter that is purged, and a record whose time is over, keep it no more.
      BOOST_TEST(b(command::purge_job{"q", id(1)}).value());
      b.db.must("UPDATE weir.ended SET kept = 1");
      BOOST_TEST(enqueue(b, more).has_value());
      BOOST_TEST(counts(b) == std::to_string(more.size()) + " 0 0");
      for (auto i = more.size(); i != 0; --i) complete(b, claim(b));
      BOOST_TEST(counts(b) == "0 0 " + std::to_string(more.size()));
    }
  }
}

// The job has left the jobs' table by the time that the enqueue may add its own.
BOOST_AUTO_TEST_CASE(the_id_of_a_job_that_ends_meanwhile_is_taken) {
  for (bool const dies : {false, true}) {
    for (int way = 0; way != 4; ++way) {
      BOOST_TEST_CONTEXT("way " << way << ", dies: " << dies) {
        bed b;
        let_locks_take_long(b.db);
        auto const jobs = one_way(way, 1);
        BOOST_TEST_REQUIRE(enqueue(b, {jobs[0]}).has_value());
        auto const j = claim(b);
        connection own{the_server().conninfo(b.database)};
        own.must("BEGIN");
        postgres_transaction tx{own.get()};
        if (dies) {
          BOOST_TEST(tx.execute(command::bury_job{"q", j.id, j.fence, "why"}).has_value());
        } else {
          std::vector<finished_job> const ended{{j.id, j.fence, {}}};
          BOOST_TEST(tx.execute(command::complete_jobs{"q", ended}).has_value());
        }
        auto const again = start(b.store, command::enqueue_jobs{"q", jobs});
        until_somebody_waits(b.io, b.database);
        own.must("COMMIT");
        finish(b.io, *again);
        BOOST_TEST(!**again, (*again)->message());
        BOOST_TEST(counts(b) == std::to_string(jobs.size() - 1) + (dies ? " 1 0" : " 0 1"));
        BOOST_TEST(pending(b) == static_cast<std::int64_t>(jobs.size()) - 1);
      }
    }
  }
}

// It sees neither the job nor what it became.
BOOST_AUTO_TEST_CASE(a_transaction_that_sees_what_was_before_is_refused_the_id_of_what_has_ended) {
  for (bool const dies : {false, true}) {
    for (std::string const level : {"REPEATABLE READ", "SERIALIZABLE"}) {
      bed b;
      connection own{the_server().conninfo(b.database)};
      own.must("BEGIN ISOLATION LEVEL " + level + "; SELECT count(*) FROM weir.jobs");
      BOOST_TEST_REQUIRE(enqueue(b, {kept_job(1)}).has_value());
      if (dies) {
        bury(b, claim(b));
      } else {
        complete(b, claim(b));
      }
      auto const before = counts(b);
      postgres_transaction tx{own.get()};
      std::vector const other{kept_job(2)};
      BOOST_TEST(tx.execute(command::enqueue_jobs{"q", other}).has_value());
      std::vector const same{kept_job(1)};
      BOOST_TEST(!tx.execute(command::enqueue_jobs{"q", same}).has_value());
      own.must("ROLLBACK");
      BOOST_TEST(counts(b) == before);
      own.must("BEGIN ISOLATION LEVEL " + level);
      postgres_transaction later{own.get()};
      BOOST_TEST(later.execute(command::enqueue_jobs{"q", same}).has_value());
      own.must("COMMIT");
      BOOST_TEST(counts(b) == before);
    }
  }
}

BOOST_AUTO_TEST_CASE(serializable_transactions_that_enqueue_other_jobs_are_not_refused) {
  for (int way = 0; way != 4; ++way) {
    BOOST_TEST_CONTEXT("way " << way) {
      bed b;
      connection one{the_server().conninfo(b.database)};
      connection two{the_server().conninfo(b.database)};
      for (auto* const own : {&one, &two}) {
        own->must("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1");
      }
      auto jobs = one_way(way, 1);
      BOOST_TEST(
          postgres_transaction{one.get()}.execute(command::enqueue_jobs{"q", jobs}).has_value());
      jobs = one_way(way, 3);
      for (auto& j : jobs) {
        if (!j.unique_key.empty()) j.unique_key = j.unique_key == "a" ? "c" : "d";
      }
      BOOST_TEST(
          postgres_transaction{two.get()}.execute(command::enqueue_jobs{"q", jobs}).has_value());
      one.must("COMMIT");
      two.must("COMMIT");
    }
  }
}

// It tries whether its ids are taken by a unique index.
BOOST_AUTO_TEST_CASE(a_transaction_that_sees_what_was_before_writes_a_payload_once) {
  bed b;
  auto const payload =
      b.db.must("SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 16384)");
  connection own{the_server().conninfo(b.database)};
  std::vector jobs{kept_job(1), kept_job(2)};
  for (auto& j : jobs) j.payload = payload;
  for (std::string const level : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    for (std::size_t n = 1; n != 3; ++n) {
      own.must("BEGIN ISOLATION LEVEL " + level);
      auto const before = own.must("SELECT pg_current_wal_insert_lsn()");
      postgres_transaction tx{own.get()};
      std::vector const some(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(n));
      BOOST_TEST(tx.execute(command::enqueue_jobs{"q", some}).has_value());
      auto const written =
          own.number("SELECT pg_current_wal_insert_lsn() - '" + before + "'::pg_lsn");
      own.must("ROLLBACK");
      BOOST_TEST(written < static_cast<std::int64_t>(n * payload.size() * 3 / 2), level);
    }
  }
}

// A database may have PL/pgSQL take for an error what may be one.
BOOST_AUTO_TEST_CASE(extra_errors_of_the_language_are_none_of_these_functions) {
  bed b{quick(), "plpgsql.extra_errors = 'all'"};
  std::vector const jobs{kept_job(1), kept_job(2), kept_job(3, "key")};
  BOOST_TEST_REQUIRE(enqueue(b, jobs).has_value());
  bury(b, claim(b));
  complete(b, claim(b));
  BOOST_TEST((b(command::cancel_job{"q", id(3)}) == cancel_outcome::cancelled));
  for (auto const state : {job_state::pending, job_state::leased, job_state::completed,
                           job_state::dead, job_state::cancelled}) {
    auto const page = b(command::list_jobs{"q", state, 10, {}});
    BOOST_TEST_REQUIRE(page.has_value(), page.error().message());
    BOOST_TEST(page->jobs.size() == (is_terminal(state) ? 1U : 0U));
  }
  BOOST_TEST(b(command::list_dead_letters{"q", 10, {}})->jobs.size() == 1U);
  BOOST_TEST(b(command::find_job{"q", id(2)})->has_value());
  BOOST_TEST((b(command::replay_dead_letter{"q", id(1)})->outcome == replay_outcome::replayed));
  BOOST_TEST(b(command::purge_job{"q", id(2)}).value());
  BOOST_TEST(counts(b) == "1 0 1");
}

BOOST_AUTO_TEST_CASE(a_dead_letter_is_replayed_while_its_id_is_enqueued) {
  for (bool const replay_first : {false, true}) {
    bed b;
    let_locks_take_long(b.db);
    BOOST_TEST_REQUIRE(enqueue(b, {kept_job(1)}).has_value());
    bury(b, claim(b));
    std::vector const jobs{kept_job(1), kept_job(2)};
    command::enqueue_jobs const enqueues{"q", jobs};
    command::replay_dead_letter const replays{"q", id(1)};
    connection own{the_server().conninfo(b.database)};
    own.must("BEGIN");
    postgres_transaction tx{own.get()};
    std::shared_ptr<std::optional<error_code>> other;
    if (replay_first) {
      BOOST_TEST((tx.execute(replays).value().outcome == replay_outcome::replayed));
      other = start(b.store, enqueues);
    } else {
      BOOST_TEST(tx.execute(enqueues).has_value());
      other = start(b.store, replays);
    }
    until_somebody_waits(b.io, b.database);
    own.must("COMMIT");
    finish(b.io, *other);
    BOOST_TEST(!**other, (*other)->message());
    BOOST_TEST(counts(b) == "2 0 0");
    BOOST_TEST(pending(b) == 2);
  }
}

// A backup has each table in ACCESS SHARE, and one snapshot, from its first moment to its last.
BOOST_AUTO_TEST_CASE(F79_records_are_removed_beside_a_backup_and_nobody_waits) {
  auto o = quick();
  o.tidy_interval = 10ms;
  bed b{o};
  std::vector<new_job> jobs;
  for (std::uint8_t n = 1; n <= 20; ++n) jobs.push_back(kept_job(n, {}, n <= 10 ? 100ms : 1h));
  BOOST_TEST_REQUIRE(enqueue(b, jobs).has_value());
  connection backup{the_server().conninfo(b.database)};
  backup.must("BEGIN ISOLATION LEVEL REPEATABLE READ");
  backup.must(
      "DO $$ DECLARE t regclass; BEGIN FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' "
      "AND relnamespace = 'weir'::regnamespace LOOP "
      "EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', t); END LOOP; END $$");
  auto const seen = backup.must("SELECT count(*) FROM weir.jobs");
  for (int i = 0; i != 20; ++i) complete(b, claim(b), "done");
  // Others go on meanwhile, and wait for nobody: a command that did would be told so.
  int more = 0;
  BOOST_TEST(weir_test::happens([&] {
               auto const n = static_cast<std::uint8_t>(100 + more++ % 100);
               BOOST_TEST_REQUIRE(enqueue(b, {kept_job(n, {}, 1ms)}).has_value());
               if (b.db.number("SELECT count(*) FROM weir.jobs") == 1) complete(b, claim(b));
               return b.db.number("SELECT count(*) FROM weir.ended WHERE retention = 100000000") ==
                      0;
             }),
             "records stay");
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.ended WHERE retention = 3600000000000") == 10);
  BOOST_TEST(backup.must("SELECT count(*) FROM weir.jobs") == seen);
  for (std::uint8_t n = 1; n <= 20; ++n) {
    auto const found = b(command::find_job{"q", id(n)});
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST(found->has_value() == (n > 10));
  }
  backup.must("COMMIT");
}

// Removed rows stay in the index while somebody holds a snapshot.
BOOST_AUTO_TEST_CASE(F79_removing_what_is_over_does_not_go_through_what_was_removed_before) {
  bed b;
  b.db.must("ALTER TABLE weir.ended SET (autovacuum_enabled = off)");
  b.db.must("INSERT INTO weir.ended (queue, id, priority, strategy, policy, max_attempts, vesting, "
            "enqueued, deadline_from, deadline, retention, unique_key, kind, payload, state, kept) "
            "SELECT 'q', gen_random_uuid(), 0, 0, 0, 25, 0, 0, 0, 0, 1, '', 'kind', '', 1, i / 7 "
            "FROM generate_series(1, 30000) i");
  connection holds{the_server().conninfo(b.database)};
  holds.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weir.state");
  connection session{the_server().conninfo(b.database)};
  auto const pages = [&] {
    auto const said =
        session.must("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT weir.tidy(500, NULL)");
    std::int64_t out = 0;
    for (std::string const what : {"\"Shared Hit Blocks\": ", "\"Shared Read Blocks\": "}) {
      out += std::stoll(said.substr(said.find(what) + what.size()));
    }
    return out;
  };
  pages();
  auto const early = pages();
  for (int i = 0; i != 40; ++i) session.must("SELECT weir.tidy(500, NULL)");
  auto const late = pages();
  BOOST_TEST(late < 2 * early, early << " pages, then " << late);
  // All of it is removed, and what came late, or was locked, is met before long.
  connection locks{the_server().conninfo(b.database)};
  locks.must("BEGIN");
  locks.must("SELECT 1 FROM weir.ended ORDER BY kept LIMIT 3 FOR UPDATE");
  for (int i = 0; i != 30; ++i) session.must("SELECT weir.tidy(500, NULL)");
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.ended") == 3);
  locks.must("ROLLBACK");
  for (int i = 0; i != 70; ++i) session.must("SELECT weir.tidy(500, NULL)");
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.ended") == 0);
}

// Version 4, filled: what its tables had is all there afterwards, and who may use the jobs' table
// may use those that took something of it.
BOOST_AUTO_TEST_CASE(what_version_4_had_in_the_jobs_table_is_moved) {
  bed b;
  std::vector<new_job> jobs;
  for (std::uint8_t n = 1; n <= 5; ++n) jobs.push_back(kept_job(n));
  jobs[3].delay = 1h;
  jobs[4].delay = 1h;
  jobs[0].payload = "first";
  BOOST_TEST_REQUIRE(enqueue(b, jobs).has_value());
  auto const first = claim(b);
  complete(b, first, "result");
  bury(b, claim(b));
  auto const third = claim(b);
  BOOST_TEST_REQUIRE(b(command::cancel_job{"q", id(5)}).has_value());
  auto const waiting = pending(b);
  b.db.must("CREATE ROLE reads NOLOGIN; CREATE ROLE owns NOLOGIN");
  // As it was. Its functions are replaced whatever they did.
  b.db.must(as_version_6);
  b.db.must(R"(
CREATE TABLE weir.was AS SELECT j.*, NULL::bigint AS death, NULL::bigint AS kept FROM weir.jobs j
  UNION ALL SELECT d.*, NULL FROM weir.dead_letters d
  UNION ALL SELECT (e).queue, (e).id, (e).priority, (e).state, (e).strategy, (e).policy, (e).attempts,
    (e).max_attempts, (e).snoozes, (e).vesting, (e).fence, (e).sequence, (e).unclaimed, (e).enqueued,
    (e).deadline_from, (e).deadline, (e).retention, (e).holder, (e).unique_key, (e).kind, (e).payload,
    (e).memo, (e).reason, (e).result, (e).headers, (e).progress, (e).checkpoint, NULL, (e).kept
  FROM weir.ended e;
DROP TABLE weir.jobs CASCADE;
DROP TABLE weir.dead_letters, weir.ended;
CREATE TABLE weir.jobs (
  queue bytea NOT NULL, id uuid NOT NULL, priority smallint NOT NULL,
  state smallint NOT NULL DEFAULT 0, strategy smallint NOT NULL, policy smallint NOT NULL,
  attempts integer NOT NULL DEFAULT 0, max_attempts integer NOT NULL,
  snoozes integer NOT NULL DEFAULT 0, vesting bigint, death bigint, kept bigint,
  fence bigint NOT NULL DEFAULT 0, sequence bigint NOT NULL DEFAULT 0,
  unclaimed bigint NOT NULL DEFAULT 0, enqueued bigint NOT NULL, deadline_from bigint NOT NULL,
  deadline bigint NOT NULL, retention bigint NOT NULL, holder bytea, unique_key bytea NOT NULL,
  kind bytea NOT NULL, payload bytea NOT NULL, memo bytea NOT NULL DEFAULT '',
  reason bytea NOT NULL DEFAULT '', result bytea NOT NULL DEFAULT '',
  headers bytea NOT NULL DEFAULT '', progress bytea NOT NULL DEFAULT '',
  checkpoint bytea NOT NULL DEFAULT '', PRIMARY KEY (queue, id));
CREATE INDEX jobs_order ON weir.jobs ((queue || ''), priority, vesting, id)
  WHERE vesting IS NOT NULL;
CREATE INDEX jobs_claimed ON weir.jobs ((queue || ''), holder, sequence, vesting)
  WHERE holder IS NOT NULL;
CREATE INDEX jobs_dead ON weir.jobs (queue, death) WHERE death IS NOT NULL;
CREATE INDEX jobs_kept ON weir.jobs (kept) WHERE kept IS NOT NULL;
INSERT INTO weir.jobs (queue, id, priority, state, strategy, policy, attempts, max_attempts, snoozes,
    vesting, death, kept, fence, sequence, unclaimed, enqueued, deadline_from, deadline, retention,
    holder, unique_key, kind, payload, memo, reason, result, headers, progress, checkpoint)
  SELECT queue, id, priority, state, strategy, policy, attempts, max_attempts, snoozes,
    CASE WHEN state = 0 THEN vesting END, death, kept, fence, sequence, unclaimed, enqueued,
    deadline_from, deadline, retention, holder, unique_key, kind, payload, memo, reason, result,
    headers, progress, checkpoint FROM weir.was;
DROP TABLE weir.was;
UPDATE weir.state SET version = 4;
ALTER TABLE weir.jobs OWNER TO owns;
GRANT SELECT ON weir.jobs TO reads;
CREATE FUNCTION weir.end_job(j weir.jobs, how_ smallint, now_ bigint, result_ bytea, reason_ bytea)
  RETURNS void LANGUAGE sql AS '';
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA weir TO reads;
DROP FUNCTION weir.give_way;
)");
  boost::asio::io_context io;
  postgres_store const store{io.get_executor(), the_server().conninfo(b.database), quick()};
  BOOST_TEST((ask(io, store, command::find_job{"q", id(1)}).error() == errc::schema_outdated));
  BOOST_TEST(postgres_migration_sql({}, 5, 4).empty());
  BOOST_TEST(postgres_migration_sql({}, 3).empty());
  // By two at once, of which the second waits for the first.
  postgres_store const another{io.get_executor(), the_server().conninfo(b.database), quick()};
  connection locks{the_server().conninfo(b.database)};
  locks.must("BEGIN; LOCK TABLE weir.state IN SHARE MODE");
  int migrated = 0;
  for (auto const* const s : {&store, &another}) {
    s->async_migrate([&](error_code ec) {
      BOOST_TEST(!ec, ec.message());
      ++migrated;
    });
  }
  BOOST_TEST_REQUIRE(weir_test::happens(io, [&] {
    return b.db.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = "
                       "'weir.state'::regclass") == 2;
  }));
  locks.must("ROLLBACK");
  BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return migrated == 2; }));
  BOOST_TEST(b.db.number("SELECT version FROM weir.state") == postgres_schema_version);
  BOOST_TEST(b.db.number("SELECT count(*) FROM pg_class WHERE relowner = 'owns'::regrole AND "
                         "relname IN ('jobs', 'dead_letters', 'ended')") == 3);
  BOOST_TEST(counts(b) == "2 1 2");
  BOOST_TEST(b.db.must("SELECT has_table_privilege('reads', 'weir.ended', 'SELECT') AND "
                       "has_table_privilege('reads', 'weir.dead_letters', 'SELECT') AND NOT "
                       "has_table_privilege('reads', 'weir.ended', 'INSERT')") == "t");
  BOOST_TEST(b.db.number("SELECT count(*) FROM pg_proc p WHERE pronamespace = 'weir'::regnamespace "
                         "AND proname IN ('give_way', 'lock_keys', 'possessor', 'take_key') AND "
                         "proacl = (SELECT proacl FROM pg_proc WHERE oid = "
                         "'weir.end_job'::regproc)") == 4);
  // It is the schema that is made anew, but for the places of columns.
  auto const made = [](connection& db) {
    return db.must(
        "SELECT (SELECT string_agg(indexdef, E'\\n' ORDER BY indexdef) FROM pg_indexes WHERE "
        "schemaname = 'weir') || (SELECT string_agg(concat_ws(' ', table_name, column_name, "
        "data_type, is_nullable, column_default), E'\\n' ORDER BY table_name, column_name) FROM "
        "information_schema.columns WHERE table_schema = 'weir') || (SELECT string_agg("
        "pg_get_functiondef(oid), E'\\n' ORDER BY proname) FROM pg_proc WHERE pronamespace = "
        "'weir'::regnamespace)");
  };
  bed fresh;
  BOOST_TEST((made(b.db) == made(fresh.db)));

  BOOST_TEST(pending(b) == waiting);
  auto const done = b(command::find_job{"q", id(1)});
  BOOST_TEST_REQUIRE((done.has_value() && done->has_value()));
  BOOST_TEST((*done)->payload == "first");
  BOOST_TEST((*done)->result == "result");
  BOOST_TEST(((*done)->state == job_state::completed));
  complete(b, first);  // again, as somebody who has lost the answer
  complete(b, third);
  BOOST_TEST(enqueue(b, jobs).has_value());
  BOOST_TEST(counts(b) == "1 1 3");
  auto const letters = b(command::list_dead_letters{"q", 10, {}});
  BOOST_TEST_REQUIRE(letters.has_value());
  BOOST_TEST_REQUIRE(letters->jobs.size() == 1U);
  BOOST_TEST(letters->jobs[0].reason == "why");
  auto const cancelled = b(command::list_jobs{"q", job_state::cancelled, 10, {}});
  BOOST_TEST_REQUIRE(cancelled.has_value());
  BOOST_TEST(cancelled->jobs.size() == 1U);
  BOOST_TEST((b(command::replay_dead_letter{"q", id(2)})->outcome == replay_outcome::replayed));
  BOOST_TEST((claim(b).id == id(2)));
  BOOST_TEST(b(command::purge_job{"q", id(5)}).value());
  BOOST_TEST(counts(b) == "2 0 2");
}

BOOST_AUTO_TEST_SUITE_END()
