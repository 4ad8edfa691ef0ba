// expect: this clock does not model weir::clock
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

struct wall {
  weir::steady_time steady_now() const noexcept { return {}; }
  weir::time_point system_now() const noexcept { return {}; }
};

void make(weir::memory_store store) { weir::worker<weir::memory_store, wall> worker{store}; }
