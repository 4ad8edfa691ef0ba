// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_UNIQUENESS_HPP
#define WEIR_UNIQUENESS_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/unsafe_temporary.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/lease.hpp"
#include "weir/lease/agent.hpp"
#include "weir/lease/held.hpp"
#include "weir/limits.hpp"
#include "weir/rule/validate.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/default_completion_token.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace weir {

/// How locks live and are waited for, for all keys.
struct uniqueness_options {
  duration ttl = std::chrono::seconds{30};  ///< of a lock that is not renewed, (0, `limits::span`]
  duration poll = std::chrono::seconds{1};  ///< longest time between two asks of one that waits,
                                            ///< (0, 24 h]
  conflict_policy on_conflict = conflict_policy::reject;  ///< of `async_with_lock`: `reject`,
                                                          ///< `discard` or `log`
};

/// Options of one `uniqueness::async_lock`.
struct lock_options {
  duration wait = limits::span;  ///< how long to wait at most, [0, `limits::span`]; 0: ask once;
                                 ///< `limits::span`: for ever
};

/// Options of one `uniqueness::async_with_lock`.
struct with_lock_options {
  duration wait{};  ///< how long to wait until it is a conflict, as in `lock_options`
};

/// How `uniqueness::async_with_lock` reports a conflict under `conflict_policy::reject`: a
/// `system_error` with the code `errc::unique_conflict` that also says who has the key.
class unique_conflict_error : public boost::system::system_error {
 public:
  /// @param holder who has the key
  explicit unique_conflict_error(std::string holder)
      : boost::system::system_error{make_error_code(errc::unique_conflict)},
        holder_{std::make_shared<std::string const>(std::move(holder))} {}

  /// The holder of the key when the store was asked last, as `lock::holder` of its owner says.
  [[nodiscard]] std::string_view holder() const noexcept { return *holder_; }

 private:
  std::shared_ptr<std::string const> holder_;  // an exception is copied without throwing
};

namespace detail {

struct uniqueness_noun {
  using handle = lock;
  using options = uniqueness_options;
  using acquire = command::acquire_lock;
  using renew = command::renew_lock;
  using release = command::release_lock;
  using inspect = command::inspect_lock;
  using inspection = std::monostate;  ///< what else it is told
  using store = any_store<acquire, renew, release, inspect>;
  static constexpr bool has_line = false;

  [[nodiscard]] static error_code problem(options const& o) noexcept {
    if (auto const ec = rule::validate(acquire{.key = "k", .holder = "h", .ttl = o.ttl})) return ec;
    switch (o.on_conflict) {
      case conflict_policy::reject:
      case conflict_policy::discard:
      case conflict_policy::log: return valid_poll(o.poll);
      default:
        return explained(errc::invalid_option, "on_conflict: that policy is for queued jobs");
    }
  }
  [[nodiscard]] static acquire ask(options const&, held_lease const& l, duration ttl,
                                   duration /*patience*/) noexcept {
    return {.key = l.key(), .holder = l.holder(), .ttl = ttl};
  }
  [[nodiscard]] static renew renewal(held_lease const& l, duration ttl) noexcept {
    return {.key = l.key(), .holder = l.holder(), .fence = l.fence, .ttl = ttl};
  }
  [[nodiscard]] static release give_back(held_lease const& l) noexcept {
    return {.key = l.key(), .holder = l.holder(), .fence = l.fence};
  }
  [[nodiscard]] static inspect look(std::string_view key, inspection) noexcept {
    return {.key = key};
  }
  static void note(held_lease&, lock_grant const&) noexcept {}
  [[nodiscard]] static bool in_line(lock_grant const&) noexcept { return false; }
  [[nodiscard]] static duration retry_after(lock_grant const& g) noexcept { return g.expires_in; }
  [[nodiscard]] static std::string other(lock_grant const& g) { return g.holder; }

  /// No error: the body is simply not run. Throws the conflict that is one.
  template <class Agent>
  [[nodiscard]] static error_code refusal(Agent const& agent, lease_claim const& claim) {
    auto const policy = agent.options.on_conflict;
    if (policy == conflict_policy::reject) throw unique_conflict_error{claim.other};
    if (policy == conflict_policy::log && agent.observer) {
      try {
        agent.observer(claim.state().key(), claim.other);
      } catch (...) {  // an observer that throws has nobody to tell
      }
    }
    return {};
  }
};

}  // namespace detail

/// Keeps keys that at most one holder has, anywhere in the cluster: for code that is not to run
/// twice at once, or not twice within a time. (The unique keys of queued jobs are not these: they
/// belong to the job.)
///
///     weir::uniqueness once{store, {.ttl = 30s, .on_conflict = weir::conflict_policy::discard}};
///     bool const ran = co_await once.async_with_lock("report", body);  // while executing
///     if (co_await once.async_claim("payment 17", 24h)) { ... }        // until expired
///     std::optional<weir::lock> l = co_await once.async_try_lock("leader");
///
/// A handle: copies share their state. Options outside their ranges do no harm here: every
/// operation that would use them fails, before anything is changed, with `invalid_ttl` or
/// `invalid_option` (`poll`; the policies `replace` and `reschedule`, which concern queued jobs).
///
/// Errors of every operation, besides those named at it: the bad input named there, before any I/O;
/// `store_full`; `store_unavailable`; `outcome_unknown`; `not_enough_memory`; `operation_aborted`
/// when cancelled; and what a store adds.
///
/// Thread-safety: all but the constructor, `on_conflict` and `renew_on` may be called by any number
/// of threads at once.
///
/// @tparam Store   keeps the locks and decides what time it is
/// @tparam Clock   waits, and tells holders when their time is over
/// @tparam Backoff how those who wait spread their asking; never longer than
/// `uniqueness_options::poll`
template <class Store, class Clock = system_clock, class Backoff = detail::waiting_backoff>
class uniqueness {
  static_assert(lock_store<Store>, "weir::uniqueness: this store does not model weir::lock_store "
                                   "(it cannot execute every command of weir/command/locks.hpp)");
  static_assert(clock<Clock>, "weir::uniqueness: this clock does not model weir::clock");
  static_assert(backoff<Backoff>, "weir::uniqueness: this backoff does not model weir::backoff");

  using agent = detail::typed_lease_agent<detail::uniqueness_noun, Store, Clock>;

 public:
  using store_type = Store;                            ///< where the state lives
  using clock_type = Clock;                            ///< how it waits
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// Called for a conflict under `conflict_policy::log`: the key, and who has it.
  using conflict_observer = std::function<void(std::string_view key, std::string_view holder)>;

  /// @param store   where the locks are; copied
  /// @param options their times, and what a conflict is
  /// @param clock   how it waits
  /// @param backoff how those who wait spread their asking
  /// @param ids     where holder ids come from
  explicit uniqueness(Store store, uniqueness_options options = {}, Clock clock = Clock{},
                      Backoff backoff = detail::default_backoff<Backoff>(),
                      id_source ids = id_source{})
      : agent_{agent::make(std::move(store), options, std::move(clock), std::move(backoff),
                           std::move(ids))} {}

  /// The store's: where operations work, and where handlers without an executor of their own are
  /// called.
  [[nodiscard]] executor_type get_executor() const noexcept { return agent_->executor; }
  /// As they were given.
  [[nodiscard]] uniqueness_options const& options() const noexcept { return agent_->options; }
  /// The store: for its own operations, and for other primitives on it.
  [[nodiscard]] Store const& get_store() const noexcept { return *agent_->typed_store; }

  /// Sets what is told of conflicts under `conflict_policy::log`. It runs where the body would have
  /// run; what it throws is ignored. Concerns this object and its copies; to be called before they
  /// are used.
  void on_conflict(conflict_observer observer) { agent_->observer = std::move(observer); }

  /// Renews the locks of `async_with_lock` on this executor instead of the store's: a body that
  /// keeps all threads of the store's executor busy would starve the renewal. (A store that answers
  /// by its executor needs one that bodies do not block, too.) Its execution context must outlive
  /// those operations. Concerns this object and its copies; to be called before they are used.
  void renew_on(executor_type executor) {
    agent_->keeper_executor = detail::context_bound_executor::make(std::move(executor));
  }

  /// Takes a lock if nobody has it, in the calling thread.
  ///
  /// @param key 1…`limits::key_size` bytes
  /// @return a lock, or nothing: somebody has it
  /// Errors: `invalid_key`; `lease_lost`: it was over when it came.
  [[nodiscard]] result<std::optional<lock>> try_lock(std::string_view key) const
    requires executes_now<Store, command::acquire_lock>
  {
    return agent_->try_now(key);
  }

  /// Takes a lock if nobody has it.
  ///
  /// @param key   1…`limits::key_size` bytes
  /// @param token completes with `void(error_code, std::optional<lock>)`
  /// @return a lock, or nothing: somebody has it, whatever the conflict policy
  /// Errors: `invalid_key`; `lease_lost`: it was over when it came.
  /// Cancellation: starts a release, and leaves nothing behind once the store has executed that;
  /// until then a lock that the store granted, for the TTL at most. So do all errors that leave the
  /// outcome open.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_try_lock(std::string key, Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::try_it, std::forward<Token>(token), std::move(key));
  }

  /// Takes a lock, and waits until it is free.
  ///
  /// It asks again by the backoff, and when the other's lease ends; a failure that may pass
  /// (`store_full`, `disk_full`, `store_unavailable`, `outcome_unknown`) is asked again too, under
  /// the same name, and is reported only if it was the last word when the wait is over. Who waits
  /// has no place in a line: locks declare no order.
  ///
  /// @param key     1…`limits::key_size` bytes
  /// @param options how long to wait, by this object's clock, from the initiation on
  /// @param token   completes with `void(error_code, lock)`
  /// @return the lock, with life left in it
  /// Errors: `timed_out`: the wait is over, and the lock was held when the store last answered;
  /// `invalid_key`, `invalid_wait`; of a store that refuses or has not answered, its own.
  /// Cancellation: of every kind, at every point, completes it at once. It starts a release, and
  /// leaves nothing behind once the store has executed that; until then a lock that the store
  /// granted, for the TTL at most. So do all errors.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_lock(std::string key, lock_options options,
                                 Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::pursue, std::forward<Token>(token), std::move(key),
                                options.wait);
  }

  /// The same, and waits for ever.
  template <class Token = default_token>
    requires(!std::convertible_to<Token, lock_options>)
  WEIR_OPERATION auto async_lock(std::string key, Token&& token = Token{}) const {
    return async_lock(std::move(key), lock_options{}, std::forward<Token>(token));
  }

  /// Takes a key for a time and keeps it until then, whatever becomes of who took it: says `true`
  /// the first time within `ttl`, and `false` from then on (`unique_strategy::until_expired`, for
  /// idempotency). There is nothing to give back.
  ///
  /// @param key   1…`limits::key_size` bytes; shares its name space with the locks of this store
  /// @param ttl   how long, (0, `limits::span`]
  /// @param token completes with `void(error_code, bool)`
  /// @return is this the first time?
  /// Errors: `invalid_key`, `invalid_ttl`.
  /// Cancellation: gives the key back, as do all errors that leave the outcome open: who asks again
  /// is then the first. Until the store has executed that, the key is taken, for `ttl` at most.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_claim(std::string key, duration ttl, Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::claim, std::forward<Token>(token), std::move(key),
                                ttl);
  }

  /// Gives a lock back, and says what became of it: the certain way.
  ///
  /// @param l     of this object or a copy of it; may be empty
  /// @param token completes with `void(error_code, bool)`
  /// @return was it freed by this? Giving back late or twice is harmless, and says `false`.
  /// Errors: `invalid_option`: it is another object's, and is given back there.
  /// Cancellation: the lock is given back all the same, as its destructor would. So it is after all
  /// errors.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_release(lock l, Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::release, std::forward<Token>(token),
                                detail::lease_access::take(std::move(l)));
  }

  /// Makes a lock last the TTL from now.
  ///
  /// @param l     need not outlive the initiation; the handle, and what it was moved to, then has
  /// the new expiry
  /// @param token completes with `void(error_code, steady_time)`
  /// @return the new expiry, by this object's clock
  /// Errors: `lease_lost`: it was over, or nothing was held; `invalid_option`: it is another
  /// object's.
  /// Cancellation: it was renewed or not.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_renew(lock const& l, Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::renew, std::forward<Token>(token),
                                detail::lease_access::state(l));
  }

  /// Says who has a key.
  ///
  /// @param key   1…`limits::key_size` bytes
  /// @param token completes with `void(error_code, lock_info)`
  /// Errors: `invalid_key`.
  /// Cancellation: leaves nothing behind.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_inspect(std::string key, Token&& token = Token{}) const {
    return detail::async_erased(agent_, &agent::inspect, std::forward<Token>(token), std::move(key),
                                std::monostate{});
  }

  /// Waits for the releases that were started before: by handles of this object and its copies that
  /// were destroyed, and by operations that were cancelled or timed out.
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

  /// Runs a body while holding a lock (`unique_strategy::while_executing` for any code).
  ///
  /// If others have the lock until the wait is over, that is a conflict, and the body is not run:
  /// under `reject` it is the error `unique_conflict`, thrown as `unique_conflict_error`, under
  /// `discard` a value, under `log` the same and the observer is told. Otherwise the body runs, and
  /// the lock is renewed meanwhile, each time that a third of the TTL has passed, and more often
  /// after a failure. When it is lost (the store says so, or it could not be renewed before its
  /// time was over, less a margin of a tenth, at most 1 s) the body is cancelled (terminal) and the
  /// operation fails with `lease_lost`, whatever the body returned or threw: somebody else may have
  /// run beside it. In the end the lock is given back, also if the body failed.
  ///
  /// On g++ 12 give the body a name first, and do not move it: that compiler destroys a lambda with
  /// captures that are not trivial twice when it is a temporary beside `co_await`, and does not
  /// compile here.
  ///
  /// @param key     1…`limits::key_size` bytes
  /// @param options how long to wait for the lock; not at all by default
  /// @param body    copied or moved from; takes `lock const&` or nothing and returns
  /// `boost::asio::awaitable<T>`
  /// @param token   completes with `void(std::exception_ptr, std::optional<T>)`, or with
  /// `void(std::exception_ptr, bool)`
  ///                if T is void
  /// @return what the body returned, or that it ran; nothing, or `false`, after a conflict
  /// Errors, as `boost::system::system_error`: those of `async_lock` but for `timed_out` (the body
  /// was not run); `unique_conflict`; `lease_lost`; and whatever the body throws.
  /// Cancellation: before the body runs as for `async_lock`; then it reaches the body as it is, and
  /// the operation ends as the body does. The lock is given back in any case.
  /// Executor: the body runs on a strand of the handler's executor (of the store's if it has none,
  /// or the system's, as with `use_future`), the keeper on a strand of the store's or of that given
  /// to `renew_on`. If the store's execution context ends first, so does the operation: with
  /// `operation_aborted`, or, once the body has been told, with `lease_lost`.
  template <class Body, class Token = default_token>
  WEIR_OPERATION auto async_with_lock(std::string key, with_lock_options options, Body&& body,
                                      Token&& token = Token{}) const {
    static_assert(
        !detail::unsafe_body<Body, Token>,
        "weir::uniqueness: give the body a name before co_await, and do not move it: g++ 12 "
        "destroys such a temporary twice");
    static_assert(detail::runs_leased<std::decay_t<Body>, lock>,
                  "weir::uniqueness: a body takes (weir::lock const&) or nothing and returns "
                  "boost::asio::awaitable<T>");
    if constexpr (detail::runs_leased<std::decay_t<Body>, lock>) {
      using shape = detail::optional_shape<detail::body_result<std::decay_t<Body>, lock>>;
      return detail::async_hold<shape, detail::uniqueness_noun>(
          agent_, std::move(key), options.wait, std::decay_t<Body>(std::forward<Body>(body)),
          std::forward<Token>(token));
    }
  }

  /// The same, without waiting.
  template <class Body, class Token = default_token>
    requires(!std::convertible_to<Body, with_lock_options>)
  WEIR_OPERATION auto async_with_lock(std::string key, Body&& body, Token&& token = Token{}) const {
    return async_with_lock(std::move(key), with_lock_options{}, std::forward<Body>(body),
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
