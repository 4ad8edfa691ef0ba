// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The hot paths, each a fixed number of times, for bench/budget.py to count their instructions:
// these depend on the code and the compiler, and not on what else the machine does. Alone, it only
// runs. Prints the compiler, then what it did and how often.

#include "count.hpp"

#include <cstdio>

int main() {
#ifdef __clang__
  std::printf("compiler\tclang %d\n", __clang_major__);
#else
  std::printf("compiler\tg++ %d\n", __GNUC__);
#endif
  weir_bench::buckets();
  weir_bench::leases();
  weir_bench::jobs();
  weir_bench::metrics();
}
