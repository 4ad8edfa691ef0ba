// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_PURSUIT_HPP
#define WEIR_LEASE_PURSUIT_HPP

#include "weir/command/permits.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/lease.hpp"
#include "weir/lease/agent.hpp"
#include "weir/lease/keeper.hpp"
#include "weir/limits.hpp"
#include "weir/rule/validate.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

/// How long a refused holder keeps its place without asking again: longer than it will be away, so
/// that it is not passed over, and not much longer, so that one that died does not hold up those
/// behind it (R6).
[[nodiscard]] constexpr duration patience_for(duration poll) noexcept {
  return poll + std::max<duration>(poll, std::chrono::seconds{1});
}

/// One holder's way to a lease: asking, waiting, asking again under the same name, until it has it
/// or its time is over. What to do next is decided here; `run` does it.
template <class Agent>
class lease_pursuit {
 public:
  using handle = typename Agent::handle;
  using grant = typename Agent::grant;
  using ending = std::optional<result<handle>>;
  using claim_pointer = std::shared_ptr<lease_claim>;

  struct asked {
    asked(result<grant> a, steady_time t) : answer{std::move(a)}, sent{t} {}
    result<grant> answer;
    steady_time sent;
  };

  /// @param wait 0: asks once, however long the answer takes; `limits::span`: for ever
  lease_pursuit(std::shared_ptr<Agent> agent, claim_pointer claim, duration wait)
      : agent_{std::move(agent)},
        claim_{std::move(claim)},
        once_{wait == duration::zero()},
        deadline_{once_ || wait == limits::span ? steady_time::max()
                                                : saturating_add(now(), wait)} {}

  /// Asks in this thread, where the store can.
  asked ask_now() {
    auto const sent = begin_asking();
    return asked{agent_->store.execute(question()), sent};
  }

  /// What this answer means: the end of the pursuit, or nothing: try again.
  ending settle(asked const& a) {
    if (a.answer.has_error()) return settle(a.answer.error());
    auto const& g = a.answer.value();
    failure_ = make_error_code(errc::timed_out);
    retry_after_ = {};
    if (!g.granted) {
      claim_->known = Agent::noun::in_line(g);
      claim_->other = Agent::noun::other(g);
      retry_after_ = Agent::noun::retry_after(g);
      return once_ ? ending{failure_} : ending{};
    }
    if (auto won = agent_->adopt(*claim_, g, a.sent)) return ending{std::move(*won)};
    if constexpr (Agent::returns_now) {
      (void)agent_->store.execute(Agent::noun::give_back(claim_->state()));
      claim_->state().fence = 0;
    } else {
      stale_ = true;
    }
    return once_ ? ending{failure_} : ending{};
  }

  /// Goes on from where it is until the end. Not thread-safe: on a strand, and it does not throw
  /// when cancelled.
  static boost::asio::awaitable<result<handle>> run(lease_pursuit self, bool has_asked) {
    namespace asio = boost::asio;
    co_await asio::this_coro::throw_if_cancelled(false);
    for (;; has_asked = false) {
      if (!has_asked) {
        auto asking = self.ask();
        auto const answer = co_await std::move(asking);
        if (auto const state = co_await asio::this_coro::cancellation_state; !!state.cancelled())
          break;
        if (auto end = self.settle(answer)) co_return std::move(*end);
      }
      if (self.stale_) {
        auto returning = self.give_back_stale();
        co_await std::move(returning);
      }
      auto const until = self.next_ask();
      if (self.over()) co_return self.failure_;
      auto waiting = self.wait(until);
      co_await std::move(waiting);
      if (auto const state = co_await asio::this_coro::cancellation_state; !!state.cancelled())
        break;
      if (self.over()) co_return self.failure_;
    }
    co_return error_code{asio::error::operation_aborted};
  }

 private:
  static constexpr bool has_hints =
      Agent::noun::has_line && executes<typename Agent::store_type, command::await_permit>;

  [[nodiscard]] steady_time now() const noexcept { return agent_->clock.steady_now(); }
  [[nodiscard]] bool over() const noexcept { return now() >= deadline_; }

  steady_time begin_asking() noexcept {
    before_ = std::exchange(claim_->known, true);
    return now();
  }

  // A ticket need not outlive the wait that it is for.
  [[nodiscard]] typename Agent::acquire question() const noexcept {
    auto const& options = agent_->options;
    auto const left = std::max(saturating_sub(deadline_, now()), duration{1});
    return Agent::noun::ask(options, claim_->state(), options.ttl,
                            once_ ? duration::zero() : std::min(patience_for(options.poll), left));
  }

  boost::asio::awaitable<asked> ask() {
    if constexpr (Agent::asks_now) {
      co_return ask_now();
    } else {
      auto const sent = begin_asking();
      auto start = [this](attempt_handler<grant> handler) {
        agent_->store.async_execute(question(), std::move(handler));
      };
      auto asking = attempt<grant>(agent_->clock, deadline_, claim_, std::move(start));
      auto answer = co_await std::move(asking);
      co_return asked{std::move(answer), sent};
    }
  }

  ending settle(error_code ec) {
    if (over() && ec == errc::timed_out)
      return ending{failure_};  // no answer came; the claim is cleaned up
    if (!may_have_happened(ec)) claim_->known = before_;
    if (ec != condition::transient || once_) return ending{ec};
    failure_ = ec;
    retry_after_ = {};
    return {};
  }

  // A lease that was over when it came would be given to the same holder again, as it is.
  boost::asio::awaitable<void> give_back_stale() {
    auto start = [this](attempt_handler<lease_release> handler) {
      agent_->store.async_execute(Agent::noun::give_back(claim_->state()), std::move(handler));
    };
    auto returning = attempt<lease_release>(agent_->clock, deadline_, claim_, std::move(start));
    auto const returned = co_await std::move(returning);
    if (returned.has_value()) {
      claim_->state().fence = 0;
      stale_ = false;
    }
  }

  /// When to ask again if nothing happens before.
  steady_time next_ask() {
    auto const poll = agent_->options.poll;
    auto const shortest = std::min<duration>(std::chrono::milliseconds{1}, poll);
    pause_ =
        std::clamp(agent_->backoff(attempts_++, pause_, agent_->ids.entropy()), shortest, poll);
    if (retry_after_ > duration::zero()) pause_ = std::min(pause_, retry_after_);
    return std::min(saturating_add(now(), pause_), deadline_);
  }

  // A store that hints and then refuses, again and again, is not to be asked in a circle.
  boost::asio::awaitable<void> wait(steady_time until) {
    if constexpr (has_hints) {
      constexpr std::uint32_t trusted = 4;
      if (claim_->known && hints_ < trusted) {
        auto start = [this](attempt_handler<hint> handler) {
          auto const& state = claim_->state();
          agent_->store.async_execute(command::await_permit{state.key(), state.holder()},
                                      std::move(handler));
        };
        auto hinting = attempt<hint>(agent_->clock, until, claim_->owner.state(), std::move(start));
        auto const hinted = co_await std::move(hinting);
        if (hinted.has_value()) {
          ++hints_;
          co_return;
        }
        if (hinted.error() == errc::timed_out) co_return;
      }
      hints_ = 0;
    }
    auto sleeping = attempt<hint>(agent_->clock, until, nullptr, no_command{});
    co_await std::move(sleeping);
  }

  std::shared_ptr<Agent> agent_;
  claim_pointer claim_;
  bool once_;
  steady_time deadline_;
  error_code failure_ = make_error_code(errc::timed_out);
  duration retry_after_{};
  duration pause_{};
  std::uint32_t attempts_ = 0;
  std::uint32_t hints_ = 0;
  bool before_ = false;
  bool stale_ = false;
};

/// Is this wait allowed, and are the options?
template <class Agent>
[[nodiscard]] error_code problem_with(Agent const& agent, duration wait) noexcept {
  if (agent.problem || rule::valid_wait(wait)) return agent.problem;
  return make_error_code(errc::invalid_wait);
}

/// The end of a pursuit that has not waited, if it has one: what nobody contends for is had without
/// a coroutine.
template <class Agent>
typename lease_pursuit<Agent>::ending begin_pursuit(lease_pursuit<Agent>& pursuit) {
  if constexpr (Agent::asks_now) {
    auto const first = pursuit.ask_now();
    return pursuit.settle(first);
  } else {
    return {};
  }
}

/// Waits for a lease: completes with `void(error_code, handle)`.
template <class Agent, class Token>
auto async_pursue(std::shared_ptr<Agent> agent, std::string key, duration wait, Token&& token) {
  namespace asio = boost::asio;
  using handle = typename Agent::handle;
  using handler_type = asio::any_completion_handler<void(error_code, handle)>;
  auto initiate = [](handler_type handler, std::shared_ptr<Agent> a, std::string k, duration w) {
    auto const executor = a->executor;
    typename lease_pursuit<Agent>::ending end;
    try {
      if (error_code const ec = problem_with(*a, w)) {
        end.emplace(ec);
      } else {
        auto claim = std::make_shared<lease_claim>(a->new_state(std::move(k)));
        lease_pursuit<Agent> pursuit{std::move(a), std::move(claim), w};
        end = begin_pursuit(pursuit);
        if (!end) {
          auto rest = lease_pursuit<Agent>::run(std::move(pursuit), Agent::asks_now);
          spawn(executor, std::move(rest), std::move(handler));
          return;
        }
      }
    } catch (...) {
      if (!handler) throw;
      end.emplace(error_of(std::current_exception()));
    }
    if (end->has_value()) {
      post_completion(executor, std::move(handler), error_code{}, std::move(*end).value());
    } else {
      post_completion(executor, std::move(handler), end->error(), handle{});
    }
  };
  auto executor = agent->executor;
  return asio::async_initiate<Token, void(error_code, handle)>(
      bound_initiation{std::move(executor), initiate}, token, std::move(agent), std::move(key),
      wait);
}

}  // namespace weir::detail

#endif
