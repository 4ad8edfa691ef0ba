// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker on the memory store: one thread for the store, the bookkeeping and the handlers.

#include "worker.hpp"

#include "memory_bed.hpp"

#include <cstdlib>

int main() {
  weir_bench::report out{"worker"};
  weir_bench::report_worker<weir_bench::memory_bed>(out, 100'000, 5, weir_bench::at_least(1e6));
  // What no worker can do without, and has no say in.
  auto const decoded =
      weir_bench::in_turn(5, {[] {
                            return weir_bench::per_second(100'000, [] {
                              for (int i = 0; i != 100'000; ++i) {
                                if (!weir::decode<weir_bench::nothing>(R"({"sent":0})").ok)
                                  std::abort();
                              }
                            });
                          }});
  out.add(
      {.name = "decoding the payload of such a job alone", .unit = "jobs/s", .ours = decoded[0]});
  out.finish();
}
