// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_AGENT_HPP
#define WEIR_LEASE_AGENT_HPP

#include "weir/backoff/decaying.hpp"
#include "weir/backoff/jittered.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_command.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/lease.hpp"
#include "weir/lease/keeper.hpp"
#include "weir/lease/returns.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// What `limiter` and `uniqueness` have in common. A *noun* names the commands and says what their
// answers mean: `limiter_noun` is an example.
namespace weir::detail {

/// How those who wait spread their asking, unless told otherwise.
using waiting_backoff = jittered_backoff<decaying_backoff, equal_jitter>;

template <class Backoff>
[[nodiscard]] constexpr Backoff default_backoff() {
  if constexpr (std::same_as<Backoff, waiting_backoff>) {
    return waiting_backoff{decaying_backoff{}};
  } else {
    return Backoff{};
  }
}

[[nodiscard]] inline error_code valid_poll(duration poll) noexcept {
  if (poll > duration::zero() && poll <= std::chrono::hours{24}) return {};
  return make_error_code(errc::invalid_option);
}

/// May a command that ended with this error have been executed all the same? weir's own errors are
/// definite, but for one.
[[nodiscard]] inline bool may_have_happened(error_code ec) noexcept {
  return ec.category() != error_category() || ec == errc::outcome_unknown;
}

/// A holder that asks for a lease. If the store may know it when this goes, whatever it has there
/// is given back: a place in line, or a lease whose grant nobody waits for any more (F45).
class lease_claim {
 public:
  explicit lease_claim(std::shared_ptr<held_lease> s) noexcept : owner{std::move(s)} {}
  lease_claim(lease_claim&& from) noexcept
      : owner{std::move(from.owner)},
        known{from.known},
        other{std::move(from.other)} {}
  lease_claim& operator=(lease_claim&&) = delete;
  ~lease_claim() {
    if (!known) owner.disarm();
  }

  [[nodiscard]] held_lease& state() const noexcept { return *owner.state(); }

  lease_owner owner;
  bool known = false;
  std::string other{};  ///< who was found to have it
};

/// What a primitive, its handles and its pending operations share.
template <class Noun, class Store, class Clock, class Backoff>
class lease_agent final
    : public lease_home,
      public std::enable_shared_from_this<lease_agent<Noun, Store, Clock, Backoff>> {
 public:
  using noun = Noun;
  using store_type = Store;
  using clock_type = Clock;
  using handle = typename Noun::handle;
  using options_type = typename Noun::options;
  using acquire = typename Noun::acquire;
  using grant = typename acquire::result;
  using pointer = std::shared_ptr<lease_agent>;

  static constexpr bool asks_now = executes_now<Store, acquire>;
  static constexpr bool returns_now = executes_now<Store, typename Noun::release>;

  lease_agent(Store s, options_type const& o, Clock c, Backoff b, id_source i)
      : store{std::move(s)},
        options{o},
        clock{std::move(c)},
        backoff{std::move(b)},
        ids{std::move(i)},
        executor{store.get_executor()},
        keeper_executor{executor},
        problem{Noun::problem(o)},
        returns_{make_returns(executor)} {}

  void give_back(std::shared_ptr<held_lease const> lease) noexcept override {
    auto const command = Noun::give_back(*lease);
    if constexpr (returns_now) {
      try {
        (void)store.execute(command);
      } catch (...) {  // left to its TTL
      }
    } else {
      returns_.start(store, lease, command);
    }
  }

  [[nodiscard]] std::shared_ptr<held_lease> new_state(std::string key) {
    return std::make_shared<held_lease>(this->shared_from_this(), std::move(key), ids.holder());
  }

  /// What a grant gave: nothing if it is over already (F12), and then the claim has it still.
  [[nodiscard]] std::optional<handle> adopt(lease_claim& claim, grant const& g, steady_time sent) {
    auto& state = claim.state();
    state.fence = g.fence;
    state.expires_at(saturating_add(sent, g.expires_in));
    Noun::note(state, g);
    if (clock.steady_now() >= trusted_until(sent, g.expires_in)) return std::nullopt;
    return lease_access::make<handle>(std::move(claim.owner));
  }

  // One command each.

  result<std::optional<handle>> try_now(std::string_view key) {
    try_request request{this->shared_from_this(), std::string{key}, options.ttl};
    if (problem) return problem;
    auto const answer = store.execute(request.command());
    if (answer.has_error()) {
      request.failed(answer.error());
      return answer.error();
    }
    return settle(request, answer.value());
  }

  template <class Token>
  auto async_try(std::string key, Token&& token) {
    auto const mapping = [](grant const& g, try_request& asked) { return settle(asked, g); };
    return async_command<std::optional<handle>>(
        store, try_request{this->shared_from_this(), std::move(key), options.ttl}, mapping,
        std::forward<Token>(token));
  }

  /// As `async_try`, for another TTL, and whoever gets it keeps it until that is over.
  template <class Token>
  auto async_claim(std::string key, duration ttl, Token&& token) {
    auto const mapping = [](grant const& g, try_request& asked) -> result<bool> {
      asked.claim.known = false;
      return g.granted;
    };
    return async_command<bool>(store, try_request{this->shared_from_this(), std::move(key), ttl},
                               mapping, std::forward<Token>(token));
  }

  template <class Token>
  auto async_release(handle&& h, Token&& token) {
    namespace asio = boost::asio;
    auto initiate = [](auto handler, pointer self, lease_owner owner) {
      if (!owner.state()) {
        post_completion(self->executor, std::move(handler), error_code{}, false);
        return;
      }
      auto const mapping = [](lease_release answer, release_request& asked) -> result<bool> {
        asked.owner.disarm();
        return answer.freed;
      };
      auto& to = self->store;
      async_command<bool>(to, release_request{std::move(self), std::move(owner)}, mapping,
                          std::move(handler));
    };
    return asio::async_initiate<Token, void(error_code, bool)>(bound_initiation{executor, initiate},
                                                               token, this->shared_from_this(),
                                                               lease_access::take(std::move(h)));
  }

  template <class Token>
  auto async_renew(handle const& h, Token&& token) {
    auto const mapping = [](lease_renewal answer, renew_request& asked) -> result<steady_time> {
      asked.lease->expires_at(saturating_add(asked.sent, answer.expires_in));
      return asked.lease->expires_at();
    };
    return async_command<steady_time>(
        store, renew_request{this->shared_from_this(), lease_access::state(h)}, mapping,
        std::forward<Token>(token));
  }

  template <class Token>
  auto async_drain(Token&& token) {
    auto initiate = [](auto handler, pointer const& self) {
      self->returns_.drain(self->executor, std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(error_code)>(
        bound_initiation{executor, initiate}, token, this->shared_from_this());
  }

  Store store;
  options_type const options;
  Clock const clock;
  Backoff const backoff;
  id_source const ids;
  boost::asio::any_io_executor const executor;
  boost::asio::any_io_executor keeper_executor;
  error_code const problem;  ///< with the options: every operation that would use them fails with
                             ///< it
  std::function<void(std::string_view, std::string_view)> observer;

 private:
  struct try_request {
    try_request(pointer a, std::string key, duration t)
        : agent{std::move(a)},
          claim{agent->new_state(std::move(key))},
          ttl{t} {}

    [[nodiscard]] error_code problem() const noexcept { return agent->problem; }
    [[nodiscard]] acquire command() const noexcept {
      sent = agent->clock.steady_now();
      claim.known = true;
      return Noun::ask(agent->options, claim.state(), ttl, duration::zero());
    }
    void failed(error_code ec) noexcept { claim.known = may_have_happened(ec); }

    pointer agent;
    mutable lease_claim claim;
    duration ttl;
    mutable steady_time sent{};
  };

  struct release_request {
    release_request(pointer a, lease_owner o) noexcept : agent{std::move(a)}, owner{std::move(o)} {}

    [[nodiscard]] error_code problem() const noexcept {
      if (owner.state()->home == agent) return {};
      return make_error_code(errc::invalid_option);
    }
    [[nodiscard]] typename Noun::release command() const noexcept {
      return Noun::give_back(*owner.state());
    }

    pointer agent;
    lease_owner owner;
  };

  struct renew_request {
    renew_request(pointer a, std::shared_ptr<held_lease> l) noexcept
        : agent{std::move(a)},
          lease{std::move(l)} {}

    [[nodiscard]] error_code problem() const noexcept {
      if (!lease) return make_error_code(errc::lease_lost);
      if (lease->home != agent) return make_error_code(errc::invalid_option);
      return {};
    }
    [[nodiscard]] typename Noun::renew command() const noexcept {
      sent = agent->clock.steady_now();
      return Noun::renewal(*lease, agent->options.ttl);
    }

    pointer agent;
    std::shared_ptr<held_lease> lease;
    mutable steady_time sent{};
  };

  static result<std::optional<handle>> settle(try_request& asked, grant const& g) {
    if (!g.granted) {
      asked.claim.known = Noun::in_line(g);
      return std::optional<handle>{};
    }
    auto won = asked.agent->adopt(asked.claim, g, asked.sent);
    if (!won) return make_error_code(errc::lease_lost);
    return won;
  }

  static lease_returns make_returns(boost::asio::any_io_executor const& ex) {
    if constexpr (returns_now) {
      return lease_returns{};
    } else {
      return lease_returns{ex};
    }
  }

  lease_returns returns_;
};

}  // namespace weir::detail

#endif
