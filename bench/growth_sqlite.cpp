// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// How the SQLite store's cost grows: see growth.hpp.
//
//     bench_growth_sqlite [--most N] [--full] [--quick] [--only PART]

#include "growth.hpp"
#include "sqlite_bed.hpp"

int main(int argc, char** argv) {
  return weir_bench::report_growth<weir_bench::sqlite_bed>(
      "growth_sqlite",
      weir_bench::growth_range::of(argc, argv, {.tenants = 10'000, .worker_jobs = 5'000}));
}
