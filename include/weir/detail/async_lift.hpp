// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_ASYNC_LIFT_HPP
#define WEIR_DETAIL_ASYNC_LIFT_HPP

#include "weir/error.hpp"
#include "weir/posting.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// An initiation that tells its executor, as `cancel_after` and its like ask of it.
template <class Executor, class Initiate>
class bound_initiation {
 public:
  using executor_type = Executor;

  bound_initiation(Executor executor, Initiate initiate)
      : executor_{std::move(executor)},
        initiate_{std::move(initiate)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args&&... args) {
    initiate_(std::forward<Handler>(handler), std::forward<Args>(args)...);
  }

 private:
  Executor executor_;
  Initiate initiate_;
};

/// A result whose error comes with a value that says more of it: the operation completes with both.
template <class T>
struct explained_result : result<T> {
  using result<T>::result;
  explained_result(result<T> plain) : result<T>{std::move(plain)} {}
  explained_result(error_code ec, T with) : result<T>{ec}, beside{std::move(with)} {}

  T beside{};  ///< the value beside the error
};

/// The value beside the error of an answer.
template <class T>
[[nodiscard]] T beside_error(result<T> const&) {
  return T{};
}
template <class T>
[[nodiscard]] T beside_error(explained_result<T>&& answer) {
  return std::move(answer.beside);
}

/// Runs a step, and posts its result to the handler's executor. `step` returns `result<Result>`, or
/// `explained_result<Result>`; running out of memory in it is an error code, too.
template <class Executor, class Step, class Handler>
void lift(Executor const& fallback, Step& step, Handler handler) {
  // A named object, never a temporary: see the compiler notes in CONTRIBUTING.md.
  std::invoke_result_t<Step&> answer = make_error_code(boost::system::errc::not_enough_memory);
  try {
    answer = step();
  } catch (std::bad_alloc const&) {
  }
  if (answer.has_value()) {
    post_completion(fallback, std::move(handler), error_code{}, std::move(answer).value());
  } else {
    error_code const ec = answer.error();
    post_completion(fallback, std::move(handler), ec, beside_error(std::move(answer)));
  }
}

/// Makes a synchronous step an asynchronous operation, which is lifted in the initiation.
template <class Result, class Executor, class Step, class Token>
auto async_lift(Executor const& fallback, Step&& step, Token&& token) {
  namespace asio = boost::asio;
  auto initiate = [ex = fallback](auto handler, auto run) { lift(ex, run, std::move(handler)); };
  return asio::async_initiate<Token, void(error_code, Result)>(
      bound_initiation{fallback, std::move(initiate)}, token, std::forward<Step>(step));
}

/// An operation that `agent->start(handler, args...)` begins, for any handler: all that is compiled
/// for each token.
template <class Agent, class Base, class Signature, class... Args, class Token>
auto async_erased(std::shared_ptr<Agent> agent,
                  void (Base::*start)(boost::asio::any_completion_handler<Signature>, Args...),
                  Token&& token, std::type_identity_t<Args>... args) {
  using handler_type = boost::asio::any_completion_handler<Signature>;
  auto executor = agent->executor;
  auto initiate = [start](handler_type handler, std::shared_ptr<Agent> const& to, Args... with) {
    (to.get()->*start)(std::move(handler), std::move(with)...);
  };
  return boost::asio::async_initiate<Token, Signature>(
      bound_initiation{std::move(executor), initiate}, token, std::move(agent), std::move(args)...);
}

}  // namespace weir::detail

#endif
