// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_CAPPED_HPP
#define WEIR_BACKOFF_CAPPED_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/concept.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weir {

/// Another backoff, but never longer than a maximum.
///
///     constexpr weir::capped_backoff retry{weir::exponential_backoff{100ms}, 30s};
template <backoff B>
class capped_backoff {
 public:
  /// @param inner what is capped
  /// @param most  held within [0, `limits::span`]
  constexpr capped_backoff(B inner, duration most)
      : inner_{std::move(inner)},
        most_{detail::as_wait(most)} {}

  /// The inner wait, held within [0, most].
  [[nodiscard]] constexpr duration operator()(std::uint32_t attempt, duration previous,
                                              std::uint64_t entropy) const
      noexcept(noexcept(std::declval<B const&>()(attempt, previous, entropy))) {
    return std::clamp(inner_(attempt, previous, entropy), duration::zero(), most_);
  }

 private:
  B inner_;
  duration most_;
};

}  // namespace weir

#endif
