// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_CONSTANT_HPP
#define WEIR_BACKOFF_CONSTANT_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/time.hpp"

#include <cstdint>

namespace weir {

/// The same wait every time.
class constant_backoff {
 public:
  /// @param wait held within [0, `limits::span`]
  constexpr explicit constant_backoff(duration wait) noexcept : wait_{detail::as_wait(wait)} {}

  /// The wait, whatever came before.
  [[nodiscard]] constexpr duration operator()(std::uint32_t /*attempt*/, duration /*previous*/,
                                              std::uint64_t /*entropy*/) const noexcept {
    return wait_;
  }

 private:
  duration wait_;
};

}  // namespace weir

#endif
