// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/postgres_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

constexpr sql_mutant defects[] = {
    {"F19", "WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;\n    ELSE",
     "WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1;\n    ELSE"},
    {"F24", "(div(units_, gain_) + (mod(units_, gain_) > 0)::integer)", "div(units_, gain_)"},
    {"R3", "a[i + 1] := greatest(a[i + 1],", "a[i + 1] := least(a[i + 1],"},
    {"F23", "IF a[i + 1] <> \"weir\".units_of(mark_[i + 1], mark_high_[i + 1]) OR", "IF"},
    {"R3", "ELSE \"weir\".changed_quotas(b.scales, b.arrival, s_, now) END",
     "ELSE \"weir\".unseen_bucket(s_, now) END"},
    {"F21", "ELSIF NOT \"weir\".full_bucket(b.scales, b.arrival, now_) THEN", "ELSIF false THEN"},
};

BOOST_AUTO_TEST_SUITE(postgres_buckets)

BOOST_AUTO_TEST_CASE(keep_every_promise) { postgres_keeps_every_promise<bucket_commands>(); }

BOOST_AUTO_TEST_CASE(keep_every_promise_where_transactions_are_serializable_by_default) {
  postgres_keeps_every_promise_by_its_own_transactions<bucket_commands>();
}

// Each of these defects, put back into the schema, is found.
BOOST_AUTO_TEST_CASE(defects_in_the_schema_are_found) { hunt(defects, suite::of<bucket_commands>); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
