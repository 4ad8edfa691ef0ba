// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F57: whatever removes or moves a queue's pointer, every job that waits is found by one. F77: and
// applications' enqueues, each of which leaves one, do not heap them up.

#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

/// How many jobs wait that no pointer leads to in time: now, when they vest, or when a hold ends.
std::int64_t lost_jobs(connection& db) {
  return db.number(
      "SELECT count(*) FROM weir.jobs j LEFT JOIN weir.queues q USING (queue) WHERE "
      "NOT EXISTS (SELECT 1 FROM weir.pointers p WHERE p.queue = j.queue AND "
      "p.pointer <= greatest(weir.clock(), j.vesting, CASE WHEN q.paused THEN 9223372036854775807 "
      "ELSE q.snoozed END))");
}

/// The statement that a store, or an application's transaction, enqueues one job with.
std::string enqueue(int number, std::chrono::seconds delay, bool own) {
  return "SELECT count(*) FROM weir.enqueue_jobs('q', 0, true, ARRAY[md5('" +
         std::to_string(number) +
         "')::uuid], ARRAY['k'::bytea], ARRAY['p'::bytea], ARRAY[''::bytea], ARRAY[0], ARRAY[1], "
         "ARRAY[0], ARRAY[0], ARRAY[" +
         std::to_string(delay.count()) +
         "000000000], ARRAY[0::bigint], ARRAY[0::bigint], ARRAY[0::bigint], "
         "ARRAY[''::bytea], " +
         (own ? "true" : "false") + ", NULL)";
}

/// Pointers that nothing is behind any more.
std::string stale(int n = 1) {
  return "INSERT INTO weir.pointers SELECT 0, i, 'q' FROM generate_series(1, " + std::to_string(n) +
         ") i";
}

/// So many enqueues of applications' transactions, one after the other.
void outbox(bed& b, std::string const& queue, int n) {
  auto text = enqueue(0, 0s, false);
  text.replace(text.find("'q'"), 3, "'" + queue + "'");
  text.replace(text.find("md5('0')::uuid"), 14, "gen_random_uuid()");
  b.db.must("DO $do$ BEGIN FOR n IN 1.." + std::to_string(n) + " LOOP PERFORM (" + text +
            "); COMMIT; END LOOP; END $do$");
}
std::int64_t pointers(bed& b) { return b.db.number("SELECT count(*) FROM weir.pointers"); }

/// A command that is about to remove the pointer is held where it has decided to, by a lock of the
/// table, until an enqueue is committed.
template <class C>
void misses_nothing(C const& c, std::optional<std::chrono::seconds> there,
                    std::chrono::seconds delay, bool own) {
  bed b;
  let_locks_take_long(b.db);
  connection other{the_server().conninfo(b.database)};
  if (there) b.db.must(enqueue(1, *there, true));
  b.db.must("DELETE FROM weir.pointers");
  b.db.must(stale());
  other.must("BEGIN; LOCK TABLE weir.pointers IN SHARE MODE");
  auto const done = start(b.store, c);
  until_somebody_waits(b.io, b.database);
  other.must(enqueue(2, delay, own));
  other.must("COMMIT");
  finish(b.io, *done);
  BOOST_TEST(!**done, (*done)->message());
  BOOST_TEST(lost_jobs(b.db) == 0);
  if (delay == 0s) BOOST_TEST(b(command::scan_visible_queues{})->queues.size() == 1U);
}

template <class C>
void misses_nothing(C const& c) {
  for (bool const own : {false, true}) {
    misses_nothing(c, std::nullopt, 0s, own);
    misses_nothing(c, std::nullopt, 1h, own);
  }
}

/// Enqueues of a store and all that removes pointers, at the same time, on connections of their
/// own; many times, and after each all that waits is found.
void race(server const& on) {
  constexpr int rounds = 250;
  bed b{quick(), "", on};
  auto const conninfo = on.conninfo(b.database);
  postgres_store const enqueuer{b.io.get_executor(), conninfo, quick()};
  postgres_store const mover{b.io.get_executor(), conninfo, quick()};
  postgres_store const collector{b.io.get_executor(), conninfo, quick()};
  postgres_store const holder{b.io.get_executor(), conninfo, quick()};
  std::vector<std::string> const queues{"a", "b", "c", "d"};
  std::vector<new_job> const jobs{job_of(1)};
  for (int i = 0; i < rounds; ++i) {
    std::vector<std::shared_ptr<std::optional<error_code>>> all;
    for (auto const& q : queues) {
      if (i % 3 != 0) {
        all.push_back(start(holder, command::pause_queue{q}));
        all.push_back(start(collector, command::snooze_queue{q, i % 2 == 0 ? 1h : 0h}));
        all.push_back(start(holder, command::scan_visible_queues{0, 10}));
        all.push_back(start(collector, command::resume_queue{q}));
      }
      all.push_back(start(mover, command::update_queue_pointer{q}));
      all.push_back(start(enqueuer, command::enqueue_jobs{q, jobs}));
      // Numbered ones go together.
      auto const number = i % 2 == 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(i);
      all.push_back(start(b.store, command::dequeue_jobs{q, "h", number, 1, 1h}));
      all.push_back(start(collector, command::gc_stale_pointers{0, 10, duration::zero()}));
    }
    for (auto const& each : all) {
      finish(b.io, *each);
      BOOST_TEST_REQUIRE(!**each, (*each)->message());
    }
    BOOST_TEST_REQUIRE(lost_jobs(b.db) == 0, "round " << i);
    b.db.must("DELETE FROM weir.jobs; DELETE FROM weir.queues");  // and the pointers stay
  }
}

/// How many pages a scan reads.
std::int64_t pages_of_a_scan(connection& db) {
  auto const said = db.must(
      "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM weir.scan_visible_queues(0, 10, 5, "
      "NULL)");
  std::int64_t out = 0;
  for (std::string const what : {"\"Shared Hit Blocks\": ", "\"Shared Read Blocks\": "}) {
    out += std::stoll(said.substr(said.find(what) + what.size()));
  }
  return out;
}

/// Holds a queue that has a job, and ends that while a step is under way that enqueues another one.
template <class Hold, class End>
void a_hold_ends(Hold const& hold, End const& end) {
  for (bool const own : {true, false}) {
    bed b;
    connection other{the_server().conninfo(b.database)};
    b.db.must(enqueue(1, 1h, true));
    BOOST_TEST(b(hold).has_value());
    BOOST_TEST(b(command::scan_visible_queues{})->queues.empty());
    other.must("BEGIN; " + enqueue(2, 0s, true));
    BOOST_TEST(lost_jobs(other) == 0);
    if (own) {
      BOOST_TEST(b(end).has_value());
    } else {
      connection application{the_server().conninfo(b.database)};
      application.must("BEGIN ISOLATION LEVEL REPEATABLE READ");
      BOOST_TEST(postgres_transaction{application.get()}.execute(end).has_value());
      application.must("COMMIT");
    }
    other.must("COMMIT");
    BOOST_TEST(lost_jobs(b.db) == 0);
    BOOST_TEST(b(command::scan_visible_queues{})->queues.size() == 1U);
    BOOST_TEST(b(command::dequeue_jobs{"q", "h", 0, 10, 1h})->jobs.size() == 1U);
    BOOST_TEST(lost_jobs(b.db) == 0);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_pointers)

BOOST_AUTO_TEST_CASE(F57_gc_deletes_no_pointer_of_a_job_that_it_did_not_see) {
  misses_nothing(command::gc_stale_pointers{0, 10, duration::zero()});
}

BOOST_AUTO_TEST_CASE(F57_an_update_deletes_no_pointer_of_a_job_that_it_did_not_see) {
  command::update_queue_pointer const update{"q"};
  misses_nothing(update);
  // Of two jobs the update has seen only the first one, or the second one.
  misses_nothing(update, 1h, 2h, true);
  misses_nothing(update, 2h, 1h, false);
}

BOOST_AUTO_TEST_CASE(F57_a_dequeue_deletes_no_pointer_of_a_job_that_it_did_not_see) {
  command::dequeue_jobs const dequeue{"q", "h", 0, 1, 1min};
  misses_nothing(dequeue);
  misses_nothing(dequeue, 1h, 2h, true);
}

BOOST_AUTO_TEST_CASE(F57_dequeues_of_many_queues_delete_no_pointer_of_a_job_that_they_did_not_see) {
  for (bool const own : {false, true}) {
    bed b;
    let_locks_take_long(b.db);
    connection other{the_server().conninfo(b.database)};
    b.db.must(stale());
    other.must("BEGIN; LOCK TABLE weir.pointers IN SHARE MODE");
    auto const done = start(b.store, command::dequeue_jobs{"q", "h", 1, 1, 1min});
    auto const beside = start(b.store, command::dequeue_jobs{"other", "h", 1, 1, 1min});
    until_somebody_waits(b.io, b.database);
    other.must(enqueue(2, 1h, own));
    other.must("COMMIT");
    finish(b.io, *done);
    finish(b.io, *beside);
    BOOST_TEST(!**done, (*done)->message());
    BOOST_TEST(lost_jobs(b.db) == 0);
    BOOST_TEST(b.db.number("SELECT count(*) FROM weir.dequeues") == 2);
  }
}

// The one that would be left may be removed by others, and an enqueue may rely on another.
BOOST_AUTO_TEST_CASE(F57_a_scan_removes_no_pointer_of_a_queue_that_others_have) {
  bed b;
  b.db.must(stale(100));
  connection other{the_server().conninfo(b.database)};
  for (std::string const shared : {"", "_shared"}) {
    other.must("BEGIN; SELECT pg_advisory_xact_lock" + shared + "(weir.queue_lock('q'))");
    BOOST_TEST(b(command::scan_visible_queues{})->queues.size() == 1U);
    BOOST_TEST(pointers(b) == 100);
    other.must("COMMIT");
  }
  BOOST_TEST(b(command::scan_visible_queues{})->queues.size() == 1U);
  BOOST_TEST(pointers(b) == 1);
}

BOOST_AUTO_TEST_CASE(F77_of_an_outbox_each_queue_leaves_one_pointer) {
  bed b;
  outbox(b, "q", 2'500);
  outbox(b, "r", 100);
  BOOST_TEST(pointers(b) == 2'600);
  // It does not go through all of them before it has removed them, and says that there is more.
  auto const first = b(command::scan_visible_queues{0, 10});
  BOOST_TEST_REQUIRE(first.has_value());
  BOOST_TEST(first->queues.size() == 1U);
  BOOST_TEST_REQUIRE(first->next_in.has_value());
  BOOST_TEST((*first->next_in <= 0s));
  BOOST_TEST(pointers(b) == 101);
  BOOST_TEST(b(command::scan_visible_queues{0, 10})->queues.size() == 2U);
  BOOST_TEST(pointers(b) == 2);
  BOOST_TEST(lost_jobs(b.db) == 0);
  for (int i = 0; i != 26; ++i) {
    BOOST_TEST_REQUIRE(b(command::dequeue_jobs{"q", "h", 0, 100, 1h}).has_value());
    BOOST_TEST_REQUIRE(b(command::dequeue_jobs{"r", "h", 0, 100, 1h}).has_value());
  }
  BOOST_TEST(b(command::scan_visible_queues{0, 10})->queues.empty());
}

// So does one that nothing can be claimed of.
BOOST_AUTO_TEST_CASE(F77_of_an_outbox_a_queue_that_is_held_leaves_one_pointer) {
  bed b;
  outbox(b, "paused", 200);
  outbox(b, "snoozed", 200);
  BOOST_TEST(b(command::pause_queue{"paused"}).has_value());
  BOOST_TEST(b(command::snooze_queue{"snoozed", 1h}).has_value());
  BOOST_TEST(b(command::scan_visible_queues{0, 10})->queues.empty());
  BOOST_TEST(pointers(b) == 2);
  outbox(b, "snoozed", 2'500);
  BOOST_TEST(b(command::scan_visible_queues{0, 10})->queues.empty());
  BOOST_TEST(pointers(b) == 2);
  BOOST_TEST(b(command::resume_queue{"paused"}).has_value());
  BOOST_TEST(b(command::resume_queue{"snoozed"}).has_value());
  BOOST_TEST(b(command::scan_visible_queues{0, 10})->queues.size() == 2U);
}

// R6: scans do not go through what is held, and find it when it is held no longer.
BOOST_AUTO_TEST_CASE(R6_queues_that_are_held_cost_a_scan_nothing) {
  constexpr int many = 300;
  bed b;
  auto const all = [&](auto const& c) {
    for (int i = 1; i <= many; ++i) {
      auto each = c;
      auto const queue = "held" + std::to_string(i);
      each.queue = queue;
      BOOST_TEST_REQUIRE(b(each).has_value());
    }
  };
  auto const settled = [&] {
    for (int i = 0; i != 10; ++i) BOOST_TEST_REQUIRE(b(command::scan_visible_queues{}).has_value());
    b.db.must("VACUUM weir.pointers, weir.queues");
    pages_of_a_scan(b.db);
    return pages_of_a_scan(b.db);
  };
  std::vector<new_job> const one{job_of(1)};
  BOOST_TEST(b(command::enqueue_jobs{"due", one}).has_value());
  auto const before = settled();
  all(command::enqueue_jobs{"", one});

  all(command::pause_queue{});
  auto const paused = settled();
  BOOST_TEST(paused <= before + 50, paused << " pages instead of " << before);
  // Jobs that come meanwhile rely on the pointer that there is, and one that is left over is moved.
  std::vector<new_job> const another{job_of(2)};
  all(command::enqueue_jobs{"", another});
  BOOST_TEST(pointers(b) == many + 1);
  outbox(b, "held1", 3);
  all(command::update_queue_pointer{});
  BOOST_TEST(settled() <= before + 50);
  BOOST_TEST(b(command::scan_visible_queues{0, 10})->queues.size() == 1U);
  BOOST_TEST(b(command::gc_stale_pointers{0, 10, duration::zero()}) == 0U);

  all(command::snooze_queue{"", 1h});
  all(command::resume_queue{});
  BOOST_TEST(b(command::scan_visible_queues{0, 1000})->queues.size() == many + 1U);
  all(command::snooze_queue{"", 1h});
  auto const snoozed = settled();
  BOOST_TEST(snoozed <= before + 50, snoozed << " pages instead of " << before);
  auto const found = b(command::scan_visible_queues{0, 10});
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->queues.size() == 1U);
  BOOST_TEST_REQUIRE(found->next_in.has_value());
  BOOST_TEST((*found->next_in > 50min && *found->next_in <= 1h));
  BOOST_TEST(lost_jobs(b.db) == 0);
  all(command::snooze_queue{"", 0s});
  BOOST_TEST(b(command::scan_visible_queues{0, 1000})->queues.size() == many + 1U);
}

BOOST_AUTO_TEST_CASE(F57_a_hold_that_ends_hides_no_job_that_is_about_to_come) {
  a_hold_ends(command::pause_queue{"q"}, command::resume_queue{"q"});
  a_hold_ends(command::snooze_queue{"q", 1h}, command::resume_queue{"q"});
  a_hold_ends(command::snooze_queue{"q", 1h}, command::snooze_queue{"q", 0s});
}

// A transaction that may stay open keeps nobody from a queue, and may not know its first pointer.
BOOST_AUTO_TEST_CASE(F77_a_scan_within_a_transaction_removes_nothing) {
  bed b;
  outbox(b, "q", 200);
  for (std::string const begun : {"BEGIN; SELECT pg_current_xact_id()",
                                  "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN READ ONLY"}) {
    b.db.must(begun);
    BOOST_TEST(b.db.number("SELECT count(*) FROM weir.scan_visible_queues(0, 10, 0, NULL)") == 2);
    b.db.must("COMMIT");
    BOOST_TEST(pointers(b) == 200);
  }
}

BOOST_AUTO_TEST_CASE(F77_the_counters_of_an_outbox_are_added_up_until_none_is_left) {
  bed b;
  b.db.must(
      "INSERT INTO weir.counters (queue, shard, enqueued, completed, cancelled, purged, dead) "
      "SELECT 'q', 0, 2, 1, 0, 0, 0 FROM generate_series(1, 2500)");
  int steps = 0;
  while (b.db.number("SELECT weir.tidy(100, NULL)") >= 100) ++steps;
  BOOST_TEST(steps == 2);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.counters") <= 32);
  auto const stats = b(command::read_queue_stats{"q"});
  BOOST_TEST_REQUIRE(stats.has_value());
  BOOST_TEST(stats->enqueued == 5'000U);
  BOOST_TEST(stats->completed == 2'500U);
}

// So does one that many queues have, a step at a time.
BOOST_AUTO_TEST_CASE(F77_counters_of_many_queues_are_added_up_step_by_step) {
  bed b;
  auto const rows = [&] { return b.db.number("SELECT count(*) FROM weir.counters"); };
  b.db.must(
      "INSERT INTO weir.counters (queue, shard, enqueued, completed, cancelled, purged, dead) "
      "SELECT int4send(i % 50), 0, 2, 1, 0, 0, 0 FROM generate_series(1, 5000) i");
  auto before = rows();
  std::int64_t done = 100;
  while (done >= 100) {
    done = b.db.number("SELECT weir.tidy(100, NULL)");
    auto const after = rows();
    BOOST_TEST(before - after <= 1000);
    BOOST_TEST_REQUIRE((done < 100 || after < before));
    before = after;
  }
  BOOST_TEST(before <= 1000 + 50 * 32);
  BOOST_TEST(b.db.number("SELECT sum(enqueued) FROM weir.counters") == 10'000);
}

BOOST_AUTO_TEST_CASE(F57_gc_with_an_old_snapshot_deletes_nothing) {
  for (std::string const level : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    bed b;
    connection own{the_server().conninfo(b.database)};
    b.db.must(stale());
    own.must("BEGIN ISOLATION LEVEL " + level + "; SELECT count(*) FROM weir.jobs");
    std::vector<new_job> const jobs{job_of(1)};
    BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
    postgres_transaction tx{own.get()};
    BOOST_TEST(tx.execute(command::gc_stale_pointers{0, 10, duration::zero()}).has_value());
    own.must("COMMIT");
    BOOST_TEST(lost_jobs(b.db) == 0, level);
  }
}

BOOST_AUTO_TEST_CASE(F57_enqueues_and_what_removes_pointers_at_once) { race(the_server()); }

BOOST_AUTO_TEST_CASE(F57_enqueues_and_what_removes_pointers_at_once_with_fsync) {
  server const there{{.settings = {"fsync=on"}}};
  race(there);
}

BOOST_AUTO_TEST_SUITE_END()
