// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_BUCKETS_HPP
#define WEIR_TESTING_CONFORMANCE_BUCKETS_HPP

#include "weir/concept.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/buckets/checks.hpp"
#include "weir/testing/conformance/buckets/concurrent.hpp"
#include "weir/testing/conformance/buckets/histories.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

namespace weir::testing::conformance {

/// Holds the stores that a factory makes to the promises of buckets, and writes into the report
/// what it found. Throws nothing of its own.
inline void buckets(factory<bucket_commands> const& f, report& out, settings const& s = {}) {
  run_checks(f, "buckets", bucket_checks, out, s);
  bucket_histories(f, out, s);
  bucket_concurrency(f, out, s);
}

/// Holds a store of buckets to its promises, and writes into the report what it found. It throws
/// only what the driver throws while it says what it is.
template <store_driver Driver>
void buckets(Driver& driver, report& out, settings const& s = {}) {
  buckets(factory<bucket_commands>{driver}, out, s);
}

}  // namespace weir::testing::conformance

#endif
