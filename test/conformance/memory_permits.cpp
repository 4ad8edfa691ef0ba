// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/memory_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

BOOST_AUTO_TEST_SUITE(memory_permits)

BOOST_AUTO_TEST_CASE(keep_every_promise_in_manual_time) {
  manual_memory_driver driver;
  report found;
  suite::of<permit_commands>(driver, found);
  require_all(found, {no_hints, told_only, no_way_back, not_known});
  require_each(found);
  require_numbers(
      found, {"F1", "F3", "F4", "F6", "F7", "F8", "F9", "F10", "F11", "F27", "F45", "F47", "F52"});
}

BOOST_AUTO_TEST_CASE(keep_every_promise_in_real_time_as_if_they_were_remote) {
  remote_memory_keeps_every_promise<permit_commands>({no_way_back, not_known, passes, no_bound});
}

BOOST_AUTO_TEST_CASE(R1_in_long_histories) {
  memory_keeps_promises_in_long_histories<permit_commands>();
}

BOOST_AUTO_TEST_CASE(R1_in_a_crowd) { memory_keeps_promises_in_a_crowd<permit_commands>(); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
