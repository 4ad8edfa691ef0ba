// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/postgres_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

constexpr sql_mutant defects[] = {
    {"F1", "IF known AND (fences_[i] = 0 OR NOT waits AND number_ = fences_[i]) THEN",
     "IF known THEN"},
    {"R1", "IF l.live + ahead < limits_[i] THEN", "IF l.live < limits_[i] THEN"},
    {"R1", "WHERE l.key = key_ ORDER BY l.number DESC LIMIT 1 FOR UPDATE",
     "WHERE l.key = key_ ORDER BY l.number DESC LIMIT 1"},
    {"F7", "l.live := l.live - done::integer;", "l.live := l.live - 1;"},
    {"F9", "BETWEEN soonest AND now RETURNING p.ticket",
     "BETWEEN soonest AND now - 1 RETURNING p.ticket"},
    {"R5", "RETURN greatest(f, last_ + 1)", "RETURN last_ + 1"},
    {"F6", "IF known AND NOT waits AND number_ = fences_[i] THEN", "IF known AND NOT waits THEN"},
    {"F10", "p.number >= l.oldest\n            ORDER BY p.until + 0 OFFSET k LIMIT 1",
     "p.number >= l.oldest\n            ORDER BY p.until LIMIT 1"},
};

BOOST_AUTO_TEST_SUITE(postgres_permits)

BOOST_AUTO_TEST_CASE(keep_every_promise) { postgres_keeps_every_promise<permit_commands>(); }

BOOST_AUTO_TEST_CASE(keep_every_promise_where_transactions_are_serializable_by_default) {
  postgres_keeps_every_promise_by_its_own_transactions<permit_commands>();
}

// Each of these defects, put back into the schema, is found.
BOOST_AUTO_TEST_CASE(defects_in_the_schema_are_found) { hunt(defects, suite::of<permit_commands>); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
