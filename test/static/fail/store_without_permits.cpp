// expect: this store does not model weir::permit_store
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/limiter.hpp"

struct empty_store {
  using executor_type = boost::asio::any_io_executor;
  executor_type get_executor() const noexcept { return {}; }
};

void make() { weir::limiter<empty_store> limiter{empty_store{}}; }
