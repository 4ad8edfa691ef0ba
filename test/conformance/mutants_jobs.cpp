// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/job_defects.hpp"
#include "conformance/mutant_store.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

namespace weir::testing {
namespace {

BOOST_AUTO_TEST_SUITE(mutants_jobs)

BOOST_AUTO_TEST_CASE(none_survives) { hunt<job_defects>(job_mutants, suite::of<job_commands>); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
