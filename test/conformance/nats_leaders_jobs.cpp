// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/nats_leaders.hpp"

#include <boost/test/unit_test.hpp>

namespace weir::testing {
namespace {

BOOST_FIXTURE_TEST_SUITE(nats_leaders, nemesis)

// A third of the checks, so that it does not take for ever.
BOOST_AUTO_TEST_CASE(jobs_keep_every_promise_while_leaders_are_lost) {
  lose_leaders<job_commands>(*this, "-jobs-0", 41, 3);
  BOOST_TEST(kills() >= 5U);
  BOOST_TEST(moved() >= 15U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
