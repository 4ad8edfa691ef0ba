// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/nats_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(nats_permits)

BOOST_AUTO_TEST_CASE(keep_every_promise) {
  weir::testing::nats_driver driver;
  weir::testing::report found;
  weir::testing::suite::of<weir::testing::permit_commands>(driver, found);
  weir::testing::require_nats(found);
}

BOOST_AUTO_TEST_SUITE_END()
