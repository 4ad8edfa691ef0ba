// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker on the memory store: one thread for the store, the bookkeeping and the handlers.

#include "worker.hpp"

#include "memory_bed.hpp"

int main() {
  weir_bench::report out{"worker"};
  weir_bench::report_worker<weir_bench::memory_bed>(out, 100'000, 5, weir_bench::at_least(1e6));
  out.finish();
}
