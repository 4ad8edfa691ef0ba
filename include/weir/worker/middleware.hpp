// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_MIDDLEWARE_HPP
#define WEIR_WORKER_MIDDLEWARE_HPP

#include "weir/job_context.hpp"
#include "weir/worker/handler.hpp"
#include "weir/worker/notes.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

namespace detail {
class handler_chain;
}  // namespace detail

/// The rest of a run, for a middleware of `worker::around`: the middleware registered after it, and
/// then the handler. Valid until the middleware has returned.
class next_handler {
 public:
  /// For the worker.
  next_handler(detail::handler_chain& chain, std::size_t position) noexcept
      : chain_{&chain},
        position_{position} {}

  /// Runs it; what it throws comes through. Called again, it runs again, and the last result
  /// counts; never called, the job is completed without a result. To be awaited.
  [[nodiscard]] boost::asio::awaitable<void> operator()() const;

 private:
  detail::handler_chain* chain_;
  std::size_t position_;
};

namespace detail {

using middleware = std::function<boost::asio::awaitable<void>(job_context&, next_handler)>;

template <class F>
concept is_middleware = std::invocable<F&, job_context&, next_handler> &&
                        std::same_as<std::invoke_result_t<F&, job_context&, next_handler>,
                                     boost::asio::awaitable<void>>;

/// A plain function may wait for what it asks for, and blocks the strand of the coroutine that it
/// is called in: while this lives, nothing that is asked for is to be told there.
class plain_call {
 public:
  explicit plain_call(job_context& context) noexcept
      : notes_{context.notes()},
        strand_{notes_.runs_on(nullptr)} {}
  plain_call(plain_call const&) = delete;
  plain_call& operator=(plain_call const&) = delete;
  ~plain_call() { notes_.runs_on(strand_); }

 private:
  handler_notes& notes_;
  boost::asio::any_io_executor const* strand_;
};

/// One run of a handler, with what is around it.
class handler_chain {
 public:
  handler_chain(std::vector<middleware> const& around, prepared_job& job, bool is_coroutine,
                job_context& context) noexcept
      : around_{around},
        job_{job},
        is_coroutine_{is_coroutine},
        context_{context} {}
  handler_chain(handler_chain const&) = delete;
  handler_chain& operator=(handler_chain const&) = delete;

  [[nodiscard]] boost::asio::awaitable<void> run(std::size_t from) {
    if (from == around_.size()) return run_handler();
    return around_[from](context_, next_handler{*this, from + 1});
  }

  handler_result result;

 private:
  boost::asio::awaitable<void> run_handler() {
    if (is_coroutine_) {
      result = co_await job_.run(context_);
    } else {
      plain_call const apart{context_};
      result = job_.call(context_);
    }
  }

  std::vector<middleware> const& around_;
  prepared_job& job_;
  bool const is_coroutine_;
  job_context& context_;
};

/// The result of `around`.
template <class Middleware, class Handler>
class around_handler {
 public:
  around_handler(Middleware m, Handler h) : around_{std::move(m)}, handler_{std::move(h)} {}

  template <class Job>
    requires takes_job<Handler, Job>
  auto operator()(Job const& job, job_context& context) {
    auto next = [this, &job, &context]() -> decltype(auto) {
      if constexpr (handler_value<handler_return<Handler, Job>>::is_awaitable) {
        return call_handler(handler_, job, context);
      } else {
        plain_call const apart{context};
        return call_handler(handler_, job, context);
      }
    };
    if constexpr (std::invocable<Middleware&, Job const&, job_context&, decltype(next)>) {
      return around_(job, context, std::move(next));
    } else {
      return around_(context, std::move(next));
    }
  }

  /// Where it runs: see `worker::handle`.
  [[nodiscard]] auto get_executor() const noexcept
    requires has_executor<Handler>
  {
    return handler_.get_executor();
  }
  [[nodiscard]] auto without_executor() && {
    auto inner = detail::without_executor(std::move(handler_));
    return around_handler<Middleware, decltype(inner)>{std::move(around_), std::move(inner)};
  }

 private:
  Middleware around_;
  Handler handler_;
};

template <class Middleware, class Handler>
struct job_of<around_handler<Middleware, Handler>> : job_of<Handler> {};

}  // namespace detail

inline boost::asio::awaitable<void> next_handler::operator()() const {
  return chain_->run(position_);
}

/// A handler with something around it, for one job type; nothing of it is decided at run time.
///
///     worker.handle<send_mail>(weir::around(
///         [](weir::job_context& job, auto next) -> asio::awaitable<void> {
///           auto const span = tracer.begin(job.kind());
///           co_await next();
///         },
///         [](send_mail const& m) -> asio::awaitable<void> { … }));
///
/// @param middleware takes `(Job const&, weir::job_context&, next)` or `(weir::job_context&,
///                   next)`, by value the function object `next`, which runs the handler and
///                   returns what it returns: an `asio::awaitable` of a coroutine. What the
///                   middleware returns is the result of the whole. Several calls may run at once
/// @param handler    as for `worker::handle`; may be the result of another `around`
/// @return a handler for `worker::handle`
template <class Middleware, class Handler>
[[nodiscard]] auto around(Middleware middleware, Handler handler) {
  return detail::around_handler<Middleware, Handler>{std::move(middleware), std::move(handler)};
}

}  // namespace weir

#endif
