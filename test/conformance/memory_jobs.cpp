// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/memory_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

BOOST_AUTO_TEST_SUITE(memory_jobs)

BOOST_AUTO_TEST_CASE(keep_every_promise_in_manual_time) {
  manual_memory_driver driver;
  report found;
  suite::of<job_commands>(driver, found);
  require_all(found, {no_hints, told_only, no_transactions});
  require_each(found, {"in the application's transaction"});
  require_numbers(found, {"F14", "F15", "F16", "F17", "F18", "F27", "F28",  "F29",
                          "F30", "F31", "F32", "F33", "F34", "F35", "F36",  "F38",
                          "F39", "F40", "F41", "F45", "F48", "F54", "F106", "F107"});
}

BOOST_AUTO_TEST_CASE(keep_every_promise_in_real_time_as_if_they_were_remote) {
  remote_memory_driver driver;
  report found;
  suite::of<job_commands>(driver, found);
  require_all(found, {no_transactions, no_bound});
}

BOOST_AUTO_TEST_CASE(R4_in_long_histories) {
  manual_memory_driver driver;
  report found;
  suite::histories(factory<job_commands>{driver}, found, long_run());
  require_all(found, {});
}

BOOST_AUTO_TEST_CASE(R4_in_a_crowd) {
  manual_memory_driver manual;
  remote_memory_driver remote;
  report found;
  suite::concurrency(factory<job_commands>{manual}, found, crowd());
  suite::concurrency(factory<job_commands>{remote}, found, crowd());
  require_all(found, {});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
