// expect: this backoff does not model weir::backoff
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

void make(weir::memory_store store) {
  auto const always_a_second = [] { return std::chrono::seconds{1}; };
  weir::limiter limiter{store, {}, weir::system_clock{}, always_a_second};
}
