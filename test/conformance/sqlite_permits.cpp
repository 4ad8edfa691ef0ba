// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/sqlite_driver.hpp"
#include "conformance/sqlite_process.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>

using namespace weir;
using namespace weir::testing;

namespace {

BOOST_AUTO_TEST_SUITE(sqlite_permits)

BOOST_AUTO_TEST_CASE(keep_every_promise_in_manual_time) {
  manual_sqlite_driver driver;
  report found;
  suite::permits(driver, found);
  require_sqlite(found);
  require_each(found);
}

// By the system's clock, and each command by the process whose turn it is.
BOOST_AUTO_TEST_CASE(keep_every_promise_from_one_process_and_between_four) {
  for (std::size_t const processes : {1U, 4U}) {
    BOOST_TEST_CONTEXT(processes << " processes") {
      sqlite_processes<permit_commands> driver{"sqlite_permits_helper/one_of_them", processes};
      report found;
      suite::permits(driver, found);
      require_sqlite(found);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sqlite_permits_helper, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(one_of_them) { be_one_of_them<permit_commands>(); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
