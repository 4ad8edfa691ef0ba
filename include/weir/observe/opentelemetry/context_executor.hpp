// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_OPENTELEMETRY_CONTEXT_EXECUTOR_HPP
#define WEIR_OBSERVE_OPENTELEMETRY_CONTEXT_EXECUTOR_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <opentelemetry/context/context.h>
#include <opentelemetry/context/runtime_context.h>

#include <utility>

namespace weir::detail {

/// Executes on another executor, each time with this context as the thread's current one, and only
/// for so long. A coroutine that is spawned on it has the context whenever it runs, in whatever
/// thread; a scope in the coroutine itself would stay behind in a thread at its first suspension.
class context_executor {
 public:
  context_executor(boost::asio::any_io_executor inner, opentelemetry::context::Context context)
      : inner_{std::move(inner)},
        context_{std::move(context)} {}

  template <class Property>
    requires boost::asio::can_query<boost::asio::any_io_executor const&, Property>::value
  auto query(Property const& p) const -> decltype(auto) {
    return boost::asio::query(inner_, p);
  }
  template <class Property>
    requires boost::asio::can_require<boost::asio::any_io_executor const&, Property>::value
  context_executor require(Property const& p) const {
    return {boost::asio::require(inner_, p), context_};
  }
  template <class Property>
    requires boost::asio::can_prefer<boost::asio::any_io_executor const&, Property>::value
  context_executor prefer(Property const& p) const {
    return {boost::asio::prefer(inner_, p), context_};
  }

  template <class Function>
  void execute(Function&& f) const {
    inner_.execute([context = context_, g = std::forward<Function>(f)]() mutable {
      auto const current = opentelemetry::context::RuntimeContext::Attach(context);
      std::move(g)();
    });
  }

  friend bool operator==(context_executor const& a, context_executor const& b) noexcept {
    return a.inner_ == b.inner_ && a.context_ == b.context_;
  }

 private:
  boost::asio::any_io_executor inner_;
  opentelemetry::context::Context context_;
};

}  // namespace weir::detail

#endif
