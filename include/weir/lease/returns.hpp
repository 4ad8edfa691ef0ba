// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_RETURNS_HPP
#define WEIR_LEASE_RETURNS_HPP

#include "weir/command/permits.hpp"
#include "weir/detail/parking.hpp"
#include "weir/error.hpp"
#include "weir/lease.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

// Commands that give leases back and that nobody waits for: what handles start when they go.
namespace weir::detail {

/// Lets threads use an execution context that may be destroyed meanwhile: its end waits for those
/// inside, and lets nobody in any more.
template <class>
class basic_context_gate {
 public:
  [[nodiscard]] bool enter() noexcept {
    if ((inside_.fetch_add(one, std::memory_order_acquire) & closed) == 0) return true;
    leave();
    return false;
  }
  void leave() noexcept {
    if (inside_.fetch_sub(one, std::memory_order_release) == (one | closed)) inside_.notify_all();
  }
  void close() noexcept {
    inside_.fetch_or(closed, std::memory_order_acq_rel);
    for (auto n = inside_.load(std::memory_order_acquire); n != closed;
         n = inside_.load(std::memory_order_acquire)) {
      inside_.wait(n, std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint32_t closed = 1;
  static constexpr std::uint32_t one = 2;
  std::atomic<std::uint32_t> inside_{0};
};

using context_gate = basic_context_gate<void>;

/// Closes the gate of a context when that is shut down.
template <class>
class basic_context_watch final : public boost::asio::execution_context::service {
 public:
  using key_type = basic_context_watch;
  static inline boost::asio::execution_context::id id;

  explicit basic_context_watch(boost::asio::execution_context& owner)
      : service{owner},
        gate_{std::make_shared<context_gate>()} {}

  [[nodiscard]] std::shared_ptr<context_gate> const& gate() const noexcept { return gate_; }

 private:
  void shutdown() noexcept override { gate_->close(); }

  std::shared_ptr<context_gate> gate_;
};

using context_watch = basic_context_watch<void>;

/// The returns that are on their way, and who waits for their end. Thread-safe. It lives in the
/// home of the leases that are returned, and so they keep it alive.
template <class>
class basic_lease_returns {
 public:
  /// For a store that needs no execution context to give something back: nothing is ever on its
  /// way.
  basic_lease_returns() = default;
  explicit basic_lease_returns(boost::asio::any_io_executor const& executor)
      : gate_{boost::asio::use_service<context_watch>(
                  boost::asio::query(executor, boost::asio::execution::context))
                  .gate()} {}

  /// Starts the command, if the context still exists.
  template <class Store, class Command>
  void start(Store& store, std::shared_ptr<held_lease const> const& lease,
             Command const& command) noexcept {
    if (!gate_ || !gate_->enter()) return;
    try {
      store.async_execute(command, one_return{*this, lease});
    } catch (...) {  // left to its TTL
    }
    gate_->leave();
  }

  /// Completes the handler when what has been started by now is over.
  template <class Handler>
  void drain(boost::asio::any_io_executor const& executor, Handler handler) {
    auto const waiter = park<error_code>(executor, std::move(handler));
    error_code ec;
    try {
      std::lock_guard const lock{mutex_};
      if (!under_way_.empty()) {
        drains_.remove_if([](drain_wait const& d) { return !d.waiter->waiting(); });
        if (waiter->waiting()) drains_.push_back({under_way_.back(), waiter});
        return;
      }
    } catch (...) {
      ec = make_error_code(boost::system::errc::not_enough_memory);
    }
    waiter->resume(ec);
  }

 private:
  struct drain_wait {
    std::uint64_t last;  ///< it waits for this one and those before it
    std::shared_ptr<parked<error_code>> waiter;
  };
  using numbers = std::list<std::uint64_t>;

  // Counts from its construction until its handler was called or destroyed.
  class one_return {
   public:
    one_return(basic_lease_returns& all, std::shared_ptr<held_lease const> lease)
        : all_{&all},
          lease_{std::move(lease)},
          place_{all.begin()} {}
    one_return(one_return&& other) noexcept
        : all_{std::exchange(other.all_, nullptr)},
          lease_{std::move(other.lease_)},
          place_{other.place_} {}
    one_return& operator=(one_return&&) = delete;
    ~one_return() {
      if (all_ != nullptr) all_->end(place_);
    }

    void operator()(error_code, lease_release) const noexcept {}

   private:
    basic_lease_returns* all_;
    std::shared_ptr<held_lease const> lease_;  // and with it its home
    numbers::iterator place_;
  };

  numbers::iterator begin() {
    std::lock_guard const lock{mutex_};
    under_way_.push_back(++started_);
    return std::prev(under_way_.end());
  }

  void end(numbers::iterator place) noexcept {
    std::list<drain_wait> over;
    {
      std::lock_guard const lock{mutex_};
      under_way_.erase(place);
      auto const first = under_way_.empty() ? started_ + 1 : under_way_.front();
      for (auto it = drains_.begin(); it != drains_.end();) {
        auto const next = std::next(it);
        if (it->last < first) over.splice(over.end(), drains_, it);
        it = next;
      }
    }
    for (auto const& d : over) {
      try {
        d.waiter->resume({});
      } catch (...) {  // nothing can be posted: its handler was destroyed
      }
    }
  }

  std::shared_ptr<context_gate> gate_;
  std::mutex mutex_;
  std::uint64_t started_ = 0;
  numbers under_way_;
  std::list<drain_wait> drains_;
};

using lease_returns = basic_lease_returns<void>;

}  // namespace weir::detail

#endif
