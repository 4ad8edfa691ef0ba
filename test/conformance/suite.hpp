// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_SUITE_HPP
#define WEIR_TEST_CONFORMANCE_SUITE_HPP

#include "weir/testing/driver.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

// The conformance suite, compiled once for all tests (suite/NOUN.cpp): it does not depend on the
// store's type. Each function is the one of its name in weir::testing::conformance.
namespace weir::testing::suite {

void permits(factory<permit_commands> const& f, report& out, settings const& s = {});
void permit_histories(factory<permit_commands> const& f, report& out, settings const& s);
void permit_concurrency(factory<permit_commands> const& f, report& out, settings const& s);

void locks(factory<lock_commands> const& f, report& out, settings const& s = {});
void lock_histories(factory<lock_commands> const& f, report& out, settings const& s);
void lock_concurrency(factory<lock_commands> const& f, report& out, settings const& s);

void buckets(factory<bucket_commands> const& f, report& out, settings const& s = {});
void bucket_histories(factory<bucket_commands> const& f, report& out, settings const& s);
void bucket_concurrency(factory<bucket_commands> const& f, report& out, settings const& s);

void jobs(factory<job_commands> const& f, report& out, settings const& s = {});
void job_histories(factory<job_commands> const& f, report& out, settings const& s);
void job_concurrency(factory<job_commands> const& f, report& out, settings const& s);

template <store_driver Driver>
void permits(Driver& driver, report& out, settings const& s = {}) {
  permits(factory<permit_commands>{driver}, out, s);
}

template <store_driver Driver>
void locks(Driver& driver, report& out, settings const& s = {}) {
  locks(factory<lock_commands>{driver}, out, s);
}

template <store_driver Driver>
void buckets(Driver& driver, report& out, settings const& s = {}) {
  buckets(factory<bucket_commands>{driver}, out, s);
}

template <store_driver Driver>
void jobs(Driver& driver, report& out, settings const& s = {}) {
  jobs(factory<job_commands>{driver}, out, s);
}

}  // namespace weir::testing::suite

#endif
