// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_SPAWN_HPP
#define WEIR_DETAIL_SPAWN_HPP

#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_executor.hpp>
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
#include <functional>
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

/// What ends a spawned operation: it has the caller's handler, and is destroyed with the operation
/// if that never ends.
struct spawned_end {
  spawned_end() = default;
  spawned_end(spawned_end const&) = delete;
  spawned_end& operator=(spawned_end const&) = delete;
  virtual ~spawned_end() = default;
  virtual void operator()(std::exception_ptr e) = 0;
};

/// What is given to `co_spawn`: the same type for all operations, so that it is instantiated once.
/// It has the caller's handler's executor, but is cancelled through a signal of the operation's
/// own.
class spawned_handler {
 public:
  using executor_type = boost::asio::any_completion_executor;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  spawned_handler(std::shared_ptr<boost::asio::cancellation_signal> signal, executor_type executor,
                  std::shared_ptr<spawned_end> end)
      : signal_{std::move(signal)},
        executor_{std::move(executor)},
        end_{std::move(end)} {}
  spawned_handler(spawned_handler&&) noexcept = default;
  spawned_handler& operator=(spawned_handler&&) = delete;
  ~spawned_handler() = default;

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
    return signal_->slot();
  }

  void operator()(std::exception_ptr e) {
    auto const end = std::move(end_);
    (*end)(std::move(e));
  }

 private:
  std::shared_ptr<boost::asio::cancellation_signal> signal_;
  executor_type executor_;
  std::shared_ptr<spawned_end> end_;
};

/// `co_spawn`, of work that says itself where its result goes.
template <class Work>
void spawn_on(boost::asio::strand<boost::asio::any_io_executor> const& strand, Work work,
              spawned_handler handler) {
  boost::asio::co_spawn(strand, std::move(work), std::move(handler));
}

/// Keeps an answer until the operation has ended.
template <class T>
class spawned_answer final : public spawned_end {
 public:
  explicit spawned_answer(std::shared_ptr<parked<error_code, T>> to) : to_{std::move(to)} {}

  static boost::asio::awaitable<void> keep(std::shared_ptr<spawned_answer> self,
                                           boost::asio::awaitable<result<T>> body) {
    self->answer_ = co_await std::move(body);
  }

  void operator()(std::exception_ptr e) override {
    if (e) answer_ = error_of(e);
    auto answer = std::move(answer_);
    if (answer.has_value()) {
      to_->resume(error_code{}, std::move(answer).value());
    } else {
      to_->resume(answer.error(), T{});
    }
  }

 private:
  std::shared_ptr<parked<error_code, T>> to_;
  result<T> answer_ = error_code{};
};

/// Runs `body` on a strand of `executor`. What it returns or throws goes to `handler`, on the
/// handler's executor and never inline. Every kind of cancellation reaches the body, as a terminal
/// one. So does the end of the handler's execution context, which destroys the handler.
///
/// The handler's slot knows the operation weakly and holds no strand: it may be kept for longer
/// than the execution context lives, and a strand may not.
template <class T>
void spawn(boost::asio::any_io_executor const& executor, boost::asio::awaitable<result<T>> body,
           boost::asio::any_completion_handler<void(error_code, T)> handler) {
  namespace asio = boost::asio;
  auto const signal = std::make_shared<asio::cancellation_signal>();
  auto const cancel = [weak = std::weak_ptr{signal}](asio::cancellation_type_t type) {
    if (type == asio::cancellation_type::none) return;
    if (auto const operation = weak.lock()) operation->emit(asio::cancellation_type::all);
  };
  auto const gone = [cancel]() noexcept {
    try {
      cancel(asio::cancellation_type::terminal);
    } catch (...) {  // out of memory: it goes on for nobody
    }
  };
  auto slot = asio::get_associated_cancellation_slot(handler);
  // The body is cancelled, and says when it has ended: so what is parked has no slot.
  auto const waiting = park<error_code, T>(
      executor, asio::bind_cancellation_slot(asio::cancellation_slot{}, std::move(handler)), gone);
  if (!waiting->waiting()) return;
  try {
    if (slot.is_connected()) slot.assign(cancel);
    auto const end = std::make_shared<spawned_answer<T>>(waiting);
    auto const strand = asio::make_strand(executor);
    auto work = spawned_answer<T>::keep(end, std::move(body));
    spawn_on(strand, std::move(work), spawned_handler{signal, strand, end});
  } catch (...) {
    waiting->resume(error_of(std::current_exception()), T{});
  }
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

  attempt_handler(std::shared_ptr<parked<error_code>> attempt, std::shared_ptr<Answer> answer,
                  std::shared_ptr<attempt_signals> signals, std::shared_ptr<void const> keep,
                  executor_type executor)
      : attempt_{std::move(attempt)},
        answer_{std::move(answer)},
        signals_{std::move(signals)},
        keep_{std::move(keep)},
        executor_{std::move(executor)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
    return signals_->command.slot();
  }

  void operator()(error_code ec, Answer answer) {
    signals_->command.slot().clear();
    if (!attempt_->claim()) return;
    *answer_ = std::move(answer);
    attempt_->finish(ec);
  }

 private:
  std::shared_ptr<parked<error_code>> attempt_;
  std::shared_ptr<Answer> answer_;
  std::shared_ptr<attempt_signals> signals_;
  std::shared_ptr<void const> keep_;
  executor_type executor_;
};

/// What an attempt starts; null: nothing, and then it is a wait, which ends by `errc::timed_out`,
/// or by being cancelled.
using attempt_start =
    std::function<void(std::shared_ptr<parked<error_code>>, std::shared_ptr<attempt_signals>,
                       boost::asio::any_io_executor const&)>;

/// Starts something, and gives up at `until` or when cancelled: at once, whatever becomes of it. To
/// be awaited by a coroutine that runs on a strand and does not throw when cancelled.
///
/// @param until `steady_time::max()`: never
/// @return how it ended; `errc::timed_out`; `operation_aborted`
template <class Clock>
boost::asio::awaitable<error_code> attempt_anything(Clock clock, steady_time until,
                                                    attempt_start start) {
  namespace asio = boost::asio;
  // A cancellation is told once, to what is being awaited then.
  if (auto const state = co_await asio::this_coro::cancellation_state; !!state.cancelled()) {
    co_return error_code{asio::error::operation_aborted};
  }
  auto const executor = co_await asio::this_coro::executor;
  auto const signals = std::make_shared<attempt_signals>();

  auto initiate = [&](auto handler) {
    auto const waiting = park<error_code>(executor, std::move(handler));
    try {
      if (start) start(waiting, signals, executor);
      if (until == steady_time::max()) return;
      auto over = asio::bind_cancellation_slot(
          signals->wait.slot(), asio::bind_executor(executor, [waiting, signals](error_code ec) {
            signals->wait.slot().clear();
            if (!ec) waiting->resume(make_error_code(errc::timed_out));
          }));
      clock.async_wait_until(executor, until, std::move(over));
    } catch (...) {
      waiting->resume(error_of(std::current_exception()));
    }
  };
  auto operation = asio::async_initiate<asio::as_tuple_t<asio::deferred_t> const, void(error_code)>(
      initiate, asio::as_tuple(asio::deferred));
  auto const [ec] = co_await std::move(operation);

  signals->command.emit(asio::cancellation_type::terminal);
  signals->wait.emit(asio::cancellation_type::terminal);
  co_return ec;
}

/// Waits until a time: `errc::timed_out`, or `operation_aborted` if it was cancelled.
[[nodiscard]] inline boost::asio::awaitable<error_code> attempt_nothing(any_clock const& clock,
                                                                        steady_time until) {
  return attempt_anything(clock, until, attempt_start{});
}

/// Asks a store something, and gives up as `attempt_anything` does.
///
/// @param keep  lives until the store is done with the command, which may be later than this
/// returns. What has to be
///              done after the command, however it ended, is for its destructor.
/// @param start `void(attempt_handler<Answer>)`: starts the command
/// @return the answer, or its error; `errc::timed_out`; `operation_aborted`
template <class Answer, class Start>
boost::asio::awaitable<result<Answer>> attempt(any_clock clock, steady_time until,
                                               std::shared_ptr<void const> keep, Start start) {
  auto const answer = std::make_shared<Answer>();
  attempt_start begin = [&](std::shared_ptr<parked<error_code>> attempt,
                            std::shared_ptr<attempt_signals> signals,
                            boost::asio::any_io_executor const& executor) {
    start(attempt_handler<Answer>{std::move(attempt), answer, std::move(signals), std::move(keep),
                                  executor});
  };
  auto asking = attempt_anything(std::move(clock), until, std::move(begin));
  error_code const ec = co_await std::move(asking);
  if (ec) co_return ec;
  co_return std::move(*answer);
}

}  // namespace weir::detail

#endif
