// expect: ignoring return value of .*nodiscard
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

void run(weir::worker<weir::memory_store>& worker) { worker.async_run(); }
