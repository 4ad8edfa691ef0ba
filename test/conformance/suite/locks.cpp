// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/testing/conformance/locks.hpp"

#include "conformance/suite.hpp"

namespace weir::testing {

void suite::promises(factory<lock_commands> const& f, report& out, settings const& s) {
  conformance::locks(f, out, s);
}

void suite::histories(factory<lock_commands> const& f, report& out, settings const& s) {
  conformance::lock_histories(f, out, s);
}

void suite::concurrency(factory<lock_commands> const& f, report& out, settings const& s) {
  conformance::lock_concurrency(f, out, s);
}

}  // namespace weir::testing
