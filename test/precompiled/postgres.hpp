// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the tests of the PostgreSQL store include: see CMakeLists.txt.

#include "conformance/postgres_driver.hpp"
#include "precompiled.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/fault_proxy.hpp"

namespace weir::testing {

/// Nobody calls this: what it uses is compiled here.
inline void compile_once(postgres_driver& driver) {
  (void)factory<permit_commands>{driver};
  (void)factory<lock_commands>{driver};
  (void)factory<bucket_commands>{driver};
  (void)factory<job_commands>{driver};
}

}  // namespace weir::testing
