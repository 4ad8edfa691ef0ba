// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// As a role that has the privileges that `postgres_migration_sql` names, and no others.

#include "conformance/postgres_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

namespace weir::testing {
namespace {

BOOST_AUTO_TEST_SUITE(postgres_role)

BOOST_AUTO_TEST_CASE(promises_are_kept_by_a_role_that_may_do_no_more_than_it_must) {
  postgres_driver driver;
  driver.give_up_privileges();
  settings s;
  s.only = "generated";  // all steps
  s.histories = 6;
  report found;
  suite::of<permit_commands>(driver, found, s);
  suite::of<lock_commands>(driver, found, s);
  suite::of<bucket_commands>(driver, found, s);
  suite::of<job_commands>(driver, found, s);
  require_postgres(found);
  driver.db().must(
      "SET ROLE least; SELECT weir.tidy(100, NULL); SELECT weir.await_jobs(0, 1000000000, NULL); "
      "SELECT weir.await_permits(ARRAY['k'::bytea], ARRAY['h'::bytea], NULL); "
      "SELECT weir.raise_fences(weir.clock())");
  BOOST_TEST(driver.db().must("SELECT has_schema_privilege('least', 'weir', 'CREATE')") == "f");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
