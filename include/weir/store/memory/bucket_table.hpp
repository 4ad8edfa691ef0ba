// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKET_TABLE_HPP
#define WEIR_STORE_MEMORY_BUCKET_TABLE_HPP

#include "weir/detail/int128.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/store/memory/arrival_pool.hpp"
#include "weir/store/memory/bucket_shard.hpp"
#include "weir/store/memory/quota_book.hpp"
#include "weir/store/memory/wide_arrival.hpp"
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
/// A bucket with several quotas has its arrivals elsewhere (64 bytes), and so has one whose arrival
/// needs more than 64 bits (16 bytes). Fewer buckets take proportionally less.
template <class>
class basic_bucket_table {
 public:
  explicit basic_bucket_table(std::size_t most)
      : most_{std::clamp(most, std::size_t{1}, std::size_t{1} << 30)},
        shard_count_{(most_ - 1) / mean_most + 1},
        shards_{std::make_unique<bucket_shard[]>(shard_count_)},
        several_{most_ + shard_count_},  // one more in each shard: while quotas are changed
        wide_{most_ + shard_count_} {}

  [[nodiscard]] bucket_shard& home(std::uint64_t hash) const noexcept {
    return shards_[static_cast<std::size_t>(static_cast<uint128>(hash) * shard_count_ >> 64)];
  }
  [[nodiscard]] quota_book& book() noexcept { return book_; }
  [[nodiscard]] quota_book const& book() const noexcept { return book_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }

  /// The arrival that a slot's value stands for, if it is one that is swapped outside of the slot;
  /// null: it is not. A swap concerns the bucket if the slot's meta was still the same after the
  /// arrival was read: it leaves its place only once it is `absent`.
  [[nodiscard]] wide_arrival* wide(std::int64_t value) noexcept {
    return value >= first_wide && value < rule::bucket_scale::narrow_never
               ? &wide_[static_cast<std::uint32_t>(value - first_wide)]
               : nullptr;
  }

  // For whoever has locked the shard.

  /// The arrivals that a slot stood for at one time.
  struct sight {
    std::int64_t value;
    wide_arrival::state wide{};
    rule::bucket_arrivals arrivals = rule::unseen_bucket;
  };
  [[nodiscard]] sight look(bucket_slot const& slot) noexcept {
    sight out{.value = slot.arrival.load(std::memory_order_acquire)};
    if (auto const* const w = wide(out.value)) {
      out.wide = w->read();
      out.arrivals[0] = out.wide.units();
    } else if (is_number(out.value)) {
      out.arrivals = several_[number_of(out.value)];
    } else {
      out.arrivals[0] = out.value;
    }
    return out;
  }

  /// Changes the arrivals of a slot, whose quotas stay, if they are still what was seen.
  [[nodiscard]] bool swap(bucket_slot& slot, sight const& seen,
                          rule::bucket_arrivals const& arrivals) noexcept {
    if (auto* const w = wide(seen.value)) return w->swap(seen.wide, arrivals[0]);
    if (is_number(seen.value)) {
      several_[number_of(seen.value)] = arrivals;
      return true;
    }
    auto expected = seen.value;
    return slot.arrival.compare_exchange_strong(
        expected, narrow(arrivals[0]), std::memory_order_acq_rel, std::memory_order_acquire);
  }

  /// Takes the arrivals out of a slot, so that nobody swaps them without the lock. They are put
  /// back, or released once the slot's meta is another.
  [[nodiscard]] sight seize(bucket_slot& slot) noexcept {
    auto out = look(slot);
    while (!swap_out(slot, out)) out = look(slot);
    return out;
  }
  void put_back(bucket_slot& slot, sight const& seized) noexcept {
    if (auto* const w = wide(seized.value)) w->exchange(seized.arrivals[0]);
    slot.arrival.store(seized.value, std::memory_order_release);
  }
  void release(std::int64_t value) noexcept {
    if (wide(value) != nullptr) {
      wide_.release(static_cast<std::uint32_t>(value - first_wide));
    } else if (is_number(value)) {
      several_.release(number_of(value));
    }
  }

  /// A new value that stands for arrivals of such quotas.
  [[nodiscard]] std::int64_t value_for(std::span<rule::bucket_scale const> scales,
                                       rule::bucket_arrivals const& arrivals) {
    if (in_slot(scales)) return narrow(arrivals[0]);
    if (is_wide(scales)) {
      auto const n = wide_.acquire();
      wide_[n].exchange(arrivals[0]);
      return first_wide + std::int64_t{n};
    }
    auto const n = several_.acquire();
    several_[n] = arrivals;
    return first_number + std::int64_t{n};
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
    forget(shard, i, seize(shard.slot(i)).value);
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
  static constexpr std::int64_t first_wide = first_number + (std::int64_t{1} << 32);

  /// The value of a slot for an arrival that fits into it.
  [[nodiscard]] static std::int64_t narrow(rule::bucket_units arrival) noexcept {
    return static_cast<std::int64_t>(
        std::max<rule::bucket_units>(arrival, rule::bucket_scale::narrow_never));
  }

  /// Takes the arrivals out if they are still what was seen.
  [[nodiscard]] bool swap_out(bucket_slot& slot, sight const& seen) noexcept {
    auto* const w = wide(seen.value);
    if (w != nullptr && !w->swap(seen.wide, wide_arrival::absent)) return false;
    auto expected = seen.value;
    return slot.arrival.compare_exchange_strong(
        expected, bucket_slot::absent, std::memory_order_acq_rel, std::memory_order_acquire);
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

  /// Forgets a bucket whose value was taken out of its slot.
  void forget(bucket_shard& shard, std::uint32_t i, std::int64_t value) noexcept {
    auto const quotas = shard.slot(i).read_meta().quotas();
    shard.erase(i);
    release(value);
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
    for (;;) {
      auto const seen = look(slot);
      auto const full = rule::full_from(scales, seen.arrivals);
      if (full > now) {
        soonest = std::min(soonest, full);
        return false;
      }
      if (swap_out(slot, seen)) {
        shard.note_forgotten(full);
        forget(shard, i, seen.value);
        return true;
      }
    }
  }

  std::size_t sweep(bucket_shard& shard, duration now) noexcept {
    std::size_t removed = 0;
    auto soonest = duration::max();
    // From an empty slot backwards: whoever comes forward then was looked at before.
    auto const n = shard.size();
    std::uint32_t i = 0;
    while (i != n && shard.slot(i).read_meta().taken()) ++i;
    for (auto left = n; left != 0; --left) {
      i = i == 0 ? n - 1 : i - 1;
      removed += static_cast<std::size_t>(forget_if_full(shard, i, now, soonest));
    }
    shard.set_soonest(soonest);
    return removed;
  }

  std::size_t most_;
  std::size_t shard_count_;
  std::unique_ptr<bucket_shard[]> shards_;
  quota_book book_;
  arrival_pool<rule::bucket_arrivals> several_;
  arrival_pool<wide_arrival> wide_;

  alignas(64) std::atomic<std::size_t> count_{0};
  std::atomic<duration::rep> searched_{duration::max().count()};  // when all were, in vain; max:
                                                                  // long ago
  std::mutex turn_;
  std::size_t next_ = 0;
};

using bucket_table = basic_bucket_table<void>;

}  // namespace weir::detail

#endif
