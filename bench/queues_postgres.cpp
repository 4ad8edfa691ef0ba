// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker and many queues: see queues.hpp.

#include "postgres_bed.hpp"
#include "queues.hpp"

#include <chrono>
#include <memory>

int main() {
  using namespace std::chrono_literals;
  using bed = weir_bench::postgres_bed;
  weir_bench::report out{"queues_postgres"};
  weir_bench::report_queues(out, bed::name, ", 4 ms away", 20'000, weir_bench::at_least(2000),
                            [] { return std::make_unique<bed>(4ms); });
  weir_bench::report_queues(out, bed::name, "", 20'000, {}, [] { return std::make_unique<bed>(); });
  out.finish();
}
