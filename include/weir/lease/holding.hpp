// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_HOLDING_HPP
#define WEIR_LEASE_HOLDING_HPP

#include "weir/command/permits.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/lease.hpp"
#include "weir/lease/agent.hpp"
#include "weir/lease/held.hpp"
#include "weir/lease/keeper.hpp"
#include "weir/lease/pursuit.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

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
    dispatch_task(on, [self = std::move(self), type] { self->cancel(type); });
  }
  static void lose(std::weak_ptr<basic_body_control> const& weak) {
    auto self = weak.lock();
    if (!self) return;
    auto& on = self->strand;
    post_task(on,
              [self = std::move(self)] { self->cancel(boost::asio::cancellation_type::terminal); });
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

/// Gets the lease, runs the body while a keeper renews it, and gives it back. It runs where its
/// caller's code does, and so the context of the store may end before it.
template <class Noun>
class lease_holding {
 public:
  using agent_type = lease_agent<Noun>;
  using handle = typename agent_type::handle;

  /// What completes it.
  class end final : public spawned_end {
   public:
    explicit end(typename agent_type::held_handler handler) : handler_{std::move(handler)} {}

    void ran() noexcept { ran_ = true; }
    void operator()(std::exception_ptr e) override {
      auto handler = std::move(handler_);
      std::move(handler)(std::move(e), ran_);
    }

   private:
    typename agent_type::held_handler handler_;
    bool ran_ = false;
  };

  static boost::asio::awaitable<void> run(std::shared_ptr<agent_type> agent,
                                          std::shared_ptr<body_control> control,
                                          std::shared_ptr<end> at_end, std::string key,
                                          duration wait, std::unique_ptr<lease_body<Noun>> body) {
    namespace asio = boost::asio;
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation{});
    check(*control);

    auto const claim = std::make_shared<lease_claim>(agent->new_state(std::move(key)));
    auto const lease = claim->owner.state();
    auto pursuing = lease_pursuit<Noun>::run(lease_pursuit<Noun>{agent, claim, wait}, false);
    auto got = co_await std::move(pursuing);
    check(*control);
    if (got.has_error()) {
      error_code const refusal =
          got.error() == errc::timed_out ? Noun::refusal(*agent, *claim) : got.error();
      if (refusal) throw boost::system::system_error{refusal};
      co_return;
    }

    handle held = std::move(got).value();
    std::optional<lease_keeper> keeper;
    if (gate_pass const inside{agent->gate}; inside) {
      keeper.emplace(agent->keeper_executor->get(), agent->clock, agent->options.ttl,
                     lease->expires_at(), duty(agent, lease, control));
    }
    if (!keeper) throw boost::system::system_error{boost::asio::error::operation_aborted};

    std::exception_ptr failure;
    co_await asio::this_coro::throw_if_cancelled(true);
    try {
      auto running = body->run(held);
      co_await std::move(running);
    } catch (...) {
      failure = std::current_exception();
    }
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation{});

    keeper->stop();
    bool const lost = keeper->lost() || agent->clock.steady_now() >= keeper->deadline();
    if (agent->store.executes_now() || lost) {
      held.release();
    } else {
      auto returning = give_back(agent, std::move(held), keeper->deadline());
      co_await std::move(returning);
    }
    if (lost) throw boost::system::system_error{make_error_code(errc::lease_lost)};
    if (failure) std::rethrow_exception(failure);
    at_end->ran();
  }

 private:
  static void check(body_control const& control) {
    if (control.requested == boost::asio::cancellation_type::none) return;
    throw boost::system::system_error{boost::asio::error::operation_aborted};
  }

  static lease_keeper::duty duty(std::shared_ptr<agent_type> const& agent,
                                 std::shared_ptr<held_lease> const& lease,
                                 std::weak_ptr<body_control> control) {
    lease_keeper::duty d{[to = agent.get(), lease](lease_keeper::renewal handler) {
      auto const command = Noun::renewal(*lease, to->options.ttl);
      if (to->store.executes_now()) {  // not by way of its executor, which the body may keep busy
        auto step = [&] { return to->store.execute(command); };
        auto const executor = handler.get_executor();
        async_lift<lease_renewal>(executor, step, std::move(handler));
      } else {
        to->store.start(command, std::move(handler));
      }
    }};
    d.keep = lease;  // and with it the agent
    d.on_lost = [control = std::move(control)] { body_control::lose(control); };
    d.on_renewed = [lease](steady_time expiry) { lease->expires_at(expiry); };
    return d;
  }

  // The caller learns of the end when the lease is free again, unless the store has not said so
  // before it is over anyway.
  static boost::asio::awaitable<void> give_back(std::shared_ptr<agent_type> agent, handle held,
                                                steady_time until) {
    auto owner = lease_access::take(std::move(held));
    auto const lease = owner.state();
    auto start = [&](attempt_handler<lease_release> handler) {
      agent->store.start(Noun::give_back(*lease), std::move(handler));
    };
    auto returning = attempt<lease_release>(agent->clock, until, lease, start);
    auto const returned = co_await std::move(returning);
    if (returned.has_value() || returned.error() == errc::timed_out) owner.disarm();
  }
};

}  // namespace weir::detail

#endif
