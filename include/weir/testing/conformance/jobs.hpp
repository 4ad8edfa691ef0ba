// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_HPP

#include "weir/concept.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/bytes.hpp"
#include "weir/testing/conformance/jobs/carried.hpp"
#include "weir/testing/conformance/jobs/concurrent.hpp"
#include "weir/testing/conformance/jobs/histories.hpp"
#include "weir/testing/conformance/jobs/leases.hpp"
#include "weir/testing/conformance/jobs/order.hpp"
#include "weir/testing/conformance/jobs/queues.hpp"
#include "weir/testing/conformance/jobs/relays.hpp"
#include "weir/testing/conformance/jobs/unique.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

namespace weir::testing::conformance {

/// Holds the stores that a factory makes to the promises of jobs, and writes into the report what
/// it found. Throws nothing of its own.
inline void jobs(factory<job_commands> const& f, report& out, settings const& s = {}) {
  run_checks(f, "jobs", order_checks, out, s);
  run_checks(f, "jobs", lease_checks, out, s);
  run_checks(f, "jobs", unique_checks, out, s);
  run_checks(f, "jobs", queue_checks, out, s);
  run_checks(f, "jobs", relay_checks, out, s);
  run_checks(f, "jobs", byte_checks, out, s);
  run_checks(f, "jobs", carried_checks, out, s);
  job_histories(f, out, s);
  job_concurrency(f, out, s);
  relay_concurrency(f, out, s);
}

/// Holds a store of jobs to its promises, and writes into the report what it found. It throws only
/// what the driver throws while it says what it is.
template <store_driver Driver>
void jobs(Driver& driver, report& out, settings const& s = {}) {
  jobs(factory<job_commands>{driver}, out, s);
}

}  // namespace weir::testing::conformance

#endif
