// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_AGENT_HPP
#define WEIR_LEASE_AGENT_HPP

#include "weir/backoff/decaying.hpp"
#include "weir/backoff/jittered.hpp"
#include "weir/concept.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/lease.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// What `limiter` and `uniqueness` have in common. A *noun* names the commands and says what their
// answers mean: `limiter_noun` is an example.
namespace weir::detail {

template <class>
class basic_lease_returns;
using lease_returns = basic_lease_returns<void>;

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
  return explained(errc::invalid_option, "poll is above 0, and 24 h at most");
}

/// May a command that ended with this error have been executed all the same? weir's own errors are
/// definite, but for one.
[[nodiscard]] inline bool may_have_happened(error_code ec) noexcept {
  return ec.category() != error_category() || ec == errc::outcome_unknown;
}

/// Until when a holder may believe in its lease: counted from before the request was sent, less a
/// margin for clocks that run at different speeds and for the time that it takes to stop.
[[nodiscard]] constexpr steady_time trusted_until(steady_time sent, duration expires_in) noexcept {
  constexpr duration most = std::chrono::seconds{1};
  return saturating_add(sent, expires_in - std::min(expires_in / 10, most));
}

/// A holder that asks for a lease. If the store may know it when this goes, whatever it has there
/// is given back: a place in line, or a lease whose grant nobody waits for any more (F45).
class lease_claim {
 public:
  explicit lease_claim(std::shared_ptr<held_lease> s) noexcept : owner{std::move(s)} {}
  lease_claim(lease_claim&& from) noexcept
      : expected{std::move(from.expected)},
        owner{std::move(from.owner)},
        known{from.known},
        other{std::move(from.other)} {}
  lease_claim& operator=(lease_claim&&) = delete;
  ~lease_claim() {
    if (!known) owner.disarm();
  }

  [[nodiscard]] held_lease& state() const noexcept { return *owner.state(); }

  /// Makes drains wait for this claim's end. Declared first: the owner's destructor starts the
  /// return before this one lets the drains go on.
  std::shared_ptr<void> expected{};
  lease_owner owner;
  bool known = false;
  std::string other{};  ///< who was found to have it
};

template <class Noun>
class lease_body;

/// What a primitive, its handles and its pending operations share. What it does on any store, with
/// any clock, is compiled once for each noun: lease/operations.hpp.
template <class Noun>
class lease_agent : public lease_home,
                    public goes_with_context,
                    public std::enable_shared_from_this<lease_agent<Noun>> {
 public:
  using noun = Noun;
  using handle = typename Noun::handle;
  using options_type = typename Noun::options;
  using store_type = typename Noun::store;
  using grant = typename Noun::acquire::result;
  template <class R>
  using handler = boost::asio::any_completion_handler<void(error_code, R)>;
  using held_handler = boost::asio::any_completion_handler<void(std::exception_ptr, bool)>;

  void give_back(std::shared_ptr<held_lease const> lease) noexcept override;
  /// A handle may be left: what it needs for its own end does not include the store.
  void context_ends() noexcept override;
  /// Makes later drains wait for the return of a claim whose operation ends while the store may
  /// still grant it.
  void leave(lease_claim& claim) noexcept;

  [[nodiscard]] std::shared_ptr<held_lease> new_state(std::string key) {
    return std::make_shared<held_lease>(this->shared_from_this(), std::move(key), ids.holder());
  }

  /// A grant gives a handle, or nothing if it is over already (F12). Then the claim goes on as
  /// before, and gives back in the end all that its holder has by then.
  template <class Clock>
  [[nodiscard]] static std::optional<handle> adopt(lease_claim& claim, grant const& g,
                                                   steady_time sent, Clock const& clock) {
    if (clock.steady_now() >= trusted_until(sent, g.expires_in)) return std::nullopt;
    auto& state = claim.state();
    state.fence = g.fence;
    state.expires_at(saturating_add(sent, g.expires_in));
    Noun::note(state, g);
    return lease_access::make<handle>(std::move(claim.owner));
  }

  /// What the answer to one that asks once gave.
  template <class Clock>
  static result<std::optional<handle>> settle(lease_claim& claim, grant const& g, steady_time sent,
                                              Clock const& clock) {
    if (!g.granted) {
      claim.known = Noun::in_line(g);
      return std::optional<handle>{};
    }
    auto won = adopt(claim, g, sent, clock);
    if (!won) return make_error_code(errc::lease_lost);
    return won;
  }

  // One command each.

  void try_it(handler<std::optional<handle>> handler, std::string key);
  /// As `try_it`, for another TTL, and whoever gets it keeps it until that is over.
  void claim(handler<bool> handler, std::string key, duration ttl);
  void release(handler<bool> handler, lease_owner owner);
  void renew(handler<steady_time> handler, std::shared_ptr<held_lease> lease);
  void inspect(handler<typename Noun::inspect::result> handler, std::string key,
               typename Noun::inspection what);

  // More than one.

  void drain(boost::asio::any_completion_handler<void(error_code)> handler);
  /// Waits for a lease.
  void pursue(handler<handle> handler, std::string key, duration wait);
  /// Waits for a lease, and runs the body while it is held. Completes with whether that was run.
  ///
  /// @param executor where
  void hold(held_handler handler, boost::asio::any_io_executor executor, std::string key,
            duration wait, std::unique_ptr<lease_body<Noun>> body);

  store_type store;
  options_type const options;
  any_clock const clock;
  any_backoff const backoff;
  id_source const ids;
  boost::asio::any_io_executor executor;
  std::shared_ptr<context_gate> const gate;  ///< of its context
  std::shared_ptr<context_bound_executor const> keeper_executor;
  error_code const problem;  ///< with the options: every operation that would use them fails with
                             ///< it
  std::function<void(std::string_view, std::string_view)> observer{};

 protected:
  lease_agent(store_type s, options_type const& o, any_clock c, any_backoff b, id_source i);
  ~lease_agent();

  /// To be told of the end of the context, if anything is started there.
  void watch_context();

 private:
  [[nodiscard]] error_code problem_with(duration wait) const noexcept;

  std::unique_ptr<lease_returns> const returns_;  ///< null if nothing is ever on its way
};

/// The same, which knows its store and its clock: for what answers in the calling thread.
template <class Noun, class Store, class Clock>
class typed_lease_agent final : public lease_agent<Noun> {
 public:
  template <class... Args>
  [[nodiscard]] static std::shared_ptr<typed_lease_agent> make(Args&&... args) {
    auto made = std::make_shared<typed_lease_agent>(std::forward<Args>(args)...);
    made->watch_context();
    return made;
  }

  template <class Backoff>
  typed_lease_agent(Store s, typename Noun::options const& o, Clock c, Backoff b, id_source i)
      : lease_agent<Noun>{Noun::store::of(s), o, any_clock::of(c), std::move(b), std::move(i)},
        typed_store{std::move(s)},
        clock_{std::move(c)} {}

  void give_back(std::shared_ptr<held_lease const> lease) noexcept override {
    if constexpr (executes_now<Store, typename Noun::release>) {
      try {
        (void)typed_store->execute(Noun::give_back(*lease));
      } catch (...) {  // left to its TTL
      }
    } else {
      lease_agent<Noun>::give_back(std::move(lease));
    }
  }

  void context_ends() noexcept override {
    // A handle gives back at once what such a store takes at once.
    if constexpr (!executes_now<Store, typename Noun::release>) typed_store.reset();
    lease_agent<Noun>::context_ends();
  }

  result<std::optional<typename Noun::handle>> try_now(std::string_view key) {
    lease_claim claim{this->new_state(std::string{key})};
    if (this->problem) return this->problem;
    auto const sent = clock_.steady_now();
    auto const& o = this->options;
    claim.known = true;
    auto const answer = typed_store->execute(Noun::ask(o, claim.state(), o.ttl, duration::zero()));
    if (answer.has_error()) {
      claim.known = may_have_happened(answer.error());
      return answer.error();
    }
    return this->settle(claim, answer.value(), sent, clock_);
  }

  std::optional<Store> typed_store;

 private:
  Clock const clock_;
};

}  // namespace weir::detail

#endif
