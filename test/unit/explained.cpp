// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A program of its own: texts of error codes are kept for as long as the process lives.

#include "weir/detail/explained.hpp"

#include "weir/schedule/definition.hpp"
#include "weir/scheduler/booking.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(explained)

// A service lets its users make schedules: what they mistype is theirs to choose.
BOOST_AUTO_TEST_CASE(F86_bad_input_takes_no_other_error_its_cause) {
  std::size_t told = 0;
  for (int i = 0; i != 2000; ++i) {
    auto const zone = "Nowhere/Z" + std::to_string(i);
    auto const wrong = weir::detail::zone_of({.name = "a", .when = weir::cron{"* * * * *", zone}});
    BOOST_TEST_REQUIRE((wrong.error() == weir::errc::invalid_option));
    if (wrong.error().message().find(zone) != std::string::npos) ++told;
  }
  BOOST_TEST(told > 100U);
  for (int i = 0; i != 400; ++i) {
    auto const why = "cause " + std::to_string(i);
    auto const away = weir::detail::explained(weir::errc::store_unavailable, why);
    BOOST_TEST_REQUIRE(away.message().find(why) != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
