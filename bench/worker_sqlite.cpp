// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker on the SQLite store: one thread for the bookkeeping and the handlers, the store's own
// for the file.

#include "sqlite_bed.hpp"
#include "worker.hpp"

int main() {
  weir_bench::report out{"worker_sqlite"};
  weir_bench::report_worker<weir_bench::sqlite_bed>(out, 10'000, 5);
  out.finish();
}
