// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_PARKING_LOT_HPP
#define WEIR_DETAIL_PARKING_LOT_HPP

#include "weir/error.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context_as.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/intrusive/list.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>

// Lets parked operations die with their execution context: see parking.hpp.
namespace weir::detail {

template <class>
class basic_parked_base;
using parked_base = basic_parked_base<void>;
template <class>
class basic_parking_lot;
using parking_lot = basic_parking_lot<void>;

/// An operation's place in the parking lot of one execution context.
struct parking_place : boost::intrusive::list_base_hook<> {
  parked_base* tenant = nullptr;
  std::shared_ptr<parking_lot> lot;
};

/// What all parked operations share. `take` decides who ends the operation, and nobody else touches
/// it from then on.
template <class>
class basic_parked_base : public std::enable_shared_from_this<parked_base> {
 public:
  basic_parked_base() = default;
  basic_parked_base(basic_parked_base const&) = delete;
  basic_parked_base& operator=(basic_parked_base const&) = delete;
  virtual ~basic_parked_base() = default;

  /// Is it to be sent? Then from here on it may be done, whatever becomes of the operation. False:
  /// it has ended already. `stays`: it was not sent after all.
  [[nodiscard]] bool leaves() noexcept {
    left_.store(true, std::memory_order_seq_cst);
    return state_.load(std::memory_order_seq_cst) != state::over;
  }
  /// Is it to be done here and now? Then it can no longer be cancelled; but its time may be over
  /// before its owner resumes it. False: it has ended already.
  [[nodiscard]] bool begins() noexcept {
    left_.store(true, std::memory_order_seq_cst);
    auto from = state::waiting;
    return state_.compare_exchange_strong(from, state::begun, std::memory_order_seq_cst);
  }
  /// Is its answer there and on its way? Then its time cannot be over any more.
  void answered() noexcept {
    auto from = state::begun;
    state_.compare_exchange_strong(from, state::answered, std::memory_order_seq_cst);
  }
  void stays() noexcept { left_.store(false, std::memory_order_seq_cst); }
  [[nodiscard]] bool left() const noexcept { return left_.load(std::memory_order_seq_cst); }

  /// Its time is over: completes it with `outcome_unknown` if it may have been done, and otherwise
  /// with `untouched`, unless it has ended already.
  virtual void lapse(error_code untouched) = 0;

  /// Has nothing ended the operation yet? Once false, false for good.
  [[nodiscard]] bool waiting() const noexcept {
    return state_.load(std::memory_order_acquire) != state::over;
  }

 protected:
  bool take() noexcept { return take_unanswered() || take(state::answered); }
  bool take_unanswered() noexcept { return take(state::waiting) || take(state::begun); }
  /// The same, unless its owner has begun with it.
  bool take_unbegun() noexcept { return take(state::waiting); }

  /// Registers with the lots of these contexts (null: none). False: one of them is closed.
  bool enter(boost::asio::execution_context* first, boost::asio::execution_context* second);
  void leave() noexcept;

 private:
  friend parking_lot;
  enum class state : std::uint8_t { waiting, begun, answered, over };

  bool take(state from) noexcept {
    if (!state_.compare_exchange_strong(from, state::over, std::memory_order_seq_cst)) return false;
    taker_.store(std::this_thread::get_id(), std::memory_order_release);
    return true;
  }

  /// Destroys the handler and leaves. Called by who has taken the operation.
  virtual void abandon() noexcept = 0;

  [[nodiscard]] bool taken_here() const noexcept {
    return taker_.load(std::memory_order_acquire) == std::this_thread::get_id();
  }

  std::atomic<state> state_{state::waiting};
  std::atomic<std::thread::id> taker_{};
  std::atomic<bool> left_{false};
  std::array<parking_place, 2> places_;
};

/// The operations that wait on one execution context. It outlives the context if it must, and is
/// closed with it.
template <class>
class basic_parking_lot {
 public:
  bool enter(parking_place& place) {
    std::lock_guard const lock{mutex_};
    if (closed_) return false;
    places_.push_back(place);
    return true;
  }

  void leave(parking_place& place) noexcept {
    std::lock_guard const lock{mutex_};
    if (!place.is_linked()) return;
    places_.erase(places_.iterator_to(place));
    if (closed_) left_.notify_all();
  }

  /// Destroys the handler of every operation here, and waits for those that other threads are
  /// ending right now: after it nothing refers to the context. Destructors of handlers may park,
  /// resume and cancel as they like meanwhile.
  void close() noexcept {
    std::unique_lock lock{mutex_};
    closed_ = true;
    for (;;) {
      std::shared_ptr<parked_base> mine;
      bool others = false;
      for (auto& place : places_) {
        auto tenant = place.tenant->weak_from_this().lock();  // null: it is in its destructor
        if (tenant && tenant->take()) {
          mine = std::move(tenant);
          break;
        }
        // One that this thread is ending, further up its stack, cannot be waited for.
        others = others || !place.tenant->taken_here();
      }
      if (mine) {
        lock.unlock();
        mine->abandon();
        mine.reset();
        lock.lock();
      } else if (others) {
        left_.wait(lock);
      } else {
        return;
      }
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  bool closed_ = false;
  boost::intrusive::list<parking_place, boost::intrusive::constant_time_size<false>> places_;
};

/// Closes a context's lot when the context is shut down.
template <class>
class basic_parking_service final : public boost::asio::execution_context::service {
 public:
  using key_type = basic_parking_service;
  static inline boost::asio::execution_context::id id;

  explicit basic_parking_service(boost::asio::execution_context& owner)
      : service{owner},
        lot_{std::make_shared<parking_lot>()} {}
  ~basic_parking_service() override { lot_->close(); }

  [[nodiscard]] std::shared_ptr<parking_lot> const& lot() const noexcept { return lot_; }

 private:
  void shutdown() noexcept override { lot_->close(); }

  std::shared_ptr<parking_lot> lot_;
};

using parking_service = basic_parking_service<void>;

template <class Same>
bool basic_parked_base<Same>::enter(boost::asio::execution_context* first,
                                    boost::asio::execution_context* second) {
  std::array const contexts{first, second};
  // All places are ready before the first is taken: from then on the lot may end the operation.
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    if (contexts[i] == nullptr) continue;
    places_[i].tenant = this;
    places_[i].lot = boost::asio::use_service<parking_service>(*contexts[i]).lot();
  }
  for (auto& place : places_) {
    if (place.lot && !place.lot->enter(place)) return false;
  }
  return true;
}

template <class Same>
void basic_parked_base<Same>::leave() noexcept {
  for (auto& place : places_) {
    if (place.lot) place.lot->leave(place);
  }
}

template <class Executor>
[[nodiscard]] boost::asio::execution_context* context_of(Executor const& executor);

template <class... Targets>
[[nodiscard]] boost::asio::execution_context* context_of_target(
    boost::asio::any_completion_executor const& executor) {
  boost::asio::execution_context* found = nullptr;
  auto const look = [&](auto const* target) {
    if (target != nullptr) found = context_of(*target);
  };
  (look(executor.template target<Targets>()), ...);
  return found;
}

/// The execution context of an executor; null where it cannot be known. The executor of an erased
/// handler does not tell, but it is one of Asio's in practice.
template <class Executor>
[[nodiscard]] boost::asio::execution_context* context_of(Executor const& executor) {
  namespace asio = boost::asio;
  using property = asio::execution::context_as_t<asio::execution_context&>;
  if constexpr (asio::can_query_v<Executor const&, property>) {
    return &asio::query(executor, property{});
  } else if constexpr (std::is_same_v<Executor, asio::any_completion_executor>) {
    using io = asio::io_context::executor_type;
    using pool = asio::thread_pool::executor_type;
    return context_of_target<io, pool, asio::strand<io>, asio::strand<pool>,
                             asio::strand<asio::any_io_executor>>(executor);
  } else {
    return nullptr;
  }
}

/// Is an erased handler's executor this one? False, too, where that cannot be known.
template <class Executor>
[[nodiscard]] bool is_same_executor(Executor const& own, boost::asio::any_io_executor const& from) {
  namespace asio = boost::asio;
  if constexpr (std::is_same_v<Executor, asio::any_completion_executor>) {
    auto const is = [&]<class Target>(Target const* it) {
      auto const* const there = from.target<Target>();
      return it != nullptr && there != nullptr && *it == *there;
    };
    return is(own.template target<asio::io_context::executor_type>()) ||
           is(own.template target<asio::thread_pool::executor_type>());
  }
  return false;
}

}  // namespace weir::detail

#endif
