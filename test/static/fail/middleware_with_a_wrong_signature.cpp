// expect: a middleware takes \(weir::job_context&, weir::next_handler\) and returns
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

void put_around(weir::worker<weir::memory_store>& worker) {
  worker.around([](weir::job_context&, weir::next_handler) {});
}
