// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKET_SHARD_HPP
#define WEIR_STORE_MEMORY_BUCKET_SHARD_HPP

#include "weir/detail/prefetch.hpp"
#include "weir/store/memory/bucket_key.hpp"
#include "weir/store/memory/quota_book.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

namespace weir::detail {

/// What a slot says of itself in one word, which changes whenever the slot's tenant or its quotas
/// do: so whoever reads the same twice has read one tenant's slot in between.
class bucket_meta {
 public:
  constexpr bucket_meta() = default;
  constexpr explicit bucket_meta(std::uint64_t bits) noexcept : bits_{bits} {}

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr bool unused() const noexcept { return state() == unused_state; }
  [[nodiscard]] constexpr bool taken() const noexcept { return state() >= first_kind; }
  [[nodiscard]] constexpr bool taken_by(std::uint8_t kind) const noexcept {
    return state() == first_kind + kind;
  }
  [[nodiscard]] constexpr std::uint8_t kind() const noexcept {
    return static_cast<std::uint8_t>(state() - first_kind);
  }
  [[nodiscard]] constexpr quota_book::number quotas() const noexcept {
    return static_cast<quota_book::number>(bits_ >> state_bits);
  }

  [[nodiscard]] constexpr bucket_meta as_unused() const noexcept { return next(unused_state); }
  [[nodiscard]] constexpr bucket_meta as_freed() const noexcept { return next(freed_state); }
  [[nodiscard]] constexpr bucket_meta as_taken(std::uint8_t kind,
                                               quota_book::number n) const noexcept {
    return next(first_kind + kind + (std::uint64_t{n} << state_bits));
  }

  friend constexpr bool operator==(bucket_meta, bucket_meta) = default;

 private:
  static constexpr std::uint64_t unused_state = 0;
  static constexpr std::uint64_t freed_state = 1;
  static constexpr std::uint64_t first_kind = 2;
  static constexpr int state_bits = 6;
  static constexpr int generation_shift = state_bits + 16;
  static_assert(first_kind + bucket_key::inline_size + 1 < (1 << state_bits));

  [[nodiscard]] constexpr std::uint64_t state() const noexcept {
    return bits_ & ((std::uint64_t{1} << state_bits) - 1);
  }
  [[nodiscard]] constexpr bucket_meta next(std::uint64_t low) const noexcept {
    return bucket_meta{(((bits_ >> generation_shift) + 1) << generation_shift) | low};
  }

  std::uint64_t bits_ = 0;  // state, number of the quotas, generation
};

/// One bucket. The arrival of a bucket with one quota is its arrival; other values name what is
/// below every arrival.
struct bucket_slot {
  /// Nobody's, or held by whoever has locked the shard.
  static constexpr std::int64_t absent = std::numeric_limits<std::int64_t>::min();

  [[nodiscard]] bool holds(bucket_key const& key) const noexcept {
    auto const differs = [&](std::size_t i) {
      return words[i].load(std::memory_order_acquire) ^ key.words()[i];
    };
    return (differs(0) | differs(1) | differs(2) | differs(3)) == 0;  // one branch, not four
  }
  [[nodiscard]] bucket_meta read_meta() const noexcept {
    return bucket_meta{meta.load(std::memory_order_acquire)};
  }
  void write_meta(bucket_meta m) noexcept { meta.store(m.bits(), std::memory_order_release); }

  std::atomic<std::uint64_t> meta{0};
  std::atomic<std::int64_t> arrival{0};
  std::array<std::atomic<std::uint64_t>, 4> words{};
};
static_assert(sizeof(bucket_slot) == 48);

/// A slot, and what it said of itself when it was looked at.
struct bucket_place {
  bucket_slot* slot = nullptr;
  bucket_meta meta{};
  explicit operator bool() const noexcept { return slot != nullptr; }
};

/// A part of the table: an open-addressed array of slots. Slots never move in memory and are never
/// given back, so they may be read and compare-and-swapped without a lock; everything else happens
/// under the shard's mutex.
///
/// The array grows in place, by segments. When it does, every slot is emptied and filled anew: a
/// reader meanwhile misses its key or fails to swap its arrival, and comes back with the lock. That
/// takes microseconds, since a table has as many shards as keep each one small.
template <class>
class alignas(64) basic_bucket_shard {
 public:
  /// Where a bucket was seen by a reader without the lock.
  struct sighting : bucket_place {
    std::uint32_t index = 0;
  };

  /// The slot of so many at which a search begins.
  [[nodiscard]] static std::uint32_t home(std::uint64_t hash, std::uint32_t size) noexcept {
    return static_cast<std::uint32_t>(((hash & 0xffffffff) * size) >> 32);
  }

  /// Finds a key without the lock. Missing it proves nothing. What was read of the slot concerns
  /// the key if the slot's meta is still the same afterwards. With the lock, the answer is final.
  [[nodiscard]] sighting glimpse(bucket_key const& key, std::uint64_t hash) const noexcept {
    auto const size = size_.load(std::memory_order_acquire);
    auto i = home(hash, size);
    for (auto left = size; left != 0; --left) {
      auto& candidate = slot(i);
      auto const meta = candidate.read_meta();
      if (meta.unused()) break;
      if (meta.taken_by(key.kind()) && candidate.holds(key)) return {{&candidate, meta}, i};
      i = i + 1 == size ? 0 : i + 1;
    }
    return {};
  }

  /// Has the memory at which a key is looked for first fetched, for a `glimpse` to come.
  void prefetch(std::uint64_t hash) const noexcept {
    auto const size = size_.load(std::memory_order_acquire);
    if (size == 0) return;
    auto const* const first = &slot(home(hash, size));
    detail::prefetch(first);
    detail::prefetch(reinterpret_cast<char const*>(first + 1) - 1);  // it may span two lines
  }

  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

  // What follows is for whoever has locked the mutex.

  [[nodiscard]] std::uint32_t size() const noexcept {
    return size_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bucket_slot& slot(std::uint32_t i) const noexcept {
    auto const segment = static_cast<unsigned>(std::bit_width(i / first_segment));
    return segments_[segment][segment == 0 ? i : i - (first_segment << (segment - 1))];
  }

  /// Makes sure that one more bucket fits.
  void make_place() {
    auto const n = size();
    // A run of filled slots grows with the square of the load: at 7/8 a miss costs 32 looks. Few
    // shards have so much more than their share of a table.
    if ((taken_ + freed_ + 1) * 8 <= n * 7) return;
    bool const crowded = taken_ * 2 >= n;
    rebuild(crowded ? std::max(n * 2, first_segment) : n);
  }

  /// Lets a key in that is not here, where there is place.
  void insert(bucket_key const& key, std::uint64_t hash, quota_book::number quotas,
              std::int64_t arrival) noexcept {
    place(hash, key.words(), key.kind(), quotas, arrival);
  }

  /// Frees a slot whose arrival is `absent` already.
  void erase(std::uint32_t i) noexcept {
    auto const n = size();
    auto& gone = slot(i);
    gone.write_meta(gone.read_meta().as_freed());
    --taken_;
    ++freed_;
    // Nobody has to look past freed slots at the end of a run.
    if (!slot(i + 1 == n ? 0 : i + 1).read_meta().unused()) return;
    for (auto left = n; left != 0; --left) {
      auto& last = slot(i);
      auto const meta = last.read_meta();
      if (meta.unused() || meta.taken()) return;
      last.write_meta(meta.as_unused());
      --freed_;
      i = i == 0 ? n - 1 : i - 1;
    }
  }

  /// The next slot for whoever goes through them round and round.
  [[nodiscard]] std::uint32_t next_in_turn() noexcept {
    hand_ = hand_ + 1 < size() ? hand_ + 1 : 0;
    return hand_;
  }

  /// The latest time from which on a bucket was full that is forgotten: time may have run backwards
  /// since.
  [[nodiscard]] duration forgotten() const noexcept { return forgotten_; }
  void note_forgotten(duration full_from) noexcept { forgotten_ = std::max(forgotten_, full_from); }

  /// A lower bound of when the next bucket will be full; anyone may read it, as a hint.
  [[nodiscard]] duration soonest() const noexcept {
    return duration{soonest_.load(std::memory_order_relaxed)};
  }
  void set_soonest(duration d) noexcept { soonest_.store(d.count(), std::memory_order_relaxed); }
  void lower_soonest(duration d) noexcept {
    if (d < soonest()) set_soonest(d);
  }

 private:
  static constexpr std::uint32_t first_segment = 32;

  void place(std::uint64_t hash, bucket_words const& words, std::uint8_t kind,
             quota_book::number quotas, std::int64_t arrival) noexcept {
    auto const n = size();
    auto i = home(hash, n);
    while (slot(i).read_meta().taken()) i = i + 1 == n ? 0 : i + 1;
    auto& chosen = slot(i);
    auto const meta = chosen.read_meta();
    for (std::size_t w = 0; w != words.size(); ++w) {
      chosen.words[w].store(words[w], std::memory_order_release);
    }
    chosen.arrival.store(arrival, std::memory_order_release);
    chosen.write_meta(meta.as_taken(kind, quotas));
    ++taken_;
    if (!meta.unused()) --freed_;
  }

  struct tenant {
    bucket_words words;
    std::int64_t arrival;
    quota_book::number quotas;
    std::uint8_t kind;
  };

  void rebuild(std::uint32_t size_then) {
    std::vector<tenant> tenants;
    tenants.reserve(taken_);
    grow_to(size_then);
    auto const n = size();
    for (std::uint32_t i = 0; i != n; ++i) {
      auto& old = slot(i);
      auto const meta = old.read_meta();
      if (meta.taken()) {
        tenant t{{},
                 old.arrival.exchange(bucket_slot::absent, std::memory_order_acq_rel),
                 meta.quotas(),
                 meta.kind()};
        for (std::size_t w = 0; w != t.words.size(); ++w) {
          t.words[w] = old.words[w].load(std::memory_order_relaxed);
        }
        tenants.push_back(t);
      }
      if (!meta.unused()) old.write_meta(meta.as_unused());
    }
    taken_ = 0;
    freed_ = 0;
    size_.store(size_then, std::memory_order_release);
    for (auto const& t : tenants) {
      place(bucket_key::hash(t.words, t.kind), t.words, t.kind, t.quotas, t.arrival);
    }
  }

  void grow_to(std::uint32_t size_then) {
    for (std::uint32_t begin = 0, length = first_segment, s = 0; begin < size_then; ++s) {
      if (!segments_[s]) segments_[s] = std::make_unique<bucket_slot[]>(length);
      begin += length;
      length = begin;
    }
  }

  // Readers without the lock need these, and they change only with the size. The segments of 2,048
  // slots are in the first cache line.
  std::atomic<std::uint32_t> size_{0};
  std::array<std::unique_ptr<bucket_slot[]>, 27> segments_;

  alignas(64) std::mutex mutex_;
  std::atomic<duration::rep> soonest_{duration::max().count()};
  std::uint32_t taken_ = 0;
  std::uint32_t freed_ = 0;  // of earlier tenants: to be looked past
  std::uint32_t hand_ = 0;
  duration forgotten_ = duration::min();
};

using bucket_shard = basic_bucket_shard<void>;

}  // namespace weir::detail

#endif
