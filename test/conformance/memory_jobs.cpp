// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/memory_driver.hpp"
#include "weir/testing/conformance/jobs.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(memory_jobs)

BOOST_AUTO_TEST_CASE(keep_every_promise_in_manual_time) {
  weir::testing::manual_memory_driver driver;
  weir::testing::report found;
  weir::testing::conformance::jobs(driver, found);
  weir::testing::require_all(found);
}

BOOST_AUTO_TEST_CASE(keep_every_promise_in_real_time_as_if_they_were_remote) {
  weir::testing::remote_memory_driver driver;
  weir::testing::report found;
  weir::testing::conformance::jobs(driver, found);
  weir::testing::require_all(found);
}

BOOST_AUTO_TEST_SUITE_END()
