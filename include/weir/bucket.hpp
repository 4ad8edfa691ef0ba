// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BUCKET_HPP
#define WEIR_BUCKET_HPP

#include "weir/clock/system.hpp"
#include "weir/command/buckets.hpp"
#include "weir/concept.hpp"
#include "weir/decision.hpp"
#include "weir/detail/bucket_agent.hpp"
#include "weir/detail/bucket_calls.hpp"
#include "weir/detail/config.hpp"
#include "weir/error.hpp"
#include "weir/key_policy.hpp"
#include "weir/take_options.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/default_completion_token.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace weir {

template <class Store, class Clock, class KeyPolicy>
class rate_limiter;

namespace detail {

struct nothing_to_pin {};

template <class Store>
struct pin_of {
  using type = nothing_to_pin;
};
template <pins_buckets Store>
struct pin_of<Store> {
  using type = typename Store::bucket_pin;
};

}  // namespace detail

/// One key's bucket of a rate limiter, for a key that is asked again and again: a limit for all of
/// this process, or for one upstream, one tenant's session.
///
///     auto const upstream = limiter.bucket("upstream");
///     weir::decision d = upstream.try_take().value();
///     weir::decision e = co_await upstream.async_take({.wait = 2s});
///
/// It is the same bucket that the limiter uses when it is given the key, and does the same with it.
/// But the key policy was applied once, when this was made, and where the store is in this process
/// (`pins_buckets`), `try_take` and `reserve` remember where the bucket is.
///
/// A handle: copies are of the same bucket. It keeps what the limiter shares with its copies, and
/// may outlive it. Parameters, answers, errors, and what cancellation leaves behind are those of
/// the limiter's function of the same name; each of them fails for a key that is not valid.
///
/// Thread-safety: all but assignment and moving from it may be called by any number of threads at
/// once.
///
/// @tparam Store     that of the limiter
/// @tparam Clock     that of the limiter
/// @tparam KeyPolicy that of the limiter
template <class Store, class Clock = system_clock, class KeyPolicy = sha256_key>
class bucket {
  using agent = detail::typed_bucket_agent<Store, KeyPolicy>;
  using calls = detail::bucket_calls<agent>;
  using stored_key = typename agent::stored_key;

 public:
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// The store's.
  [[nodiscard]] executor_type get_executor() const noexcept { return agent_->executor; }

  // In the calling thread, where the store can.

  /// `rate_limiter::try_take` of this key.
  [[nodiscard]] result<decision> try_take(std::uint64_t cost = 1) const
    requires executes_now<Store, command::take>
  {
    return take_now(cost, duration::zero());
  }

  /// `rate_limiter::reserve` of this key.
  [[nodiscard]] result<decision> reserve(take_options options) const
    requires executes_now<Store, command::take>
  {
    return take_now(options.cost, options.wait);
  }

  /// `rate_limiter::peek` of this key.
  [[nodiscard]] result<bucket_info> peek(take_options options = {}) const
    requires executes_now<Store, command::peek_bucket>
  {
    return agent_->store.execute(agent_->peek(key_.view(), options.cost, options.wait));
  }

  /// `rate_limiter::refund` of this key.
  [[nodiscard]] result<refund_receipt> refund(decision& grant, refund_options options = {}) const
    requires executes_now<Store, command::refund>
  {
    return calls::refund_now(*agent_, key_.view(), grant, options);
  }

  /// `rate_limiter::reset` of this key.
  [[nodiscard]] result<void> reset() const
    requires executes_now<Store, command::reset_bucket>
  {
    return calls::reset_now(*agent_, key_.view());
  }

  // On any store.

  /// `rate_limiter::async_try_take` of this key.
  template <class Token = default_token>
  WEIR_OPERATION auto async_try_take(std::uint64_t cost, Token&& token = Token{}) const {
    return async_reserve(take_options{.cost = cost}, std::forward<Token>(token));
  }

  /// The same, for one token.
  template <class Token = default_token>
    requires(!std::convertible_to<Token, std::uint64_t>)
  WEIR_OPERATION auto async_try_take(Token&& token = Token{}) const {
    return async_reserve(take_options{}, std::forward<Token>(token));
  }

  /// `rate_limiter::async_take` of this key.
  template <class Token = default_token>
  WEIR_OPERATION auto async_take(take_options options, Token&& token = Token{}) const {
    return calls::take(agent_, stored_key{key_}, options, std::forward<Token>(token));
  }

  /// `rate_limiter::async_reserve` of this key.
  template <class Token = default_token>
  WEIR_OPERATION auto async_reserve(take_options options, Token&& token = Token{}) const {
    return calls::reserve(agent_, stored_key{key_}, options, std::forward<Token>(token));
  }

  /// `rate_limiter::async_peek` of this key.
  template <class Token = default_token>
  WEIR_OPERATION auto async_peek(take_options options, Token&& token = Token{}) const {
    return calls::peek(agent_, stored_key{key_}, options, std::forward<Token>(token));
  }

  /// The same, for one token now.
  template <class Token = default_token>
    requires(!std::convertible_to<Token, take_options>)
  WEIR_OPERATION auto async_peek(Token&& token = Token{}) const {
    return async_peek(take_options{}, std::forward<Token>(token));
  }

  /// `rate_limiter::async_refund` of this key.
  template <class Token = default_token>
  WEIR_OPERATION auto async_refund(decision& grant, refund_options options,
                                   Token&& token = Token{}) const {
    return calls::refund(agent_, stored_key{key_}, grant, options, std::forward<Token>(token));
  }

  /// The same, for a grant whose instant has come.
  template <class Token = default_token>
    requires(!std::convertible_to<Token, refund_options>)
  WEIR_OPERATION auto async_refund(decision& grant, Token&& token = Token{}) const {
    return async_refund(grant, refund_options{}, std::forward<Token>(token));
  }

  /// `rate_limiter::async_reset` of this key.
  template <class Token = default_token>
  WEIR_OPERATION auto async_reset(Token&& token = Token{}) const {
    return calls::reset(agent_, stored_key{key_}, std::forward<Token>(token));
  }

 private:
  friend rate_limiter<Store, Clock, KeyPolicy>;

  bucket(std::shared_ptr<agent> shared, stored_key key)
      : agent_{std::move(shared)},
        key_{std::move(key)} {}

  result<decision> take_now(std::uint64_t cost, duration wait) const {
    auto const c = agent_->take(key_.view(), cost, wait);
    if constexpr (pins_buckets<Store>) {
      return agent_->store.execute(c, pin_);
    } else {
      return agent_->store.execute(c);
    }
  }

  std::shared_ptr<agent> agent_;
  stored_key key_;
  [[no_unique_address]] mutable typename detail::pin_of<Store>::type pin_;  // a hint, for threads
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/detail/bucket_operations.hpp"
#endif

#endif
