// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F57: whatever removes or moves a queue's pointer, every job that waits is found by one.

#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

/// How many jobs wait that no pointer leads to in time.
std::int64_t lost_jobs(connection& db) {
  return db.number(
      "SELECT count(*) FROM weir.jobs j WHERE j.vesting IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "
      "weir.pointers p WHERE p.queue = j.queue AND p.pointer <= j.vesting)");
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

/// A pointer that nothing is behind any more.
constexpr char stale[] = "INSERT INTO weir.pointers VALUES (0, 1, 'q')";

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
  b.db.must(stale);
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
  std::vector<std::string> const queues{"a", "b", "c", "d"};
  std::vector<new_job> const jobs{job_of(1)};
  for (int i = 0; i < rounds; ++i) {
    std::vector<std::shared_ptr<std::optional<error_code>>> all;
    for (auto const& q : queues) {
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
    b.db.must("DELETE FROM weir.jobs");  // and the pointers stay
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
    b.db.must(stale);
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

BOOST_AUTO_TEST_CASE(F57_gc_with_an_old_snapshot_deletes_nothing) {
  for (std::string const level : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    bed b;
    connection own{the_server().conninfo(b.database)};
    b.db.must(stale);
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
