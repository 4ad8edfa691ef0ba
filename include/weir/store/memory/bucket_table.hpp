// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKET_TABLE_HPP
#define WEIR_STORE_MEMORY_BUCKET_TABLE_HPP

#include "weir/rule/buckets.hpp"
#include "weir/store/memory/arrival_pool.hpp"
#include "weir/store/memory/bucket_shard.hpp"
#include "weir/store/memory/quota_book.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace weir::detail {

/// The buckets of a memory store: at most so many, over all shards.
///
/// A full bucket equals one that was never seen, so it may be forgotten at any time. Every new
/// bucket looks at a few others of its shard and forgets those that have long been full; where the
/// bound is reached, shards are searched for any that are full, round and round and a bounded
/// number per step, before somebody is turned away. What was spent is never forgotten.
///
/// Only the table has a bound: a shard that gets more than its share grows, so that nobody is
/// turned away before `most` buckets are in use, whichever keys they have (F92). The hash, which
/// nobody can foresee, keeps shards alike.
///
/// Memory, at the bound: 48 bytes a slot at a load of 3/4, plus less than one byte for the shards.
/// A bucket with several quotas, or one whose arrivals need more than 64 bits, has its arrivals (64
/// bytes) elsewhere. Fewer buckets take proportionally less.
template <class>
class basic_bucket_table {
 public:
  explicit basic_bucket_table(std::size_t most)
      : most_{std::clamp(most, std::size_t{1}, std::size_t{1} << 30)},
        shard_count_{(most_ - 1) / mean_most + 1},
        shards_{std::make_unique<bucket_shard[]>(shard_count_)},
        pool_{most_} {}

  [[nodiscard]] bucket_shard& home(std::uint64_t hash) const noexcept {
    __extension__ using wide = unsigned __int128;
    return shards_[static_cast<std::size_t>(static_cast<wide>(hash) * shard_count_ >> 64)];
  }
  [[nodiscard]] quota_book& book() noexcept { return book_; }
  [[nodiscard]] quota_book const& book() const noexcept { return book_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }

  // For whoever has locked the shard.

  /// The arrivals that a slot's value stands for.
  [[nodiscard]] rule::bucket_arrivals arrivals(std::int64_t value) noexcept {
    if (is_number(value)) return pool_[number_of(value)];
    auto out = rule::unseen_bucket;
    out[0] = value;
    return out;
  }

  /// The value that stands for arrivals of such quotas; `old` is the one that did until now.
  /// Throws what allocating does, but not where `old` stands for arrivals that are not in the slot,
  /// either.
  [[nodiscard]] std::int64_t value_for(std::span<rule::bucket_scale const> scales,
                                       rule::bucket_arrivals const& arrivals, std::int64_t old) {
    if (in_slot(scales)) {
      release(old);
      return narrow(arrivals[0]);
    }
    auto const n = is_number(old) ? number_of(old) : pool_.acquire();
    pool_[n] = arrivals;
    return value_of(n);
  }

  /// The value of a slot for an arrival that fits into it.
  [[nodiscard]] static std::int64_t narrow(rule::bucket_units arrival) noexcept {
    return static_cast<std::int64_t>(
        std::max<rule::bucket_units>(arrival, rule::bucket_scale::narrow_never));
  }

  /// Makes place for one more bucket in a shard and counts it: to be inserted, or uncounted.
  [[nodiscard]] bool enter(bucket_shard& shard, duration now) {
    auto ignored = duration::max();
    for (int i = 0; i != looks_in_passing && shard.size() != 0; ++i) {
      forget_if_full(shard, shard.next_in_turn(), now - long_full, ignored);
    }
    shard.make_place();
    return count_one() || (shard.soonest() <= now && sweep(shard, now) != 0 && count_one());
  }
  void leave() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }

  /// Forgets the bucket in a slot, whatever it holds.
  void erase(bucket_shard& shard, std::uint32_t i) noexcept {
    auto& slot = shard.slot(i);
    auto const quotas = slot.read_meta().quotas();
    release(slot.arrival.exchange(bucket_slot::absent, std::memory_order_acq_rel));
    forget(shard, i, quotas);
  }

  /// A bucket of the shard will be full at `then`, maybe sooner than it would have been.
  void expect_full(bucket_shard& shard, duration then) noexcept {
    shard.lower_soonest(then);
    searched_.store(duration::max().count(), std::memory_order_relaxed);
  }

  // For whoever has locked none.

  /// Forgets full buckets somewhere, if it finds any. Looks at every shard, and into two.
  [[nodiscard]] bool make_room(duration now) {
    if (searched_lately(now)) return false;
    std::lock_guard const turn{turn_};
    if (searched_lately(now)) return false;
    int sweeps = 0;
    for (auto left = shard_count_; left != 0; --left) {
      auto& shard = shards_[next_];
      if (shard.soonest() <= now) {
        if (sweeps++ == most_sweeps) return false;  // the next one goes on from here
        std::lock_guard const lock{shard.mutex()};
        if (sweep(shard, now) != 0) return true;
      }
      next_ = next_ + 1 == shard_count_ ? 0 : next_ + 1;
    }
    searched_.store(now.count(), std::memory_order_relaxed);
    return false;
  }

  /// No new key can get in earlier than this, unless a bucket is given up.
  [[nodiscard]] duration room_from() const noexcept {
    auto out = duration::max();
    for (std::size_t i = 0; i != shard_count_; ++i) out = std::min(out, shards_[i].soonest());
    return out;
  }

  /// Forgets every full bucket, a shard at a time.
  std::size_t reap(duration now) {
    std::size_t removed = 0;
    for (std::size_t i = 0; i != shard_count_; ++i) {
      std::lock_guard const lock{shards_[i].mutex()};
      removed += sweep(shards_[i], now);
    }
    return removed;
  }

 private:
  // At the bound, a shard has three quarters of 1,024 slots, where runs of filled ones are short.
  static constexpr std::size_t mean_most = 768;
  static constexpr int looks_in_passing = 8;
  static constexpr int most_sweeps = 2;

  /// Threads read the clock before they come here, and not in the order in which they come: one
  /// second makes sure that none of them finds a time at which a forgotten bucket was not full yet.
  static constexpr duration long_full = std::chrono::seconds{1};

  /// Where there is nothing to forget, turning away a flood must be cheap.
  static constexpr duration search_interval = std::chrono::milliseconds{1};

  static constexpr std::int64_t first_number = bucket_slot::absent + 1;
  [[nodiscard]] static constexpr bool is_number(std::int64_t value) noexcept {
    return value >= first_number && value < rule::bucket_scale::narrow_never;
  }
  [[nodiscard]] static constexpr std::uint32_t number_of(std::int64_t value) noexcept {
    return static_cast<std::uint32_t>(value - first_number);
  }
  [[nodiscard]] static constexpr std::int64_t value_of(std::uint32_t n) noexcept {
    return first_number + std::int64_t{n};
  }

  [[nodiscard]] bool count_one() noexcept {
    if (count_.fetch_add(1, std::memory_order_relaxed) < most_) return true;
    leave();
    return false;
  }

  [[nodiscard]] bool searched_lately(duration now) const noexcept {
    auto const then = duration{searched_.load(std::memory_order_relaxed)};
    return then <= now && now - then < search_interval;
  }

  void release(std::int64_t value) noexcept {
    if (is_number(value)) pool_.release(number_of(value));
  }

  void forget(bucket_shard& shard, std::uint32_t i, quota_book::number quotas) noexcept {
    shard.erase(i);
    book_.release(quotas);
    leave();
  }

  /// Returns whether it did; if there is a bucket that is not full, `soonest` is at most the time
  /// when it will be.
  bool forget_if_full(bucket_shard& shard, std::uint32_t i, duration now,
                      duration& soonest) noexcept {
    auto& slot = shard.slot(i);
    auto const meta = slot.read_meta();
    if (!meta.taken()) return false;
    auto const scales = book_[meta.quotas()].scales();
    auto value = slot.arrival.load(std::memory_order_acquire);
    for (;;) {
      auto const full = rule::full_from(scales, arrivals(value));
      if (full > now) {
        soonest = std::min(soonest, full);
        return false;
      }
      if (slot.arrival.compare_exchange_strong(
              value, bucket_slot::absent, std::memory_order_acq_rel, std::memory_order_acquire)) {
        shard.note_forgotten(full);
        release(value);
        forget(shard, i, meta.quotas());
        return true;
      }
    }
  }

  std::size_t sweep(bucket_shard& shard, duration now) noexcept {
    std::size_t removed = 0;
    auto soonest = duration::max();
    for (std::uint32_t i = 0; i != shard.size(); ++i) {
      removed += static_cast<std::size_t>(forget_if_full(shard, i, now, soonest));
    }
    shard.set_soonest(soonest);
    return removed;
  }

  std::size_t most_;
  std::size_t shard_count_;
  std::unique_ptr<bucket_shard[]> shards_;
  quota_book book_;
  arrival_pool pool_;

  alignas(64) std::atomic<std::size_t> count_{0};
  std::atomic<duration::rep> searched_{duration::max().count()};  // when all were, in vain; max:
                                                                  // long ago
  std::mutex turn_;
  std::size_t next_ = 0;
};

using bucket_table = basic_bucket_table<void>;

}  // namespace weir::detail

#endif
