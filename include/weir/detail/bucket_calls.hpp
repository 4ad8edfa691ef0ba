// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_BUCKET_CALLS_HPP
#define WEIR_DETAIL_BUCKET_CALLS_HPP

#include "weir/command/buckets.hpp"
#include "weir/decision.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/bucket_agent.hpp"
#include "weir/error.hpp"
#include "weir/take_options.hpp"

#include <memory>
#include <string>
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
    return async_erased(agent, &Agent::start_take, std::forward<Token>(token),
                        std::string{key.view()}, options);
  }

  template <class Token>
  static auto reserve(agent_pointer const& agent, stored_key&& key, take_options options,
                      Token&& token) {
    if constexpr (Agent::asks_now) {
      // One step, which is not worth erasing a handler for.
      auto step = [agent, key = std::move(key), options]() -> result<decision> {
        auto answer = agent->store.execute(agent->take(key.view(), options.cost, options.wait));
        if (answer.has_error() && is_away(answer.error(), options)) {
          return decision_while_away(options);
        }
        return answer;
      };
      return async_lift<decision>(agent->executor, std::move(step), std::forward<Token>(token));
    } else {
      return async_erased(agent, &Agent::start_reserve, std::forward<Token>(token),
                          std::string{key.view()}, options);
    }
  }

  template <class Token>
  static auto peek(agent_pointer const& agent, stored_key&& key, take_options options,
                   Token&& token) {
    return async_erased(agent, &Agent::start_peek, std::forward<Token>(token),
                        std::string{key.view()}, options);
  }

  template <class Token>
  static auto refund(agent_pointer const& agent, stored_key&& key, decision& grant,
                     refund_options options, Token&& token) {
    decision const given = grant;
    grant.allowed = false;
    return async_erased(agent, &Agent::start_refund, std::forward<Token>(token),
                        std::string{key.view()}, given, options);
  }

  template <class Token>
  static auto reset(agent_pointer const& agent, stored_key&& key, Token&& token) {
    return async_erased(agent, &Agent::start_reset, std::forward<Token>(token),
                        std::string{key.view()});
  }
};

}  // namespace weir::detail

#endif
