// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_POSTING_HPP
#define WEIR_POSTING_HPP

#include "weir/detail/parking_lot.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/require.hpp>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace weir {

namespace detail {

/// A handler on its way through one execution context to another one. It is destroyed when either
/// of them ends.
template <class Executor, class Handler, class... Args>
class passing_completion final : public parked_base {
 public:
  passing_completion(Executor&& own, Handler&& handler, Args&&... args)
      : body_{std::in_place, std::move(own), std::move(handler),
              std::tuple<Args...>{std::move(args)...}} {}
  ~passing_completion() override { discard(); }

  template <class Through>
  static void begin(Through const& through, boost::asio::execution_context& to, Executor own,
                    Handler handler, Args... args) {
    namespace asio = boost::asio;
    using memory = asio::recycling_allocator<passing_completion>;
    auto const self = std::allocate_shared<passing_completion>(
        memory{}, std::move(own), std::move(handler), std::move(args)...);
    if (self->enter(context_of(through), &to)) {
      post_task(through, [self] { self->arrive(); });
    } else {
      self->discard();
    }
  }

 private:
  struct body {
    body(Executor&& e, Handler&& h, std::tuple<Args...>&& a)
        : own{std::move(e)},
          handler{std::move(h)},
          args{std::move(a)} {}

    Executor own;
    Handler handler;
    std::tuple<Args...> args;
  };

  void arrive() {
    if (!this->take()) return;
    passage_end const at_end{this};
    auto const own = std::move(body_->own);
    dispatch_task(own,
                  [handler = std::move(body_->handler), args = std::move(body_->args)]() mutable {
                    std::apply(std::move(handler), std::move(args));
                  });
  }

  struct passage_end {
    passing_completion* self;
    ~passage_end() { self->abandon(); }
  };

  void discard() noexcept {
    if (this->take()) abandon();
  }
  void abandon() noexcept override {
    body_.reset();
    this->leave();
  }
  void lapse(error_code) override {}

  std::optional<body> body_;
};

// Not executor_work_guard: it takes a strand of an any_io_executor for an executor of the old kind.
template <class Executor>
[[nodiscard]] auto tracked(Executor const& executor) {
  return boost::asio::prefer(executor, boost::asio::execution::outstanding_work.tracked);
}
template <class Executor>
using tracked_executor = decltype(tracked(std::declval<Executor const&>()));

/// Posts to `fallback`, and dispatches from there to the handler's own executor.
/// @param own tracked, so that it does not tell its context
/// @param to  its context; null where it cannot be known
template <class Executor, class Own, class Handler, class... Args>
void post_through(Executor const& fallback, Own own, boost::asio::execution_context* to,
                  Handler handler, Args... args) {
  if (to != nullptr && to != context_of(fallback)) {
    using passing = passing_completion<Own, Handler, Args...>;
    passing::begin(fallback, *to, std::move(own), std::move(handler), std::move(args)...);
    return;
  }
  post_task(fallback, [own = std::move(own), handler = std::move(handler),
                       ... args = std::move(args)]() mutable {
    dispatch_task(own, [handler = std::move(handler), ... args = std::move(args)]() mutable {
      std::move(handler)(std::move(args)...);
    });
  });
}

template <class Executor>
inline constexpr bool never_blocks =
    boost::asio::can_require_v<Executor, boost::asio::execution::blocking_t::never_t>;

}  // namespace detail

/// Completes an operation: posts its handler, with its arguments, to the executor that the handler
/// is associated with. It never calls the handler before it returns, which would overflow the stack
/// of a loop of operations. For authors of stores.
///
/// The executor of an erased handler (`any_completion_handler`) cannot promise not to block. Such a
/// handler is posted to `fallback` first, and dispatched from there; the context of its executor
/// has work meanwhile, and the handler is destroyed when either context ends.
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
  if constexpr (detail::never_blocks<decltype(own)>) {
    asio::post(own, asio::append(std::forward<Handler>(handler), std::forward<Args>(args)...));
  } else {
    detail::post_through(fallback, detail::tracked(own), detail::context_of(own),
                         std::forward<Handler>(handler), std::forward<Args>(args)...);
  }
}

}  // namespace weir

#endif
