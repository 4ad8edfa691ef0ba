// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs that wait for a concurrency limit: see limits.hpp.

#include "limits.hpp"
#include "sqlite_bed.hpp"

int main() { return weir_bench::report_limits<weir_bench::sqlite_bed>("limits_sqlite"); }
