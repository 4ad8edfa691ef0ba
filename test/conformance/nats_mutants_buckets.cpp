// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/bucket_defects.hpp"
#include "conformance/engine_mutants.hpp"
#include "conformance/nats_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

BOOST_AUTO_TEST_SUITE(nats_mutants_buckets)

BOOST_AUTO_TEST_CASE(none_survives) {
  using namespace weir::testing;
  // Buckets are not bounded here, and the server reaps them; less than its time is known by is not
  // looked at.
  std::set<int> const not_here{spent_is_forgotten, reaps_everything, whole_milliseconds,
                               short_debts_are_forgotten};
  std::vector<mutant> here;
  std::ranges::copy_if(bucket_mutants, std::back_inserter(here),
                       [&](mutant const& m) { return !not_here.contains(m.which); });
  hunt_on_engine<bucket_defects, quick_nats_driver>(here, suite::of<bucket_commands>);
}

BOOST_AUTO_TEST_SUITE_END()
