// expect: specialise weir::job_traits for this job type
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <nlohmann/json.hpp>

struct order {
  int n = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(order, n)

void handle(weir::worker<weir::memory_store>& worker) {
  worker.handle([](order const&) {});
}
