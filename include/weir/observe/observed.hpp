// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_OBSERVED_HPP
#define WEIR_OBSERVE_OBSERVED_HPP

#include "weir/clock/system.hpp"
#include "weir/command/list.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace weir {

/// An observer of a store, which is told what became of each command:
///
///     struct observer {
///       template <class C>
///       void executed(C const& command, error_code ec, typename C::result const& answer,
///                     duration took) const;
///     };
///
/// `took` is from the call to the answer, by a steady clock. Where there is an error, the answer is
/// an empty one. `executed` is called in the thread that has the answer, by several threads at
/// once, before the caller's handler: it must be quick, and not throw. Of some commands an observer
/// may want to see the beginning, too: see `accompanies`.
///
/// It may have a function `bool times(C const&) const noexcept`, which is asked about a command
/// that the store executes in the calling thread: if it says no, the clock is not read, and `took`
/// is negative.
template <class O, class C>
concept observes = requires(O const& o, C const& c, error_code ec, typename C::result const& answer,
                            duration took) {
  { o.executed(c, ec, answer, took) } noexcept;
};

/// An observer that accompanies a command from its call to its answer, as spans of a trace do:
///
///     struct observer {
///       companion begin(C const& command) const;
///     };
///     struct companion {
///       C command() const;  // is executed instead: the same, or one with more headers
///       void executed(error_code ec, typename C::result const& answer, duration took);
///     };
///
/// `begin` is called in the caller's thread, and `executed` as that of `observes`, which is not
/// called for the command. The companion is moved, and lives until the answer; what its command
/// views must survive that. Neither may throw.
template <class O, class C>
concept accompanies = requires(O const& o, C const& c, error_code ec,
                               typename C::result const& answer, duration took) {
  { o.begin(c) } noexcept;
  { o.begin(c).command() } -> std::same_as<C>;
  { o.begin(c).executed(ec, answer, took) } noexcept;
};

namespace detail {

/// A companion that only tells the observer.
template <class C, class Observer>
struct plain_companion {
  [[nodiscard]] C command() const noexcept { return asked; }
  void executed(error_code ec, typename C::result const& answer, duration took) const noexcept {
    observer.executed(asked, ec, answer, took);
  }

  C asked;  ///< what it views lives until the handler is called
  Observer observer;
};

template <class Store>
struct observed_pin {};
template <pins_buckets Store>
struct observed_pin<Store> {
  using bucket_pin = typename Store::bucket_pin;  ///< the store's
};

/// The caller's handler, whose companion is told before it.
template <class C, class Companion, class Clock, class Handler>
struct observed_handler {
  void operator()(error_code ec, typename C::result answer) {
    companion.executed(ec, answer, saturating_sub(clock.steady_now(), began));
    std::move(handler)(ec, std::move(answer));
  }

  Companion companion;
  [[no_unique_address]] Clock clock;
  steady_time began;
  Handler handler;
};

}  // namespace detail

/// A store, and an observer of all that it is asked: for metrics, traces, an audit. What is asked
/// by way of the store itself is not observed. An observed store can be observed once more.
///
///     weir::observed store{weir::redis_store{…}, metrics};
///     weir::limiter limiter{store, {.limit = 10}};
///
/// It executes what the other store executes, in the same ways. Commands that wait for an event are
/// passed on unobserved, since they are no steps; so are those that the observer has no word for. A
/// store that nobody observes costs nothing; an observed one two readings of the clock for each
/// command that is timed, and what its observer costs.
///
/// A handle, as the other is; thread-safe where the other and the observer are.
///
/// @tparam Observer see `observes` and `accompanies`; copied
/// @tparam Clock    what commands are timed by
template <store Store, class Observer, clock Clock = system_clock>
class observed : public detail::observed_pin<Store> {
 public:
  using executor_type = typename Store::executor_type;  ///< the other store's
  /// The other store's.
  static constexpr bool tells_in_turn = [] {
    if constexpr (requires { Store::tells_in_turn; }) return Store::tells_in_turn;
    return false;
  }();

  /// @param store    what is observed; copied
  /// @param observer is told; copied
  /// @param clock    what commands are timed by; copied
  explicit observed(Store store, Observer observer = Observer{}, Clock clock = Clock{})
      : store_{std::move(store)},
        observer_{std::move(observer)},
        clock_{std::move(clock)} {}

  /// The other store's.
  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  /// The other store: for its own operations.
  [[nodiscard]] Store const& get_store() const noexcept { return store_; }
  /// As it was given.
  [[nodiscard]] Observer const& get_observer() const noexcept { return observer_; }
  /// The other store's.
  [[nodiscard]] std::uint32_t shard_count() const noexcept
    requires requires(Store const& s) { s.shard_count(); }
  {
    return store_.shard_count();
  }
  /// The other store's.
  [[nodiscard]] auto last_failure() const
    requires requires(Store const& s) { s.last_failure(); }
  {
    return store_.last_failure();
  }
  /// The other store's, observed as this one is.
  [[nodiscard]] observed with_patience(duration most) const
    requires requires(Store const& s) {
      { s.with_patience(most) } -> std::same_as<Store>;
    }
  {
    return observed{store_.with_patience(most), observer_, clock_};
  }

  /// Executes a command in the calling thread, and tells the observer.
  template <class C>
    requires executes_now<Store const, C>
  result<typename C::result> execute(C const& c) const {
    if constexpr (accompanies<Observer, C>) {
      auto const began = clock_.steady_now();
      auto companion = observer_.begin(c);
      auto answer = store_.execute(companion.command());
      auto const took = saturating_sub(clock_.steady_now(), began);
      tell(answer, [&](error_code ec, auto const& a) { companion.executed(ec, a, took); });
      return answer;
    } else if constexpr (observes<Observer, C>) {
      return timed(c, [&] { return store_.execute(c); });
    } else {
      return store_.execute(c);
    }
  }
  /// The same, of a bucket whose place is remembered.
  template <class Pin>
    requires pins_buckets<Store> && std::same_as<Pin, typename Store::bucket_pin>
  result<decision> execute(command::take const& c, Pin& pin) const {
    if constexpr (observes<Observer, command::take>) {
      return timed(c, [&] { return store_.execute(c, pin); });
    } else {
      return store_.execute(c, pin);
    }
  }
  /// Executes many commands, and tells the observer of each: that it took its share of the time.
  template <class C>
    requires executes_each<Store const, C> && (!accompanies<Observer, C>)
  void execute_each(std::span<C const> commands, std::span<result<typename C::result>> out) const {
    if constexpr (observes<Observer, C>) {
      auto const began = clock_.steady_now();
      store_.execute_each(commands, out);
      if (commands.empty()) return;
      auto const each =
          saturating_sub(clock_.steady_now(), began) / static_cast<duration::rep>(commands.size());
      for (std::size_t i = 0; i != commands.size(); ++i) tell_of(commands[i], out[i], each);
    } else {
      store_.execute_each(commands, out);
    }
  }

  /// Executes a command, and tells the observer before the handler.
  template <class C, class Token>
    requires executes<Store const, C>
  WEIR_OPERATION auto async_execute(C const& c, Token&& token) const {
    constexpr bool seen = observes<Observer, C> || accompanies<Observer, C>;
    if constexpr (command::waits_for_event<C> || !seen) {
      return store_.async_execute(c, std::forward<Token>(token));
    } else {
      auto initiate = [self = *this](auto handler, C const& command) {
        auto const began = self.clock_.steady_now();
        auto companion = self.companion_of(command);
        C const executed = companion.command();
        using handler_type =
            detail::observed_handler<C, decltype(companion), Clock, decltype(handler)>;
        self.store_.async_execute(
            executed, handler_type{std::move(companion), self.clock_, began, std::move(handler)});
      };
      return boost::asio::async_initiate<Token, void(error_code, typename C::result)>(
          detail::bound_initiation{get_executor(), std::move(initiate)}, token, c);
    }
  }

 private:
  template <class C>
  [[nodiscard]] auto companion_of(C const& c) const {
    if constexpr (accompanies<Observer, C>) {
      return observer_.begin(c);
    } else {
      return detail::plain_companion<C, Observer>{c, observer_};
    }
  }
  template <class Answer, class Tell>
  static void tell(result<Answer> const& answer, Tell const& tell_it) {
    if (answer.has_value()) {
      tell_it(error_code{}, answer.value());
    } else {
      tell_it(answer.error(), Answer{});
    }
  }
  template <class C, class Step>
  result<typename C::result> timed(C const& c, Step&& step) const {
    if constexpr (requires { observer_.times(c); }) {
      if (!observer_.times(c)) {
        auto answer = step();
        tell_of(c, answer, duration{-1});
        return answer;
      }
    }
    auto const began = clock_.steady_now();
    auto answer = step();
    tell_of(c, answer, saturating_sub(clock_.steady_now(), began));
    return answer;
  }
  template <class C>
  void tell_of(C const& c, result<typename C::result> const& answer, duration took) const {
    tell(answer, [&](error_code ec, auto const& a) { observer_.executed(c, ec, a, took); });
  }

  Store store_;
  Observer observer_;
  [[no_unique_address]] Clock clock_;
};

}  // namespace weir

/// @cond  what Asio asks for: the associations are the caller's handler's
template <template <class, class> class Associator, class C, class Companion, class Clock,
          class Handler, class Default>
struct boost::asio::associator<
    Associator, weir::detail::observed_handler<C, Companion, Clock, Handler>, Default>
    : Associator<Handler, Default> {
  using observed = weir::detail::observed_handler<C, Companion, Clock, Handler>;

  static typename Associator<Handler, Default>::type get(observed const& h) noexcept {
    return Associator<Handler, Default>::get(h.handler);
  }
  static auto get(observed const& h, Default const& d) noexcept
      -> decltype(Associator<Handler, Default>::get(h.handler, d)) {
    return Associator<Handler, Default>::get(h.handler, d);
  }
};
/// @endcond

#endif
