// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_RETURNS_HPP
#define WEIR_LEASE_RETURNS_HPP

#include "weir/command/permits.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/error.hpp"
#include "weir/lease.hpp"
#include "weir/parking.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

// Commands that give leases back and that nobody waits for: what handles start when they go.
namespace weir::detail {

/// The returns that are on their way, and who waits for their end. Thread-safe. It lives in the
/// home of the leases that are returned, and so they keep it alive.
template <class>
class basic_lease_returns {
 public:
  /// For a store that needs no execution context to give something back: nothing is ever on its
  /// way.
  basic_lease_returns() = default;
  explicit basic_lease_returns(boost::asio::any_io_executor const& executor)
      : gate_{gate_of(executor)} {}

  /// Starts the command on a store of any kind, if the context still exists.
  template <class Store, class Command>
  void start(Store const& store, std::shared_ptr<held_lease const> const& lease,
             Command const& command) noexcept {
    if (!gate_ || !gate_->enter()) return;
    try {
      store.start(command, one_return{*this, lease});
    } catch (...) {  // left to its TTL
    }
    gate_->leave();
  }

  /// Announces a return that may be started later. A drain waits until the announcement is
  /// destroyed, and then for the returns started until that moment. Null: out of memory.
  [[nodiscard]] std::shared_ptr<void> expect(
      std::shared_ptr<held_lease const> const& lease) noexcept {
    try {
      return std::make_shared<expected_return>(one_return{*this, lease});
    } catch (...) {
      return nullptr;
    }
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
    void pass_on() const noexcept { all_->pass_on(place_); }

   private:
    basic_lease_returns* all_;
    std::shared_ptr<held_lease const> lease_;  // and with it its home
    numbers::iterator place_;
  };

  class expected_return {
   public:
    explicit expected_return(one_return r) noexcept : return_{std::move(r)} {}
    expected_return(expected_return const&) = delete;
    expected_return& operator=(expected_return const&) = delete;
    ~expected_return() { return_.pass_on(); }

   private:
    one_return return_;
  };

  numbers::iterator begin() {
    std::lock_guard const lock{mutex_};
    under_way_.push_back(++started_);
    return std::prev(under_way_.end());
  }

  /// Makes the drains that wait for this return wait for all returns started since, too.
  void pass_on(numbers::iterator place) noexcept {
    std::lock_guard const lock{mutex_};
    for (auto& d : drains_) {
      if (d.last >= *place) d.last = under_way_.back();
    }
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
