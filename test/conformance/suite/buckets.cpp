// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/testing/conformance/buckets.hpp"

#include "conformance/suite.hpp"

namespace weir::testing {

void suite::promises(factory<bucket_commands> const& f, report& out, settings const& s) {
  conformance::buckets(f, out, s);
}

void suite::histories(factory<bucket_commands> const& f, report& out, settings const& s) {
  conformance::bucket_histories(f, out, s);
}

void suite::concurrency(factory<bucket_commands> const& f, report& out, settings const& s) {
  conformance::bucket_concurrency(f, out, s);
}

}  // namespace weir::testing
