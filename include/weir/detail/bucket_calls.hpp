// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_BUCKET_CALLS_HPP
#define WEIR_DETAIL_BUCKET_CALLS_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/permits.hpp"
#include "weir/decision.hpp"
#include "weir/detail/async_command.hpp"
#include "weir/detail/bucket_agent.hpp"
#include "weir/detail/pending_take.hpp"
#include "weir/error.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/take_options.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace weir::detail {

/// What is done with one key's bucket: the same whether a rate limiter was given the key, or a
/// bucket has kept it. Keys are moved from: they become part of the operation.
template <class Agent>
struct bucket_calls {
  using agent_pointer = std::shared_ptr<Agent>;
  using stored_key = typename Agent::stored_key;

  static result<refund_receipt> refund_now(Agent const& agent, std::string_view key,
                                           decision& grant, refund_options options) {
    if (!std::exchange(grant.allowed, false)) return refund_receipt{};
    return agent.store.execute(agent.refund(key, grant.cost, grant.mark, options.before_instant));
  }

  static result<void> reset_now(Agent const& agent, std::string_view key) {
    auto const answer = agent.store.execute(command::reset_bucket{.key = key});
    if (answer.has_error()) return answer.error();
    return {};
  }

  template <class Token>
  static auto take(agent_pointer const& agent, stored_key&& key, take_options options,
                   Token&& token) {
    return async_take_and_wait(agent, std::move(key), options.cost, options.wait,
                               std::forward<Token>(token));
  }

  template <class Token>
  static auto reserve(agent_pointer const& agent, stored_key&& key, take_options options,
                      Token&& token) {
    return ask<decision>(
        agent, std::move(key),
        [options](Agent const& a, std::string_view stored) {
          return a.take(stored, options.cost, options.wait);
        },
        std::forward<Token>(token));
  }

  template <class Token>
  static auto peek(agent_pointer const& agent, stored_key&& key, take_options options,
                   Token&& token) {
    return ask<bucket_info>(
        agent, std::move(key),
        [options](Agent const& a, std::string_view stored) {
          return a.peek(stored, options.cost, options.wait);
        },
        std::forward<Token>(token));
  }

  template <class Token>
  static auto refund(agent_pointer const& agent, stored_key&& key, decision& grant,
                     refund_options options, Token&& token) {
    bool const granted = std::exchange(grant.allowed, false);
    auto request =
        bucket_request{agent, std::move(key),
                       [granted, cost = grant.cost, mark = grant.mark,
                        options](Agent const& a, std::string_view stored) {
                         return granted ? a.refund(stored, cost, mark, options.before_instant)
                                        : a.refund(stored, 1, rule::no_mark, false);
                       }};
    auto answer = [granted](refund_receipt receipt, auto&) -> result<refund_receipt> {
      return granted ? receipt : refund_receipt{};
    };
    return async_command<refund_receipt>(agent->store, std::move(request), answer,
                                         std::forward<Token>(token));
  }

  template <class Token>
  static auto reset(agent_pointer const& agent, stored_key&& key, Token&& token) {
    return ask<hint>(
        agent, std::move(key),
        [](Agent const&, std::string_view stored) { return command::reset_bucket{.key = stored}; },
        std::forward<Token>(token));
  }

 private:
  template <class Result, class Make, class Token>
  static auto ask(agent_pointer const& agent, stored_key&& key, Make const& make, Token&& token) {
    bucket_request request{agent, std::move(key), make};
    return async_command<Result>(agent->store, std::move(request), unchanged{},
                                 std::forward<Token>(token));
  }
};

}  // namespace weir::detail

#endif
