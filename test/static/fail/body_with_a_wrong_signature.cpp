// expect: a body takes \(weir::permit const&\) or nothing and returns boost::asio::awaitable<T>
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/detached.hpp>

void call(weir::limiter<weir::memory_store>& limiter) {
  limiter.async_with_permit("key", [](weir::permit const&) { return 1; }, boost::asio::detached);
}
