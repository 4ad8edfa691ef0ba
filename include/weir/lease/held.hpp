// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_HELD_HPP
#define WEIR_LEASE_HELD_HPP

#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/lease/agent.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

// Running the caller's code while a lease is held: what knows the code's type, and the type of what
// is told. The rest is in lease/holding.hpp.
namespace weir::detail {

template <class>
struct awaited;
template <class T>
struct awaited<boost::asio::awaitable<T>> {
  using type = T;
};

template <class Body, class Handle>
struct body_call : std::invoke_result<Body&> {};
template <class Body, class Handle>
  requires std::invocable<Body&, Handle const&>
struct body_call<Body, Handle> : std::invoke_result<Body&, Handle const&> {};

template <class Body, class Handle>
using body_result = typename awaited<typename body_call<Body, Handle>::type>::type;

/// A body: a movable callable that takes a `Handle const&` or nothing and returns
/// `boost::asio::awaitable<T>`.
template <class Body, class Handle>
concept runs_leased =
    std::move_constructible<Body> && requires { typename body_result<Body, Handle>; };

template <class Body, class Handle>
typename body_call<Body, Handle>::type call_body(Body& body, Handle const& held) {
  if constexpr (std::invocable<Body&, Handle const&>) {
    return body(held);
  } else {
    return body();
  }
}

/// What a body left: nothing if it was not run.
template <class T>
using body_value = std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>>;

/// A body, of whatever type.
template <class Noun>
class lease_body {
 public:
  lease_body() = default;
  lease_body(lease_body const&) = delete;
  lease_body& operator=(lease_body const&) = delete;
  virtual ~lease_body() = default;
  virtual boost::asio::awaitable<void> run(typename Noun::handle const& held) = 0;
};

/// Leaves what the body returns where the handler finds it.
template <class Noun, class Body>
class typed_lease_body final : public lease_body<Noun> {
 public:
  using handle = typename Noun::handle;
  using value_type = body_result<Body, handle>;
  using outcome = body_value<value_type>;

  typed_lease_body(Body body, std::shared_ptr<outcome> to)
      : body_{std::move(body)},
        to_{std::move(to)} {}

  boost::asio::awaitable<void> run(handle const& held) override {
    if constexpr (std::is_void_v<value_type>) {
      co_await call_body(body_, held);
      to_->emplace();
    } else {
      to_->emplace(co_await call_body(body_, held));
    }
  }

 private:
  Body body_;
  std::shared_ptr<outcome> to_;
};

/// What completes `lease_agent::hold`: `Shape` says what the caller's handler is called with.
template <class Shape, class Handler>
struct shaped_handler {
  void operator()(std::exception_ptr e, bool ran) {
    auto value = std::move(*outcome);
    if (e || !ran) value.reset();
    outcome.reset();
    Shape::complete(std::move(handler), std::move(e), std::move(value));
  }

  std::shared_ptr<typename Shape::value> outcome;
  Handler handler;
};

/// The executor on which a handler's caller wants its code to be run: its own, as far as an
/// awaitable can use that, and if it has one. The system's threads are nobody's: `use_future` names
/// them, since it has to name something.
template <class Handler>
[[nodiscard]] boost::asio::any_io_executor caller_executor(
    Handler const& handler, boost::asio::any_io_executor const& otherwise) {
  namespace asio = boost::asio;
  auto const own = asio::get_associated_executor(handler, otherwise);
  if constexpr (std::is_convertible_v<decltype(own), asio::any_io_executor>) {
    asio::execution_context const& system =
        asio::query(asio::system_executor{}, asio::execution::context);
    asio::any_io_executor const executor = own;
    if (&asio::query(executor, asio::execution::context) != &system) return executor;
  }
  return otherwise;
}

/// Completes with `Shape::signature`.
template <class Shape, class Noun, class Body, class Token>
auto async_hold(std::shared_ptr<lease_agent<Noun>> agent, std::string key, duration wait, Body body,
                Token&& token) {
  auto initiate = [](auto handler, std::shared_ptr<lease_agent<Noun>> const& to, std::string k,
                     duration w, Body b) {
    auto executor = caller_executor(handler, to->executor);
    auto const outcome = std::make_shared<typename Shape::value>();
    shaped_handler<Shape, decltype(handler)> shaped{outcome, std::move(handler)};
    to->hold(std::move(shaped), std::move(executor), std::move(k), w,
             std::make_unique<typed_lease_body<Noun, Body>>(std::move(b), outcome));
  };
  auto executor = agent->executor;
  return boost::asio::async_initiate<Token, typename Shape::signature>(
      bound_initiation{std::move(executor), initiate}, token, std::move(agent), std::move(key),
      wait, std::move(body));
}

/// What a body returns is what the caller gets; not to have run is an error.
template <class T>
struct plain_shape {
  static_assert(std::default_initializable<T> && std::movable<T>,
                "weir: a body's result must be default-initializable and movable: it accompanies "
                "errors, too");
  using value = body_value<T>;
  using signature = void(std::exception_ptr, T);

  template <class Handler>
  static void complete(Handler&& handler, std::exception_ptr e, value v) {
    std::move(handler)(std::move(e), v ? std::move(*v) : T{});
  }
};

template <>
struct plain_shape<void> {
  using value = body_value<void>;
  using signature = void(std::exception_ptr);

  template <class Handler>
  static void complete(Handler&& handler, std::exception_ptr e, value) {
    std::move(handler)(std::move(e));
  }
};

/// Nothing, or `false`, says that the body was not run.
template <class T>
struct optional_shape {
  using value = body_value<T>;
  using signature = void(std::exception_ptr, std::conditional_t<std::is_void_v<T>, bool, value>);

  template <class Handler>
  static void complete(Handler&& handler, std::exception_ptr e, value v) {
    if constexpr (std::is_void_v<T>) {
      std::move(handler)(std::move(e), v.has_value());
    } else {
      std::move(handler)(std::move(e), std::move(v));
    }
  }
};

}  // namespace weir::detail

/// The wrapped handler's executor, allocator and cancellation slot are the caller's own.
template <template <class, class> class Associator, class Shape, class Handler, class Default>
struct boost::asio::associator<Associator, weir::detail::shaped_handler<Shape, Handler>, Default>
    : Associator<Handler, Default> {
  using wrapper = weir::detail::shaped_handler<Shape, Handler>;

  static auto get(wrapper const& h) noexcept {
    return Associator<Handler, Default>::get(h.handler);
  }
  static auto get(wrapper const& h, Default const& d) noexcept {
    return Associator<Handler, Default>::get(h.handler, d);
  }
};

#endif
