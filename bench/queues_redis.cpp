// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker and many queues: see queues.hpp.

#include "queues.hpp"
#include "redis_bed.hpp"

int main() {
  using namespace weir_bench;
  return report_queues_of_server<redis_bed>("queues_redis", at_least(5000));
}
