// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_LOCKS_HPP
#define WEIR_TESTING_CONFORMANCE_LOCKS_HPP

#include "weir/concept.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/leases/histories.hpp"
#include "weir/testing/conformance/locks/checks.hpp"
#include "weir/testing/conformance/locks/concurrent.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/histories.hpp"
#include "weir/testing/model/locks.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

namespace weir::testing::conformance {

/// Asks what generated histories of locks say, in each kind of time that a driver has.
inline void lock_histories(factory<lock_commands> const& f, report& out, settings const& s) {
  topic const about{"locks", "R2", "generated histories are answered as the rule answers them"};
  for (auto const t : times_of(f)) {
    if (finished(out, s)) return;
    check_histories<lease_game<lock_noun, lock_model>>(f, t, about, out, s);
  }
}

/// Holds the stores that a factory makes to the promises of locks, and writes into the report what
/// it found. Throws nothing of its own.
inline void locks(factory<lock_commands> const& f, report& out, settings const& s = {}) {
  run_checks(f, "locks", lock_checks, out, s);
  lock_histories(f, out, s);
  lock_concurrency(f, out, s);
}

/// Holds a store of locks to its promises, and writes into the report what it found. It throws only
/// what the driver throws while it says what it is.
template <store_driver Driver>
void locks(Driver& driver, report& out, settings const& s = {}) {
  locks(factory<lock_commands>{driver}, out, s);
}

}  // namespace weir::testing::conformance

#endif
