// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_DICE_HPP
#define WEIR_TESTING_DICE_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace weir::testing {

/// A source of choices that is the same on every platform for the same seed, unlike the standard's
/// distributions. A value: a copy goes on by itself. Not thread-safe.
///
/// Source: splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
class dice {
 public:
  explicit constexpr dice(std::uint64_t seed) noexcept : state_{seed} {}

  /// 64 random bits.
  constexpr std::uint64_t bits() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    auto z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  /// One of 0…n-1; 0 for n = 0.
  constexpr std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : bits() % n; }

  /// True in `percent` of a hundred throws.
  constexpr bool chance(std::uint64_t percent) noexcept { return below(100) < percent; }

  /// One of a container's elements; it must not be empty.
  template <class Container>
  constexpr auto const& pick(Container const& from) noexcept {
    return *std::next(std::begin(from), static_cast<std::ptrdiff_t>(below(std::size(from))));
  }

  /// Another source, independent of this one from here on.
  [[nodiscard]] constexpr dice fork() noexcept { return dice{bits()}; }

 private:
  std::uint64_t state_;
};

}  // namespace weir::testing

#endif
