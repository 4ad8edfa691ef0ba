// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker and many queues: see queues.hpp.

#include "queues.hpp"
#include "sqlite_bed.hpp"

#include <memory>

int main() {
  using bed = weir_bench::sqlite_bed;
  weir_bench::report out{"queues_sqlite"};
  weir_bench::report_queues(out, bed::name, "", 20'000, weir_bench::ratio_at_least(0.5),
                            [] { return std::make_unique<bed>(); });
  out.finish();
}
