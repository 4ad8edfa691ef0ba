// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/nats_driver.hpp"
#include "conformance/suite.hpp"
#include "conformance/whole_worker.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>

namespace {

/// Only jobs are bounded.
class nats_jobs_driver : public weir::testing::nats_driver {
 public:
  weir::nats_store make_bounded(boost::asio::any_io_executor const& ex, std::size_t n) {
    weir::nats_options o;
    o.max_jobs = n;
    return make_with(ex, o);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_jobs)

BOOST_AUTO_TEST_CASE(keep_every_promise) {
  nats_jobs_driver driver;
  weir::testing::report found;
  weir::testing::suite::of<weir::testing::job_commands>(driver, found);
  weir::testing::require_nats(found);
}

BOOST_AUTO_TEST_CASE(a_worker_and_its_handlers_keep_theirs) {
  nats_jobs_driver driver;
  weir_test::whole_worker_on(driver);
}

BOOST_AUTO_TEST_SUITE_END()
