// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_HPP
#define WEIR_LEASE_HPP

#include "weir/time.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

namespace detail {

struct held_lease;

/// Where leases are given back to. Handles know no more of the primitive that granted them.
class lease_home {
 public:
  /// Starts to give the lease back, or leaves it to its TTL. With fence 0: whatever the holder has
  /// on the key.
  virtual void give_back(std::shared_ptr<held_lease const> lease) noexcept = 0;

 protected:
  lease_home() = default;
  lease_home(lease_home const&) = delete;
  lease_home& operator=(lease_home const&) = delete;
  ~lease_home() = default;
};

/// One lease, or one attempt to get it. All but the expiry is written before others see it.
struct held_lease {
  held_lease(std::shared_ptr<lease_home> h, std::string k, std::string_view by)
      : home{std::move(h)},
        key_size{k.size()},
        names{std::move(k.append(by))} {}

  [[nodiscard]] std::string_view key() const noexcept {
    return std::string_view{names}.substr(0, key_size);
  }
  [[nodiscard]] std::string_view holder() const noexcept {
    return std::string_view{names}.substr(key_size);
  }
  [[nodiscard]] steady_time expires_at() const noexcept {
    return steady_time{duration{expiry.load(std::memory_order_relaxed)}};
  }
  void expires_at(steady_time t) noexcept {
    expiry.store(t.time_since_epoch().count(), std::memory_order_relaxed);
  }

  std::shared_ptr<lease_home> const home;
  std::size_t const key_size;
  std::string const names;
  std::uint64_t fence = 0;
  std::uint32_t in_use = 0;
  std::atomic<duration::rep> expiry{0};
};

/// Gives a lease back when it goes, unless it was told otherwise.
class lease_owner {
 public:
  lease_owner() noexcept = default;
  explicit lease_owner(std::shared_ptr<held_lease> state) noexcept : state_{std::move(state)} {}
  lease_owner(lease_owner&& other) noexcept : state_{std::move(other.state_)} {}
  lease_owner& operator=(lease_owner&& other) noexcept {
    lease_owner incoming{std::move(other)};
    state_.swap(incoming.state_);
    return *this;
  }
  ~lease_owner() { release(); }

  void release() noexcept {
    if (auto const lease = disarm()) lease->home->give_back(lease);
  }
  std::shared_ptr<held_lease> disarm() noexcept { return std::exchange(state_, nullptr); }

  [[nodiscard]] std::shared_ptr<held_lease> const& state() const noexcept { return state_; }

 private:
  std::shared_ptr<held_lease> state_;
};

struct lease_access;

}  // namespace detail

/// The common part of `permit` and `lock`: a handle of something that is held until a time.
///
/// A handle is movable and may be empty. Destroying it, or assigning to it, gives back what it
/// holds, without waiting and without throwing. A store that answers in the calling thread does so
/// at once. Otherwise a command is started, if the store's execution context still exists; if it
/// does not, the lease ends when its time is over. To be certain, give it back with the primitive's
/// `async_release`, or call `async_drain` at the end. A handle keeps alive what it needs; it may
/// outlive the primitive, and its execution context.
///
/// Thread-safety: a handle is like an `int`; different handles may be used in different threads.
/// `expires_at` may be called while the lease is being renewed.
class lease {
 public:
  /// Does it hold something? Holding says nothing about time: see `expires_at`.
  explicit operator bool() const noexcept { return owner_.state() != nullptr; }

  /// The key that is held; empty if nothing is. This view, and that of `holder`, are valid as long
  /// as the handle holds it.
  [[nodiscard]] std::string_view key() const noexcept {
    return *this ? owner_.state()->key() : std::string_view{};
  }

  /// Under which name the store knows who holds it: a new one for every grant.
  [[nodiscard]] std::string_view holder() const noexcept {
    return *this ? owner_.state()->holder() : std::string_view{};
  }

  /// The lease's number, greater than that of every earlier lease of the same key; 0: nothing is
  /// held. To guard what is written downstream, send it along and let the receiver refuse a number
  /// lower than the highest it has seen.
  [[nodiscard]] std::uint64_t fence() const noexcept { return *this ? owner_.state()->fence : 0; }

  /// When the lease ends if nothing renews it, by the primitive's clock, counted from before the
  /// request was sent: the store does not end it sooner. Its holder had better stop a little
  /// earlier.
  [[nodiscard]] steady_time expires_at() const noexcept {
    return *this ? owner_.state()->expires_at() : steady_time{};
  }

  /// Gives it back now, as the destructor would. Does nothing if nothing is held.
  void release() noexcept { owner_.release(); }

 protected:
  /// @cond  for `permit` and `lock`
  lease() noexcept = default;
  explicit lease(detail::lease_owner owner) noexcept : owner_{std::move(owner)} {}
  lease(lease&&) noexcept = default;
  lease& operator=(lease&&) noexcept = default;
  ~lease() = default;

  void swap_with(lease& other) noexcept { std::swap(owner_, other.owner_); }
  [[nodiscard]] detail::held_lease const& state() const noexcept { return *owner_.state(); }
  /// @endcond

 private:
  friend struct detail::lease_access;

  detail::lease_owner owner_;
};

/// One of the permits that a `limiter` hands out. See `lease` for what every handle does.
///
/// With a limit above 1 the fence tells leases apart, but it cannot order writers: several hold the
/// key at once, and the one with the lower number may well be the one that writes last.
class permit final : public lease {
 public:
  /// Holds nothing.
  permit() noexcept = default;

  /// How many permits of the key were in use right after this one was granted, this one included.
  [[nodiscard]] std::uint32_t in_use() const noexcept { return *this ? state().in_use : 0; }

  /// Exchanges what they hold.
  void swap(permit& other) noexcept { swap_with(other); }
  /// Exchanges what they hold.
  friend void swap(permit& a, permit& b) noexcept { a.swap(b); }

 private:
  friend struct detail::lease_access;

  explicit permit(detail::lease_owner owner) noexcept : lease{std::move(owner)} {}
};

/// A key that nobody else has, from `uniqueness`. See `lease` for what every handle does. Its fence
/// orders writers.
class lock final : public lease {
 public:
  /// Holds nothing.
  lock() noexcept = default;

  /// Exchanges what they hold.
  void swap(lock& other) noexcept { swap_with(other); }
  /// Exchanges what they hold.
  friend void swap(lock& a, lock& b) noexcept { a.swap(b); }

 private:
  friend struct detail::lease_access;

  explicit lock(detail::lease_owner owner) noexcept : lease{std::move(owner)} {}
};

namespace detail {

/// The primitives' way into a handle.
struct lease_access {
  template <class Handle>
  [[nodiscard]] static Handle make(lease_owner owner) noexcept {
    return Handle{std::move(owner)};
  }
  [[nodiscard]] static std::shared_ptr<held_lease> const& state(lease const& l) noexcept {
    return l.owner_.state();
  }
  [[nodiscard]] static lease_owner take(lease&& l) noexcept { return std::move(l.owner_); }
};

}  // namespace detail
}  // namespace weir

#endif
