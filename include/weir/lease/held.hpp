// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_HELD_HPP
#define WEIR_LEASE_HELD_HPP

#include "weir/detail/async_lift.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/lease.hpp"
#include "weir/lease/agent.hpp"
#include "weir/lease/keeper.hpp"
#include "weir/lease/pursuit.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

// Running the caller's code while a lease is held.
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
concept lease_body =
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

/// How a running body is told to stop: by the caller's cancellation, of the same kind, or because
/// its lease is lost. Used on the body's strand, and known weakly to those who may outlive that.
template <class>
struct basic_body_control {
  explicit basic_body_control(boost::asio::any_io_executor const& ex)
      : strand{boost::asio::make_strand(ex)} {}

  static void cancel(std::weak_ptr<basic_body_control> const& weak,
                     boost::asio::cancellation_type_t type) {
    if (type == boost::asio::cancellation_type::none) return;
    auto self = weak.lock();
    if (!self) return;
    auto& on = self->strand;
    boost::asio::dispatch(on, [self = std::move(self), type] { self->cancel(type); });
  }
  static void lose(std::weak_ptr<basic_body_control> const& weak) {
    auto self = weak.lock();
    if (!self) return;
    auto& on = self->strand;
    boost::asio::post(
        on, [self = std::move(self)] { self->cancel(boost::asio::cancellation_type::terminal); });
  }
  void cancel(boost::asio::cancellation_type_t type) {
    requested = requested | type;  // it may not have begun to listen yet
    signal.emit(type);
  }

  boost::asio::strand<boost::asio::any_io_executor> strand;
  boost::asio::cancellation_signal signal;
  boost::asio::cancellation_type_t requested = boost::asio::cancellation_type::none;
};

using body_control = basic_body_control<void>;

/// What `co_spawn` is given. `Shape` says what the caller's handler is called with.
template <class Shape>
class held_handler {
 public:
  using handler_type = boost::asio::any_completion_handler<typename Shape::signature>;
  using executor_type =
      boost::asio::associated_executor_t<handler_type, boost::asio::any_io_executor>;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  held_handler(std::shared_ptr<body_control> control, boost::asio::any_io_executor executor,
               handler_type handler)
      : control_{std::move(control)},
        executor_{std::move(executor)},
        handler_{std::move(handler)} {}

  [[nodiscard]] executor_type get_executor() const noexcept {
    return boost::asio::get_associated_executor(handler_, executor_);
  }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
    return control_->signal.slot();
  }

  void operator()(std::exception_ptr e, typename Shape::value value) {
    Shape::complete(std::move(handler_), std::move(e), std::move(value));
  }

 private:
  std::shared_ptr<body_control> control_;
  boost::asio::any_io_executor executor_;
  handler_type handler_;
};

/// Gets the lease, runs the body while a keeper renews it, and gives it back.
template <class Agent, class Body>
class lease_holding {
 public:
  using handle = typename Agent::handle;
  using value_type = body_result<Body, handle>;
  using outcome = body_value<value_type>;

  static boost::asio::awaitable<outcome> run(std::shared_ptr<Agent> agent,
                                             std::shared_ptr<body_control> control, std::string key,
                                             duration wait, Body body) {
    namespace asio = boost::asio;
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation{});
    check(*control);

    auto const claim = std::make_shared<lease_claim>(agent->new_state(std::move(key)));
    auto const lease = claim->owner.state();
    auto pursuing = lease_pursuit<Agent>::run(lease_pursuit<Agent>{agent, claim, wait}, false);
    auto got = co_await std::move(pursuing);
    check(*control);
    if (got.has_error()) {
      error_code const refusal =
          got.error() == errc::timed_out ? Agent::noun::refusal(*agent, *claim) : got.error();
      if (refusal) throw boost::system::system_error{refusal};
      co_return std::nullopt;
    }

    handle held = std::move(got).value();
    lease_keeper keeper{agent->keeper_executor, agent->clock, agent->options.ttl,
                        lease->expires_at(), duty(agent, lease, control)};

    std::exception_ptr failure;
    outcome value;
    co_await asio::this_coro::throw_if_cancelled(true);
    try {
      if constexpr (std::is_void_v<value_type>) {
        co_await call_body(body, std::as_const(held));
        value.emplace();
      } else {
        value.emplace(co_await call_body(body, std::as_const(held)));
      }
    } catch (...) {
      failure = std::current_exception();
    }
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation{});

    keeper.stop();
    bool const lost = keeper.lost() || agent->clock.steady_now() >= keeper.deadline();
    if (Agent::returns_now || lost) {
      held.release();
    } else {
      auto returning = give_back(agent, std::move(held), keeper.deadline());
      co_await std::move(returning);
    }
    if (lost) throw boost::system::system_error{make_error_code(errc::lease_lost)};
    if (failure) std::rethrow_exception(failure);
    co_return std::move(value);
  }

 private:
  static void check(body_control const& control) {
    if (control.requested == boost::asio::cancellation_type::none) return;
    throw boost::system::system_error{boost::asio::error::operation_aborted};
  }

  static lease_keeper::duty duty(std::shared_ptr<Agent> const& agent,
                                 std::shared_ptr<held_lease> const& lease,
                                 std::weak_ptr<body_control> control) {
    lease_keeper::duty d{[to = agent.get(), lease](lease_keeper::renewal handler) {
      to->store.async_execute(Agent::noun::renewal(*lease, to->options.ttl), std::move(handler));
    }};
    d.keep = lease;  // and with it the agent
    d.on_lost = [control = std::move(control)] { body_control::lose(control); };
    d.on_renewed = [lease](steady_time expiry) { lease->expires_at(expiry); };
    return d;
  }

  // The caller learns of the end when the lease is free again, unless the store has not said so
  // before it is over anyway.
  static boost::asio::awaitable<void> give_back(std::shared_ptr<Agent> agent, handle held,
                                                steady_time until) {
    auto owner = lease_access::take(std::move(held));
    auto const lease = owner.state();
    auto start = [&](attempt_handler<lease_release> handler) {
      agent->store.async_execute(Agent::noun::give_back(*lease), std::move(handler));
    };
    auto returning = attempt<lease_release>(agent->clock, until, lease, start);
    auto const returned = co_await std::move(returning);
    if (returned.has_value() || returned.error() == errc::timed_out) owner.disarm();
  }
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
    asio::any_io_executor const executor = own;
    asio::any_io_executor const system = asio::system_executor{};
    if (&asio::query(executor, asio::execution::context) !=
        &asio::query(system, asio::execution::context)) {
      return executor;
    }
  }
  return otherwise;
}

template <class Shape, class Agent, class Body>
void begin_holding(boost::asio::any_io_executor const& executor,
                   typename held_handler<Shape>::handler_type handler, std::shared_ptr<Agent> agent,
                   std::string key, duration wait, Body body) {
  namespace asio = boost::asio;
  if (error_code const ec = problem_with(*agent, wait)) {
    boost::system::system_error const error{ec};
    Shape::post(agent->executor, std::move(handler), std::make_exception_ptr(error));
    return;
  }
  auto const control = std::make_shared<body_control>(executor);
  if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
    slot.assign([weak = std::weak_ptr{control}](asio::cancellation_type_t type) {
      body_control::cancel(weak, type);
    });
  }
  auto const fallback = agent->executor;
  auto work = lease_holding<Agent, Body>::run(std::move(agent), control, std::move(key), wait,
                                              std::move(body));
  asio::co_spawn(control->strand, std::move(work),
                 held_handler<Shape>{control, fallback, std::move(handler)});
}

/// Completes with `Shape::signature`.
template <class Shape, class Agent, class Body, class Token>
auto async_hold(std::shared_ptr<Agent> agent, std::string key, duration wait, Body body,
                Token&& token) {
  auto initiate = [](auto handler, std::shared_ptr<Agent> a, std::string k, duration w, Body b) {
    auto const executor = caller_executor(handler, a->executor);
    typename held_handler<Shape>::handler_type erased{std::move(handler)};
    begin_holding<Shape>(executor, std::move(erased), std::move(a), std::move(k), w, std::move(b));
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
  template <class Handler>
  static void post(boost::asio::any_io_executor const& ex, Handler&& handler,
                   std::exception_ptr e) {
    post_completion(ex, std::move(handler), std::move(e), T{});
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
  template <class Handler>
  static void post(boost::asio::any_io_executor const& ex, Handler&& handler,
                   std::exception_ptr e) {
    post_completion(ex, std::move(handler), std::move(e));
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
  template <class Handler>
  static void post(boost::asio::any_io_executor const& ex, Handler&& handler,
                   std::exception_ptr e) {
    if constexpr (std::is_void_v<T>) {
      post_completion(ex, std::move(handler), std::move(e), false);
    } else {
      post_completion(ex, std::move(handler), std::move(e), value{});
    }
  }
};

}  // namespace weir::detail

#endif
