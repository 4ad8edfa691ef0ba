// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LIMITER_HPP
#define WEIR_LIMITER_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/unsafe_temporary.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/lease.hpp"
#include "weir/lease/agent.hpp"
#include "weir/lease/held.hpp"
#include "weir/limits.hpp"
#include "weir/rule/validate.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/default_completion_token.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir {

/// A limiter's bounds, for all of its keys.
struct limiter_options {
  std::uint32_t limit = 1;                  ///< permits of each key, 1…`limits::permits`
  duration ttl = std::chrono::seconds{30};  ///< of a permit that is not renewed, (0,
                                            ///< `limits::span`]
  duration poll = std::chrono::seconds{1};  ///< longest time between two asks of one that waits,
                                            ///< (0, 24 h]
};

/// Options of one `limiter::async_acquire`.
struct acquire_options {
  duration wait = limits::span;  ///< how long to wait at most, [0, `limits::span`]; 0: ask once;
                                 ///< `limits::span`: for ever
};

namespace detail {

struct limiter_noun {
  using handle = permit;
  using options = limiter_options;
  using acquire = command::acquire_permit;
  using renew = command::renew_permit;
  using release = command::release_permit;
  using inspect = command::inspect_permits;
  using inspection = std::uint32_t;  ///< what else it is told
  using store = any_store<acquire, renew, release, inspect, command::await_permit>;
  static constexpr bool has_line = true;

  [[nodiscard]] static error_code problem(options const& o) noexcept {
    acquire const any{.key = "k", .holder = "h", .limit = o.limit, .ttl = o.ttl, .patience = {}};
    if (auto const ec = rule::validate(any)) return ec;
    return valid_poll(o.poll);
  }
  [[nodiscard]] static acquire ask(options const& o, held_lease const& l, duration ttl,
                                   duration patience) noexcept {
    return {
        .key = l.key(), .holder = l.holder(), .limit = o.limit, .ttl = ttl, .patience = patience};
  }
  [[nodiscard]] static renew renewal(held_lease const& l, duration ttl) noexcept {
    return {.key = l.key(), .holder = l.holder(), .fence = l.fence, .ttl = ttl};
  }
  [[nodiscard]] static release give_back(held_lease const& l) noexcept {
    return {.key = l.key(), .holder = l.holder(), .fence = l.fence};
  }
  [[nodiscard]] static inspect look(std::string_view key, inspection most) noexcept {
    return {.key = key, .limit = most};
  }
  static void note(held_lease& l, permit_grant const& g) noexcept { l.in_use = g.in_use; }
  [[nodiscard]] static bool in_line(permit_grant const& g) noexcept { return g.place != 0; }
  [[nodiscard]] static duration retry_after(permit_grant const& g) noexcept {
    return g.retry_after;
  }
  [[nodiscard]] static std::string other(permit_grant const&) noexcept { return {}; }

  template <class Agent>
  [[nodiscard]] static error_code refusal(Agent const&, lease_claim const&) noexcept {
    return make_error_code(errc::timed_out);
  }
};

}  // namespace detail

/// Limits how many run at once, anywhere in the cluster: each key has `limit` permits.
///
///     weir::limiter llm{store, {.limit = 10, .ttl = 30s}};
///     std::optional<weir::permit> p = co_await llm.async_try_acquire("gpt");
///     weir::permit q = co_await llm.async_acquire("gpt", {.wait = 3s});
///     co_await llm.async_with_permit("gpt", body);
///
/// Waiters stand in line: first come, first served, as far as the store declares an order. The
/// permit of a holder that dies is free after the TTL at most. A waiter that dies blocks the line
/// for at most `poll + max(poll, 1 s)`.
///
/// A handle: copies share their state. Options outside their ranges do no harm here: every
/// operation that would use them fails, before anything is changed, with `invalid_limit`,
/// `invalid_ttl` or `invalid_option` (`poll`).
///
/// Errors of every operation, besides those named at it: the bad input named there, before any I/O;
/// `store_full`; `store_unavailable`; `outcome_unknown`; `not_enough_memory`; `operation_aborted`
/// when cancelled; and what a store adds.
///
/// Thread-safety: all but the constructor and `renew_on` may be called by any number of threads at
/// once.
///
/// @tparam Store   keeps the permits and decides what time it is
/// @tparam Clock   waits, and tells holders when their time is over
/// @tparam Backoff how those who wait spread their asking; never longer than
/// `limiter_options::poll`
template <class Store, class Clock = system_clock, class Backoff = detail::waiting_backoff>
class limiter {
  static_assert(permit_store<Store>,
                "weir::limiter: this store does not model weir::permit_store "
                "(it cannot execute every command of weir/command/permits.hpp)");
  static_assert(clock<Clock>, "weir::limiter: this clock does not model weir::clock");
  static_assert(backoff<Backoff>, "weir::limiter: this backoff does not model weir::backoff");

  using agent = detail::typed_lease_agent<detail::limiter_noun, Store, Clock>;

 public:
  using store_type = Store;                            ///< where the state lives
  using clock_type = Clock;                            ///< how it waits
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// @param store   where the permits are; copied
  /// @param options the limit and its times, for all keys
  /// @param clock   how it waits
  /// @param backoff how those who wait spread their asking
  /// @param ids     where holder ids come from
  explicit limiter(Store store, limiter_options options = {}, Clock clock = Clock{},
                   Backoff backoff = detail::default_backoff<Backoff>(),
                   id_source ids = id_source{})
      : agent_{agent::make(std::move(store), options, std::move(clock), std::move(backoff),
                           std::move(ids))} {}

  /// The store's: where operations work, and where handlers without an executor of their own are
  /// called.
  [[nodiscard]] executor_type get_executor() const noexcept { return agent_->executor; }
  /// As they were given.
  [[nodiscard]] limiter_options const& options() const noexcept { return agent_->options; }
  /// The store: for its own operations, and for other primitives on it.
  [[nodiscard]] Store const& get_store() const noexcept { return *agent_->typed_store; }

  /// Renews the permits of `async_with_permit` on this executor instead of the store's: a body that
  /// keeps all threads of the store's executor busy would starve the renewal. (A store that answers
  /// by its executor needs one that bodies do not block, too.) Its execution context must outlive
  /// those operations. Concerns this limiter and its copies; to be called before they are used.
  void renew_on(executor_type executor) {
    agent_->keeper_executor = detail::context_bound_executor::make(std::move(executor));
  }

  /// Takes a permit if one is free now, in the calling thread. It never waits, and never overtakes
  /// those who do.
  ///
  /// @param key 1…`limits::key_size` bytes
  /// @return a permit, or nothing: none is free, or others wait for it
  /// Errors: `invalid_key`; `lease_lost`: it was over when it came.
  [[nodiscard]] result<std::optional<permit>> try_acquire(std::string_view key) const
    requires executes_now<Store, command::acquire_permit>
  {
    return agent_->try_now(key);
  }

  /// Takes a permit if one is free now. It never waits, and never overtakes those who do.
  ///
  /// @param key   1…`limits::key_size` bytes
  /// @param token completes with `void(error_code, std::optional<permit>)`
  /// @return a permit, or nothing: none is free, or others wait for it
  /// Errors: `invalid_key`; `lease_lost`: it was over when it came.
  /// Cancellation: starts a release, and leaves nothing behind once the store has executed that;
  /// until then a permit that the store granted, for the TTL at most. So do all errors that leave
  /// the outcome open.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_try_acquire(std::string key, Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::try_it, std::forward<Token>(token), std::move(key));
  }

  /// Takes a permit, and waits in line until there is one.
  ///
  /// It asks again whenever the store hints that it may be worth it, when permits expire, and by
  /// the backoff; a failure that may pass (`store_full`, `disk_full`, `store_unavailable`,
  /// `outcome_unknown`) is asked again too, under the same name, and is reported only if it was the
  /// last word when the wait is over.
  ///
  /// @param key     1…`limits::key_size` bytes
  /// @param options how long to wait, by the limiter's clock, from the initiation on
  /// @param token   completes with `void(error_code, permit)`
  /// @return the permit, with life left in it
  /// Errors: `timed_out`: the wait is over, and no permit was free when the store last answered;
  /// `invalid_key`, `invalid_wait`; of a store that refuses or has not answered, its own.
  /// Cancellation: of every kind, at every point, completes it at once. It starts a release, and
  /// leaves nothing behind once the store has executed that; until then a place in line, until it
  /// lapses, or a permit that the store granted, for the TTL at most. So do all errors.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_acquire(std::string key, acquire_options options,
                                    Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::pursue, std::forward<Token>(token), std::move(key),
                                options.wait);
  }

  /// The same, and waits for ever.
  template <class Token = default_token>
    requires(!std::convertible_to<Token, acquire_options>)
  WEIR_OPERATION auto async_acquire(std::string key, Token&& token = Token{}) const {
    return async_acquire(std::move(key), acquire_options{}, std::forward<Token>(token));
  }

  /// Gives a permit back, and says what became of it: the certain way.
  ///
  /// @param p     of this limiter or a copy of it; may be empty
  /// @param token completes with `void(error_code, bool)`
  /// @return was it freed by this? Giving back late or twice is harmless, and says `false`.
  /// Errors: `invalid_option`: it is another limiter's, and is given back there.
  /// Cancellation: the permit is given back all the same, as its destructor would. So it is after
  /// all errors.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_release(permit p, Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::release, std::forward<Token>(token),
                                detail::lease_access::take(std::move(p)));
  }

  /// Makes a permit last the limiter's TTL from now.
  ///
  /// @param p     need not outlive the initiation; the handle, and what it was moved to, then has
  /// the new expiry
  /// @param token completes with `void(error_code, steady_time)`
  /// @return the new expiry, by the limiter's clock
  /// Errors: `lease_lost`: it was over, or nothing was held; `invalid_option`: it is another
  /// limiter's.
  /// Cancellation: it was renewed or not.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_renew(permit const& p, Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::renew, std::forward<Token>(token),
                                detail::lease_access::state(p));
  }

  /// Counts the permits and the waiters of a key and lists the holders.
  ///
  /// @param key         1…`limits::key_size` bytes
  /// @param max_holders how many to list at most, 0…`limits::batch`
  /// @param token       completes with `void(error_code, permit_census)`
  /// Errors: `invalid_key`, `invalid_batch`.
  /// Cancellation: leaves nothing behind.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_inspect(std::string key, std::uint32_t max_holders,
                                    Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::inspect, std::forward<Token>(token), std::move(key),
                                max_holders);
  }

  /// Waits for the releases that were started before: by handles of this limiter and its copies
  /// that were destroyed, and by operations that were cancelled or timed out.
  ///
  /// @param token completes with `void(error_code)`
  /// Errors: `operation_aborted`, `not_enough_memory`; whether the releases succeeded does not
  /// matter.
  /// Cancellation: leaves nothing behind; the releases go on.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_drain(Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::drain, std::forward<Token>(token));
  }

  /// Runs a body while holding a permit.
  ///
  /// It waits for the permit as `async_acquire` does, then runs the body and renews the permit
  /// meanwhile, each time that a third of the TTL has passed, and more often after a failure. When
  /// the permit is lost (the store says so, or it could not be renewed before its time was over,
  /// less a margin of a tenth, at most 1 s) the body is cancelled (terminal) and the operation
  /// fails with `lease_lost`, whatever the body returned or threw: somebody else may have run
  /// beside it. In the end the permit is given back.
  ///
  /// On g++ 12 give the body a name first, and do not move it: that compiler destroys a lambda with
  /// captures that are not trivial twice when it is a temporary beside `co_await`, and does not
  /// compile here.
  ///
  /// @param key     1…`limits::key_size` bytes
  /// @param options how long to wait for the permit
  /// @param body    copied or moved from; takes `permit const&` or nothing and returns
  /// `boost::asio::awaitable<T>`
  /// @param token   completes with `void(std::exception_ptr)`, or with `void(std::exception_ptr,
  ///        T)` if T is not void
  /// Errors, as `boost::system::system_error`: those of `async_acquire` (the body was not run);
  /// `lease_lost`; and whatever the body throws.
  /// Cancellation: before the body runs as for `async_acquire`; then it reaches the body as it is,
  /// and the operation ends as the body does. The permit is given back in any case.
  /// Executor: the body runs on a strand of the handler's executor (of the store's if it has none,
  /// or the system's, as with `use_future`), the keeper on a strand of the store's or of that given
  /// to `renew_on`. If the store's execution context ends first, so does the operation: with
  /// `operation_aborted`, or, once the body has been told, with `lease_lost`.
  template <class Body, class Token = default_token>
  WEIR_OPERATION auto async_with_permit(std::string key, acquire_options options, Body&& body,
                                        Token&& token = Token{}) const {
    static_assert(!detail::unsafe_body<Body, Token>,
                  "weir::limiter: give the body a name before co_await, and do not move it: g++ 12 "
                  "destroys such a temporary twice");
    static_assert(detail::runs_leased<std::decay_t<Body>, permit>,
                  "weir::limiter: a body takes (weir::permit const&) or nothing and returns "
                  "boost::asio::awaitable<T>");
    if constexpr (detail::runs_leased<std::decay_t<Body>, permit>) {
      using shape = detail::plain_shape<detail::body_result<std::decay_t<Body>, permit>>;
      return detail::async_hold<shape, detail::limiter_noun>(
          agent_, std::move(key), options.wait, std::decay_t<Body>(std::forward<Body>(body)),
          std::forward<Token>(token));
    }
  }

  /// The same, and waits for ever.
  template <class Body, class Token = default_token>
    requires(!std::convertible_to<Body, acquire_options>)
  WEIR_OPERATION auto async_with_permit(std::string key, Body&& body,
                                        Token&& token = Token{}) const {
    return async_with_permit(std::move(key), acquire_options{}, std::forward<Body>(body),
                             std::forward<Token>(token));
  }

 private:
  std::shared_ptr<agent> agent_;
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/lease/operations.hpp"
#endif

#endif
