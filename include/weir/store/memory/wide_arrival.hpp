// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_WIDE_ARRIVAL_HPP
#define WEIR_STORE_MEMORY_WIDE_ARRIVAL_HPP

#include "weir/rule/buckets.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace weir::detail {

/// An arrival of up to 96 bits that threads compare and swap without a lock: two words, of which
/// the second one also has a version of 32 bits. The version grows with every change, so that a
/// reader that finds the second word unchanged has read both of one state, and a swap cannot meet
/// an earlier value that came again.
class alignas(16) wide_arrival {
 public:
  /// Is there an instruction for it? The compilers offer it only to programs for later machines,
  /// or from a library of their own; every x86-64 since 2005 has it.
#ifdef __x86_64__
  static constexpr bool available = true;
#else
  static constexpr bool available = false;
#endif

  /// No arrival: below every other. A thread that finds it asks with the shard locked.
  static constexpr rule::bucket_units absent = -(rule::bucket_units{1} << 95);
  static_assert(absent < rule::bucket_scale::never);

  /// Both words, as read at one time.
  struct state {
    std::uint64_t low;
    std::uint64_t high;

    [[nodiscard]] rule::bucket_units units() const noexcept {
      auto const top = static_cast<std::int32_t>(static_cast<std::uint32_t>(high));
      return (static_cast<rule::bucket_units>(top) << 64) + low;
    }
    [[nodiscard]] state next(rule::bucket_units units) const noexcept {
      auto const bottom = static_cast<std::uint64_t>(rule::low_of(units));
      auto const top = static_cast<std::int32_t>((units - bottom) >> 64);
      auto const version = ((high >> 32) + 1) << 32;
      return {bottom, version | static_cast<std::uint32_t>(top)};
    }
  };

  [[nodiscard]] state read() const noexcept {
    for (;;) {
      auto const high = words_[1].load(std::memory_order_acquire);
      auto const low = words_[0].load(std::memory_order_acquire);
      if (words_[1].load(std::memory_order_relaxed) == high) return {low, high};
    }
  }

  /// Changes it if it still is in that state.
  bool swap(state from, rule::bucket_units to) noexcept {
    auto const then = from.next(to);
#ifdef __x86_64__
    bool done = false;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(words_), "+a"(from.low), "+d"(from.high)
                         : "b"(then.low), "c"(then.high)
                         : "memory");
    return done;
#else
    words_[0].store(then.low, std::memory_order_release);
    words_[1].store(then.high, std::memory_order_release);
    return true;
#endif
  }

  /// Changes it whatever it is, and gives what it was.
  rule::bucket_units exchange(rule::bucket_units to) noexcept {
    for (;;) {
      auto const seen = read();
      if (swap(seen, to)) return seen.units();
    }
  }

 private:
  std::array<std::atomic<std::uint64_t>, 2> words_{};
};
static_assert(sizeof(wide_arrival) == 16);

}  // namespace weir::detail

#endif
