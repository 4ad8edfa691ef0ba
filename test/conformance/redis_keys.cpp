// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/redis_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

struct run {
  redis_driver driver;
  report found;
  ~run() { require_redis(found); }
};

BOOST_FIXTURE_TEST_SUITE(redis_keys, run)

BOOST_AUTO_TEST_CASE(permits_keep_every_promise) { suite::of<permit_commands>(driver, found); }
BOOST_AUTO_TEST_CASE(locks_keep_every_promise) { suite::of<lock_commands>(driver, found); }
BOOST_AUTO_TEST_CASE(buckets_keep_every_promise) { suite::of<bucket_commands>(driver, found); }
BOOST_AUTO_TEST_CASE(buckets_that_are_bounded_keep_every_promise) {
  bounded_redis_driver bounded;
  suite::of<bucket_commands>(bounded, found);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
