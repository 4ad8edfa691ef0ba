// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_BYTE_TOKENS_HPP
#define WEIR_EXAMPLE_MANIFEST_BYTE_TOKENS_HPP

#include "weir/quota.hpp"

#include <algorithm>
#include <cstdint>

namespace manifest {

/// How a byte budget is counted. A quota is exact or refused, and no store can represent every
/// number of tokens per nanosecond; but all whole numbers up to some millions a second. So above
/// that a token is a block of bytes, and part of a block costs a whole one.
struct byte_tokens {
  std::uint64_t block = 1;  ///< bytes of a token
  std::uint64_t rate = 0;   ///< tokens per second
  std::uint64_t burst = 0;  ///< tokens that the budget holds: those of a twentieth of a second
  std::uint64_t chunk = 0;  ///< bytes to read at a time: whole blocks, and no more than it holds

  /// @param bytes_per_second at least 1
  [[nodiscard]] static constexpr byte_tokens of(std::uint64_t bytes_per_second) noexcept {
    byte_tokens t;
    while (bytes_per_second / t.block > 2'000'000) t.block *= 2;
    t.rate = bytes_per_second / t.block;
    t.burst = std::max<std::uint64_t>(t.rate / 20, 1);
    // A large file is many takes, and others get theirs in between.
    t.chunk = std::min(t.burst, t.cost(1 << 20)) * t.block;
    return t;
  }

  [[nodiscard]] constexpr std::uint64_t cost(std::uint64_t bytes) const noexcept {
    return (bytes + block - 1) / block;
  }
  [[nodiscard]] constexpr weir::quota quota() const noexcept {
    return weir::quota::per_second(rate).burst(burst);
  }
};

}  // namespace manifest

#endif
