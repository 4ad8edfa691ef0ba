// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Servers that cannot go on: a full disk, a standby in the primary's place, locks that wait for
// each other. Every error has a name, and what was acknowledged stays (F46, F47).

#include "patience.hpp"
#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

/// A payload that does not get smaller when it is compressed.
std::string noise(std::uint32_t seed) {
  std::mt19937 random{seed};
  std::string out;
  for (int i = 0; i < 6000; ++i) out += static_cast<char>('0' + random() % 75);
  return out;
}

/// @param fill      takes all room from now on; of the files whose names contain this, at least
/// @param make_room undoes that
void lives_through_a_full_disk(server& there, std::function<void(std::string const&)> const& fill,
                               std::function<void()> const& make_room) {
  bed b{quick(), "", there};
  std::uint8_t next = 1;
  std::vector<job_id> acknowledged;
  auto const enqueue = [&] {
    auto const payload = noise(next);
    auto j = job_of(next++);
    j.payload = payload;
    std::vector<new_job> const jobs{j};
    auto const done = b(command::enqueue_jobs{"q", jobs});
    if (done.has_value()) acknowledged.push_back(j.id);
    return done.has_value() ? error_code{} : done.error();
  };
  BOOST_TEST(!enqueue());
  BOOST_TEST(b(take_lock("before"))->granted);
  fill("/base/");
  error_code said;
  for (int i = 0; i < 60 && !said; ++i) said = enqueue();  // as long as there is room in its files
  BOOST_TEST((said == errc::disk_full), said.message());
  BOOST_TEST(b(command::find_job{"q", id(1)})->has_value());
  BOOST_TEST(!b(command::find_job{"q", id(static_cast<std::uint8_t>(next - 1))})->has_value());
  BOOST_TEST(b(command::read_queue_stats{"q"})->enqueued == acknowledged.size());
  make_room();
  BOOST_TEST(!enqueue());

  // Where the log has no room the server gives up, comes back, and may give up for good.
  fill("/pg_wal/");
  error_code given_up;
  for (int i = 0; i < 100 && !given_up; ++i) {
    PQclear(PQexec(b.db.get(), "SELECT pg_switch_wal()"));
    auto const key = "k" + std::to_string(i);
    auto const answer = b(take_lock(key));
    if (answer.has_error()) given_up = answer.error();
  }
  BOOST_TEST(lost(given_up), given_up.message());
  make_room();
  BOOST_TEST(weir_test::happens([&] {
    there.revive();
    return b(take_lock("after")).has_value();
  }));
  BOOST_TEST(!enqueue());
  for (auto const& each : acknowledged) {
    BOOST_TEST(b(command::find_job{"q", each})->has_value());
  }
  BOOST_TEST(b(command::inspect_lock{"before"})->held);
  auto const stats = b(command::read_queue_stats{"q"});
  BOOST_TEST(stats->enqueued == stats->pending);
  BOOST_TEST(stats->enqueued >= acknowledged.size());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_failures)

// By a library that is loaded into the server, which works wherever tests are run.
BOOST_AUTO_TEST_CASE(a_full_disk_is_said_and_nothing_acknowledged_is_lost) {
  server there{{.preload = WEIR_FULL_DISK}};
  auto const full = there.home() / "full";
  lives_through_a_full_disk(
      there, [&](std::string const& what) { std::ofstream{full} << what; },
      [&] { std::filesystem::remove(full); });
}

// The same on a disk that is full, where one can be mounted: by root with the privilege to, or by
// who may have a namespace of their own.
BOOST_AUTO_TEST_CASE(a_small_disk_is_full_and_nothing_acknowledged_is_lost) {
  std::optional<server> there;
  try {
    there.emplace(
        server::kind{.megabytes = 160, .settings = {"checkpoint_timeout=1h", "min_wal_size=32MB"}});
  } catch (server::not_permitted const& e) {
    std::cerr << e.what() << ": the disk that is full is that of the library alone\n";
    return;
  }
  auto const ballast = there->home() / "data" / "ballast";
  lives_through_a_full_disk(
      *there,
      [&](std::string const&) {
        // From here on there is log for a while, if no more than that.
        connection{there->conninfo()}.must("SELECT pg_switch_wal(); CHECKPOINT");
        std::ofstream out{ballast, std::ios::binary};
        for (std::string const page(4096, 'x'); out << page << std::flush;) {
        }
      },
      [&] { std::filesystem::remove(ballast); });
}

// F47: what the standby had not got is gone, but no fence is handed out twice.
BOOST_AUTO_TEST_CASE(a_standby_that_takes_over_goes_on_with_greater_fences) {
  server primary{server::kind{}};
  bed b{quick(), "", primary};
  server const standby{{.primary = &primary}};
  auto const hosts = "host=127.0.0.1,127.0.0.1 port=" + std::to_string(primary.port()) + "," +
                     std::to_string(standby.port()) + " user=postgres dbname=" + b.database;
  postgres_store const either{b.io.get_executor(), hosts + " target_session_attrs=read-write",
                              quick()};
  BOOST_TEST(ask(b.io, either, take_lock("kept"))->granted);
  std::vector<new_job> const jobs{job_of(1, "key"), job_of(2)};
  BOOST_TEST(ask(b.io, either, command::enqueue_jobs{"q", jobs}).has_value());
  connection there{standby.conninfo(b.database)};
  BOOST_TEST(
      weir_test::happens([&] { return there.number("SELECT count(*) FROM weir.jobs") == 2; }));

  postgres_store const reads{b.io.get_executor(), standby.conninfo(b.database), quick()};
  BOOST_TEST((ask(b.io, reads, take_lock("another")).error() == errc::store_read_only));
  BOOST_TEST(ask(b.io, reads, command::find_job{"q", id(1)})->has_value());
  auto const wait = start(reads, command::await_jobs{});
  finish(b.io, *wait);
  BOOST_TEST(!**wait, (*wait)->message());  // a queue is due: to see that it need not be written to

  // From here on the standby gets nothing any more.
  there.must("ALTER SYSTEM SET primary_conninfo = ''");
  there.must("SELECT pg_reload_conf()");
  BOOST_TEST(weir_test::happens(
      [&] { return there.number("SELECT count(*) FROM pg_stat_wal_receiver") == 0; }));
  auto const lease = ask(b.io, either, command::dequeue_jobs{"q", "h", 1, 1, 1h});
  BOOST_TEST_REQUIRE(lease->jobs.size() == 1U);
  auto const held = ask(b.io, either, take_lock("lost"));
  BOOST_TEST(held->granted);
  auto const queue_lease = ask(b.io, either, command::obtain_queue_lease{"q", "h", 1h});
  BOOST_TEST(queue_lease->granted);

  primary.kill(SIGKILL);
  there.must("SELECT pg_promote()");
  BOOST_TEST(weir_test::happens([&] { return there.must("SELECT pg_is_in_recovery()") == "f"; }));
  BOOST_TEST(weir_test::happens([&] {
    auto const answer = ask(b.io, either, command::inspect_lock{"kept"});
    if (answer.has_error()) BOOST_TEST(lost(answer.error()), answer.error().message());
    return answer.has_value() && answer->held;
  }));
  auto const again = ask(b.io, either, take_lock("lost", "other"));
  BOOST_TEST_REQUIRE(again->granted);
  BOOST_TEST(again->fence > held->fence);
  auto const taken = ask(b.io, either, command::dequeue_jobs{"q", "other", 1, 10, 1h});
  BOOST_TEST_REQUIRE(taken->jobs.size() == 2U);
  for (auto const& j : taken->jobs) BOOST_TEST(j.fence > lease->jobs[0].fence);
  BOOST_TEST(ask(b.io, either, command::obtain_queue_lease{"q", "other", 1h})->fence >
             queue_lease->fence);
  std::vector<finished_job> const done{{lease->jobs[0].id, lease->jobs[0].fence, {}}};
  BOOST_TEST((ask(b.io, either, command::complete_jobs{"q", done})->front() ==
              complete_outcome::lease_lost));
}

// A command of weir's that an application locks out for good is the one that gives way: it closes
// the circle, so the server finds it then, however long that has taken.
BOOST_AUTO_TEST_CASE(a_deadlock_with_an_application_is_undone_and_said) {
  bed b{quick(), "deadlock_timeout = '300ms'"};
  let_locks_take_long(b.db);
  connection own{the_server().conninfo(b.database)};
  connection first{the_server().conninfo(b.database)};
  first.must("BEGIN; LOCK TABLE weir.keys");
  own.must("SET deadlock_timeout = '1h'; BEGIN; LOCK TABLE weir.counters");
  std::vector<new_job> const jobs{job_of(1, "key")};
  auto const ended = start(b.store, command::enqueue_jobs{"q", jobs});
  // In line it does not wait for long. Where it does, it has the key's lock.
  BOOST_TEST_REQUIRE(weir_test::happens(b.io, [&] {
    return b.db.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                       "datname = current_database() AND "
                       "clock_timestamp() - query_start > interval '200 ms'") == 1;
  }));
  BOOST_TEST(PQsendQuery(own.get(), "SELECT weir.lock_keys(5, 'q', '{key}', NULL)") == 1);
  until_somebody_waits(b.io, b.database, 2);
  first.must("COMMIT");  // so the enqueue goes on, until it waits for the counters
  finish(b.io, *ended);
  BOOST_TEST((**ended == errc::store_unavailable), (*ended)->message());
  while (auto* const r = PQgetResult(own.get())) PQclear(r);
  own.must("COMMIT");
  BOOST_TEST(!b(command::find_job{"q", id(1)})->has_value());
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.keys") == 0);
  BOOST_TEST((b(command::enqueue_jobs{"q", jobs})->front().outcome == enqueue_outcome::enqueued));
}

// In its own transaction it is the application's to begin anew.
BOOST_AUTO_TEST_CASE(a_serialization_failure_is_said_and_leaves_nothing) {
  for (std::string const level : {"REPEATABLE READ", "SERIALIZABLE"}) {
    bed b;
    BOOST_TEST(b(take_lock("k"))->granted);
    connection own{the_server().conninfo(b.database)};
    own.must("BEGIN ISOLATION LEVEL " + level);
    BOOST_TEST(own.number("SELECT count(*) FROM weir.locks") == 1);  // from here on it sees this
    BOOST_TEST(b(command::release_lock{"k", "h"})->freed);
    BOOST_TEST(b(take_lock("k", "other"))->granted);
    postgres_transaction tx{own.get()};
    std::vector<new_job> const jobs{job_of(1, "key")};
    BOOST_TEST(tx.execute(command::enqueue_jobs{"q", jobs}).has_value());
    auto const refused = tx.execute(take_lock("k"));
    BOOST_TEST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error() == errc::store_unavailable), refused.error().message());
    own.must("ROLLBACK");
    BOOST_TEST(b(command::inspect_lock{"k"})->holder == "other");
    BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 0);
    own.must("BEGIN ISOLATION LEVEL " + level);
    BOOST_TEST(!tx.execute(take_lock("k"))->granted);
    BOOST_TEST(tx.execute(command::enqueue_jobs{"q", jobs}).has_value());
    own.must("COMMIT");
    BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
