// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RATE_LIMITER_HPP
#define WEIR_RATE_LIMITER_HPP

#include "weir/bucket.hpp"
#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/decision.hpp"
#include "weir/detail/bucket_agent.hpp"
#include "weir/detail/bucket_calls.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/key_policy.hpp"
#include "weir/quota.hpp"
#include "weir/rule/validate.hpp"
#include "weir/take_options.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/default_completion_token.hpp>
#include <boost/container/static_vector.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace weir {

/// Limits how fast something may be done, for each key separately.
///
///     weir::rate_limiter limiter{store, weir::quota::per_second(100).burst(200)};
///     weir::decision d = limiter.try_take("alice").value();                 // in process
///     weir::decision d = co_await limiter.async_try_take("alice");          // on any store
///     weir::decision d = co_await limiter.async_take("alice", {.cost = 5, .wait = 2s});
///
/// Each key has a bucket of tokens for each quota, full at first, and a take gets its tokens from
/// all of them or from none. In any window of time w, what is granted and not refunded is at most
/// capacity + rate·w, in exact arithmetic.
///
/// "Not now" is an answer (`decision::allowed`), not an error. A refusal changes nothing, and says
/// after what time the same call would be granted.
///
/// A *refund* gives a grant back, once. Tokens that have refilled meanwhile do not go back; one
/// that has in part goes back whole. None do if something was taken after the grant; the answer
/// says how many did. A grant is consumed by being refunded, so refunding it again does nothing.
/// Refunding two copies of one grant credits it once, unless a later take has brought the bucket
/// back to exactly the same state in between.
///
/// A handle: copies share their state. Limiters on the same store with the same key policy share
/// their keys' buckets, as long as their quotas are the same; where they should not, give their
/// keys different prefixes. A limiter whose quotas differ from those that a bucket has changes the
/// bucket: what was spent stays spent.
///
/// Errors of every operation, besides those named at it: `invalid_key` (1…`limits::key_size` bytes
/// after the key policy; an empty key under any); `invalid_quota` (see `validate`),
/// `quota_too_large` (a quota that stores do not take), before any change; `store_full`;
/// `store_unavailable`; `outcome_unknown` (a take then counts as spent); `not_enough_memory`;
/// `operation_aborted` when cancelled; and what a store adds.
///
/// Thread-safety: all but the constructors may be called by any number of threads at once.
///
/// @tparam Store     keeps the buckets and decides what time it is
/// @tparam Clock     waits
/// @tparam KeyPolicy what the store gets to see of keys: their digests, by default
template <class Store, class Clock = system_clock, class KeyPolicy = sha256_key>
class rate_limiter {
  static_assert(bucket_store<Store>,
                "weir::rate_limiter: this store does not model weir::bucket_store "
                "(it cannot execute every command of weir/command/buckets.hpp)");
  static_assert(clock<Clock>, "weir::rate_limiter: this clock does not model weir::clock");
  static_assert(key_policy<KeyPolicy>,
                "weir::rate_limiter: this key policy does not model weir::key_policy");

  using agent = detail::typed_bucket_agent<Store, KeyPolicy>;
  using calls = detail::bucket_calls<agent>;

 public:
  using store_type = Store;                            ///< where the state lives
  using clock_type = Clock;                            ///< how it waits
  using key_policy_type = KeyPolicy;                   ///< what the store gets to see of keys
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// @param store  where the buckets are; copied
  /// @param limit  the one quota; if it is not valid, every operation fails with `invalid_quota`
  /// @param clock  how it waits
  /// @param policy what the store gets to see of keys
  explicit rate_limiter(Store store, quota limit, Clock clock = Clock{},
                        KeyPolicy policy = KeyPolicy{})
      : rate_limiter{std::move(store), std::span<quota const>{&limit, 1}, std::move(clock),
                     std::move(policy)} {}

  /// @param store  where the buckets are; copied
  /// @param limits one to `limits::quotas` quotas, all of which must allow a take; copied. If they
  ///        are not valid, every operation fails with `invalid_quota`.
  /// @param clock  how it waits
  /// @param policy what the store gets to see of keys
  explicit rate_limiter(Store store, std::span<quota const> limits, Clock clock = Clock{},
                        KeyPolicy policy = KeyPolicy{})
      : agent_{std::make_shared<agent>(
            std::move(store), limits, detail::any_clock::of(std::move(clock)), std::move(policy))} {
  }

  /// Are these quotas that a limiter can have? `invalid_quota` if there is none or more than
  /// `limits::quotas`, or if one has no tokens, period or burst. Whether a store can represent them
  /// is known only to the store.
  [[nodiscard]] static error_code validate(std::span<quota const> limits) noexcept {
    return rule::valid_quotas(limits) ? error_code{} : make_error_code(errc::invalid_quota);
  }

  /// The store's: where operations work, and where handlers without an executor of their own are
  /// called.
  [[nodiscard]] executor_type get_executor() const noexcept { return agent_->executor; }
  /// The store: for its own operations, and for other primitives on it.
  [[nodiscard]] Store const& get_store() const noexcept { return agent_->store; }
  /// As they were given; none if they were too many.
  [[nodiscard]] std::span<quota const> quotas() const noexcept { return agent_->limits(); }

  /// One key's bucket, for a key that is asked again and again.
  ///
  /// @param key whose bucket: copied, or digested, once
  [[nodiscard]] weir::bucket<Store, Clock, KeyPolicy> bucket(std::string_view key) const {
    return {agent_, agent_->policy(key)};
  }

  // In the calling thread, where the store can.

  /// Takes tokens if they are there now.
  ///
  /// @param key  whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param cost tokens, 1…the smallest capacity
  /// @return `decision::allowed`, or after what time it would be
  /// Errors: `invalid_cost`; `cost_exceeds_capacity`: it can never be granted.
  [[nodiscard]] result<decision> try_take(std::string_view key, std::uint64_t cost = 1) const
    requires executes_now<Store, command::take>
  {
    auto const stored = agent_->borrow(key);
    return agent_->store.execute(agent_->take(stored.view(), cost, duration::zero()));
  }

  /// `try_take` of one key after the other, each on its own: some may be allowed and others not. A
  /// store that executes many at once (`executes_each`) overlaps their cache misses, of which a
  /// check of one among a million keys consists; they then share readings of the clock.
  ///
  /// @param keys    whose buckets: any number, each 1…`limits::key_size` bytes after the key
  /// policy;
  ///        a key that comes twice is asked twice
  /// @param answers what each was answered, by position. At least as many as there are keys; those
  ///        beyond are left as they are.
  /// @param cost    tokens for each key, 1…the smallest capacity
  /// Errors, each in its own answer: `invalid_cost`; `cost_exceeds_capacity`: it can never be
  /// granted. An exception (`std::bad_alloc`) leaves those that were not given yet as they are.
  void try_take_many(std::span<std::string_view const> keys, std::span<result<decision>> answers,
                     std::uint64_t cost = 1) const
    requires executes_now<Store, command::take>
  {
    constexpr std::size_t batch = 32;
    using stored_key = decltype(agent_->borrow(std::string_view{}));
    boost::container::static_vector<stored_key, batch> stored;
    std::array<command::take, batch> takes;
    while (!keys.empty()) {
      auto const n = std::min(keys.size(), batch);
      stored.clear();
      for (std::size_t i = 0; i != n; ++i) {
        stored.push_back(agent_->borrow(keys[i]));
        takes[i] = agent_->take(stored.back().view(), cost, duration::zero());
      }
      std::span<command::take const> const asked{takes.data(), n};
      if constexpr (executes_each<Store, command::take>) {
        agent_->store.execute_each(asked, answers.first(n));
      } else {
        for (std::size_t i = 0; i != n; ++i) answers[i] = agent_->store.execute(asked[i]);
      }
      keys = keys.subspan(n);
      answers = answers.subspan(n);
    }
  }

  /// Takes tokens that may lie as far as `options.wait` in the future, and does not wait for them:
  /// the grant counts from `decision::wait` from now. Later takes queue behind it.
  ///
  /// @param key     whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param options how many tokens, and how far ahead they may lie
  /// @return `decision::allowed` and `decision::wait`, or after what time it would be
  /// Errors: `invalid_cost`, `cost_exceeds_capacity`, `invalid_wait`.
  [[nodiscard]] result<decision> reserve(std::string_view key, take_options options) const
    requires executes_now<Store, command::take>
  {
    auto const stored = agent_->borrow(key);
    return agent_->store.execute(agent_->take(stored.view(), options.cost, options.wait));
  }

  /// How full the bucket is, by each quota, and whether `reserve` would be granted now; changes
  /// nothing.
  ///
  /// @param key     whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param options how many tokens, and how far ahead they may lie
  /// @return how full each quota is, and what a take would be answered
  /// Errors: `invalid_cost`, `cost_exceeds_capacity`, `invalid_wait`.
  [[nodiscard]] result<bucket_info> peek(std::string_view key, take_options options = {}) const
    requires executes_now<Store, command::peek_bucket>
  {
    auto const stored = agent_->borrow(key);
    return agent_->store.execute(agent_->peek(stored.view(), options.cost, options.wait));
  }

  /// Gives a grant back.
  ///
  /// @param key     whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param grant   of this key; consumed, whatever the outcome. If it is none, or was consumed
  ///        before: nothing goes back.
  /// @param options was anything done under it?
  /// @return how much went back, and how much did not
  /// Errors: none of its own.
  [[nodiscard]] result<refund_receipt> refund(std::string_view key, decision& grant,
                                              refund_options options = {}) const
    requires executes_now<Store, command::refund>
  {
    auto const stored = agent_->borrow(key);
    return calls::refund_now(*agent_, stored.view(), grant, options);
  }

  /// Makes the key's bucket full.
  ///
  /// @param key whose bucket: 1…`limits::key_size` bytes after the key policy
  /// Errors: none of its own.
  [[nodiscard]] result<void> reset(std::string_view key) const
    requires executes_now<Store, command::reset_bucket>
  {
    auto const stored = agent_->borrow(key);
    return calls::reset_now(*agent_, stored.view());
  }

  // On any store. Keys are copied (or digested) before these functions return.

  /// Takes tokens if they are there now.
  ///
  /// @param key   whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param cost  tokens, 1…the smallest capacity
  /// @param token completes with `void(error_code, decision)`
  /// @return `decision::allowed`, or after what time it would be
  /// Errors: `invalid_cost`; `cost_exceeds_capacity`: it can never be granted.
  /// Cancellation: they were taken or not; if they were, they count as spent.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_try_take(std::string_view key, std::uint64_t cost,
                                     Token&& token = Token{}) const {
    return async_reserve(key, take_options{.cost = cost}, std::forward<Token>(token));
  }

  /// The same, for one token.
  template <class Token = default_token>
    requires(!std::convertible_to<Token, std::uint64_t>)
  WEIR_OPERATION auto async_try_take(std::string_view key, Token&& token = Token{}) const {
    return async_reserve(key, take_options{}, std::forward<Token>(token));
  }

  /// Takes tokens, and waits until they are there: it reserves them ahead, in one step, and then
  /// waits for their instant, without asking again. If that would be further ahead than
  /// `options.wait`, it is a refusal, at once.
  ///
  /// @param key     whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param options how many, and how long to wait at most, from the store's step on
  /// @param token   completes with `void(error_code, decision)`, at the instant or after it: the
  ///        grant counts from now. `decision::wait` says how long that was.
  /// @return `decision::allowed`, or after what time it would be
  /// Errors: `invalid_cost`, `cost_exceeds_capacity`, `invalid_wait`.
  /// Cancellation: of every kind, at every point before the instant, completes it at once, and so
  /// does destroying it. What it took or reserved goes back, as far as nothing was taken after it:
  /// at once where the store executes refunds in the calling thread; otherwise in the background,
  /// as long as the store can be reached and its executor exists.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_take(std::string_view key, take_options options,
                                 Token&& token = Token{}) const {
    return calls::take(agent_, agent_->policy(key), options, std::forward<Token>(token));
  }

  /// Takes tokens that may lie as far as `options.wait` in the future, and does not wait for them:
  /// the grant counts from `decision::wait` from now. Later takes queue behind it.
  ///
  /// @param key     whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param options how many tokens, and how far ahead they may lie
  /// @param token   completes with `void(error_code, decision)`
  /// @return `decision::allowed` and `decision::wait`, or after what time it would be
  /// Errors: `invalid_cost`, `cost_exceeds_capacity`, `invalid_wait`.
  /// Cancellation: they were taken or not; if they were, they count as spent.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_reserve(std::string_view key, take_options options,
                                    Token&& token = Token{}) const {
    return calls::reserve(agent_, agent_->policy(key), options, std::forward<Token>(token));
  }

  /// How full the bucket is, by each quota, and whether `async_reserve` would be granted now;
  /// changes nothing.
  ///
  /// @param key     whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param options how many tokens, and how far ahead they may lie
  /// @param token   completes with `void(error_code, bucket_info)`
  /// Errors: `invalid_cost`, `cost_exceeds_capacity`, `invalid_wait`.
  /// Cancellation: leaves nothing behind.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_peek(std::string_view key, take_options options,
                                 Token&& token = Token{}) const {
    return calls::peek(agent_, agent_->policy(key), options, std::forward<Token>(token));
  }

  /// The same, for one token now.
  template <class Token = default_token>
    requires(!std::convertible_to<Token, take_options>)
  WEIR_OPERATION auto async_peek(std::string_view key, Token&& token = Token{}) const {
    return async_peek(key, take_options{}, std::forward<Token>(token));
  }

  /// Gives a grant back.
  ///
  /// @param key     whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param grant   of this key; consumed before this returns, whatever the outcome. If it is none,
  ///        or was consumed before: nothing goes back.
  /// @param options was anything done under it?
  /// @param token   completes with `void(error_code, refund_receipt)`
  /// @return how much went back, and how much did not
  /// Errors: none of its own.
  /// Cancellation: it went back or not.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_refund(std::string_view key, decision& grant, refund_options options,
                                   Token&& token = Token{}) const {
    return calls::refund(agent_, agent_->policy(key), grant, options, std::forward<Token>(token));
  }

  /// The same, for a grant whose instant has come.
  template <class Token = default_token>
    requires(!std::convertible_to<Token, refund_options>)
  WEIR_OPERATION auto async_refund(std::string_view key, decision& grant,
                                   Token&& token = Token{}) const {
    return async_refund(key, grant, refund_options{}, std::forward<Token>(token));
  }

  /// Makes the key's bucket full.
  ///
  /// @param key   whose bucket: 1…`limits::key_size` bytes after the key policy
  /// @param token completes with `void(error_code, hint)`
  /// Errors: none of its own.
  /// Cancellation: it was made full or not.
  /// Executor: the handler's; the store's if it has none.
  template <class Token = default_token>
  WEIR_OPERATION auto async_reset(std::string_view key, Token&& token = Token{}) const {
    return calls::reset(agent_, agent_->policy(key), std::forward<Token>(token));
  }

 private:
  std::shared_ptr<agent> agent_;
};

}  // namespace weir

#endif
