// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_TIME_HPP
#define WEIR_STORE_MEMORY_TIME_HPP

#include "weir/time.hpp"

namespace weir::detail {

/// When a step is executed, and whether it is its caller who says so.
struct memory_time {
  time_point at;
  bool told = false;
};

}  // namespace weir::detail

#endif
