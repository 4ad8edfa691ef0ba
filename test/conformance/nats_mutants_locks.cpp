// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/engine_mutants.hpp"
#include "conformance/lock_defects.hpp"
#include "conformance/nats_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(nats_mutants_locks)

BOOST_AUTO_TEST_CASE(none_survives) {
  using namespace weir::testing;
  hunt_on_engine<fence_defects, quick_nats_driver>(lock_mutants, suite::of<lock_commands>);
}

BOOST_AUTO_TEST_SUITE_END()
