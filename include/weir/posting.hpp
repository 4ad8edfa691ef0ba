// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_POSTING_HPP
#define WEIR_POSTING_HPP

#include "weir/detail/task.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>

#include <utility>

namespace weir {

namespace detail {

template <class Executor, class Handler, class... Args>
void post_through(Executor const& fallback, Handler handler, Args... args) {
  namespace asio = boost::asio;
  auto const own = asio::get_associated_executor(handler, fallback);
  post_task(fallback, [work = asio::prefer(own, asio::execution::outstanding_work.tracked),
                       handler = std::move(handler), ... args = std::move(args)]() mutable {
    dispatch_task(work, [handler = std::move(handler), ... args = std::move(args)]() mutable {
      std::move(handler)(std::move(args)...);
    });
  });
}

}  // namespace detail

/// Completes an operation: posts its handler, with its arguments, to the executor that the handler
/// is associated with. It never calls the handler before it returns, which would overflow the stack
/// of a loop of operations. For authors of stores.
///
/// The executor of an erased handler (`any_completion_handler`) cannot promise not to block. Such a
/// handler is posted to `fallback` first, and dispatched from there; the context of its executor
/// has work meanwhile.
///
/// Each thread may call it. It throws what posting throws: out of memory. The handler is destroyed
/// then.
///
/// @param fallback the store's executor
/// @param handler  the operation's handler; may be move-only
/// @param args     what it is called with; copied or moved
template <class Executor, class Handler, class... Args>
void post_completion(Executor const& fallback, Handler&& handler, Args&&... args) {
  namespace asio = boost::asio;
  auto const own = asio::get_associated_executor(handler, fallback);
  if constexpr (asio::can_require_v<decltype(own), asio::execution::blocking_t::never_t>) {
    asio::post(own, asio::append(std::forward<Handler>(handler), std::forward<Args>(args)...));
  } else {
    detail::post_through(fallback, std::forward<Handler>(handler), std::forward<Args>(args)...);
  }
}

}  // namespace weir

#endif
