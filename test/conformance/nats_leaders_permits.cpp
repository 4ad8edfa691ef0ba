// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/nats_leaders.hpp"

#include <boost/test/unit_test.hpp>

namespace weir::testing {
namespace {

BOOST_FIXTURE_TEST_SUITE(nats_leaders, nemesis)

BOOST_AUTO_TEST_CASE(permits_keep_every_promise_while_leaders_are_lost) {
  lose_leaders<permit_commands>(*this, "-keys", 41);
  lose_leaders_among_many<permit_commands>(*this, "-keys");
  BOOST_TEST(kills() >= 7U);
  BOOST_TEST(moved() >= 23U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
