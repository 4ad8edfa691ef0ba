// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_PERMITS_HPP
#define WEIR_STORE_MEMORY_PERMITS_HPP

#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/rule/permits.hpp"
#include "weir/store/memory/lease_table.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace weir::detail {

/// One key's permits and line, and the operations that wait for their turn in it.
template <class>
class basic_awaited_line {
 public:
  using waiter = parked<error_code, hint>;
  using waiters = std::multimap<std::uint64_t, std::shared_ptr<waiter>>;  // by their ticket's turn

  /// Waiters that have reason to ask again. They are told, in the order of their turns, when this
  /// is destroyed.
  class deferred {
   public:
    deferred() = default;
    deferred(deferred const&) = delete;
    deferred& operator=(deferred const&) = delete;
    ~deferred() {
      for (auto const& [turn, waiting] : woken_) {
        try {
          waiting->resume({}, {});
        } catch (...) {  // it could not be posted; a hint promises nothing
        }
      }
    }

    // Takes a node and so allocates nothing.
    void wake(waiters::node_type node) noexcept { woken_.insert(std::move(node)); }

   private:
    waiters woken_;
  };

  [[nodiscard]] std::size_t size() const noexcept { return line_.size(); }
  [[nodiscard]] time_point soonest() const noexcept { return line_.soonest(); }

  void expire(time_point now, deferred& later) noexcept {
    rule::expire(line_, now, [&](rule::occupant const& ticket) { wake_all(ticket.number, later); });
  }

  /// Wakes exactly those whose turn has come, each once: who asks again is granted or waits anew
  /// (F10). A free permit that the first in line was told of is its own until its ticket lapses, so
  /// nobody else is told of it.
  void settle(deferred& later) noexcept {
    if (!waiters_) return;
    for (auto it = waiters_->begin(); it != waiters_->end();) {
      auto const* const ticket = line_.tickets.find(it->first);
      auto const ahead = line_.tickets.before(*ticket);
      if (!rule::is_turn(line_, ahead, top_limit_)) break;
      auto const next = std::next(it);
      if (rule::is_turn(line_, ahead, ticket->limit)) later.wake(waiters_->extract(it));
      it = next;
    }
    if (waiters_->empty()) waiters_.reset();
  }

  /// Runs a step that may end or change the ticket of `holder`. Whoever waits with one that ends is
  /// woken.
  template <class Step>
  auto act(std::string_view holder, deferred& later, Step&& step) {
    auto const* const before = waiters_ ? line_.tickets.find(holder) : nullptr;
    auto const turn = before != nullptr ? before->number : 0;
    auto answer = step(line_);
    if (turn != 0) {
      if (auto const* const ticket = line_.tickets.find(turn)) {
        top_limit_ = std::max(top_limit_, ticket->limit);
      } else {
        wake_all(turn, later);
      }
    }
    return answer;
  }

  /// Lets the operation wait for its holder's turn. False: there is nothing to wait for.
  bool wait(command::await_permit const& c, time_point now,
            std::shared_ptr<waiter> const& operation) {
    if (rule::should_ask(line_, c, now)) return false;
    auto const& ticket = *line_.tickets.find(c.holder);
    if (!waiters_) {
      waiters_ = std::make_unique<waiters>();
      top_limit_ = 0;
    }
    // A holder that polls leaves one cancelled operation behind each time.
    auto [it, end] = waiters_->equal_range(ticket.number);
    while (it != end) it = it->second->waiting() ? std::next(it) : waiters_->erase(it);
    waiters_->emplace(ticket.number, operation);
    top_limit_ = std::max(top_limit_, ticket.limit);
    return true;
  }

  /// Operations here, cancelled ones that nobody has come across among them.
  [[nodiscard]] std::size_t parked_count() const noexcept {
    return waiters_ ? waiters_->size() : 0;
  }

 private:
  void wake_all(std::uint64_t turn, deferred& later) noexcept {
    if (!waiters_) return;
    for (auto it = waiters_->find(turn); it != waiters_->end(); it = waiters_->find(turn)) {
      later.wake(waiters_->extract(it));
    }
  }

  rule::permit_line line_;
  std::uint32_t top_limit_ = 0;       // no waiter's ticket has a higher one
  std::unique_ptr<waiters> waiters_;  // each has a live ticket after every step
};

using awaited_line = basic_awaited_line<void>;

/// The permits of a memory store. Thread-safe; input is validated by the store; the time comes in,
/// and may run backwards.
template <class>
class basic_memory_permits {
 public:
  explicit basic_memory_permits(memory_options const& options) : lines_{options.max_permits} {}

  /// Commands are executed at such times, too: what is live then is not tidied at others.
  void told(time_point t) noexcept { lines_.told(t); }

  /// Error: `store_full`, and nothing has changed.
  result<permit_grant> apply(command::acquire_permit const& c, time_point now) {
    return lines_.update(c.key, now, [&](awaited_line& line, auto& scope) {
      return line.act(c.holder, scope.later(), [&](rule::permit_line& state) {
        return rule::apply(state, c, now, scope.last_fence(), [&] { return scope.reserve(); });
      });
    });
  }

  /// Error: `lease_lost`.
  result<lease_renewal> apply(command::renew_permit const& c, time_point now) {
    return on_existing<result<lease_renewal>>(c, c.holder, now, make_error_code(errc::lease_lost));
  }

  result<lease_release> apply(command::release_permit const& c, time_point now) {
    return on_existing<result<lease_release>>(c, c.holder, now, lease_release{});
  }

  result<permit_census> apply(command::inspect_permits const& c, time_point now) {
    return on_existing<result<permit_census>>(c, {}, now, permit_census{});
  }

  /// Completes `handler` when its holder has reason to ask again, or at once if it has one now;
  /// never inline. It ends with `operation_aborted` if it is cancelled or the store is destroyed,
  /// and dies with its execution context.
  void await(command::await_permit const& c, time_point now,
             boost::asio::any_completion_handler<void(error_code, hint)> handler,
             boost::asio::any_io_executor const& fallback) {
    auto const operation = park<error_code, hint>(fallback, std::move(handler));
    if (!operation->waiting()) return;  // its handler is gone, and with it what the command views
    error_code ec;
    try {
      bool const waits = lines_.visit(c.key, now, [&](awaited_line* line, auto&) {
        return line != nullptr && line->wait(c, now, operation);
      });
      if (waits) return;
    } catch (std::bad_alloc const&) {
      ec = make_error_code(boost::system::errc::not_enough_memory);
    }
    operation->resume(ec, {});
  }

 protected:
  /// For tests and benchmarks: what is really in memory.
  [[nodiscard]] lease_table<awaited_line>& lines() noexcept { return lines_; }

 private:
  template <class Result, class Command>
  Result on_existing(Command const& c, std::string_view holder, time_point now,
                     Result const& absent) {
    return lines_.visit(c.key, now, [&](awaited_line* line, auto& scope) -> Result {
      if (line == nullptr) return absent;
      return line->act(holder, scope.later(), [&](rule::permit_line& state) -> Result {
        return rule::apply(state, c, now);
      });
    });
  }

  lease_table<awaited_line> lines_;
};

using memory_permits = basic_memory_permits<void>;

}  // namespace weir::detail

#endif
