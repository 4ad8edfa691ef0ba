// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_SPAWN_HPP
#define WEIR_DETAIL_SPAWN_HPP

#include "weir/concept.hpp"
#include "weir/detail/parking.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <memory>
#include <new>
#include <utility>

// How the primitives write an operation that takes more than one step: once, as a coroutine on a
// strand of its own, for the erased handler. And how such a coroutine asks a store something
// without being at its mercy.
namespace weir::detail {

/// Any exception as an error code.
[[nodiscard]] inline error_code error_of(std::exception_ptr const& e) noexcept {
  if (!e) return {};
  try {
    std::rethrow_exception(e);
  } catch (boost::system::system_error const& error) {
    return error.code();
  } catch (std::bad_alloc const&) {
    return make_error_code(boost::system::errc::not_enough_memory);
  } catch (...) {  // a policy's own
    return make_error_code(boost::system::errc::state_not_recoverable);
  }
}

/// What `spawn` gives to `co_spawn`: the caller's handler, but cancelled through a signal of the
/// operation's own.
template <class T>
class spawned_handler {
 public:
  using handler_type = boost::asio::any_completion_handler<void(error_code, T)>;
  using executor_type =
      boost::asio::associated_executor_t<handler_type, boost::asio::any_io_executor>;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  spawned_handler(std::shared_ptr<boost::asio::cancellation_signal> signal,
                  boost::asio::any_io_executor executor, handler_type handler)
      : signal_{std::move(signal)},
        executor_{std::move(executor)},
        handler_{std::move(handler)} {}

  [[nodiscard]] executor_type get_executor() const noexcept {
    return boost::asio::get_associated_executor(handler_, executor_);
  }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
    return signal_->slot();
  }

  void operator()(std::exception_ptr e, result<T> answer) {
    if (e) answer = error_of(e);
    if (answer.has_value()) {
      std::move(handler_)(error_code{}, std::move(answer).value());
    } else {
      std::move(handler_)(answer.error(), T{});
    }
  }

 private:
  std::shared_ptr<boost::asio::cancellation_signal> signal_;
  boost::asio::any_io_executor executor_;
  handler_type handler_;
};

/// Runs `body` on a strand of `executor`. What it returns or throws goes to `handler`, on the
/// handler's executor and never inline. Every kind of cancellation reaches the body, as a terminal
/// one.
///
/// The handler's slot knows the operation weakly and holds no strand: it may be kept for longer
/// than the execution context lives, and a strand may not.
template <class T>
void spawn(boost::asio::any_io_executor const& executor, boost::asio::awaitable<result<T>> body,
           boost::asio::any_completion_handler<void(error_code, T)> handler) {
  namespace asio = boost::asio;
  auto const signal = std::make_shared<asio::cancellation_signal>();
  if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
    slot.assign([weak = std::weak_ptr{signal}](asio::cancellation_type_t type) {
      if (type == asio::cancellation_type::none) return;
      if (auto const operation = weak.lock()) operation->emit(asio::cancellation_type::all);
    });
  }
  asio::co_spawn(asio::make_strand(executor), std::move(body),
                 spawned_handler<T>{signal, executor, std::move(handler)});
}

/// What an attempt cancels when it is over: the command that is too late, or the wait that is not
/// needed. An operation that has completed clears its slot, since what it left there may refer to
/// what is gone.
struct attempt_signals {
  boost::asio::cancellation_signal command;
  boost::asio::cancellation_signal wait;
};

/// What the store sees of an attempt. It may keep it for as long as it likes: the attempt does not
/// wait for it.
template <class Answer>
class attempt_handler {
 public:
  using executor_type = boost::asio::any_io_executor;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  attempt_handler(std::shared_ptr<parked<error_code, Answer>> attempt,
                  std::shared_ptr<attempt_signals> signals, std::shared_ptr<void const> keep,
                  executor_type executor)
      : attempt_{std::move(attempt)},
        signals_{std::move(signals)},
        keep_{std::move(keep)},
        executor_{std::move(executor)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
    return signals_->command.slot();
  }

  void operator()(error_code ec, Answer answer) {
    signals_->command.slot().clear();
    attempt_->resume(ec, std::move(answer));
  }

 private:
  std::shared_ptr<parked<error_code, Answer>> attempt_;
  std::shared_ptr<attempt_signals> signals_;
  std::shared_ptr<void const> keep_;
  executor_type executor_;
};

/// Starts nothing: an attempt with it is a wait, which ends by `errc::timed_out`, or by being
/// cancelled.
struct no_command {
  template <class Handler>
  void operator()(Handler&&) const noexcept {}
};

/// Asks a store something, and gives up at `until` or when cancelled: at once, whatever the store
/// does. To be awaited by a coroutine that runs on a strand and does not throw when cancelled.
///
/// @param until `steady_time::max()`: never
/// @param keep  lives until the store is done with the command, which may be later than this
/// returns. What has to be
///              done after the command, however it ended, is for its destructor.
/// @param start `void(attempt_handler<Answer>)`: starts the command
/// @return the answer, or its error; `errc::timed_out`; `operation_aborted`
template <class Answer, class Clock, class Start>
boost::asio::awaitable<result<Answer>> attempt(Clock clock, steady_time until,
                                               std::shared_ptr<void const> keep, Start start) {
  namespace asio = boost::asio;
  // A cancellation is told once, to what is being awaited then.
  if (auto const state = co_await asio::this_coro::cancellation_state; !!state.cancelled()) {
    co_return error_code{asio::error::operation_aborted};
  }
  auto const executor = co_await asio::this_coro::executor;
  auto const signals = std::make_shared<attempt_signals>();

  auto initiate = [&](auto handler) {
    auto const waiting = park<error_code, Answer>(executor, std::move(handler));
    try {
      start(attempt_handler<Answer>{waiting, signals, std::move(keep), executor});
      if (until == steady_time::max()) return;
      auto over = asio::bind_cancellation_slot(
          signals->wait.slot(), asio::bind_executor(executor, [waiting, signals](error_code ec) {
            signals->wait.slot().clear();
            if (!ec) waiting->resume(make_error_code(errc::timed_out), Answer{});
          }));
      clock.async_wait_until(executor, until, std::move(over));
    } catch (...) {
      waiting->resume(error_of(std::current_exception()), Answer{});
    }
  };
  auto operation =
      asio::async_initiate<asio::as_tuple_t<asio::deferred_t> const, void(error_code, Answer)>(
          initiate, asio::as_tuple(asio::deferred));
  auto [ec, answer] = co_await std::move(operation);

  signals->command.emit(asio::cancellation_type::terminal);
  signals->wait.emit(asio::cancellation_type::terminal);
  if (ec) co_return ec;
  co_return std::move(answer);
}

}  // namespace weir::detail

#endif
