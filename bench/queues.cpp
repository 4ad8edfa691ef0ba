// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker and many queues: see queues.hpp.

#include "queues.hpp"

#include "memory_bed.hpp"

int main() { return weir_bench::report_queues_here<weir_bench::memory_bed>("queues"); }
