// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/memory_driver.hpp"
#include "conformance/suite.hpp"
#include "conformance/whole_worker.hpp"

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
  remote_memory_keeps_every_promise<job_commands>({no_transactions, no_bound});
}

BOOST_AUTO_TEST_CASE(R4_in_long_histories) {
  memory_keeps_promises_in_long_histories<job_commands>();
}

BOOST_AUTO_TEST_CASE(R4_in_a_crowd) { memory_keeps_promises_in_a_crowd<job_commands>(); }

BOOST_AUTO_TEST_CASE(a_worker_and_its_handlers_keep_theirs) {
  boost::asio::io_context io;
  weir_test::whole_worker{io, memory_store{io.get_executor()}}.keeps_its_promises();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
