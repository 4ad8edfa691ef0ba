// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/postgres_driver.hpp"
#include "conformance/suite.hpp"
#include "conformance/whole_worker.hpp"

#include <boost/test/unit_test.hpp>

using namespace weir;
using namespace weir::testing;

namespace {

constexpr sql_mutant defects[] = {
    {"F28", "AND j.vesting >= firsts[l] AND j.vesting <= now_\n",
     "AND j.vesting >= firsts[l] AND j.vesting <= now_ AND j.holder IS NULL\n"},
    {"F36", "attempts = j2.attempts + 1, unclaimed", "attempts = j2.attempts, unclaimed"},
    {"F33", "greatest(j.attempts - 1, 0), j.snoozes + 1", "j.attempts, j.snoozes + 1"},
    {"F14", "THEN l.id IS NOT NULL ELSE", "THEN w.owner IS NOT NULL ELSE"},
    {"F14", "IF possessor = 1 THEN\n          gives_way", "IF false THEN\n          gives_way"},
    {"F14", "\"weir\".bury_unclaimable(o, now_)) IS NOT TRUE", "false) IS NOT TRUE"},
    {"F14", "n, 0, cancelled, 0, buried, own_", "n, 0, cancelled, 0, 0, own_"},
    {"F15", "IF j.strategy IN (2, 4)\n      AND NOT EXISTS", "IF false AND NOT EXISTS"},
    {"F16", "AND k.fence = runs.fence\n", ""},
    {"F17", "\"weir\".lock_keys(5, queue_, keyed, at_) = cardinality(keyed)", "false"},
    {"F35", "OR job.fence <> fence_ THEN", "THEN"},
    {"R4", "ELSIF j.payload <> expected_ THEN", "ELSIF false THEN"},
    {"F39", "THEN 1024 ELSE 0 END", "THEN 0 ELSE 0 END"},
    {"F40", "DELETE FROM \"weir\".dead_letters k WHERE k.queue = queue_ AND k.id = id_;\n  PERFORM",
     "DELETE FROM \"weir\".dead_letters k WHERE k.queue = queue_ AND k.id = id_;\n"
     "  UPDATE \"weir\".jobs k SET attempts = j.attempts, snoozes = j.snoozes\n"
     "    WHERE k.queue = queue_ AND k.id = id_;\n  PERFORM"},
    {"F48", "p.pointer + 0 >= from_ AND p.pointer + 0 <= upto_\n", "p.pointer >= from_\n"},
    {"F54", "IF last = sequence_ THEN", "IF false THEN"},
    {"F106",
     "AND j.id = other\n          AND j.unique_key = keys_[i] AND j.strategy NOT IN (0, 3);",
     "AND j.id = other;"},
    {"R4", "ORDER BY j.vesting, j.id LIMIT limit_ - n", "ORDER BY j.id LIMIT limit_ - n"},
    {"R4", "array_agg(l.reason IS NOT NULL)", "array_agg(false)"},
    {"R4", "AND k.state = 0 AND k.holder IS NOT NULL AND k.vesting > now_;", "AND k.state = 0;"},
    {"R4", "AND f.until > now_ RETURNING", "RETURNING"},
};

BOOST_AUTO_TEST_SUITE(postgres_jobs)

BOOST_AUTO_TEST_CASE(keep_every_promise) { postgres_keeps_every_promise<job_commands>(); }

BOOST_AUTO_TEST_CASE(keep_every_promise_where_transactions_are_serializable_by_default) {
  postgres_keeps_every_promise_by_its_own_transactions<job_commands>();
}

// Nor do the answers depend on the plans, which depend on what autovacuum happened to see.
BOOST_AUTO_TEST_CASE(keep_every_promise_whatever_the_plans_are) {
  settings s;
  s.only = "generated";
  s.histories = 20;
  postgres_keeps_every_promise<job_commands>("enable_hashjoin = off", s);
}

BOOST_AUTO_TEST_CASE(a_worker_and_its_handlers_keep_theirs) {
  postgres_test::bed on;
  weir_test::whole_worker{on.io, on.store}.keeps_its_promises();
}

// Each of these defects, put back into the schema, is found.
BOOST_AUTO_TEST_CASE(defects_in_the_schema_are_found) { hunt(defects, suite::of<job_commands>); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
