// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/redis_driver.hpp"
#include "conformance/suite.hpp"
#include "conformance/whole_worker.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(redis_jobs)

BOOST_AUTO_TEST_CASE(keep_every_promise) {
  weir::testing::redis_driver driver;
  weir::testing::report found;
  weir::testing::suite::of<weir::testing::job_commands>(driver, found);
  weir::testing::require_redis(found);
}

BOOST_AUTO_TEST_CASE(a_worker_and_its_handlers_keep_theirs) {
  weir::testing::redis_driver driver;
  weir_test::whole_worker_on(driver);
}

BOOST_AUTO_TEST_SUITE_END()
