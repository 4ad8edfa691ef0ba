// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_PENDING_TAKE_HPP
#define WEIR_DETAIL_PENDING_TAKE_HPP

#include "weir/command/permits.hpp"
#include "weir/decision.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

/// A take whose tokens nobody has got yet. If it goes before somebody does, they go back: all of
/// them, since nothing was done with them.
template <class Agent>
class token_claim {
 public:
  token_claim(std::shared_ptr<Agent> agent, std::string key, std::uint64_t cost)
      : order_{std::make_shared<order>(std::move(agent), std::move(key), cost)} {}
  token_claim(token_claim const&) = delete;
  token_claim& operator=(token_claim const&) = delete;
  ~token_claim() {
    if (granted_) give_back();
  }

  [[nodiscard]] Agent& agent() const noexcept { return *order_->agent; }
  [[nodiscard]] command::take question(duration wait) const noexcept {
    return agent().take(order_->key, order_->cost, wait);
  }

  /// The store has just granted this. The wait counts from here: its reply may lie about for a
  /// while.
  void note(decision const& d) noexcept {
    if (!d.allowed) return;
    granted_ = true;
    order_->mark = d.mark;
    instant_ = saturating_add(agent().clock.steady_now(), d.wait);
  }

  /// When the grant counts, by the limiter's clock.
  [[nodiscard]] steady_time instant() const noexcept { return instant_; }

  /// Somebody has them.
  void deliver() noexcept { granted_ = false; }

 private:
  // What a refund's views refer to: it may take longer than the claim lives.
  struct order {
    order(std::shared_ptr<Agent> a, std::string k, std::uint64_t c)
        : agent{std::move(a)},
          key{std::move(k)},
          cost{c} {}

    std::shared_ptr<Agent> agent;
    std::string key;
    std::uint64_t cost;
    bucket_mark mark{};
  };

  class refund_handler {
   public:
    explicit refund_handler(std::shared_ptr<order const> o) noexcept : order_{std::move(o)} {}
    void operator()(error_code, refund_receipt) const noexcept {}

   private:
    std::shared_ptr<order const> order_;
  };

  void give_back() const noexcept {
    auto& a = agent();
    auto const refund = a.refund(order_->key, order_->cost, order_->mark, true);
    try {
      if (a.any.executes_now()) {
        static_cast<void>(a.any.execute(refund));
        return;
      }
      gate_pass const inside{a.gate};
      if (inside) a.any.patient().start(refund, refund_handler{order_});
    } catch (...) {  // they count as spent
    }
  }

  std::shared_ptr<order> order_;
  steady_time instant_{};
  bool granted_ = false;
};

/// What the store sees of a take that may have been given up meanwhile: a grant that comes too late
/// goes back.
template <class Agent>
class claiming_handler : public attempt_handler<decision> {
 public:
  claiming_handler(attempt_handler<decision> attempt, std::shared_ptr<token_claim<Agent>> claim)
      : attempt_handler<decision>{std::move(attempt)},
        claim_{std::move(claim)} {}

  void operator()(error_code ec, decision d) {
    if (!ec) claim_->note(d);
    attempt_handler<decision>::operator()(ec, d);
  }

 private:
  std::shared_ptr<token_claim<Agent>> claim_;
};

/// Takes, if `taken` is not known yet, and waits for the instant. Not thread-safe: on a strand.
template <class Agent>
boost::asio::awaitable<result<decision>> take_and_wait(std::shared_ptr<token_claim<Agent>> claim,
                                                       duration max_wait,
                                                       std::optional<decision> taken) {
  namespace asio = boost::asio;
  co_await asio::this_coro::throw_if_cancelled(false);
  if (!taken) {
    auto start = [&claim, max_wait](attempt_handler<decision> handler) {
      claim->agent().any.start(claim->question(max_wait),
                               claiming_handler<Agent>{std::move(handler), claim});
    };
    auto taking = attempt<decision>(claim->agent().clock, steady_time::max(), claim, start);
    auto const answer = co_await std::move(taking);
    auto const state = co_await asio::this_coro::cancellation_state;
    if (answer.has_error() || !!state.cancelled()) {
      claim.reset();
      if (answer.has_error()) co_return answer.error();
      co_return error_code{asio::error::operation_aborted};
    }
    taken = answer.value();
  }
  if (taken->wait > duration::zero()) {
    auto waiting = attempt_nothing(claim->agent().clock, claim->instant());
    auto const waited = co_await std::move(waiting);
    if (waited != errc::timed_out) {
      claim.reset();  // now, and not when this frame happens to go
      co_return waited;
    }
  }
  claim->deliver();
  co_return *taken;
}

}  // namespace weir::detail

#endif
