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
        BOOST_TEST_REQUIRE(weir_test::happens(
            [&] { return there.must("SELECT pg_is_in_recovery()") == "f"; }));
        promoted = true;
      });
}

BOOST_AUTO_TEST_SUITE_END()
