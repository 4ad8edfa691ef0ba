// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_PURSUIT_HPP
#define WEIR_LEASE_PURSUIT_HPP

#include "weir/command/permits.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/lease.hpp"
#include "weir/lease/agent.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
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
template <class Noun>
class lease_pursuit {
 public:
  using agent = lease_agent<Noun>;
  using handle = typename agent::handle;
  using grant = typename agent::grant;
  using ending = std::optional<result<handle>>;
  using claim_pointer = std::shared_ptr<lease_claim>;

  struct asked {
    asked(result<grant> a, steady_time t) : answer{std::move(a)}, sent{t} {}
    result<grant> answer;
    steady_time sent;
  };

  /// @param wait 0: asks once, however long the answer takes; `limits::span`: for ever
  lease_pursuit(std::shared_ptr<agent> of, claim_pointer claim, duration wait)
      : agent_{std::move(of)},
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
    answered_at_ = a.sent;
    retry_after_ = {};
    if (!g.granted) {
      claim_->known = Noun::in_line(g);
      claim_->other = Noun::other(g);
      retry_after_ = Noun::retry_after(g);
      return once_ ? ending{failure_} : ending{};
    }
    if (auto won = agent::adopt(*claim_, g, a.sent, agent_->clock)) return ending{std::move(*won)};
    if (asks_now()) {
      (void)agent_->store.execute(Noun::give_back(claim_->state()));
    } else {
      stale_ = g.fence;
    }
    return once_ ? ending{failure_} : ending{};
  }

  /// Goes on from where it is until the end. Not thread-safe: on a strand, and it does not throw
  /// when cancelled.
  static boost::asio::awaitable<result<handle>> run(lease_pursuit self, bool has_asked) {
    namespace asio = boost::asio;
    leaving const at_end{self};
    co_await asio::this_coro::throw_if_cancelled(false);
    for (;; has_asked = false) {
      if (!has_asked) {
        auto asking = self.ask();
        auto const answer = co_await std::move(asking);
        if (auto const state = co_await asio::this_coro::cancellation_state; !!state.cancelled())
          break;
        if (auto end = self.settle(answer)) co_return std::move(*end);
      }
      if (self.stale_ != 0) {
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
  /// Calls `lease_agent::leave` at the end of `run`, before the caller's handler is called.
  struct leaving {
    lease_pursuit const& who;
    explicit leaving(lease_pursuit const& p) noexcept : who{p} {}
    leaving(leaving const&) = delete;
    leaving& operator=(leaving const&) = delete;
    ~leaving() { who.agent_->leave(*who.claim_); }
  };

  [[nodiscard]] bool asks_now() const noexcept { return agent_->store.executes_now(); }
  [[nodiscard]] steady_time now() const noexcept { return agent_->clock.steady_now(); }
  [[nodiscard]] bool over() const noexcept { return now() >= deadline_; }

  steady_time begin_asking() noexcept {
    before_ = std::exchange(claim_->known, true);
    return now();
  }

  // A ticket need not outlive the wait that it is for.
  [[nodiscard]] typename Noun::acquire question() const noexcept {
    auto const& options = agent_->options;
    auto const left = std::max(saturating_sub(deadline_, now()), duration{1});
    return Noun::ask(options, claim_->state(), options.ttl,
                     once_ ? duration::zero() : std::min(patience_for(options.poll), left));
  }

  boost::asio::awaitable<asked> ask() {
    if (asks_now()) co_return ask_now();
    auto const sent = begin_asking();
    auto start = [this](attempt_handler<grant> handler) {
      agent_->store.start(question(), std::move(handler));
    };
    auto asking = attempt<grant>(agent_->clock, deadline_, claim_, std::move(start));
    auto answer = co_await std::move(asking);
    co_return asked{std::move(answer), sent};
  }

  ending settle(error_code ec) {
    if (over() && ec == errc::timed_out) return ending{no_answer()};  // the claim is cleaned up
    if (!may_have_happened(ec)) claim_->known = before_;
    if (ec != condition::transient || once_) return ending{ec};
    failure_ = ec;
    retry_after_ = {};
    return {};
  }

  /// The wait is over, and the last question has no answer. A limit that was in use when it was
  /// asked before, a moment ago, is so still; otherwise it is the store that has not let us in
  /// (F87).
  [[nodiscard]] error_code no_answer() const {
    auto const quiet = answered_at_ ? saturating_sub(now(), *answered_at_) : limits::span;
    if (auto const why = agent_->store.failure()) return why;
    if (answered_at_ && quiet <= patience_for(agent_->options.poll)) return failure_;
    return explained(errc::store_unavailable, "no answer within the wait");
  }

  // A lease that was over when it came would be given to the same holder again, as it is.
  boost::asio::awaitable<void> give_back_stale() {
    auto start = [this](attempt_handler<lease_release> handler) {
      auto return_it = Noun::give_back(claim_->state());
      return_it.fence = stale_;
      agent_->store.start(return_it, std::move(handler));
    };
    auto returning = attempt<lease_release>(agent_->clock, deadline_, claim_, std::move(start));
    auto const returned = co_await std::move(returning);
    if (returned.has_value()) stale_ = 0;
  }

  /// When to ask again if nothing happens before.
  steady_time next_ask() {
    auto const poll = agent_->options.poll;
    auto const shortest = std::min<duration>(std::chrono::milliseconds{1}, poll);
    pause_ =
        std::clamp(agent_->backoff(attempts_++, pause_, agent_->ids.entropy()), shortest, poll);
    // In line, asking only renews the ticket.
    if (failure_ == errc::timed_out && relies_on_hints()) pause_ = poll;
    if (retry_after_ > duration::zero()) pause_ = std::min(pause_, retry_after_);
    return std::min(saturating_add(now(), pause_), deadline_);
  }

  // A store that hints and then refuses, again and again, is not to be asked in a circle.
  [[nodiscard]] bool relies_on_hints() const {
    constexpr std::uint32_t trusted = 4;
    return Noun::has_line && agent_->store.has_hints() && claim_->known && hints_ < trusted;
  }

  boost::asio::awaitable<void> wait(steady_time until) {
    if constexpr (Noun::has_line) {
      if (relies_on_hints()) {
        auto start = [this](attempt_handler<hint> handler) {
          auto const& state = claim_->state();
          agent_->store.start(command::await_permit{state.key(), state.holder()},
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
    auto sleeping = attempt_nothing(agent_->clock, until);
    co_await std::move(sleeping);
  }

  std::shared_ptr<agent> agent_;
  claim_pointer claim_;
  bool once_;
  steady_time deadline_;
  error_code failure_ = make_error_code(errc::timed_out);
  std::optional<steady_time> answered_at_;  // when what was answered last was asked
  duration retry_after_{};
  duration pause_{};
  std::uint32_t attempts_ = 0;
  std::uint32_t hints_ = 0;
  bool before_ = false;
  std::uint64_t stale_ = 0;  ///< the fence of a grant that came too late, until it is given back
};

}  // namespace weir::detail

#endif
