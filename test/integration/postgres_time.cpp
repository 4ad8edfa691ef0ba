// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on servers whose clocks are wrong (F99, F102).

#include "clock_steps.hpp"
#include "postgres_bed.hpp"
#include "postgres_server.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;
using weir_test::an_hour;

std::string log_of(server const& s) {
  std::ifstream in{s.home() / "log"};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// A store on a server whose clock is moved.
struct moved {
  auto ask() {
    return [this](auto const& c) { return b(c); };
  }
  auto move() {
    return [this](std::int64_t seconds) { there.move_clock(seconds); };
  }

  server there{{.preload = WEIR_MOVED_CLOCK}};
  bed b{quick(), "", there};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_time)

BOOST_AUTO_TEST_CASE(F99_time_goes_on_when_the_clock_is_set_back) {
  moved m;
  weir_test::set_back(m.ask(), m.move());
  BOOST_TEST(log_of(m.there).find("time goes on from where it was") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(F99_nothing_waits_for_a_clock_that_was_ahead) {
  moved m;
  weir_test::ahead_for_a_moment(m.ask(), m.move());
}

BOOST_AUTO_TEST_CASE(F99_nothing_ends_when_a_clock_that_was_behind_is_right_again) {
  moved m;
  weir_test::behind_for_a_moment(m.ask(), m.move());
}

BOOST_AUTO_TEST_CASE(F99_nothing_ends_when_a_clock_that_was_behind_is_nearly_right_again) {
  moved m;
  weir_test::behind_for_a_moment(m.ask(), m.move(), 3);
}

// However far: a clock that has lost its date is some fifty years behind.
BOOST_AUTO_TEST_CASE(F99_time_goes_on_when_the_clock_is_many_years_off) {
  moved m;
  constexpr std::int64_t years = 24 * 365 * an_hour;
  auto const time = [&] { return m.b.db.number("SELECT weir.clock()") / 1'000'000'000; };
  BOOST_TEST(m.b(command::acquire_lock{"key", "me", 24h})->granted);
  auto const before = time();
  for (auto const off : {-11 * years, -50 * years, -9 * years, std::int64_t{0}}) {
    m.there.move_clock(off);
    BOOST_TEST(time() >= before);
    BOOST_TEST(time() < before + an_hour, off);
    BOOST_TEST(!m.b(command::acquire_lock{"key", "other", 1h})->granted);
  }
  // A date that it shows for a moment is not noted.
  m.there.move_clock(11 * years);
  BOOST_TEST(time() > before + 10 * years);
  m.there.move_clock(0);
  BOOST_TEST(time() >= before);
  BOOST_TEST(time() < before + an_hour);
  m.there.move_clock(-11 * years);
  BOOST_TEST(time() >= before);
  BOOST_TEST(time() < before + an_hour);
}

// F83: the day of a queue's last use is the store's, as the day is by which it is forgotten.
BOOST_AUTO_TEST_CASE(F99_a_queue_is_not_forgotten_because_a_clock_was_behind) {
  moved m;
  m.b.db.must("SELECT weir.clock()");
  m.there.move_clock(-5 * 24 * an_hour);
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(m.b(command::enqueue_jobs{"q", jobs}).has_value());
  BOOST_TEST((*m.b(command::cancel_job{"q", jobs[0].id}) == cancel_outcome::cancelled));
  m.there.move_clock(0);
  m.b.db.must("DELETE FROM weir.jobs; SELECT weir.tidy(100, NULL)");
  BOOST_TEST(m.b(command::read_queue_stats{"q"})->cancelled == 1U);
}

// What an application's transaction sees is older than the step, and time is not.
BOOST_AUTO_TEST_CASE(F99_time_goes_on_within_a_transaction_that_began_before) {
  moved m;
  connection app{m.there.conninfo(m.b.database)};
  app.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weir.jobs");
  auto const before = app.number("SELECT weir.clock()");
  m.there.move_clock(-an_hour);
  BOOST_TEST(m.b.db.number("SELECT weir.clock()") > before - 1'000'000'000);
  BOOST_TEST(app.number("SELECT weir.clock()") > before - 1'000'000'000);
  m.there.move_clock(-2 * an_hour);
  BOOST_TEST(app.number("SELECT weir.clock()") > before - 1'000'000'000);
  // Nobody waits for this transaction to end, nor does its end take anything back.
  BOOST_TEST(m.b.db.number("SELECT weir.clock()") > before - 1'000'000'000);
  app.must("ROLLBACK");
  BOOST_TEST(m.b.db.number("SELECT weir.clock()") > before - 1'000'000'000);
  // Who may not write is told a time that is no earlier, either.
  app.must("BEGIN READ ONLY");
  m.there.move_clock(-3 * an_hour);
  BOOST_TEST(app.number("SELECT weir.clock()") > before - 1'000'000'000);
  app.must("COMMIT");
}

// A stranger who may write, a restored schema without its data, or a session that stands still.
BOOST_AUTO_TEST_CASE(F97_a_noted_time_that_is_damaged_is_noted_anew) {
  moved m;
  auto const ask = m.ask();
  int n = 0;
  for (std::string const damage :
       {"setval('weir.seen', 4000000000000000000)", "setval('weir.ahead', 4000000000000000000)",
        "setval('weir.seen', 0)",
        "setval('weir.seen', 1, false), setval('weir.ahead', 1, false)"}) {
    m.b.db.must("SELECT " + damage);
    auto const name = "key" + std::to_string(++n);
    auto const lock = ask(command::acquire_lock{name, "me", 200ms});
    BOOST_TEST_REQUIRE(lock.has_value(), lock.error().message());
    BOOST_TEST(lock->granted);
    BOOST_TEST(
        weir_test::happens([&] { return ask(command::acquire_lock{name, "other", 1h})->granted; }));
    m.there.move_clock(-an_hour * n);
    BOOST_TEST(!ask(command::acquire_lock{name, "third", 1h})->granted);
  }
}

BOOST_AUTO_TEST_CASE(F94_who_stands_still_while_noting_the_time_stops_nobody) {
  moved m;
  m.b.db.must("SELECT setval('weir.seen', weir.clock() - 2000000000)");
  connection still{m.there.conninfo(m.b.database)};
  still.must("BEGIN; SELECT weir.guard('{1}')");
  auto const lock = m.b(command::acquire_lock{"key", "me", 1h});
  BOOST_TEST_REQUIRE(lock.has_value(), lock.error().message());
  BOOST_TEST(lock->granted);
  still.must("ROLLBACK");
}

BOOST_AUTO_TEST_CASE(F102_time_goes_on_at_a_standby_that_is_behind) {
  server const primary{{.preload = WEIR_MOVED_CLOCK}};
  bed b{quick(), "", primary};
  server const standby{{.primary = &primary, .preload = WEIR_MOVED_CLOCK}};
  standby.move_clock(-an_hour);
  connection there{standby.conninfo(b.database)};
  postgres_store const after{b.io.get_executor(), standby.conninfo(b.database), quick()};
  bool promoted = false;
  weir_test::set_back(
      [&](auto const& c) { return promoted ? ask(b.io, after, c) : b(c); },
      [&](std::int64_t) {
        if (promoted) return;
        auto const written = b.db.must("SELECT pg_current_wal_flush_lsn()");
        BOOST_TEST_REQUIRE(weir_test::happens([&] {
          return there.must("SELECT pg_last_wal_replay_lsn() >= '" + written + "'") == "t";
        }));
        there.must("SELECT pg_promote()");
        BOOST_TEST_REQUIRE(
            weir_test::happens([&] { return there.must("SELECT pg_is_in_recovery()") == "f"; }));
        promoted = true;
      });
}

BOOST_AUTO_TEST_SUITE_END()
