// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_PERMITS_HPP
#define WEIR_TESTING_CONFORMANCE_PERMITS_HPP

#include "weir/concept.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/leases/histories.hpp"
#include "weir/testing/conformance/permits/checks.hpp"
#include "weir/testing/conformance/permits/concurrent.hpp"
#include "weir/testing/conformance/permits/steps.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/histories.hpp"
#include "weir/testing/model/permits.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

namespace weir::testing::conformance {

/// Asks what generated histories of permits say, in each kind of time that a driver has.
inline void permit_histories(factory<permit_commands> const& f, report& out, settings const& s) {
  topic const about{"permits", "R1", "generated histories are answered as the rule answers them"};
  for (auto const t : times_of(f)) {
    if (finished(out, s)) return;
    check_histories<lease_game<permit_noun, permit_model>>(f, t, about, out, s);
  }
}

/// Holds the stores that a factory makes to the promises of permits, and writes into the report
/// what it found. Throws nothing of its own.
inline void permits(factory<permit_commands> const& f, report& out, settings const& s = {}) {
  run_checks(f, "permits", permit_checks, out, s);
  permit_histories(f, out, s);
  permit_concurrency(f, out, s);
}

/// Holds a store of permits to its promises, and writes into the report what it found. It throws
/// only what the driver throws while it says what it is.
template <store_driver Driver>
void permits(Driver& driver, report& out, settings const& s = {}) {
  permits(factory<permit_commands>{driver}, out, s);
}

}  // namespace weir::testing::conformance

#endif
