// expect: (no matching function for call to|invalid reference to function) '.*try_acquire
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/execute.hpp"
#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

/// Answers later, as a store does that has to ask a server.
struct remote_store {
  using executor_type = weir::memory_store::executor_type;
  executor_type get_executor() const noexcept { return near.get_executor(); }

  template <class Command, class Token>
    requires weir::executes<weir::memory_store, Command>
  auto async_execute(Command const& command, Token&& token) const {
    return weir::async_execute(near, command, std::forward<Token>(token));
  }

  weir::memory_store near;
};

void call(weir::limiter<remote_store>& limiter) { (void)limiter.try_acquire("key"); }
