// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKET_SHARD_HPP
#define WEIR_STORE_MEMORY_BUCKET_SHARD_HPP

#include "weir/detail/prefetch.hpp"
#include "weir/store/memory/bucket_key.hpp"
#include "weir/store/memory/quota_book.hpp"
#include "weir/time.hpp"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>

namespace weir::detail {

/// What a slot says of itself in one word, which changes whenever the slot's tenant or its quotas
/// do: so whoever reads the same twice has read one tenant's slot in between.
class bucket_meta {
 public:
  /// A part of a key's hash, by which slots are found: nearly no other key's slot is looked into,
  /// and who moves slots need not hash their keys again.
  using tag = std::uint32_t;
  static constexpr int tag_bits = 12;
  [[nodiscard]] static constexpr tag tag_of(std::uint64_t hash) noexcept {
    return static_cast<tag>(hash & 0xffffffff) >> (32 - tag_bits);
  }

  constexpr bucket_meta() = default;
  constexpr explicit bucket_meta(std::uint64_t bits) noexcept : bits_{bits} {}

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr bool taken() const noexcept { return state() != 0; }
  [[nodiscard]] constexpr bool taken_by(std::uint8_t kind, tag t) const noexcept {
    return ((bits_ ^ tenant(kind, t)) & ((std::uint64_t{1} << quotas_shift) - 1)) == 0;
  }
  [[nodiscard]] constexpr std::uint8_t kind() const noexcept {
    return static_cast<std::uint8_t>(state() - first_kind);
  }
  [[nodiscard]] constexpr tag its_tag() const noexcept {
    return static_cast<tag>(bits_ >> state_bits) & ((1U << tag_bits) - 1);
  }
  [[nodiscard]] constexpr quota_book::number quotas() const noexcept {
    return static_cast<quota_book::number>(bits_ >> quotas_shift);
  }

  [[nodiscard]] constexpr bucket_meta as_unused() const noexcept { return next(0); }
  [[nodiscard]] constexpr bucket_meta as_taken(std::uint8_t kind, tag t,
                                               quota_book::number n) const noexcept {
    return next(tenant(kind, t) | std::uint64_t{n} << quotas_shift);
  }

  friend constexpr bool operator==(bucket_meta, bucket_meta) = default;

 private:
  static constexpr std::uint64_t first_kind = 1;
  static constexpr int state_bits = 6;
  static constexpr int quotas_shift = state_bits + tag_bits;
  static constexpr int generation_shift = quotas_shift + 16;
  static_assert(first_kind + bucket_key::inline_size + 1 < (1 << state_bits));

  [[nodiscard]] constexpr std::uint64_t state() const noexcept {
    return bits_ & ((std::uint64_t{1} << state_bits) - 1);
  }
  [[nodiscard]] static constexpr std::uint64_t tenant(std::uint8_t kind, tag t) noexcept {
    return (first_kind + kind) | std::uint64_t{t} << state_bits;
  }
  [[nodiscard]] constexpr bucket_meta next(std::uint64_t low) const noexcept {
    return bucket_meta{(((bits_ >> generation_shift) + 1) << generation_shift) | low};
  }

  std::uint64_t bits_ = 0;  // state, tag, number of the quotas, generation
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
/// The array doubles in place, a few slots with each insert: tags are taken from the highest on,
/// and those that were taken stand where they belong among twice as many slots. Within a run of
/// slots none is empty, so whoever is erased leaves its place to one behind it. A reader without
/// the lock may miss a key that is moved meanwhile, or fail to swap its arrival, and comes back
/// with the lock.
template <class>
class alignas(64) basic_bucket_shard {
 public:
  /// Where a bucket was seen by a reader without the lock.
  struct sighting : bucket_place {
    std::uint32_t index = 0;
  };

  /// Finds a key without the lock. Missing it proves nothing. What was read of the slot concerns
  /// the key if the slot's meta is still the same afterwards. With the lock, the answer is final.
  [[nodiscard]] sighting glimpse(bucket_key const& key, std::uint64_t hash) const noexcept {
    auto const in = shape_.load(std::memory_order_acquire);
    auto const tag = bucket_meta::tag_of(hash);
    auto const n = in.places();
    auto i = in.home(tag);
    for (auto left = n; left != 0; --left) {
      auto& candidate = slot(i);
      auto const meta = candidate.read_meta();
      if (meta.taken_by(key.kind(), tag) && candidate.holds(key)) return {{&candidate, meta}, i};
      if (!meta.taken()) break;
      i = i + 1 == n ? 0 : i + 1;
    }
    return {};
  }

  /// Has the memory at which a key is looked for first fetched, for a `glimpse` to come.
  void prefetch(std::uint64_t hash) const noexcept {
    auto const in = shape_.load(std::memory_order_acquire);
    if (in.places() == 0) return;
    auto const* const first = &slot(in.home(bucket_meta::tag_of(hash)));
    detail::prefetch(first);
    detail::prefetch(reinterpret_cast<char const*>(first + 1) - 1);  // it may span two lines
  }

  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

  // What follows is for whoever has locked the mutex.

  [[nodiscard]] std::uint32_t size() const noexcept { return seen().places(); }
  [[nodiscard]] bucket_slot& slot(std::uint32_t i) const noexcept {
    auto const segment = static_cast<unsigned>(std::bit_width(i / first_segment));
    return segments_[segment][segment == 0 ? i : i - (first_segment << (segment - 1))];
  }
  /// The slot at which a search for a key with this hash begins.
  [[nodiscard]] std::uint32_t home(std::uint64_t hash) const noexcept {
    return seen().home(bucket_meta::tag_of(hash));
  }

  /// Makes sure that one more bucket fits. Moves some 25 slots, and seldom more than 60, while it
  /// grows.
  void make_place() {
    if (seen().grows()) move_some();
    // A run of filled slots grows with the square of the load: at 7/8 a miss costs 32 looks. Few
    // shards have so much more than their share of a table.
    while ((taken_ + 1) * 8 > size() * 7) seen().grows() ? move_some() : begin_to_grow();
  }

  /// Lets a key in that is not here, where there is place.
  void insert(bucket_key const& key, std::uint64_t hash, quota_book::number quotas,
              std::int64_t arrival) noexcept {
    place({key.words(), arrival, bucket_meta::tag_of(hash), quotas, key.kind()});
    ++taken_;
  }

  /// Empties a slot whose arrival is `absent` already. Others may stand there afterwards.
  void erase(std::uint32_t hole) noexcept {
    auto const n = size();
    --taken_;
    slot(hole).write_meta(slot(hole).read_meta().as_unused());
    for (auto i = hole;;) {
      i = after(i, n);
      if (!slot(i).read_meta().taken()) return;
      if (behind(home_of(i), i, n) < behind(hole, i, n)) continue;  // it begins after the hole
      place(take_out(i));
      hole = i;
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

  /// How many slots there are, and where a tag is looked for first. In one word, for readers
  /// without the lock.
  class shape {
   public:
    constexpr shape() = default;
    /// @param from tags before it are looked for among the first half of the slots; 0: it does not
    ///             grow
    constexpr shape(std::uint32_t places, std::uint32_t from) noexcept
        : places_{places},
          from_{from} {}

    static constexpr std::uint32_t all = 1U << bucket_meta::tag_bits;

    [[nodiscard]] constexpr bool grows() const noexcept { return from_ != 0; }
    [[nodiscard]] constexpr std::uint32_t from() const noexcept { return from_; }
    [[nodiscard]] constexpr std::uint32_t places() const noexcept { return places_; }
    [[nodiscard]] constexpr std::uint32_t home(bucket_meta::tag t) const noexcept {
      auto const among = std::uint64_t{places_} >> (t < from_);
      return static_cast<std::uint32_t>(t * among >> bucket_meta::tag_bits);
    }

   private:
    std::uint32_t places_ = 0;
    std::uint32_t from_ = 0;
  };

  struct tenant {
    bucket_words words;
    std::int64_t arrival;
    bucket_meta::tag tag;
    quota_book::number quotas;
    std::uint8_t kind;
  };

  [[nodiscard]] shape seen() const noexcept { return shape_.load(std::memory_order_relaxed); }
  [[nodiscard]] static std::uint32_t after(std::uint32_t i, std::uint32_t n) noexcept {
    return i + 1 == n ? 0 : i + 1;
  }
  /// How far a slot is behind another one, round the end.
  [[nodiscard]] static std::uint32_t behind(std::uint32_t first, std::uint32_t i,
                                            std::uint32_t n) noexcept {
    return i >= first ? i - first : i + n - first;
  }

  void place(tenant const& t) noexcept {
    auto const n = size();
    auto i = seen().home(t.tag);
    while (slot(i).read_meta().taken()) i = after(i, n);
    auto& chosen = slot(i);
    for (std::size_t w = 0; w != t.words.size(); ++w) {
      chosen.words[w].store(t.words[w], std::memory_order_release);
    }
    chosen.arrival.store(t.arrival, std::memory_order_release);
    chosen.write_meta(chosen.read_meta().as_taken(t.kind, t.tag, t.quotas));
  }
  [[nodiscard]] tenant take_out(std::uint32_t i) noexcept {
    auto& old = slot(i);
    auto const meta = old.read_meta();
    tenant t{{},
             old.arrival.exchange(bucket_slot::absent, std::memory_order_acq_rel),
             meta.its_tag(),
             meta.quotas(),
             meta.kind()};
    for (std::size_t w = 0; w != t.words.size(); ++w) {
      t.words[w] = old.words[w].load(std::memory_order_relaxed);
    }
    old.write_meta(meta.as_unused());
    return t;
  }

  /// Those of a run that `leaves` names are put in again as `then` has it, and whoever stood behind
  /// them comes forward. The run is so long at least, and ends at an empty slot.
  template <class Leaves>
  void regroup(std::uint32_t begin, std::uint32_t least, shape then, Leaves const& leaves) {
    auto const n = size();
    std::uint32_t length = 0;
    std::size_t count = 0;
    for (auto i = begin; length != n; i = after(i, n), ++length) {
      auto const meta = slot(i).read_meta();
      if (length >= least && !meta.taken()) break;
      if (meta.taken() && leaves(meta.its_tag(), i)) ++count;
    }
    boost::container::small_vector<tenant, 64> out;
    out.reserve(count);
    for (bool const forward : {false, true}) {
      auto i = begin;
      for (auto left = length; left != 0; --left, i = after(i, n)) {
        auto const meta = slot(i).read_meta();
        if (!meta.taken()) continue;
        if (forward) {
          bring_forward(i);
        } else if (leaves(meta.its_tag(), i)) {
          out.push_back(take_out(i));
        }
      }
    }
    shape_.store(then, std::memory_order_release);
    for (auto const& t : out) place(t);
  }
  void bring_forward(std::uint32_t i) noexcept {
    auto best = home_of(i);
    while (best != i && slot(best).read_meta().taken()) best = after(best, size());
    if (best != i) place(take_out(i));
  }
  [[nodiscard]] std::uint32_t home_of(std::uint32_t i) const noexcept {
    return seen().home(slot(i).read_meta().its_tag());
  }

  void begin_to_grow() {
    auto const n = size();
    grow_to(n == 0 ? first_segment : 2 * n);
    if (n == 0) {
      shape_.store({first_segment, 0}, std::memory_order_release);
      return;
    }
    // Those of the end that stand at the beginning stand behind the end from now on.
    regroup(0, 0, {2 * n, shape::all},
            [&](bucket_meta::tag t, std::uint32_t i) { return seen().home(t) > i; });
  }

  void move_some() {
    constexpr std::uint32_t homes = 24;
    auto const in = seen();
    auto const tags = std::max(2 * homes * shape::all / in.places(), 1U);
    auto const from = in.from() - std::min(in.from(), tags);
    auto const first = in.home(from);
    auto const least = in.home(in.from() - 1) - first + 1;
    regroup(first, least, {in.places(), from},
            [&](bucket_meta::tag t, std::uint32_t) { return t >= from && t < in.from(); });
  }

  void grow_to(std::uint32_t size_then) {
    for (std::uint32_t begin = 0, length = first_segment, s = 0; begin < size_then; ++s) {
      if (!segments_[s]) segments_[s] = std::make_unique<bucket_slot[]>(length);
      begin += length;
      length = begin;
    }
  }

  // Readers without the lock need these, and they change only while it grows. The segments of 2,048
  // slots are in the first cache line.
  std::atomic<shape> shape_{};
  std::array<std::unique_ptr<bucket_slot[]>, 27> segments_;

  alignas(64) std::mutex mutex_;
  std::atomic<duration::rep> soonest_{duration::max().count()};
  std::uint32_t taken_ = 0;
  std::uint32_t hand_ = 0;
  duration forgotten_ = duration::min();
};

using bucket_shard = basic_bucket_shard<void>;

}  // namespace weir::detail

#endif
