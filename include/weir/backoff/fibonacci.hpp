// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_FIBONACCI_HPP
#define WEIR_BACKOFF_FIBONACCI_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/time.hpp"

#include <cstdint>

namespace weir {

/// Each wait is the sum of the two before it: `first` times 1, 1, 2, 3, 5, 8, …
class fibonacci_backoff {
 public:
  /// @param first the first two waits, held within [0, `limits::span`]
  constexpr explicit fibonacci_backoff(duration first) noexcept : first_{detail::as_wait(first)} {}

  /// The wait before retry `attempt`, from 0; at most `limits::span`.
  [[nodiscard]] constexpr duration operator()(std::uint32_t attempt, duration /*previous*/,
                                              std::uint64_t /*entropy*/) const noexcept {
    duration wait = first_;
    duration before{};
    // It is at its end after at most 85 steps, or at once if it is 0.
    for (; attempt != 0 && wait != duration::zero() && wait != limits::span; --attempt) {
      duration const next = detail::add_waits(wait, before);
      before = wait;
      wait = next;
    }
    return wait;
  }

 private:
  duration first_;
};

}  // namespace weir

#endif
