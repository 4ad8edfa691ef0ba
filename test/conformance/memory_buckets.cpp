// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/memory_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

BOOST_AUTO_TEST_SUITE(memory_buckets)

BOOST_AUTO_TEST_CASE(keep_every_promise_in_manual_time) {
  manual_memory_driver driver;
  report found;
  suite::of<bucket_commands>(driver, found);
  require_all(found, {told_only, no_way_back});
  require_each(found);
  require_numbers(found, {"F19", "F20", "F21", "F22", "F23", "F24", "F25", "F27"});
}

BOOST_AUTO_TEST_CASE(keep_every_promise_in_real_time_as_if_they_were_remote) {
  remote_memory_keeps_every_promise<bucket_commands>({no_way_back, passes, no_bound});
}

BOOST_AUTO_TEST_CASE(R3_in_long_histories) {
  memory_keeps_promises_in_long_histories<bucket_commands>();
}

BOOST_AUTO_TEST_CASE(R3_in_a_crowd) { memory_keeps_promises_in_a_crowd<bucket_commands>(); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
