// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/testing/conformance/jobs.hpp"

#include "conformance/suite.hpp"

namespace weir::testing {

void suite::promises(factory<job_commands> const& f, report& out, settings const& s) {
  conformance::jobs(f, out, s);
}

void suite::histories(factory<job_commands> const& f, report& out, settings const& s) {
  conformance::job_histories(f, out, s);
}

void suite::concurrency(factory<job_commands> const& f, report& out, settings const& s) {
  conformance::job_concurrency(f, out, s);
}

}  // namespace weir::testing
