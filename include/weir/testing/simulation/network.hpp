// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_NETWORK_HPP
#define WEIR_TESTING_SIMULATION_NETWORK_HPP

#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/owned_command.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/rule/validate.hpp"
#include "weir/testing/commands.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/simulation/audit.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// How bad the network is: rates in thousandths of the requests, and times.
struct weather {
  std::uint32_t fail_before = 0;  ///< never sent: `store_unavailable`
  std::uint32_t lose_answer = 0;  ///< executed: `outcome_unknown`
  std::uint32_t silence = 0;      ///< half of them executed; unknown when the client gives up
  std::uint32_t duplicate = 0;    ///< of repeatable ones; the second may come much later
  std::uint32_t slow = 0;         ///< there or back
  std::uint32_t hint_dropped = 0;
  std::uint32_t hint_spurious = 0;
  duration latency = std::chrono::milliseconds{1};  ///< usually at most this, each way
  duration slowest = std::chrono::seconds{3};
  duration client_timeout = std::chrono::seconds{5};
};

/// What one process has of the network.
struct link {
  link(boost::asio::any_io_executor ex, std::uint32_t n) : executor{std::move(ex)}, node{n} {}

  boost::asio::any_io_executor executor;  ///< not to be used once it is dead
  std::uint32_t node;
  bool dead = false;
  bool cut_off = false;
  std::vector<void const*> unknown{};  ///< kinds of commands whose last outcome was
};

/// One store, and the network by which all processes reach it. The store is durable: restarting it
/// loses what is on its way, and who waits for hints, and nothing else.
///
/// @tparam Engine executes steps in the calling thread; asynchronously it executes the commands
/// that wait; `now()` is its time
template <class Engine>
class network {
 public:
  /// @param on executes what the engine waits for: it is the store's own process
  network(world& in, Engine engine, simulated_context& on, weather w, audit& a)
      : world_{in},
        engine_{std::move(engine)},
        server_{on},
        weather_{w},
        audit_{a} {}
  network(network const&) = delete;
  network& operator=(network const&) = delete;

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] weather const& conditions() const noexcept { return weather_; }

  /// From now on nothing goes wrong any more. What is on its way arrives.
  void heal() {
    auto const latency = weather_.latency;
    weather_ = weather{};
    weather_.latency = latency;
    down_ = false;
  }

  /// The store's process ends and is back after `outage`.
  void restart(duration outage) {
    ++epoch_;
    down_ = true;
    auto const gone = std::exchange(waits_, {});
    for (auto const& w : gone) w->stop.emit(boost::asio::cancellation_type::terminal);
    world_.after(outage, [this] { down_ = false; });
  }

  template <class C>
  void send(std::shared_ptr<link> const& from, C const& c,
            boost::asio::any_completion_handler<void(error_code, typename C::result)> handler) {
    using answer = typename C::result;
    if (from->dead) return;  // what its destructors still ask for never leaves the host
    if (auto const ec = rule::validate(c)) {
      weir::post_completion(from->executor, std::move(handler), ec, answer{});
      return;
    }
    if constexpr (waits_for_event<C>) {
      wait_for_hint(from, c, std::move(handler));
    } else {
      auto op = weir::park<error_code, answer>(from->executor, std::move(handler));
      if (std::erase(from->unknown, tag<C>()) != 0) world_.reach(rare_state::unknown_then_retried);
      dispatch(std::make_shared<trip<C>>(from, c, std::move(op), epoch_));
    }
  }

 private:
  template <class C>
  struct trip {
    using answer = typename C::result;
    using operation = std::shared_ptr<weir::parked<error_code, answer>>;

    trip(std::shared_ptr<link> f, C const& c, operation o, std::uint64_t e)
        : from{std::move(f)},
          content{c},
          op{std::move(o)},
          epoch{e} {}

    std::shared_ptr<link> from;
    weir::owned_command<C> content;  // it may arrive after its sender died
    operation op;
    std::uint64_t epoch;
  };
  template <class C>
  using trip_pointer = std::shared_ptr<trip<C>>;

  template <class C>
  static void const* tag() noexcept {
    static constexpr char here = 0;
    return &here;
  }

  // ------------------------------------------------------------------------------ requests

  template <class C>
  void dispatch(trip_pointer<C> t) {
    auto& dice = world_.faults;
    world_.tell([&] { return sender(*t) + "asks " + text_of(t->content.get()); });
    auto const there = latency();
    if (t->from->cut_off || down_) {
      if (dice.chance(50)) return fail(t, there, errc::store_unavailable);
      return give_up_later(t);
    }
    auto fate = dice.below(1000);
    auto const falls = [&](std::uint32_t rate) {
      bool const here = fate < rate;
      fate -= std::min<std::uint64_t>(fate, rate);
      return here && rate != 0;
    };
    if (falls(weather_.fail_before)) {
      world_.reach(rare_state::request_lost);
      return fail(t, there, errc::store_unavailable);
    }
    if (falls(weather_.lose_answer)) {
      world_.after(there, [this, t] {
        if (!arrive(t)) return;
        world_.reach(rare_state::answer_lost);
        auto const lost = execute(t);
        // Bad input never leaves a client, so it is never unknown.
        auto const ec = lost.has_error() && lost.error() == condition::bad_input
                            ? lost.error()
                            : make_error_code(errc::outcome_unknown);
        reply(t, latency(), ec, {});
      });
      return;
    }
    if (falls(weather_.silence)) {
      if (dice.chance(50)) {
        world_.after(there, [this, t] {
          if (arrive(t)) static_cast<void>(execute(t));
        });
      }
      return give_up_later(t);
    }
    if (C::repeatable && falls(weather_.duplicate)) {
      auto const second = there + (dice.chance(50) ? latency() : slow());
      world_.after(second, [this, t] {
        if (!arrive(t)) return;
        world_.reach(rare_state::duplicate_delivered);
        deliver(t, latency());
      });
    } else if (falls(weather_.slow)) {
      bool const on_the_way_there = dice.chance(50);
      auto const late = slow();
      give_up_later(t);
      world_.after(on_the_way_there ? late : there, [this, t, on_the_way_there, late] {
        if (arrive(t)) deliver(t, on_the_way_there ? latency() : late);
      });
      return;
    }
    world_.after(there, [this, t] {
      if (arrive(t)) deliver(t, latency());
    });
  }

  /// Does the request find the store that it was sent to?
  template <class C>
  bool arrive(trip_pointer<C> const& t) {
    if (t->epoch == epoch_) {
      if (!t->op->waiting()) world_.reach(rare_state::stale_delivery);
      return true;
    }
    lost_with_store(t);
    return false;
  }
  template <class C>
  void lost_with_store(trip_pointer<C> const& t) {
    world_.reach(rare_state::store_restarted_in_flight);
    if (world_.faults.chance(50)) return fail(t, latency(), errc::outcome_unknown);
    give_up_later(t);
  }

  template <class C>
  result<typename C::result> execute(trip_pointer<C> const& t) {
    auto const& c = t->content.get();
    auto const at = engine_.now();
    auto const answer = engine_.execute(c);
    world_.mix(static_cast<std::uint64_t>(at.time_since_epoch().count()));
    if (answer.has_error() && answer.error() == errc::store_full) {
      world_.reach(rare_state::store_full);
    }
    world_.mix(answer.has_error() ? static_cast<std::uint64_t>(answer.error().value()) : 0);
    world_.tell([&] {
      return "store executes " + text_of(c) + "for " + sender(*t) + "-> " + text_of_answer(answer);
    });
    audit_.after(engine_, c, answer, at);
    return answer;
  }

  template <class C>
  void deliver(trip_pointer<C> const& t, duration back) {
    auto answer = execute(t);
    auto const ec = answer.has_error() ? answer.error() : error_code{};
    reply(t, back, ec, ec ? typename C::result{} : std::move(answer).value());
  }

  template <class C>
  void reply(trip_pointer<C> const& t, duration back, error_code ec, typename C::result got) {
    auto const epoch = epoch_;
    world_.after(back, [this, t, ec, epoch, answer = std::move(got)]() mutable {
      if (!t->op->waiting()) return;
      if (epoch != epoch_) return lost_with_store(t);
      if (t->from->cut_off) return give_up_later(t);
      finish(t, ec, std::move(answer));
    });
  }

  template <class C>
  void fail(trip_pointer<C> const& t, duration after, errc why) {
    world_.after(after, [this, t, why] { finish(t, make_error_code(why), {}); });
  }

  template <class C>
  void give_up_later(trip_pointer<C> const& t) {
    world_.after(weather_.client_timeout, [this, t] {
      if (!t->op->waiting()) return;
      world_.reach(rare_state::never_answered);
      finish(t, make_error_code(errc::outcome_unknown), {});
    });
  }

  template <class C>
  void finish(trip_pointer<C> const& t, error_code ec, typename C::result got) {
    if (!t->op->waiting()) return;
    if (ec == errc::outcome_unknown) t->from->unknown.push_back(tag<C>());
    world_.tell([&] {
      return sender(*t) + "hears of " + text_of(t->content.get()) +
             (ec ? ": " + ec.message() : std::string{": an answer"});
    });
    t->op->resume(ec, std::move(got));
  }

  // ------------------------------------------------------------------------------ hints

  struct waiting_hint {
    boost::asio::cancellation_signal stop;
    bool over = false;
  };

  template <class C>
  void wait_for_hint(std::shared_ptr<link> const& from, C const& c,
                     boost::asio::any_completion_handler<void(error_code, hint)> handler) {
    auto const wait = std::make_shared<waiting_hint>();
    auto leave = [this, weak = std::weak_ptr{wait}]() noexcept {
      // A connection that is gone is noticed, after a while.
      if (auto const w = weak.lock()) world_.after(latency(), [w] { stop(*w); });
    };
    auto const op =
        weir::park<error_code, hint>(from->executor, std::move(handler), std::move(leave));
    auto const t = std::make_shared<trip<C>>(from, c, op, epoch_);
    auto fate = world_.faults.below(1000);
    if (from->cut_off || down_ || fate < weather_.hint_dropped) {
      world_.reach(rare_state::hint_dropped);
      unanswered_.push_back(op);
      std::erase_if(unanswered_, [](auto const& o) { return !o->waiting(); });
      return;
    }
    fate -= weather_.hint_dropped;
    if (fate < weather_.hint_spurious) {
      world_.after(slow(), [this, t] {
        if (t->op->resume({}, hint{})) world_.reach(rare_state::hint_spurious);
      });
      return;
    }
    world_.after(latency(), [this, t, wait] {
      if (t->epoch != epoch_ || wait->over) return unanswered_.push_back(t->op);
      std::erase_if(waits_, [](auto const& w) { return w->over; });
      waits_.push_back(wait);
      auto told = [this, t, wait](error_code ec, hint) {
        wait->over = true;
        if (ec) return unanswered_.push_back(t->op);
        world_.after(latency(), [this, t] {
          if (t->op->resume({}, hint{})) world_.reach(rare_state::hint_delivered);
        });
      };
      audit_.before_wait(engine_, engine_.now());
      engine_.async_execute(
          t->content.get(),
          boost::asio::bind_cancellation_slot(
              wait->stop.slot(), boost::asio::bind_executor(server_.get_executor(), told)));
    });
  }

  static void stop(waiting_hint& w) {
    if (!std::exchange(w.over, true)) w.stop.emit(boost::asio::cancellation_type::terminal);
  }

  // ------------------------------------------------------------------------------ times and texts

  duration latency() {
    auto const most = static_cast<std::uint64_t>(weather_.latency.count());
    return duration{static_cast<duration::rep>(1 + world_.faults.below(most))};
  }
  duration slow() {
    auto const most = static_cast<std::uint64_t>(weather_.slowest.count());
    return duration{static_cast<duration::rep>(1 + world_.faults.below(most))};
  }

  template <class C>
  static std::string sender(trip<C> const& t) {
    return "node " + std::to_string(t.from->node) + (t.from->dead ? " (dead) " : " ");
  }
  template <class C>
  static std::string text_of(C const& c) {
    return to_text(fields_of(c)) + ' ';
  }
  template <class R>
  static std::string text_of_answer(result<R> const& a) {
    return to_text(fields_of(a));
  }

  world& world_;
  Engine engine_;
  simulated_context& server_;
  weather weather_;
  audit& audit_;
  bool down_ = false;
  std::uint64_t epoch_ = 0;
  std::vector<std::shared_ptr<waiting_hint>> waits_;
  std::vector<std::shared_ptr<weir::parked<error_code, hint>>> unanswered_;
};

/// A process's handle of the store behind the network: a store like any other.
///
/// Errors: the engine's, `store_unavailable` and `outcome_unknown`. Cancelling completes at once
/// with `operation_aborted`; what was sent may be executed all the same, also much later.
template <class Engine>
class network_store {
 public:
  using executor_type = boost::asio::any_io_executor;

  network_store(network<Engine>& net, std::shared_ptr<link> l) : net_{&net}, link_{std::move(l)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return link_->executor; }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return net_->engine().shard_count(); }

  template <class C, class Token>
    requires(executes_now<Engine, C> || (waits_for_event<C> && executes<Engine, C>))
  auto async_execute(C const& c, Token&& token) const {
    using answer = typename C::result;
    return boost::asio::async_initiate<Token, void(error_code, answer)>(
        weir::detail::bound_initiation{get_executor(), initiation<C>{}}, token, *this, c);
  }

 private:
  template <class C>
  struct initiation {
    using handler = boost::asio::any_completion_handler<void(error_code, typename C::result)>;
    void operator()(handler h, network_store self, C c) const {
      self.net_->send(self.link_, c, std::move(h));
    }
  };

  network<Engine>* net_;
  std::shared_ptr<link> link_;
};

}  // namespace weir::testing::simulation

#endif
