// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_ENGINE_STORE_HPP
#define WEIR_ENGINE_STORE_HPP

#include "weir/command/at.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace weir {

/// The common part of `sqlite_store`, `redis_store`, `postgres_store` and `nats_store`. Each is a
/// handle: copies share the state, and any number of threads may use them at once, of one process:
/// after `fork` a child must neither use nor destroy them, and makes its own. What is its own, such
/// as errors and what becomes of a command that is cancelled, is said where it is defined.
///
/// @tparam Store  one of these
/// @tparam Engine what executes its commands
template <class Store, class Engine>
class engine_store {
 public:
  using executor_type = boost::asio::any_io_executor;  ///< of any kind

  /// As it was given.
  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  /// How many shards the job queues have, as bounded.
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return shards_; }

  /// The same store for callers who cannot wait: a request path, say. Calls by way of this handle,
  /// and of its copies, end within `most`. A command that was not given to the engine by then never
  /// is: it is `store_unavailable`, or fails as the engine refuses. One that was given is
  /// `outcome_unknown`. Waits for hints are not bounded. Nor are the returns that `limiter`,
  /// `uniqueness` and `rate_limiter` start by themselves, nor `async_drain`, which waits for them.
  /// A store that wraps this one should have this member, too; otherwise its returns are bounded by
  /// the handle that it wraps.
  ///
  /// @param most 1 ms at least; from `limits::span` on only the store's options bound the calls
  [[nodiscard]] Store with_patience(duration most) const {
    Store out{static_cast<Store const&>(*this)};
    static_cast<engine_store&>(out).patience_ = detail::bounded_patience(most);
    return out;
  }

  /// Why commands fail, or failed last: what is wrong with the engine, or on the way to it. May be
  /// called by any thread.
  [[nodiscard]] store_failure last_failure() const { return last_failure_of(*engine_); }

  /// Executes a command, and completes by posting the handler.
  ///
  /// Errors: those of the command, and those of the store.
  ///
  /// Cancellation, of any type: completes it with `operation_aborted`. It was not executed if it
  /// had not begun; otherwise see the store.
  template <class C, class Token>
    requires detail::engine_executes<Engine, C>
  WEIR_OPERATION auto async_execute(C const& c, Token&& token) const {
    return call(c, {}, std::forward<Token>(token));
  }

  /// The same as if at `a.time`, for tests and replays. It has no effect on the store's own time.
  template <class C, class Token>
    requires detail::engine_executes<Engine, C>
  WEIR_OPERATION auto async_execute(command::at<C> const& a, Token&& token) const {
    return call(a.command, a.time, std::forward<Token>(token));
  }

  /// Waits for a hint. It comes at the latest a `poll_interval` after there is reason for it,
  /// unless the store says otherwise, and usually much sooner.
  ///
  /// Cancellation, of any type: completes it with `operation_aborted`.
  template <class C, class Token>
    requires(detail::engine_command<C> && command::waits_for_event<C>)
  WEIR_OPERATION auto async_execute(C const& c, Token&& token) const {
    return call(c, {}, std::forward<Token>(token));
  }

  /// Lets nothing more in: later commands, and waits, are `closed`. It does not wait for commands
  /// under way; each store says what becomes of those.
  void close() const { close_engine(*engine_); }

 protected:
  /// An operation without a result that `start(engine, handler)` begins.
  template <class Start, class Token>
  auto async_start(Start start, Token&& token) const {
    using handler_type = boost::asio::any_completion_handler<void(error_code)>;
    auto initiate = [start](handler_type handler, std::shared_ptr<Engine> const& on) {
      start(*on, std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(error_code)>(
        detail::bound_initiation{executor_, initiate}, token, engine_);
  }

 private:
  friend Store;

  engine_store(executor_type executor, std::uint32_t shards, std::shared_ptr<Engine> engine)
      : executor_{std::move(executor)},
        shards_{shards},
        engine_{std::move(engine)} {}

  template <class C, class Token>
  auto call(C const& c, detail::told_time at, Token&& token) const {
    return detail::async_engine_call(executor_, engine_, c, {.at = at, .patience = patience_},
                                     std::forward<Token>(token));
  }

  executor_type executor_;
  std::uint32_t shards_;
  duration patience_{};  // of each call; 0: none of its own
  std::shared_ptr<Engine> engine_;
};

}  // namespace weir

#endif
