// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/postgres_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

constexpr sql_mutant defects[] = {
    {"F13", "(l.holder = holder_ AND (fence_ = 0 OR l.fence = fence_)) IS NOT TRUE",
     "(fence_ = 0 OR l.fence = fence_) IS NOT TRUE"},
    {"R2", "granted := now_ >= l.until OR", "granted := now_ > l.until OR"},
    {"F6", "AND l.until > now_ AND fence_ <> 0", "AND fence_ <> 0"},
    {"R5", "RETURN greatest(f, last_ + 1)", "RETURN last_ + 1"},
};

BOOST_AUTO_TEST_SUITE(postgres_locks)

BOOST_AUTO_TEST_CASE(keep_every_promise) { postgres_keeps_every_promise<lock_commands>(); }

BOOST_AUTO_TEST_CASE(keep_every_promise_where_transactions_are_serializable_by_default) {
  postgres_keeps_every_promise_by_its_own_transactions<lock_commands>();
}

// Each of these defects, put back into the schema, is found.
BOOST_AUTO_TEST_CASE(defects_in_the_schema_are_found) { hunt(defects, suite::of<lock_commands>); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
