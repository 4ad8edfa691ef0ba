// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_QUOTA_BOOK_HPP
#define WEIR_STORE_MEMORY_QUOTA_BOOK_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/store/memory/wide_arrival.hpp"
#include "weir/time.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace weir::detail {

/// One to four quotas, by value.
struct quota_list {
  explicit quota_list(std::span<quota const> quotas) noexcept : size{quotas.size()} {
    std::copy(quotas.begin(), quotas.end(), each.begin());
  }
  quota_list() = default;

  [[nodiscard]] std::span<quota const> span() const noexcept { return {each.data(), size}; }

  friend bool operator==(quota_list const&, quota_list const&) = default;

  struct hash {
    using is_avalanching = void;
    std::size_t operator()(quota_list const& list) const noexcept {
      sip_hash all{hash_key()};
      for (auto const& q : list.span()) {
        all.add(q.tokens());
        all.add(static_cast<std::uint64_t>(q.period().count()));
        all.add(q.capacity());
      }
      return all.end(list.size);
    }
  };

  std::array<quota, limits::quotas> each{};
  std::size_t size = 0;
};

/// Is the arrival of a bucket with these quotas kept in its slot? One of 64 bits is.
[[nodiscard]] inline bool in_slot(std::span<rule::bucket_scale const> scales) noexcept {
  return scales.size() == 1 && scales[0].narrow;
}

/// Is it kept elsewhere, and yet changed without a lock? Those of several quotas are changed with
/// the shard locked.
[[nodiscard]] inline bool is_wide(std::span<rule::bucket_scale const> scales) noexcept {
  return wide_arrival::available && scales.size() == 1 && !scales[0].narrow;
}

/// Quotas that buckets share, with their scales. Who holds it may read all of it; others only ask
/// whether it `is_only`.
template <class>
class basic_quota_set {
 public:
  [[nodiscard]] std::span<quota const> quotas() const noexcept { return quotas_.span(); }
  [[nodiscard]] std::span<rule::bucket_scale const> scales() const noexcept {
    return scales_.span();
  }

  [[nodiscard]] bool equals(std::span<quota const> asked) const noexcept {
    return std::ranges::equal(quotas_.span(), asked);
  }

  /// Is `q` its only quota, and its scale narrow? Then `scale` becomes that quota's. Any thread may
  /// ask at any time; the answer holds for a bucket only if the bucket's record still names this
  /// set afterwards.
  [[nodiscard]] bool is_only(quota const& q, rule::bucket_scale& scale) const noexcept {
    return is_only(q, scale, only_.tokens);
  }

  /// The same where its scale is not narrow, and the arrival may be swapped even so.
  [[nodiscard]] bool is_only_wide(quota const& q, rule::bucket_scale& scale) const noexcept {
    return is_only(q, scale, only_.wide_tokens);
  }

 private:
  template <class>
  friend class basic_quota_book;

  [[nodiscard]] bool is_only(quota const& q, rule::bucket_scale& scale,
                             std::atomic<std::uint64_t> const& tokens) const noexcept {
    constexpr auto order = std::memory_order_acquire;
    if (tokens.load(order) != q.tokens() || only_.period.load(order) != q.period().count() ||
        only_.capacity.load(order) != q.capacity()) {
      return false;
    }
    scale.capacity = q.capacity();
    scale.gain = only_.gain.load(order);
    scale.price = only_.price.load(order);
    scale.inverse = only_.inverse.load(order);
    scale.shift = only_.shift.load(order);
    return true;
  }

  void assign(quota_list const& quotas, rule::bucket_scales const& scales) noexcept {
    constexpr auto order = std::memory_order_release;
    auto const& q = quotas.each[0];
    auto const& scale = scales.each[0];
    // No valid quota has no tokens.
    only_.tokens.store(in_slot(scales.span()) ? q.tokens() : 0, order);
    only_.wide_tokens.store(is_wide(scales.span()) ? q.tokens() : 0, order);
    only_.period.store(q.period().count(), order);
    only_.capacity.store(q.capacity(), order);
    only_.gain.store(scale.gain, order);
    only_.price.store(scale.price, order);
    only_.inverse.store(scale.inverse, order);
    only_.shift.store(scale.shift, order);
    quotas_ = quotas;
    scales_ = scales;
  }

  struct alignas(64) single {
    std::atomic<std::uint64_t> tokens{0};
    std::atomic<duration::rep> period{0};
    std::atomic<std::uint64_t> capacity{0};
    std::atomic<std::int64_t> gain{0};
    std::atomic<std::int64_t> price{0};
    std::atomic<std::uint64_t> inverse{0};
    std::atomic<std::int32_t> shift{0};
    std::atomic<std::uint64_t> wide_tokens{0};
  };

  static_assert(sizeof(single) == 64);
  single only_{};  // a cache line that every check reads, and nobody writes while the set is in use
  alignas(64) std::atomic<std::int32_t> holders_{0};  // below 0: being rewritten
  quota_list quotas_{};
  rule::bucket_scales scales_{};
};

using quota_set = basic_quota_set<void>;

/// Every set of quotas that a bucket has, once, under a number: so that a bucket need not store its
/// quotas, nor a check compute their scales. A set without holders stays until its number is needed
/// for another one.
template <class>
class basic_quota_book {
 public:
  using number = std::uint16_t;
  static constexpr std::size_t most = 65'535;

  /// The number of these quotas, held once more: whoever holds a number releases it.
  /// Errors: `quota_too_large`; `store_full` when `most` other sets are in use.
  [[nodiscard]] result<number> hold(std::span<quota const> quotas) {
    if (quotas.size() == 1) {
      auto const latest = latest_.load(std::memory_order_acquire);
      if (latest != most && hold_if_only(static_cast<number>(latest), quotas[0])) {
        return static_cast<number>(latest);
      }
    }
    quota_list const list{quotas};
    std::lock_guard const lock{mutex_};
    if (auto const known = numbers_.find(list); known != numbers_.end()) {
      set(known->second).holders_.fetch_add(1, std::memory_order_relaxed);
      latest_.store(known->second, std::memory_order_release);
      return known->second;
    }
    auto const scales = rule::bucket_scales::of(quotas);
    if (!scales) return make_error_code(errc::quota_too_large);
    numbers_.reserve(numbers_.size() + 1);
    auto const free = free_number();
    if (free == most) return make_error_code(errc::store_full);
    auto const chosen = static_cast<number>(free);
    numbers_.emplace(list, chosen);
    set(chosen).assign(list, *scales);
    set(chosen).holders_.store(1, std::memory_order_release);
    latest_.store(chosen, std::memory_order_release);
    return chosen;
  }

  void release(number n) noexcept { set(n).holders_.fetch_sub(1, std::memory_order_release); }

  [[nodiscard]] quota_set const& operator[](number n) const noexcept {
    return (*sets_[n / chunk_size])[n % chunk_size];
  }

 private:
  static constexpr std::size_t chunk_size = 64;
  using chunk = std::array<quota_set, chunk_size>;

  [[nodiscard]] quota_set& set(number n) noexcept {
    return (*sets_[n / chunk_size])[n % chunk_size];
  }

  [[nodiscard]] bool hold_if_only(number n, quota const& q) noexcept {
    auto& candidate = set(n);
    auto holders = candidate.holders_.load(std::memory_order_acquire);
    do {
      if (holders < 0) return false;
    } while (!candidate.holders_.compare_exchange_weak(
        holders, holders + 1, std::memory_order_acq_rel, std::memory_order_acquire));
    rule::bucket_scale unused;
    if (candidate.is_only(q, unused)) return true;
    release(n);
    return false;
  }

  /// A number that nobody holds, or `most`. Reuses before it grows, so that quotas which are tuned
  /// all the time cost no more than those in use at once; it looks at a few sets, or at all where
  /// there is no room for another one.
  [[nodiscard]] std::size_t free_number() {
    auto const looks = std::min(used_, used_ < most ? std::size_t{8} : most);
    for (std::size_t i = 0; i != looks; ++i) {
      hand_ = hand_ + 1 < used_ ? hand_ + 1 : 0;
      auto& candidate = set(static_cast<number>(hand_));
      std::int32_t nobody = 0;
      if (candidate.holders_.compare_exchange_strong(nobody, -1, std::memory_order_acq_rel)) {
        numbers_.erase(candidate.quotas_);
        return hand_;
      }
    }
    if (used_ == most) return most;
    auto& home = sets_[used_ / chunk_size];
    if (!home) home = std::make_unique<chunk>();
    return used_++;
  }

  std::mutex mutex_;
  boost::unordered_flat_map<quota_list, number, quota_list::hash> numbers_;
  std::size_t used_ = 0;
  std::size_t hand_ = 0;
  std::atomic<std::size_t> latest_{most};
  std::array<std::unique_ptr<chunk>, most / chunk_size + 1> sets_;
};

using quota_book = basic_quota_book<void>;

}  // namespace weir::detail

#endif
