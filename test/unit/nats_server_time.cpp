// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What is known of a NATS server's time, from when it was told and how long that took.

#include "weir/store/nats/server_time.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string_view>

namespace {

using namespace weir;
using namespace weir::detail;
using namespace std::chrono_literals;

time_point at(duration d) { return time_point{1'700'000'000s + d}; }
steady_time here(duration d) { return steady_time{d}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_server_times)

BOOST_AUTO_TEST_CASE(texts_are_times_or_nothing) {
  BOOST_TEST((nats_time("1970-01-01T00:00:00Z") == time_point{}));
  BOOST_TEST((nats_time("2026-11-21T20:41:51.5Z") == time_point{1'795'293'711s + 500ms}));
  BOOST_TEST(
      (nats_time("2026-11-21T20:41:51.123456789Z") == time_point{1'795'293'711s + 123'456'789ns}));
  for (std::string_view const bad :
       {"", "2026-11-21", "2026-11-21T20:41:51", "2026-11-21T20:41:51.Z", "2026-02-30T00:00:00Z",
        "2026-11-21T24:00:00Z", "2026-11-21T20:41:51.1234567891Z", "2026-11-21T20:41:51+01:00",
        "2026-11-21T20:41:51Zz", "0001-01-01T00:00:00Z", "2026-1-21T20:41:51Z",
        "-026-11-21T20:41:51Z"}) {
    BOOST_TEST(!nats_time(bad).has_value(), bad);
  }
}

BOOST_AUTO_TEST_CASE(F4_the_time_lies_between_its_bounds_whatever_a_reply_took) {
  nats_server_time t;
  BOOST_TEST(!t.known());
  t.learn(at(100ms), here(0ms), here(30ms));  // told somewhere within 30 ms
  BOOST_TEST(t.known());
  BOOST_TEST((t.earliest(here(30ms)) == at(100ms)));
  BOOST_TEST((t.doubt(here(30ms)) == 30ms));
  // A quicker reply says more, and what is known stays known.
  t.learn(at(125ms), here(30ms), here(34ms));
  BOOST_TEST((t.doubt(here(34ms)) <= 4ms));
  auto const before = t.doubt(here(34ms));
  t.learn(at(200ms), here(34ms), here(1034ms));  // a slow one says little
  BOOST_TEST((t.doubt(here(1034ms)) <= before + 2 * 2ms));
}

BOOST_AUTO_TEST_CASE(R5_clocks_drift_so_the_bounds_part) {
  nats_server_time t;
  t.learn(at(0ms), here(0ms), here(0ms));
  BOOST_TEST((t.earliest(here(10s)) == at(10s - 5ms)));
  BOOST_TEST((t.doubt(here(10s)) == 10ms));
}

BOOST_AUTO_TEST_CASE(F52_a_clock_that_was_set_is_believed_at_once) {
  nats_server_time t;
  t.learn(at(0ms), here(0ms), here(1ms));
  t.learn(at(-1h), here(2ms), here(3ms));
  BOOST_TEST((t.earliest(here(3ms)) == at(-1h)));
  BOOST_TEST((t.doubt(here(3ms)) == 1ms));
}

BOOST_AUTO_TEST_SUITE_END()
