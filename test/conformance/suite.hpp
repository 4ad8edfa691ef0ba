// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_SUITE_HPP
#define WEIR_TEST_CONFORMANCE_SUITE_HPP

#include "weir/testing/driver.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

// The conformance suite, compiled once for all tests (suite/NOUN.cpp): it does not depend on the
// store's type. Each function is the one of its noun in weir::testing::conformance.
namespace weir::testing::suite {

void promises(factory<permit_commands> const& f, report& out, settings const& s);
void histories(factory<permit_commands> const& f, report& out, settings const& s);
void concurrency(factory<permit_commands> const& f, report& out, settings const& s);

void promises(factory<lock_commands> const& f, report& out, settings const& s);
void histories(factory<lock_commands> const& f, report& out, settings const& s);
void concurrency(factory<lock_commands> const& f, report& out, settings const& s);

void promises(factory<bucket_commands> const& f, report& out, settings const& s);
void histories(factory<bucket_commands> const& f, report& out, settings const& s);
void concurrency(factory<bucket_commands> const& f, report& out, settings const& s);

void promises(factory<job_commands> const& f, report& out, settings const& s);
void histories(factory<job_commands> const& f, report& out, settings const& s);
void concurrency(factory<job_commands> const& f, report& out, settings const& s);

/// Holds a driver's stores to all promises of a noun.
template <class Commands>
inline constexpr auto of = [](auto& driver, report& out, settings const& s = {}) {
  promises(factory<Commands>{driver}, out, s);
};

}  // namespace weir::testing::suite

#endif
