// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/sqlite_process.hpp"
#include "conformance/whole_worker.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

BOOST_AUTO_TEST_SUITE(sqlite_jobs)

BOOST_AUTO_TEST_CASE(keep_every_promise_in_manual_time) {
  sqlite_keeps_every_promise<job_commands>();
}

BOOST_AUTO_TEST_CASE(keep_every_promise_from_one_process_and_between_four) {
  processes_keep_every_promise<job_commands>("sqlite_jobs_helper/one_of_them");
}

BOOST_AUTO_TEST_CASE(a_worker_and_its_handlers_keep_theirs) {
  sqlite_test::bed on;
  weir_test::whole_worker{on.io, on.store}.keeps_its_promises();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sqlite_jobs_helper, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(one_of_them) { be_one_of_them<job_commands>(); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
